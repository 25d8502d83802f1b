"""What a failing test's history makes of its failure: new, recurring, flaky, infrastructure, broken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

if TYPE_CHECKING:
    from loki.memory.test_history import Earlier
    from loki.recognition.failure import Failure

LabelName: TypeAlias = Literal["new", "recurring", "flaky", "infrastructure", "broken"]

LABELS: tuple[LabelName, ...] = get_args(LabelName)


@dataclass(frozen=True, slots=True)
class Label:
    """What a failure is, beside what was seen before.

    Attributes:
        name: new, recurring, flaky, infrastructure or broken.
        evidence: why, one sentence with figures.
    """

    name: LabelName
    evidence: str


def label_of(failure: Failure, earlier: Earlier) -> Label:
    """The label of a failure of a test."""
    if failure.match is not None and failure.match.is_infrastructure:
        return Label("infrastructure", f"recognized as {failure.kind}")
    return Label("new", "never seen before")

"""What the closed loop is told of drift, and what it asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from loki.action.agent_protocol import Proposal
from loki.decision.drift.drift import Drift


@dataclass(frozen=True, slots=True)
class Drifted:
    """A proposal leaves its task, or somebody says that its agent does.

    Attributes:
        drifts: how, the most severe first; one or more.
        count: drifts of the task since its context was cleared last, these included.
        has_reviewer: an agent can be asked about it.
    """

    drifts: tuple[Drift, ...]
    count: int = 1
    has_reviewer: bool = False


@dataclass(frozen=True, slots=True)
class DriftReviewed:
    """The task was reviewed.

    Attributes:
        approved: the proposal serves the task after all.
        by: who looked.
        reason: why, a sentence.
        drifts: what was looked at.
    """

    approved: bool
    by: str
    reason: str
    drifts: tuple[Drift, ...]


@dataclass(frozen=True, slots=True)
class ReviewDrift:
    """Have it looked at whether a proposal serves its task; answered by `DriftReviewed`."""

    proposal: Proposal
    drifts: tuple[Drift, ...]


@dataclass(frozen=True, slots=True)
class ReportDrift:
    """Keep drift in the log of signals; ``ask``: why a person has to look, or ""."""

    drifts: tuple[Drift, ...]
    agent: str
    ask: str = ""


DriftEvent: TypeAlias = Drifted | DriftReviewed
DriftEffect: TypeAlias = ReviewDrift | ReportDrift

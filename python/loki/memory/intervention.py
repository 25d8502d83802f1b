"""A person stepped in: what they said or did, and where the task stood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loki.base.codec import IsoTime
from loki.base.error import UsageError
from loki.base.secret import mask_secrets

MAX_CONTEXT = 8_000
"""Most characters of what a person says, some 2,000 tokens, as it stands in every later briefing;
chosen, not measured."""

RESUME, ABORT = "resume", "abort"


@dataclass(frozen=True, slots=True)
class Intervention:
    """A person's answer to a task that stopped.

    Attributes:
        at: when, ISO 8601 UTC.
        kind: ``resume`` or ``abort``.
        context: what they said, secrets masked; "" where they said nothing.
        execution: the execution that it belongs to, 1 or more.
        attempt: number of the last attempt before it, 0 where there was none.
        status: what the task had ended with: escalated, failed, …
    """

    at: IsoTime
    kind: str = RESUME
    context: str = ""
    execution: int = 1
    attempt: int = 0
    status: str = ""


def intervention_text(context: str) -> str:
    """What a person said, as it is kept.

    Args:
        context: their words.

    Raises:
        UsageError: they are too many for every later briefing.

    Example:
        >>> intervention_text("  The sign is wrong.\\n")
        'The sign is wrong.'
    """
    text = mask_secrets(context.strip())
    if len(text) > MAX_CONTEXT:
        raise UsageError(
            f"the context has {len(text)} characters: expected at most {MAX_CONTEXT}; put the rest "
            "into a file of the project, and name that file"
        )
    return text


def words_of(interventions: Sequence[Intervention], execution: int) -> tuple[str, ...]:
    """What people said in an execution, oldest first."""
    return tuple(
        i.context
        for i in interventions
        if i.execution == execution and i.context and i.kind == RESUME
    )


def last_attempt_before(interventions: Sequence[Intervention], execution: int) -> int:
    """Number of the last attempt that a person has seen the end of; 0 where none stepped in.

    What was tried up to there counts for no limit any more: something has changed.
    """
    return max((i.attempt for i in interventions if i.execution == execution), default=0)

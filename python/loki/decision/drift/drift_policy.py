"""What follows from drift: pure, a table from (what drifted, how often, what was said before) to effects.

In this order:

1. high or critical                          → pause: a person looks
2. the same drift again                      → pass, or review where somebody can: it was told of it
3. `MAX_RETURNS` returns in an execution    → pause: it does not come back to its task
4. the third or more since the last clear    → back to reasoning, with a cleared context
5. the second                                → review: approved it passes, else back to reasoning
6. the first                                 → back to reasoning, and a warning
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from loki.decision.drift.drift import Drift, rank, worst

REVIEWED, CLEARED = 2, 3
"""Drifts since the last clear from which on a task is reviewed, and its context cleared, as the
specification has it."""

MAX_RETURNS = 6
"""Times that an execution is sent back at most: two whole rounds up to a clear. Chosen, not measured."""

PAUSE_RANK = rank("high")


class DriftResponse(str, Enum):
    """What the loop does about drift."""

    RETURN = "return"
    REVIEW = "review"
    PASS = "pass"  # noqa: S105 - no password
    PAUSE = "pause"


@dataclass(frozen=True, slots=True)
class ScopeDrift:
    """How a task has drifted in this execution.

    Attributes:
        told: what it was sent back for (`Drift.keys`).
        returns: how often it was.
    """

    told: frozenset[str] = frozenset()
    returns: int = 0

    def sent_back(self, drifts: Sequence[Drift]) -> ScopeDrift:
        """The same after it was sent back once more."""
        keys = frozenset().union(*(drift.keys for drift in drifts))
        return replace(self, told=self.told | keys, returns=self.returns + 1)


@dataclass(frozen=True, slots=True)
class DriftDecision:
    """What is to be done, and why.

    Attributes:
        move: return, review, pass or pause.
        reason: one sentence.
    """

    move: DriftResponse
    reason: str


def decide(
    drifts: Sequence[Drift], count: int, before: ScopeDrift, *, has_reviewer: bool = False
) -> DriftDecision:
    """What to do about the drift of a proposal.

    Args:
        drifts: one or more.
        count: drifts of the task since its context was cleared last, these included.
        before: what it was told already.
        has_reviewer: an agent can be asked.

    Example:
        >>> drift = Drift("fix a", "works on b.py", "medium", 2, ("b.py",))
        >>> decide([drift], 1, ScopeDrift()).move.value
        'return'
        >>> decide([drift], 2, ScopeDrift().sent_back([drift])).move.value
        'pass'
    """
    severity, said = worst(drifts) or "low", drifts[0].detected_drift
    if rank(severity) >= PAUSE_RANK:
        return DriftDecision(DriftResponse.PAUSE, f"drift of severity {severity}: {said}")
    if all(drift.keys <= before.told for drift in drifts):
        move, why = (
            (DriftResponse.REVIEW, "the same drift again")
            if has_reviewer
            else (DriftResponse.PASS, "told of it once, it insists")
        )
    elif before.returns >= MAX_RETURNS:
        move, why = DriftResponse.PAUSE, f"sent back {before.returns} times, it still drifts"
    elif count >= CLEARED:
        move, why = DriftResponse.RETURN, f"drift {count} since the last context clear"
    elif count >= REVIEWED:
        move, why = DriftResponse.REVIEW, f"drift {count} in this task"
    else:
        move, why = DriftResponse.RETURN, "drift"
    return DriftDecision(move, f"{why}: {said}")

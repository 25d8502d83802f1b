"""What follows from drift: pure, a table from (what drifted, how often, what was said before) to effects.

In this order:

1. high or critical                          → pause: a person looks
2. the same drift again                      → pass, or review where somebody can: it was told of it
3. `MOST_RETURNS` returns in an execution    → pause: it does not come back to its task
4. the third or more since the last clear    → back to reasoning, with a cleared context
5. the second                                → review: approved it passes, else back to reasoning
6. the first                                 → back to reasoning, and a warning

Under test: ``tests/py/decision/drift/test_drift_policy.py``; why it is so: ``docs/design/drift.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from loki.decision.drift.drift import Drift, rank, worst

REVIEWED, CLEARED = 2, 3
"""Drifts since the last clear from which on a task is reviewed, and its context cleared, as the
specification has it."""

MOST_RETURNS = 6
"""Times that an execution is sent back at most: two whole rounds up to a clear. Chosen, not measured."""

PAUSES = rank("high")


class Move(str, Enum):
    """What the loop does about drift."""

    RETURN = "return"
    REVIEW = "review"
    PASS = "pass"  # noqa: S105 - no password
    PAUSE = "pause"


@dataclass(frozen=True, slots=True)
class Strayed:
    """How a task has drifted in this execution.

    Attributes:
        told: what it was sent back for (`Drift.keys`).
        returns: how often it was.
    """

    told: frozenset[str] = frozenset()
    returns: int = 0

    def sent_back(self, drifts: Sequence[Drift]) -> Strayed:
        """The same after it was sent back once more."""
        keys = frozenset().union(*(drift.keys for drift in drifts))
        return replace(self, told=self.told | keys, returns=self.returns + 1)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be done, and why.

    Attributes:
        move: return, review, pass or pause.
        reason: one sentence.
    """

    move: Move
    reason: str


def decide(
    drifts: Sequence[Drift], count: int, before: Strayed, *, has_reviewer: bool = False
) -> Verdict:
    """What to do about the drift of a proposal.

    Args:
        drifts: one or more.
        count: drifts of the task since its context was cleared last, these included.
        before: what it was told already.
        has_reviewer: an agent can be asked.

    Example:
        >>> drift = Drift("fix a", "works on b.py", "medium", 2, ("b.py",))
        >>> decide([drift], 1, Strayed()).move.value
        'return'
        >>> decide([drift], 2, Strayed().sent_back([drift])).move.value
        'pass'
    """
    severity, said = worst(drifts) or "low", drifts[0].detected_drift
    if rank(severity) >= PAUSES:
        return Verdict(Move.PAUSE, f"drift of severity {severity}: {said}")
    if all(drift.keys <= before.told for drift in drifts):
        move, why = (
            (Move.REVIEW, "the same drift again")
            if has_reviewer
            else (Move.PASS, "told of it once, it insists")
        )
    elif before.returns >= MOST_RETURNS:
        move, why = Move.PAUSE, f"sent back {before.returns} times, it still drifts"
    elif count >= CLEARED:
        move, why = Move.RETURN, f"drift {count} since the last context clear"
    elif count >= REVIEWED:
        move, why = Move.REVIEW, f"drift {count} in this task"
    else:
        move, why = Move.RETURN, "drift"
    return Verdict(move, f"{why}: {said}")

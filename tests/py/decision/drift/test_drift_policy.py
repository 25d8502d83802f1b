"""What follows from drift: every row of the table."""

from __future__ import annotations

import pytest

from loki.decision.drift.drift import Drift, Severity
from loki.decision.drift.drift_policy import MOST_RETURNS, Move, Strayed, decide


def drift(severity: Severity = "medium", path: str = "b.py") -> Drift:
    return Drift("fix a", f"works on {path}", severity, 2, (path,))


TOLD = Strayed().sent_back([drift()])
SPENT = Strayed(frozenset(), MOST_RETURNS)


@pytest.mark.parametrize(
    ("one", "count", "before", "has_reviewer", "move"),
    [
        (drift(), 1, Strayed(), False, Move.RETURN),
        (drift("low"), 1, Strayed(), True, Move.RETURN),
        (drift(), 2, Strayed(), False, Move.REVIEW),
        (drift(), 3, Strayed(), True, Move.RETURN),
        (drift(), 9, Strayed(), False, Move.RETURN),
        (drift("high"), 1, Strayed(), True, Move.PAUSE),
        (drift("critical"), 3, TOLD, False, Move.PAUSE),
        (drift("high"), 2, Strayed().sent_back([drift("high")]), False, Move.PAUSE),
        (drift(), 2, TOLD, False, Move.PASS),
        (drift(), 2, TOLD, True, Move.REVIEW),
        (drift(), 3, TOLD, False, Move.PASS),
        (drift(path="c.py"), 2, TOLD, False, Move.REVIEW),
        (drift(), 1, SPENT, False, Move.PAUSE),
    ],
)
def test_every_row(one: Drift, count: int, before: Strayed, has_reviewer: bool, move: Move) -> None:
    verdict = decide([one], count, before, has_reviewer=has_reviewer)
    assert verdict.move is move
    assert one.detected_drift in verdict.reason


def test_something_new_beside_the_same_is_not_the_same() -> None:
    both = [drift(), drift(path="c.py")]
    assert decide(both, 2, TOLD).move is Move.REVIEW


def test_it_ends_whatever_an_agent_does() -> None:
    """New drift each time: so many returns, and no more."""
    before, count, moves = Strayed(), 0, []
    for number in range(100):
        one = drift(path=f"{number}.py")
        count += 1
        move = decide([one], count, before).move
        moves.append(move)
        if move is Move.PAUSE:
            break
        before = before.sent_back([one])  # a review without a reviewer sends it back, too
        count = 0 if count >= 3 else count
    assert moves.count(Move.PAUSE) == 1
    assert len(moves) == MOST_RETURNS + 1

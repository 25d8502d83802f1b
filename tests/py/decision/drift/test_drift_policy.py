"""What follows from drift: every row of the table."""

from __future__ import annotations

import pytest

from loki.decision.drift.drift import (
    MAX_RETURNS,
    Drift,
    DriftResponse,
    ScopeDrift,
    Severity,
    decide,
)


def drift(severity: Severity = "medium", path: str = "b.py") -> Drift:
    return Drift("fix a", f"works on {path}", severity, 2, (path,))


TOLD = ScopeDrift().sent_back([drift()])
SPENT = ScopeDrift(frozenset(), MAX_RETURNS)


@pytest.mark.parametrize(
    ("one", "count", "before", "has_reviewer", "move"),
    [
        (drift(), 1, ScopeDrift(), False, DriftResponse.RETURN),
        (drift("low"), 1, ScopeDrift(), True, DriftResponse.RETURN),
        (drift(), 2, ScopeDrift(), False, DriftResponse.REVIEW),
        (drift(), 3, ScopeDrift(), True, DriftResponse.RETURN),
        (drift(), 9, ScopeDrift(), False, DriftResponse.RETURN),
        (drift("high"), 1, ScopeDrift(), True, DriftResponse.PAUSE),
        (drift("critical"), 3, TOLD, False, DriftResponse.PAUSE),
        (drift("high"), 2, ScopeDrift().sent_back([drift("high")]), False, DriftResponse.PAUSE),
        (drift(), 2, TOLD, False, DriftResponse.PASS),
        (drift(), 2, TOLD, True, DriftResponse.REVIEW),
        (drift(), 3, TOLD, False, DriftResponse.PASS),
        (drift(path="c.py"), 2, TOLD, False, DriftResponse.REVIEW),
        (drift(), 1, SPENT, False, DriftResponse.PAUSE),
    ],
)
def test_every_row(
    one: Drift, count: int, before: ScopeDrift, has_reviewer: bool, move: DriftResponse
) -> None:
    verdict = decide([one], count, before, has_reviewer=has_reviewer)
    assert verdict.move is move
    assert one.detected_drift in verdict.reason


def test_something_new_beside_the_same_is_not_the_same() -> None:
    both = [drift(), drift(path="c.py")]
    assert decide(both, 2, TOLD).move is DriftResponse.REVIEW


def test_it_ends_whatever_an_agent_does() -> None:
    """New drift each time: so many returns, and no more."""
    before, count, moves = ScopeDrift(), 0, []
    for number in range(100):
        one = drift(path=f"{number}.py")
        count += 1
        move = decide([one], count, before).move
        moves.append(move)
        if move is DriftResponse.PAUSE:
            break
        before = before.sent_back([one])  # a review without a reviewer sends it back, too
        count = 0 if count >= 3 else count
    assert moves.count(DriftResponse.PAUSE) == 1
    assert len(moves) == MAX_RETURNS + 1

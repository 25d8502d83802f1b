"""Counting against a budget, from many threads."""

from __future__ import annotations

from loki.decision.budget import Budget, Meter
from loki.testing import ManualClock


def test_each_limit_ends_it() -> None:
    for budget in (Budget(attempts=2), Budget(tokens=100), Budget(cost=0.5)):
        meter = Meter(budget, ManualClock())
        assert meter.spent() is None
        meter.charge(calls=2, tokens=100, cost=0.5)
        assert meter.spent() is not None


def test_time_counts_from_the_first_call() -> None:
    clock = ManualClock()
    meter = Meter(Budget(seconds=100), clock)
    clock.advance("1h")
    assert meter.left == 100
    meter.begin()
    clock.advance("80s")
    meter.begin()
    assert meter.left == 20
    assert meter.charge() == {"seconds": "80 of 100 s are spent"}
    clock.advance("20s")
    assert meter.spent() == "the budget of 100 s is spent (100 used)"

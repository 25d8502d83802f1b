"""Counting against a budget, from many threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from loki.decision.budget import Budget
from loki.decision.budget_meter import Meter
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


def test_no_charge_is_lost_and_one_thread_is_warned() -> None:
    meter = Meter(Budget(tokens=10_000), ManualClock())
    with ThreadPoolExecutor(8) as pool:
        told = [news for news in pool.map(lambda _: meter.charge(tokens=1), range(10_000)) if news]
    assert meter.usage.tokens == 10_000
    assert told == [{"tokens": "8,000 of 10,000 tokens are spent"}]

"""Counting against a budget, from many threads: what takes its time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from loki.decision.budget import Budget, Meter
from loki.testing import ManualClock


def test_no_charge_is_lost_and_one_thread_is_warned() -> None:
    meter = Meter(Budget(tokens=10_000), ManualClock())
    with ThreadPoolExecutor(8) as pool:
        told = [news for news in pool.map(lambda _: meter.charge(tokens=1), range(10_000)) if news]
    assert meter.usage.tokens == 10_000
    assert told == [{"tokens": "8,000 of 10,000 tokens are spent"}]

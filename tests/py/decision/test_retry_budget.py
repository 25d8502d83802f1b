"""Retries are a share of calls, whoever makes them."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

import loki
from loki.testing import ManualClock


def drained(budget: loki.RetryBudget) -> int:
    count = 0
    while budget.try_withdraw():
        count += 1
    return count


def test_where_everything_fails_load_grows_by_the_share() -> None:
    budget = loki.RetryBudget(share=0.2, per_second=0, capacity=10, clock=ManualClock())
    retries = 0
    for _ in range(1000):
        budget.deposit()
        retries += budget.try_withdraw()
    assert retries == 10 + 200 - 1, "what the first call pays finds the budget full"


def test_time_pays_for_a_few() -> None:
    clock = ManualClock()
    budget = loki.RetryBudget(per_second=2, capacity=5, clock=clock)
    assert drained(budget) == 5
    clock.advance("1s")
    assert drained(budget) == 2
    clock.advance("1h")
    assert budget.balance == 5
    assert repr(budget) == "<RetryBudget: 5 retries>"


@given(
    st.floats(0, 2),
    st.floats(0, 5),
    st.floats(1, 20),
    st.lists(
        st.one_of(st.just("call"), st.just("retry"), st.floats(0, 10)), min_size=1, max_size=100
    ),
)
def test_no_history_allows_more_than_was_paid_for(
    share: float, per_second: float, capacity: float, events: list[str | float]
) -> None:
    clock = ManualClock()
    budget = loki.RetryBudget(share, per_second, capacity, clock)
    paid, allowed = capacity, 0
    for event in events:
        if event == "call":
            budget.deposit()
            paid += share
        elif event == "retry":
            allowed += budget.try_withdraw()
        else:
            assert isinstance(event, float)
            clock.advance(event)
            paid += per_second * event
        assert allowed <= paid + 1e-6
        assert 0 <= budget.balance <= capacity + 1e-9


def test_threads_share_it_exactly() -> None:
    budget = loki.RetryBudget(share=0, per_second=0, capacity=5000, clock=ManualClock())
    allowed: list[int] = []

    def work() -> None:
        allowed.append(sum(budget.try_withdraw() for _ in range(2000)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(allowed) == 5000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"share": -0.1}, "share is -0.1: expected a number from 0 to 1000000"),
        ({"per_second": float("nan")}, "per_second is nan: expected"),
        ({"capacity": 0.5}, "capacity is 0.5: expected a number from 1 to"),
        ({"capacity": float("inf")}, "capacity is inf: expected"),
    ],
)
def test_misuse_is_named(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        loki.RetryBudget(**arguments)  # type: ignore[arg-type]

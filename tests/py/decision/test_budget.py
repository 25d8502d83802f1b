"""How much a run may take."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki.decision.budget import WARN_AT, Budget, Usage

NAMES = ["attempts", "seconds", "tokens", "cost"]


@pytest.mark.parametrize("name", NAMES)
def test_each_limit_ends_a_run_once_it_is_reached(name: str) -> None:
    budget = Budget(**{name: 10})
    assert budget.spent(Usage(**{name: 9})) is None
    assert "budget of" in (budget.spent(Usage(**{name: 10})) or "")
    assert budget.spent(Usage(**{other: 99 for other in NAMES if other != name})) is None


@pytest.mark.parametrize("name", NAMES)
def test_a_warning_comes_at_80_percent(name: str) -> None:
    budget = Budget(**{name: 10})
    assert not budget.nearly_spent(Usage(**{name: 7}))
    assert list(budget.nearly_spent(Usage(**{name: 8}))) == [name]


@given(st.integers(1, 10**12), st.integers(0, 10**13))
def test_what_is_spent_was_warned_of(limit: int, used: int) -> None:
    budget, usage = Budget(tokens=limit), Usage(tokens=used)
    assert (budget.spent(usage) is not None) == (used >= limit)
    assert bool(budget.nearly_spent(usage)) == (used >= WARN_AT * limit)


def test_without_limits_nothing_is_ever_spent() -> None:
    usage = Usage(10**9, 1e18, 10**18, 1e18)
    assert Budget().spent(usage) is None
    assert not Budget().nearly_spent(usage)


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
def test_what_is_no_limit_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="budget of cost is .*: expected a number above 0"):
        Budget(cost=value)


def test_it_speaks_of_money_and_tokens_as_people_do() -> None:
    assert Budget(cost=5).spent(Usage(cost=5.126)) == "the budget of $5.00 is spent ($5.13 used)"
    assert Budget(tokens=10_000).nearly_spent(Usage(tokens=8_500)) == {
        "tokens": "8,500 of 10,000 tokens are spent"
    }

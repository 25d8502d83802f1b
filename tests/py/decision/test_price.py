"""Prices: what a call costs, by hand; every entry of the table makes sense."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki.base.tokens import TokenUsage
from loki.decision.price import Price, Prices, _table

COUNTS = st.integers(0, 10**7)


def test_by_hand() -> None:
    # 1,000 fresh at $3, 8,000 out of the cache at $0.30, 1,000 into it at $3.75, 500 out at $15
    usage = TokenUsage(input=10_000, output=500, cache_read=8_000, cache_write=1_000)
    expected = (1_000 * 3 + 8_000 * 0.3 + 1_000 * 3.75 + 500 * 15) / 1e6
    assert Prices().cost("claude-sonnet-4-5", usage) == pytest.approx(expected)


def test_a_long_request_has_its_own_price() -> None:
    prices = Prices()
    assert prices.cost("claude-haiku-5-5", TokenUsage(100_000, 1_000)) == pytest.approx(0.0105)
    assert prices.cost("claude-haiku-5-5", TokenUsage(100_001, 0)) == pytest.approx(0.0500005)


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("claude-opus-4-5-20251101", True),
        ("anthropic/claude-opus-4-5", True),
        ("gpt-5-2025-08-07", True),
        ("gpt-5-mini-2025-08-07", True),
        ("gemini-3.1-pro-preview", True),
        ("claude-opus-4-6[1m]", True),
        ("gpt-5-turbo", False),
        ("claude-opus-4-55", False),
        ("gpt-50", False),
        ("", False),
    ],
)
def test_names(model: str, known: bool) -> None:
    assert (Prices().of(model) is not None) is known


def test_a_version_is_not_another_model() -> None:
    assert Prices().of("gpt-5-mini-2025-08-07") == Prices().of("gpt-5-mini")
    assert Prices().of("gpt-5-mini") != Prices().of("gpt-5")


def test_what_is_not_known_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "loki")
    prices = Prices()
    assert prices.cost("house-model", TokenUsage(10, 10)) is None
    assert prices.cost("house-model", TokenUsage(20, 10)) is None
    assert prices.cost("other-house-model", TokenUsage()) == 0.0, "nothing costs nothing"
    (record,) = caplog.records
    assert '[prices."house-model"]' in record.getMessage()


def test_ones_own_price_wins() -> None:
    assert Prices({"gpt-5": Price(0, 0)}).cost("gpt-5-2025-08-07", TokenUsage(10**6, 1)) == 0.0


@pytest.mark.parametrize("wrong", [-1, float("nan"), float("inf")])
def test_what_is_no_price(wrong: float) -> None:
    with pytest.raises(ValueError, match="expected a number"):
        Price(1, wrong)


def test_the_table_makes_sense() -> None:
    assert len(_table()) > 40
    for name, price in _table().items():
        assert price.input < price.output, name
        assert (price.cache_read or 0) < price.input, name
        assert (price.cache_write or price.input) >= price.input, name
        if price.over is not None:
            assert price.over.input > price.input, name
            assert price.over_tokens, name


@given(COUNTS, COUNTS, st.floats(0, 1), st.floats(0, 1))
def test_the_cache_never_makes_it_dearer_than_its_dearest_price(
    total: int, out: int, read: float, write: float
) -> None:
    usage = TokenUsage(total, out, int(total * read), int(total * (1 - read) * write))
    price = Price(3, 15, 0.3, 3.75)
    assert 0 <= price.cost(usage) <= (total * 3.75 + out * 15) / 1e6 + 1e-9

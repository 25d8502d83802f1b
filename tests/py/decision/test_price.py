"""Prices: what a call costs, by hand."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki.base.tokens import TokenUsage
from loki.decision.price import Price, Prices

COUNTS = st.integers(0, 10**7)


def test_by_hand() -> None:
    # 1,000 fresh at $3, 8,000 out of the cache at $0.30, 1,000 into it at $3.75, 500 out at $15
    usage = TokenUsage(input=10_000, output=500, cache_read=8_000, cache_write=1_000)
    expected = (1_000 * 3 + 8_000 * 0.3 + 1_000 * 3.75 + 500 * 15) / 1e6
    assert Prices().cost(usage, "claude-sonnet-4-5") == pytest.approx(expected)


def test_a_long_request_has_its_own_price() -> None:
    short, long = TokenUsage(200_000), TokenUsage(200_001)
    assert Prices().cost(short, "claude-sonnet-4-5") == pytest.approx(0.6)
    assert Prices().cost(long, "claude-sonnet-4-5") == pytest.approx(1.200006)


def test_a_cache_cannot_hold_more_than_was_asked() -> None:
    """Services say so sometimes."""
    assert Prices().cost(TokenUsage(100, 0, 200, 0), "claude-sonnet-4-5") == pytest.approx(6e-5)


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("claude-opus-4-5-20251101", True),
        ("anthropic/claude-opus-4-5", True),
        ("gpt-5-2025-08-07", True),
        ("gpt-5-mini-2025-08-07", True),
        ("gemini-3.1-pro-preview", True),
        ("openai/gpt-5", True),
        ("claude-opus-4-6[1m]", True),
        ("gpt-5-turbo", False),
        ("gpt-50", False),
        ("deepseek-r1:7b", False),  # on one's own machine it costs nothing
        ("mistral-large", False),
        ("", False),
    ],
)
def test_names(model: str, known: bool) -> None:
    assert (Prices().cost(TokenUsage(1000), model) is not None) is known


def test_a_version_is_not_another_model() -> None:
    usage = TokenUsage(1000, 1000)
    dated, mini, whole = (
        Prices().cost(usage, name) for name in ("gpt-5-mini-2025-08-07", "gpt-5-mini", "gpt-5")
    )
    assert dated == mini != whole


def test_the_first_name_that_is_known_counts() -> None:
    prices = Prices({"house": Price(1, 1)})
    assert prices.cost(TokenUsage(10**6), "house-v2", "house") == 1
    assert prices.cost(TokenUsage(10**6), "gpt-5", "house") == 1.25


def test_what_is_not_known_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "loki")
    prices = Prices()
    assert prices.cost(TokenUsage(10, 10), "house-model") is None
    assert prices.cost(TokenUsage(20, 10), "house-model") is None
    assert prices.cost(TokenUsage(), "other-house-model") == 0.0, "nothing costs nothing"
    (record,) = caplog.records
    assert '[prices."house-model"]' in record.getMessage()


def test_ones_own_price_wins() -> None:
    own = Prices({"gpt-5": Price(0, 0)})
    assert own.cost(TokenUsage(10**6, 1), "gpt-5-2025-08-07") == 0.0


@pytest.mark.parametrize("wrong", [-1, float("nan"), float("inf")])
def test_what_is_no_price(wrong: float) -> None:
    with pytest.raises(ValueError, match="expected a number"):
        Price(1, wrong)


@given(COUNTS, COUNTS, st.floats(0, 1), st.floats(0, 1))
def test_the_cache_never_makes_it_dearer_than_its_dearest_price(
    total: int, out: int, read: float, write: float
) -> None:
    usage = TokenUsage(total, out, int(total * read), int(total * (1 - read) * write))
    price = Price(3, 15, 0.3, 3.75)
    assert 0 <= price.cost(usage) <= (total * 3.75 + out * 15) / 1e6 + 1e-9

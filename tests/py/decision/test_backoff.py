"""The friendly front of backoff; the arithmetic itself is under test in C++."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import loki


def test_the_delays_of_the_documents() -> None:
    """Inside the loop: 5 s, 10 s, 20 s; a recurring task doubles from the first failure."""
    backoff = loki.Backoff("5s", jitter=0)
    assert backoff.preview(4, offset=1) == [5, 10, 20, 40]
    assert backoff.preview(3) == [10, 20, 40]
    assert backoff.delay(0) == 5


@given(
    base=st.floats(0, 1e6),
    multiplier=st.floats(1, 10),
    cap=st.floats(0, 1e7),
    jitter=st.floats(0, 1),
    failures=st.integers(0, 2**32 - 1),
    offset=st.integers(0, 5),
    key=st.text(),
)
def test_never_leaves_the_bounds(
    base: float,
    multiplier: float,
    cap: float,
    jitter: float,
    failures: int,
    offset: int,
    key: str,
) -> None:
    """Any count, any jitter: the delay stays within [base, max(base, cap)], to the nanosecond."""
    delay = loki.Backoff(base, multiplier, cap, jitter).delay(failures, key, offset)
    assert base - 1e-8 <= delay <= max(base, cap) + 1e-8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"base": -1}, "expected a finite number"),
        ({"base": float("nan")}, "expected a finite number"),
        ({"base": "5"}, "is no duration"),
        ({"base": 1, "multiplier": 0.5}, "multiplier"),
        ({"base": 1, "jitter": 2}, "jitter"),
        ({"base": 1, "mode": "wild"}, "expected 'proportional'"),
    ],
)
def test_misuse_is_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        loki.Backoff(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("failures", [-1, 2**32])
def test_counts_outside_32_bits_are_refused(failures: int) -> None:
    with pytest.raises(ValueError, match="failures"):
        loki.Backoff(1).delay(failures)


def test_a_timedelta_is_a_duration() -> None:
    assert loki.Backoff(timedelta(minutes=1), jitter=0).delay(1, offset=1) == 60

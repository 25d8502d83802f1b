"""The friendly front of backoff; the arithmetic itself is under test in C++."""

import pickle
from datetime import timedelta

import pytest

import loki


def test_the_delays_of_the_documents() -> None:
    """Inside the loop: 5 s, 10 s, 20 s; a recurring task doubles from the first failure."""
    backoff = loki.Backoff("5s", jitter=0)
    assert backoff.preview(4, offset=1) == [5, 10, 20, 40]
    assert backoff.preview(3) == [10, 20, 40]
    assert backoff.delay(0) == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"base": -1}, "expected a finite number"),
        ({"base": float("nan")}, "expected a finite number"),
        ({"base": float("inf")}, "expected a finite number"),
        ({"base": 1, "cap": -1}, "expected a finite number"),
        ({"base": 1, "cap": float("inf")}, "expected a finite number"),
        ({"base": "5"}, "'5' has no unit: expected 5s for seconds"),
        ({"base": "soon"}, "'soon' is no duration: expected numbers with units"),
        (
            {"base": 1, "multiplier": 0.5},
            "multiplier is 0.5: expected a finite number of 1 or more",
        ),
        ({"base": 1, "multiplier": float("nan")}, "multiplier is nan: expected"),
        ({"base": 1, "multiplier": float("inf")}, "multiplier is inf: expected"),
        ({"base": 1, "jitter": 2}, "jitter is 2: expected a number from 0 to 1"),
        ({"base": 1, "jitter": -0.1}, "jitter is -0.1: expected"),
        ({"base": 1, "jitter": float("nan")}, "jitter is nan: expected"),
        (
            {"base": 1, "mode": "wild"},
            "unknown jitter mode 'wild': expected one of proportional, none",
        ),
        ({"base": 1, "seed": -1}, "seed is -1: expected a whole number from 0 to"),
        ({"base": 1, "seed": 2**64}, "expected a whole number from 0 to"),
    ],
)
def test_misuse_is_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        loki.Backoff(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [-1, 2**32, 10**30])
def test_counts_outside_32_bits_are_refused(count: int) -> None:
    message = rf"found {count}: expected a count of failures from 0 to 2\*\*32 - 1"
    backoff = loki.Backoff(1)
    with pytest.raises(ValueError, match=message):
        backoff.delay(count)
    with pytest.raises(ValueError, match=message):
        backoff.delay(1, "", count)
    with pytest.raises(ValueError, match=message):
        backoff.preview(count)


def test_a_timedelta_is_a_duration() -> None:
    assert loki.Backoff(timedelta(minutes=1), jitter=0).delay(1, offset=1) == 60


def test_any_text_is_a_key() -> None:
    """A path with bytes that are no UTF-8, as Python hands them out, is one, too."""
    backoff = loki.Backoff("5s")
    keys = ["", "a", "ä", "\0", "caf\udce9.py", "x" * 10_000]
    assert len({backoff.delay(3, key) for key in keys}) == len(keys)


def test_the_first_retries_of_a_herd_are_spread_too() -> None:
    """At the base the window is shifted up: 5 to 6 s, not half of the herd at 5."""
    delays = [loki.Backoff("5s").delay(1, str(task), offset=1) for task in range(1000)]
    assert 5 <= min(delays) < 5.01
    assert 5.99 < max(delays) <= 6


@pytest.mark.parametrize(
    ("mode", "low", "high"),
    [("proportional", 18, 22), ("none", 20, 20), ("full", 5, 25), ("equal", 10, 20)],
)
def test_the_window_of_a_mode(mode: str, low: float, high: float) -> None:
    delays = [loki.Backoff("5s", mode=mode).delay(2, str(task)) for task in range(1000)]
    assert low <= min(delays) <= low + 0.02 * (high - low)
    assert high - 0.02 * (high - low) <= max(delays) <= high


def test_a_wait_is_the_longer_of_the_delay_and_what_the_service_asked_for() -> None:
    backoff = loki.Backoff("5s", cap="1m", jitter=0)
    assert backoff.wait(3) == 40
    assert backoff.wait(3, retry_after=2.5) == 40
    assert backoff.wait(3, retry_after="45s") == 45
    assert backoff.wait(3, retry_after="10m") == 600, "the service knows better than the cap"
    with pytest.raises(ValueError, match="expected a finite number of 0 or more"):
        backoff.wait(3, retry_after=-1)


def test_no_wait_passes_a_deadline() -> None:
    backoff = loki.Backoff("5s", cap="1m", jitter=0)
    assert backoff.wait(3, left=40.001) == 40
    assert backoff.wait(3, left=float("inf")) == 40
    for left in (40, 39.9, 0, -5, -float("inf")):
        assert backoff.wait(3, left=left) is None
    assert backoff.wait(3, retry_after="2m", left=60) is None
    assert loki.Backoff(0).wait(1, left=0) is None, "nothing is left for trying"
    with pytest.raises(ValueError, match="nan is no duration"):
        backoff.wait(3, left=float("nan"))


def test_total_is_the_sum_of_the_schedule() -> None:
    backoff = loki.Backoff("5s", cap="1m")
    assert backoff.total(30, "task") == pytest.approx(sum(backoff.preview(30, "task")))
    assert backoff.preview(0) == []
    assert backoff.total(0) == 0
    assert backoff.preview(3, "task", 1)[2] == backoff.delay(3, "task", 1)


def test_its_text_is_the_code_that_makes_it() -> None:
    assert repr(loki.Backoff("5s")) == "Backoff('5s')"
    one = loki.Backoff(
        0.0015, 1.5, cap=timedelta(minutes=90), jitter=0.25, mode="equal", seed=2**64 - 1
    )
    expected = "Backoff('1.5ms', multiplier=1.5, cap='1h30m', jitter=0.25, mode='equal', seed=18446744073709551615)"
    assert repr(one) == expected
    again = eval(expected, {"Backoff": loki.Backoff})
    assert again.preview(20) == one.preview(20)
    assert pickle.loads(pickle.dumps(one)).preview(20) == one.preview(20)

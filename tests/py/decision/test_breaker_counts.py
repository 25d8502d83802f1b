"""What counts as a failure, and what is kept of it."""

from __future__ import annotations

import pytest

from loki.decision.breaker import Breaker, Counts
from loki.testing import ManualClock
from support.breaker import Outage, acquired, half_open, state


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def breaker(clock: ManualClock) -> Breaker:
    return Breaker(clock=clock, name="api/claude")


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interruption_is_no_outcome(breaker: Breaker, interruption: type[BaseException]) -> None:
    for _ in range(5):
        with pytest.raises(interruption), breaker.guard():
            raise interruption
    assert state(breaker) == "CLOSED"
    assert breaker.snapshot().counts.ignored == 5


def is_outage(error: BaseException) -> bool:
    return "down" in str(error)


@pytest.mark.parametrize("counts", [Outage, (Outage, TimeoutError), is_outage])
def test_a_wrong_key_is_no_outage(clock: ManualClock, counts: Counts) -> None:
    breaker = Breaker(clock=clock, counts=counts)
    for _ in range(5):
        with pytest.raises(PermissionError), breaker.guard():
            raise PermissionError("wrong key")
    assert state(breaker) == "CLOSED"
    for _ in range(3):
        with pytest.raises(Outage), breaker.guard():
            raise Outage("down")
    assert state(breaker) == "OPEN"


def test_a_wrong_key_as_a_probe_says_nothing(clock: ManualClock) -> None:
    breaker = Breaker(clock=clock, counts=Outage)
    half_open(breaker, clock)
    with pytest.raises(PermissionError), breaker.guard():
        raise PermissionError("wrong key")
    seen = breaker.snapshot()
    assert (seen.state, seen.success_count, seen.is_probing) == ("HALF_OPEN", 0, False)


def test_a_predicate_that_raises_hides_no_error(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(error: BaseException) -> bool:
        raise LookupError("oops")

    breaker = Breaker(clock=clock, counts=broken)
    with pytest.raises(Outage), breaker.guard():
        raise Outage("down")
    assert breaker.snapshot().failure_count == 1
    assert "could not be asked" in caplog.text


def test_a_result_can_be_a_failure(clock: ManualClock) -> None:
    breaker = Breaker(threshold=1, clock=clock, counts_result=lambda status: status == 503)

    @breaker.protect
    def get(status: int) -> int:
        return status

    assert get(200) == 200
    assert get(503) == 503
    assert state(breaker) == "OPEN"
    assert breaker.snapshot().last_error == "returned 503"


def test_slow_calls_trip_it(clock: ManualClock) -> None:
    breaker = Breaker(clock=clock, slow_call_duration="5s", slow_call_rate=0.5, minimum_calls=4)
    for seconds in (1, 5, 1, 4.999):
        with breaker.guard():
            clock.advance(seconds)
    assert state(breaker) == "CLOSED"
    for _ in range(2):
        with breaker.guard():
            clock.advance(5)
    assert state(breaker) == "OPEN", "3 of 6"


def test_other_windows(clock: ManualClock) -> None:
    row = Breaker(clock=clock, window_mode="consecutive")
    last = Breaker(clock=clock, window_mode="calls", window_calls=4)
    share = Breaker(clock=clock, failure_rate=0.5, minimum_calls=4)
    for breaker, calls in ((row, "ffsffhf"), (last, "ffsshfff"), (share, "ssff")):
        for call in calls:
            assert state(breaker) == "CLOSED", breaker
            if call == "h":
                clock.advance("1h")
            else:
                (acquired(breaker).failure if call == "f" else acquired(breaker).success)()
        assert state(breaker) == "OPEN", breaker


def test_errors_are_kept_short_and_without_secrets(breaker: Breaker) -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    for error, kept in (
        (Outage("password=hunter2"), "Outage: password=<secret>"),
        (Outage("x" * 10_000), "Outage: " + "x" * 491 + "…"),
        (Unspeakable(), "Unspeakable"),
        ("a lone surrogate: \ud800", "a lone surrogate: ?"),
        (None, ""),
    ):
        breaker.reset()
        acquired(breaker).failure(error)
        assert breaker.snapshot().last_error == kept

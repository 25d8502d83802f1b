"""The front of the circuit breaker; every short story of its table is under test in C++."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import loki
from loki.decision.breaker import Breaker, Permit
from loki.testing import ManualClock
from support.breaker import Outage, acquired, half_open, state, trip


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def breaker(clock: ManualClock) -> Breaker:
    return Breaker(clock=clock, name="api/claude")


# --- the documents' story -------------------------------------------------------------------------


def test_three_failures_in_a_minute_open_it_for_five(breaker: Breaker, clock: ManualClock) -> None:
    for _ in range(3):
        with pytest.raises(Outage), breaker.guard():
            raise Outage("down")
    clock.advance(100)
    with pytest.raises(loki.BreakerOpen) as caught, breaker.guard():
        raise AssertionError("refused calls do not go out")
    refusal = caught.value
    assert refusal.name == "api/claude"
    assert refusal.retry_after == 200
    assert refusal.retry_at == clock.now() + timedelta(seconds=200)
    assert refusal.last_error == "Outage: down"
    assert str(refusal) == (
        "api/claude: the circuit breaker lets no call through for another 200 s; "
        "the last error was: Outage: down"
    )


def test_single_probes_close_it(breaker: Breaker, clock: ManualClock) -> None:
    trip(breaker)
    clock.advance(300)
    for _ in range(3):
        with breaker.guard() as permit:
            assert permit.is_probe
            assert breaker.try_acquire() is None
        clock.advance(10)
    assert state(breaker) == "CLOSED"
    assert not acquired(breaker).is_probe


def test_the_window_slides(breaker: Breaker, clock: ManualClock) -> None:
    for _ in range(10):
        acquired(breaker).failure()
        acquired(breaker).success()
        clock.advance("30s")
    assert state(breaker) == "CLOSED", "never more than two within a minute"
    acquired(breaker).failure()
    clock.advance("29.999s")
    acquired(breaker).failure()
    assert state(breaker) == "OPEN", "a fixed window would have begun anew"


def test_a_snapshot_says_it_all(breaker: Breaker, clock: ManualClock) -> None:
    start = clock.now()
    for _ in range(3):
        acquired(breaker).failure(Outage("down"))
        clock.advance(1)
    assert breaker.try_acquire() is None
    seen = breaker.snapshot()
    assert (seen.name, seen.state, seen.failure_count, seen.trips) == ("api/claude", "OPEN", 3, 1)
    assert seen.failure_window_start == start
    assert seen.last_failure_time == seen.last_state_change == start + timedelta(seconds=2)
    assert seen.cooldown_until == start + timedelta(seconds=302)
    assert seen.retry_after == 299
    assert seen.last_error == "Outage: down"
    assert seen.counts._asdict() == {
        "granted": 3,
        "refused": 1,
        "successes": 0,
        "failures": 3,
        "ignored": 0,
        "late": 0,
        "transitions": 1,
    }
    assert repr(breaker) == "<Breaker 'api/claude': OPEN>"


# --- permits --------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["success", "failure", "ignore"])
@pytest.mark.parametrize("second", ["success", "failure", "ignore"])
def test_an_outcome_counts_once(breaker: Breaker, first: str, second: str) -> None:
    permit = acquired(breaker)
    getattr(permit, first)()
    getattr(permit, second)()
    del permit
    counts = breaker.snapshot().counts
    assert counts.successes + counts.failures + counts.ignored + counts.late == 1
    assert (counts.successes, counts.failures) == (first == "success", first == "failure")


def test_a_dropped_probe_frees_its_slot(breaker: Breaker, clock: ManualClock) -> None:
    half_open(breaker, clock)
    permit = acquired(breaker)
    clock.advance(10)
    assert breaker.try_acquire() is None
    del permit
    gc.collect()
    assert acquired(breaker).is_probe
    assert breaker.snapshot().counts.ignored >= 1


def test_a_probe_out_of_its_lease_is_void(breaker: Breaker, clock: ManualClock) -> None:
    half_open(breaker, clock)
    lost = acquired(breaker)
    clock.advance(600)
    lost.failure(Outage("late"))
    assert state(breaker) == "HALF_OPEN"
    assert breaker.snapshot().counts.late == 1


def test_an_outcome_of_an_earlier_time_is_void(breaker: Breaker) -> None:
    early = [acquired(breaker) for _ in range(5)]
    breaker.reset()
    for permit in early:
        permit.failure(Outage("late"))
    assert breaker.snapshot().failure_count == 0
    assert breaker.snapshot().last_error == ""


def test_a_permit_reported_inside_its_guard_is_left_alone(breaker: Breaker) -> None:
    with breaker.guard() as permit:
        permit.failure("the answer was empty")
    assert breaker.snapshot().counts.failures == 1
    assert breaker.snapshot().counts.successes == 0
    assert breaker.snapshot().last_error == "the answer was empty"


def test_permits_come_from_breakers_only() -> None:
    with pytest.raises(TypeError, match="cannot create"):
        Permit()


def test_a_permit_outlives_the_name_of_its_breaker() -> None:
    permit = acquired(Breaker())
    gc.collect()
    permit.failure(Outage("down"))


# --- the decorator --------------------------------------------------------------------------------


def test_protect_keeps_the_function_as_it_is(breaker: Breaker) -> None:
    class Client:
        """A client."""

        @breaker.protect
        def ask(self, question: str, *, loud: bool = False) -> str:
            """Asks."""
            return question.upper() if loud else question

    assert Client().ask("why?", loud=True) == "WHY?"
    assert Client.ask.__doc__ == "Asks."
    assert Client.ask.__name__ == "ask"
    assert breaker.snapshot().counts.successes == 1


def test_protect_refuses_what_works_after_it_has_returned(breaker: Breaker) -> None:
    def numbers() -> Iterator[int]:
        yield 1

    class Numbers:
        def __call__(self) -> Iterator[int]:
            yield 1

    for generator in (numbers, Numbers()):
        with pytest.raises(TypeError, match="generator function"):
            breaker.protect(generator)


# --- by hand --------------------------------------------------------------------------------------


def test_isolated_until_somebody_closes_it(breaker: Breaker, clock: ManualClock) -> None:
    breaker.isolate()
    clock.advance("1000d")
    with pytest.raises(loki.BreakerOpen, match="until somebody closes it") as caught:
        breaker.guard()
    assert caught.value.retry_after is None
    assert caught.value.retry_at is None
    assert breaker.snapshot().is_isolated
    assert "isolated" in repr(breaker)
    breaker.close()
    assert acquired(breaker)


def test_opened_by_hand_it_comes_back_by_itself(breaker: Breaker, clock: ManualClock) -> None:
    breaker.open()
    assert breaker.snapshot().retry_after == 300
    clock.advance(300)
    assert acquired(breaker).is_probe


def test_a_growing_cooldown(clock: ManualClock) -> None:
    breaker = Breaker(clock=clock, cooldown_multiplier=2, cooldown_cap="15m")
    trip(breaker)
    for expected in (300, 600, 900, 900):
        assert breaker.snapshot().retry_after == expected
        clock.advance(expected)
        acquired(breaker).failure()


# --- misuse ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threshold": 0}, "threshold is 0: expected 1"),
        ({"threshold": 2**32}, "expected 1 to"),
        ({"window": 0}, "window must be longer than 0"),
        ({"window": "60"}, "^window: '60' has no unit"),
        ({"cooldown": -1}, "expected a finite number"),
        ({"cooldown_multiplier": 0.5}, "multiplier"),
        ({"recovery_threshold": 0}, "recovery_threshold"),
        ({"probe_lease": 0}, "probe_lease"),
        ({"window_mode": "moon"}, "expected one of time, consecutive, calls"),
        ({"failure_rate": 0}, "a share above 0, at most 1"),
        ({"failure_rate": 50}, "a share above 0, at most 1"),
        ({"failure_rate": float("nan")}, "a share above 0, at most 1"),
        ({"failure_rate": 0.5, "minimum_calls": 101}, "minimum_calls above window_calls"),
        ({"failure_rate": 0.5, "window_mode": "consecutive"}, "needs a window"),
        ({"slow_call_rate": 0.5}, "need each other"),
    ],
)
def test_misuse_is_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Breaker(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threshold": 1.5}, "threshold is 1.5: expected a whole number"),
        ({"threshold": "3"}, "threshold is '3': expected a whole number"),
        ({"cooldown": None}, "cooldown is None: expected seconds, a timedelta or text"),
        ({"counts": [OSError]}, "counts is .*: expected a type of exceptions, a tuple"),
        ({"counts": (OSError, 3)}, "counts is"),
        ({"counts": int}, "counts is"),
        ({"counts_result": 3}, "expected something that can be called"),
    ],
)
def test_what_is_nothing_of_its_kind_is_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Breaker(**arguments)  # type: ignore[arg-type]


def test_only_what_can_be_called_is_called(breaker: Breaker, tmp_path: Path) -> None:
    """Said at once, not at the first call or change."""
    shared = loki.Breakers(tmp_path / "circuit-breakers.json")
    for use in (breaker.listen, breaker.protect, shared.listen, shared.protect("x")):
        with pytest.raises(TypeError, match="found 3, expected something that can be called"):
            use(3)  # type: ignore[arg-type]


def test_a_broken_clock_is_named_and_holds_no_slot(clock: ManualClock) -> None:
    class Broken(ManualClock):
        reading: float = 0.0

        def monotonic(self) -> float:
            return self.reading

    broken = Broken()
    breaker = Breaker(clock=broken)
    breaker.open()
    broken.reading = 300.0
    probe = acquired(breaker)
    broken.reading = float("nan")
    with pytest.raises(ValueError, match="expected a finite number"):
        probe.success()
    broken.reading = 310.0
    assert acquired(breaker).is_probe


def test_a_refusal_can_be_sent_to_another_process(breaker: Breaker) -> None:
    trip(breaker)
    with pytest.raises(loki.BreakerOpen) as caught:
        breaker.guard()
    for refusal in (caught.value, loki.BreakerOpen("api", last_error="down", retry_after=1.5)):
        copy = pickle.loads(pickle.dumps(refusal))
        assert str(copy) == str(refusal)
        assert copy.retry_at == refusal.retry_at

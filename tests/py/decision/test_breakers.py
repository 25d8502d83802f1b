"""Breakers that are shared through a file: what is known where, and when; clocks that jump."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.decision.breaker import Transition
from loki.decision.breakers import SharedBreaker
from loki.decision.limiter import Limiter
from loki.testing import ManualClock

NAME = "api/claude"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "circuit-breakers.json"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def fail(breaker: SharedBreaker, times: int = 1, error: object = "no answer") -> None:
    for _ in range(times):
        permit = breaker.try_acquire()
        assert permit is not None
        permit.failure(error)


def entry(path: Path, name: str = NAME) -> dict[str, Any]:
    found = json.loads(path.read_text("utf-8"))[name]
    assert isinstance(found, dict)
    return found


def test_a_breaker_survives_its_process(path: Path, clock: ManualClock) -> None:
    """Failures add up over restarts; who comes after knows the error and when to come back."""
    fail(loki.Breakers(path, clock=clock)[NAME], 2)
    clock.advance(10)
    fail(loki.Breakers(path, clock=clock)[NAME], 1, OSError("connection lost"))
    clock.advance(20)
    with pytest.raises(loki.BreakerOpen) as refused:
        loki.Breakers(path, clock=clock).guard(NAME)
    assert refused.value.retry_after == 280
    assert refused.value.last_error == "OSError: connection lost"
    assert entry(path)["cooldown_until"] == "2026-01-01T00:05:10.000Z"


def test_what_changes_nothing_touches_no_file(path: Path, clock: ManualClock) -> None:
    """Calls through a closed breaker, and refusals."""
    breakers = loki.Breakers(path, clock=clock)
    for _ in range(10):
        with breakers.guard(NAME):
            pass
        breakers[NAME].guard().ignore()
    assert not path.parent.exists()
    breakers[NAME].open()
    written = path.stat()
    clock.advance(1)
    assert breakers[NAME].try_acquire() is None
    seen = path.stat()  # when it was read may differ
    assert (seen.st_ino, seen.st_mtime_ns) == (written.st_ino, written.st_mtime_ns)


def test_others_are_seen_within_a_tenth_of_a_second(path: Path, clock: ManualClock) -> None:
    """Before that, a call may still go out; what it comes to is too late and counts nothing."""
    a, b = loki.Breakers(path, clock=clock)[NAME], loki.Breakers(path, clock=clock)[NAME]
    assert b.try_acquire() is not None
    fail(a, 3)
    late = b.try_acquire()
    assert late is not None
    late.failure("no answer")
    assert b.snapshot().counts.late == 1
    a.close()
    clock.advance(0.1)
    assert b.try_acquire() is not None
    a.open()
    clock.advance(0.1)
    assert b.try_acquire() is None


def test_one_probe_over_all(path: Path, clock: ManualClock) -> None:
    """However many ask: one in flight, 10 s apart, three successes close it for all."""
    several = [loki.Breakers(path, clock=clock)[NAME] for _ in range(4)]
    several[0].open()
    clock.advance(300)
    for turn in range(3):
        probes = [p for p in (b.try_acquire() for b in several) if p is not None]
        assert [p.is_probe for p in probes] == [True]
        assert entry(path)["probe"]["owner"].endswith(f":{os.getpid()}")
        probes[0].success()
        if turn < 2:
            assert [b.try_acquire() for b in several] == [None] * 4
        clock.advance(10)
    assert all(b.try_acquire() is not None for b in several)
    log = path.parent.parent / "logs" / "circuit-recovery.log"
    assert log.read_text() == "2026-01-01T00:05:20.000Z Circuit recovered: api/claude\n"


def test_each_transition_is_kept_once(path: Path, clock: ManualClock) -> None:
    """By the process that makes it, with the error that tripped it, secrets masked."""
    a, b = loki.Breakers(path, clock=clock)[NAME], loki.Breakers(path, clock=clock)[NAME]
    fail(a, 2)
    fail(b, 1, "password=hunter2")
    clock.advance(300)
    probe = a.try_acquire()
    assert probe is not None
    probe.ignore()
    b.reset()
    b.reset()
    log = path.parent.parent / "logs" / "breaker-transitions.jsonl"
    kept = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(one["before"], one["after"]) for one in kept] == [
        ("CLOSED", "OPEN"),
        ("OPEN", "HALF_OPEN"),
        ("HALF_OPEN", "CLOSED"),
    ]
    assert [one.get("error") for one in kept] == ["password=<secret>", None, None]
    assert kept[0]["at"] == "2026-01-01T00:00:00.000Z"
    assert {one["breaker"] for one in kept} == {NAME}


def test_outcomes_are_reported_once(path: Path, clock: ManualClock) -> None:
    """The first report counts."""
    breaker = loki.Breakers(path, clock=clock)[NAME]
    permit = breaker.guard()
    permit.success()
    permit.failure("no answer")
    permit.ignore()
    assert breaker.snapshot().failure_count == 0


def test_a_decorator_and_what_counts(path: Path, clock: ManualClock) -> None:
    """Functions and coroutine functions; what is no failure counts nothing."""
    breakers = loki.Breakers(path, clock=clock, counts=OSError, threshold=2)

    @breakers.protect(NAME)
    def call(error: Exception | None) -> str:
        if error:
            raise error
        return "answer"

    @breakers.protect(NAME)
    async def acall(error: Exception | None) -> str:
        await asyncio.sleep(0)
        return call.__wrapped__(error)  # type: ignore[attr-defined,no-any-return]

    assert call(None) == asyncio.run(acall(None)) == "answer"
    with pytest.raises(ValueError, match="mine"):
        call(ValueError("mine"))
    with pytest.raises(OSError, match="gone"):
        call(OSError("gone"))
    with pytest.raises(OSError, match="gone"):
        asyncio.run(acall(OSError("gone")))
    assert entry(path)["state"] == "OPEN"
    with pytest.raises(loki.BreakerOpen):
        call(None)


def test_a_cancelled_call_counts_nothing(path: Path, clock: ManualClock) -> None:
    """Its probe goes back."""
    breakers = loki.Breakers(path, clock=clock)
    breakers[NAME].open()
    clock.advance(300)

    async def work() -> None:
        async with breakers.guard(NAME):
            await asyncio.Event().wait()

    async def main() -> None:
        task = asyncio.ensure_future(work())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert entry(path)["probe"]["in_flight"] is False
    assert entry(path)["state"] == "HALF_OPEN"


def test_by_hand(path: Path, clock: ManualClock) -> None:
    """Open, isolate, close and reset are for all processes, at once in the one that does it."""
    a, b = loki.Breakers(path, clock=clock)[NAME], loki.Breakers(path, clock=clock)[NAME]
    a.isolate()
    clock.advance("1h")
    with pytest.raises(loki.BreakerOpen) as refused:
        b.guard()
    assert refused.value.retry_after is None
    b.open()
    assert b.snapshot().retry_after == 300
    b.reset()
    clock.advance(1)
    assert a.try_acquire() is not None
    clock.advance(1)
    fail(a)
    a.reset()
    assert entry(path)["failure_count"] == 0


def test_every_look_says_the_same_time_of_a_change(path: Path) -> None:
    """With the system's clocks: the time of day and the time that only runs on are read one after the other."""
    loki.Breakers(path)[NAME].isolate()
    looks = {loki.Breakers(path)[NAME].snapshot().last_state_change for _ in range(200)}
    assert len(looks) == 1


def test_listeners_hear_of_every_process(path: Path, clock: ManualClock) -> None:
    """Of our own changes at once, of others' when they are seen, also by names never used here."""
    a, b = loki.Breakers(path, clock=clock), loki.Breakers(path, clock=clock)
    b["known"].isolate()
    told: list[Transition] = []
    a.listen(told.append)
    b[NAME].open()
    b["known"].close()
    assert told == []
    a.refresh()
    assert {(t.name, t.before, t.after) for t in told} == {
        (NAME, "CLOSED", "OPEN"),
        ("known", "OPEN", "CLOSED"),
    }
    a[NAME].close()
    assert (told[-1].name, told[-1].after) == (NAME, "CLOSED")


def test_a_limiter_follows(path: Path, clock: ManualClock) -> None:
    """Capacity falls and grows with what any process does."""
    a, b = loki.Breakers(path, clock=clock), loki.Breakers(path, clock=clock)
    limiter = Limiter(5, clock=clock)
    limiter.watch(a)
    b[NAME].open()
    a.refresh()
    assert limiter.capacity == 2
    a[NAME].close()
    assert limiter.capacity == 3
    clock.advance(120)
    assert limiter.capacity == 5


def test_a_limiter_knows_what_was_open_before(path: Path, clock: ManualClock) -> None:
    """One that is made while a breaker is open begins with few slots, for the rest of its cooldown."""
    loki.Breakers(path, clock=clock)[NAME].open()
    clock.advance(200)
    limiter = Limiter(5, clock=clock)
    limiter.watch(loki.Breakers(path, clock=clock))
    assert limiter.capacity == 2
    with limiter.slot():
        assert clock.monotonic() == 300


def test_names_with_arguments_of_their_own(path: Path, clock: ManualClock) -> None:
    """And what is wrong is said at once."""
    breakers = loki.Breakers(path, clock=clock, threshold=2, named={"slow": {"threshold": 4}})
    fail(breakers["fast"], 2)
    fail(breakers["slow"], 3)
    assert sorted(breakers) == ["fast", "slow"]
    assert [s.state for s in breakers.snapshot().values()] == ["OPEN", "CLOSED"]
    for wrong in ({"threshold": 0}, {"named": {"x": {"window": -1}}}):
        with pytest.raises(ValueError, match=r"threshold|duration"):
            loki.Breakers(path, **wrong)


class Machine(ManualClock):
    """A machine's clocks: the time of day can be set, and a boot begins the other one anew."""

    def __init__(self, boot_id: str = "first") -> None:
        super().__init__()
        self.boot_id = boot_id
        self.set_by = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.set_by


@pytest.mark.parametrize("days", [1, -1])
def test_a_time_of_day_that_jumps_changes_nothing(path: Path, days: int) -> None:
    """Neither for whoever runs, nor for whoever starts: the cooldown, the window and the lease hold."""
    machine = Machine()
    running = loki.Breakers(path, clock=machine)[NAME]
    fail(running, 2)
    machine.set_by = timedelta(days=days)
    machine.advance(30)
    started = loki.Breakers(path, clock=machine)[NAME]
    assert started.snapshot().failure_count == 2
    fail(started)
    assert entry(path)["state"] == "OPEN"
    machine.set_by = timedelta(0)
    machine.advance(299)
    again = loki.Breakers(path, clock=machine)[NAME]
    for breaker in (running, started, again):
        assert breaker.try_acquire() is None
        assert breaker.snapshot().retry_after == 1
    machine.advance(1)
    assert again.try_acquire() is not None


@pytest.mark.parametrize(("days", "wait"), [(1, 0), (0, 300), (-1, 300)])
def test_in_another_boot_a_wrong_time_of_day_costs_one_cooldown(
    path: Path, days: int, wait: float
) -> None:
    """Also where each call is a process of its own: the first says in the file when it ends."""
    loki.Breakers(path, clock=Machine())[NAME].open()
    machine = Machine("second")
    machine.set_by = timedelta(days=days)
    for _ in range(round(wait / 10)):
        assert loki.Breakers(path, clock=machine)[NAME].try_acquire() is None
        machine.advance(10)
    assert loki.Breakers(path, clock=machine)[NAME].try_acquire() is not None


def test_where_nothing_can_be_written_it_goes_on(
    tmp_path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """In memory, with one warning for all breakers; a call is never refused for it."""
    (tmp_path / "state").write_text("a file where a folder should be")
    breakers = loki.Breakers(tmp_path / "state" / "circuit-breakers.json", clock=clock)
    with caplog.at_level(logging.WARNING):
        fail(breakers[NAME], 3)
        fail(breakers["other"], 3)
        assert breakers[NAME].try_acquire() is None
        clock.advance(300)
        for _ in range(3):
            breakers[NAME].guard().success()
            clock.advance(10)
        assert breakers[NAME].snapshot().state == "CLOSED"
    assert [r.message[:17] for r in caplog.records] == ["Could not persist"]


def test_what_was_not_written_is_written_when_the_disk_is_back(
    tmp_path: Path, clock: ManualClock
) -> None:
    """By whatever changes next."""
    state = tmp_path / "state"
    state.write_text("")
    breaker = loki.Breakers(state / "circuit-breakers.json", clock=clock)[NAME]
    fail(breaker, 2)
    state.unlink()
    fail(breaker, 1)  # the disk is left alone for a moment
    assert not state.exists()
    clock.advance(5)
    breaker.open()
    assert entry(state / "circuit-breakers.json")["trips"] == 1


def test_looking_with_other_arguments_harms_nothing(path: Path) -> None:
    """As the command line does, which knows none: the owner's cooldown and failures stay."""
    machine = Machine()
    owner = loki.Breakers(path, clock=machine, cooldown="1h", threshold=10)
    owner["open"].open()
    fail(owner["failing"], 7)
    written = path.read_bytes()
    assert sorted(loki.Breakers(path, clock=machine).snapshot()) == ["failing", "open"]
    loki.Breakers(path, clock=machine)["failing"].close()
    assert path.read_bytes() == written
    again = loki.Breakers(path, clock=machine, cooldown="1h", threshold=10)
    assert again["open"].snapshot().retry_after == 3600
    assert again["failing"].snapshot().failure_count == 7

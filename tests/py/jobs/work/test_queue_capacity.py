"""How much of the queue may be worked on while a circuit breaker is open, and afterwards."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

import pytest

import loki
from loki.jobs.queue.queued_task import QueuedTask
from loki.jobs.work.worker_pool import Capacity
from loki.testing import ManualClock

FINE = QueuedTask("a", "A")
URGENT = QueuedTask("b", "B", urgent=True)
BACKGROUND = QueuedTask("c", "C", background=True)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def breakers(tmp_path: Path, clock: ManualClock) -> loki.Breakers:
    return loki.Breakers(tmp_path / "breakers.json", clock=clock)


def capacity(tmp_path: Path, clock: ManualClock) -> Capacity:
    """Of another process, which sees nothing but the file."""
    found = Capacity(loki.Breakers(tmp_path / "breakers.json", clock=clock), clock, 5)
    found.look()
    return found


def trip(breakers: loki.Breakers) -> None:
    for _ in range(3):
        permit = breakers["api/claude"].try_acquire()
        assert permit is not None
        permit.failure("503")


def close(breakers: loki.Breakers, clock: ManualClock) -> None:
    for _ in range(3):
        permit = breakers["api/claude"].try_acquire()
        assert permit is not None
        permit.success()
        clock.advance(10)


def test_while_all_is_well_each_worker_says_for_itself(tmp_path: Path, clock: ManualClock) -> None:
    found = capacity(tmp_path, clock)
    assert found.slots == sys.maxsize
    assert all(map(found.admits, (FINE, URGENT, BACKGROUND)))


def test_open_drops_to_two_and_only_what_is_urgent_goes_out(
    tmp_path: Path, clock: ManualClock, breakers: loki.Breakers
) -> None:
    found = capacity(tmp_path, clock)
    trip(breakers)
    found.look()
    assert found.slots == 2
    assert [found.admits(task) for task in (FINE, URGENT, BACKGROUND)] == [False, True, False]
    assert found.stops_background
    assert found.seconds == pytest.approx(300, abs=1)


def test_half_open_is_for_the_probe_and_recovery_grows_step_by_step(
    tmp_path: Path, clock: ManualClock, breakers: loki.Breakers
) -> None:
    found = capacity(tmp_path, clock)
    trip(breakers)
    found.look()
    clock.advance(301)
    found.look()
    assert (found.slots, found.admits(FINE)) == (2, True)  # somebody must be let out to ask
    probe = breakers["api/claude"].try_acquire()
    found.look()
    assert found.slots == 1
    assert probe is not None
    probe.success()
    clock.advance(10)
    for _ in range(2):
        permit = breakers["api/claude"].try_acquire()
        assert permit is not None
        permit.success()
        clock.advance(10)
    grown = []
    for _ in range(5):
        found.look()
        grown.append(found.slots)
        clock.advance(30)
    assert grown == [3, 3, 4, 4, sys.maxsize]


def test_a_process_that_starts_while_capacity_grows_knows_how_far_it_is(
    tmp_path: Path, clock: ManualClock, breakers: loki.Breakers
) -> None:
    trip(breakers)
    clock.advance(301)
    close(breakers, clock)
    assert capacity(tmp_path, clock).slots == 3
    clock.advance(60)
    assert capacity(tmp_path, clock).slots == 4
    clock.advance(60)
    assert capacity(tmp_path, clock).slots == sys.maxsize


def test_a_failure_while_it_grows_takes_it_back(
    tmp_path: Path, clock: ManualClock, breakers: loki.Breakers
) -> None:
    trip(breakers)
    clock.advance(301)
    close(breakers, clock)
    found = capacity(tmp_path, clock)
    clock.advance(60)
    found.look()
    assert found.slots == 4
    permit = breakers["api/claude"].try_acquire()
    assert permit is not None
    permit.failure("503")
    found.look()
    assert found.slots == 3


def test_a_paused_task_is_held_until_its_time_or_until_the_breaker_is_closed(
    tmp_path: Path, clock: ManualClock, breakers: loki.Breakers
) -> None:
    found = capacity(tmp_path, clock)
    trip(breakers)
    found.look()
    found.hold("b", clock.now() + timedelta(seconds=60))
    assert not found.admits(URGENT)
    clock.advance(61)
    assert found.admits(URGENT)

    found.hold("b", None)
    clock.advance(240)
    assert not found.admits(URGENT)
    close(breakers, clock)
    found.look()
    assert found.admits(URGENT)


def test_a_person_who_resets_what_is_closed_causes_no_outage(
    tmp_path: Path, clock: ManualClock, breakers: loki.Breakers
) -> None:
    trip(breakers)
    clock.advance(301)
    close(breakers, clock)
    clock.advance(121)
    found = capacity(tmp_path, clock)
    breakers["api/claude"].reset()
    found.look()
    assert found.is_full
    breakers["api/claude"].open()
    breakers["api/claude"].close()
    found.look()
    assert found.slots == 3, "opened and closed between two looks"

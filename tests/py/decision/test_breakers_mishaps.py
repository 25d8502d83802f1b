"""Shared breakers where threads, processes, disks and loggers get in each other's way."""

from __future__ import annotations

import json
import logging
import os
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.decision.breakers import SharedBreaker
from loki.testing import ManualClock

NAME = "api/claude"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "circuit-breakers.json"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def fail(breaker: SharedBreaker) -> None:
    permit = breaker.try_acquire()
    assert permit is not None
    permit.failure("no answer")


def entry(path: Path) -> dict[str, Any]:
    found = json.loads(path.read_text("utf-8"))[NAME]
    assert isinstance(found, dict)
    return found


def test_whatever_else_is_read_nothing_is_missed(path: Path, clock: ManualClock) -> None:
    """Another breaker's entry, the names, a change of our own: each reads the file, too."""
    a, b = loki.Breakers(path, clock=clock), loki.Breakers(path, clock=clock)
    reads: list[Callable[[], object]] = [a.names, lambda: a["other"], lambda: fail(a["other"])]
    for number, read in enumerate(reads):
        name = str(number)
        assert a[name].try_acquire() is not None
        b[name].open()
        os.utime(path, (1, 1))  # not of this very moment
        read()
        clock.advance(1)
        assert a[name].try_acquire() is None


def test_a_change_within_one_tick_of_the_file_systems_clock_is_seen(
    path: Path, clock: ManualClock
) -> None:
    """The same number of the file, the same size, the same time."""
    a, b = loki.Breakers(path, clock=clock)["x"], loki.Breakers(path, clock=clock)["x"]
    b.isolate()
    clock.advance(1)
    assert a.try_acquire() is None
    clock.advance(1)
    assert a.try_acquire() is None
    seen = path.stat()
    closed = json.dumps({"x": {"state": "CLOSED"}})
    path.write_text(closed + " " * (seen.st_size - len(closed)), "utf-8")
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert (path.stat().st_ino, path.stat().st_size) == (seen.st_ino, seen.st_size)
    clock.advance(1)
    assert a.try_acquire() is not None


def test_probes_that_are_dropped_by_many_threads_go_back(path: Path, clock: ManualClock) -> None:
    """Whoever empties the list first: no other thread stumbles."""
    breakers = loki.Breakers(path, clock=clock)
    breakers["x"].open()
    clock.advance(300)

    class Emptied(deque[Any]):
        def __bool__(self) -> bool:
            return True  # so it was, when this thread looked

    breakers._dropped = Emptied()
    assert breakers["x"].try_acquire() is not None
    clock.advance(10)
    assert breakers["x"].try_acquire() is not None


def test_a_log_that_cannot_be_written_costs_only_its_line(
    path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """What follows is shared as before."""
    path.parent.parent.joinpath("logs").write_text("a file where a folder should be")
    breaker = loki.Breakers(path, clock=clock)[NAME]
    breaker.open()
    breaker.close()
    fail(breaker)
    assert entry(path)["failure_count"] == 1
    assert [r.message[:17] for r in caplog.records] == ["Could not persist"]
    assert caplog.records[0].message.endswith("Going on; api/claude recovered.")


def test_whoever_handles_a_warning_may_use_a_breaker(path: Path, clock: ManualClock) -> None:
    """A handler that sends log lines through a breaker of the same file."""
    path.parent.mkdir()
    path.write_text("an accident")
    breakers = loki.Breakers(path, clock=clock)
    sent: list[str] = []

    class Sender(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            assert not breakers._lock.locked()
            with breakers.guard("api/log"):
                sent.append(record.getMessage())

    handler = Sender()
    logger = logging.getLogger("loki")
    logger.addHandler(handler)
    try:
        assert breakers[NAME].try_acquire() is not None
    finally:
        logger.removeHandler(handler)
    assert len(sent) == 1


def test_a_name_is_a_text(path: Path) -> None:
    """Said in a sentence."""
    for wrong in ("\ud800", 3):
        with pytest.raises(ValueError, match="expected a text in Unicode"):
            loki.Breakers(path)[wrong]  # type: ignore[index]

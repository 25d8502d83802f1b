"""Calls that a program makes by itself: what it reports of them opens the breaker, or does not."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

import loki
from loki.adapters.monitor.breaker_call import ReportedCalls
from loki.testing import ManualClock


def calls(folder: Path) -> ReportedCalls:
    return ReportedCalls(loki.Workspace(folder, clock=ManualClock()), "claude")


def test_outages_that_it_tells_of_open_the_breaker(tmp_path: Path) -> None:
    watched = calls(tmp_path)
    watched.begin()
    for _ in range(3):
        watched.failed("server_error", "server_error", 529)
    with pytest.raises(loki.BreakerOpen, match="api/claude"):
        watched.begin()


def down(folder: Path, clock: ManualClock) -> ReportedCalls:
    """After outages that have opened the breaker."""
    watched = ReportedCalls(loki.Workspace(folder, clock=clock), "claude")
    watched.begin()
    for _ in range(3):
        watched.failed("server_error", "server_error", 529)
    return watched


def test_who_has_the_time_waits_until_the_service_may_be_asked(tmp_path: Path) -> None:
    clock = ManualClock()
    watched, began = down(tmp_path, clock), clock.monotonic()
    asyncio.run(watched.abegin(400))
    assert 300 <= clock.monotonic() - began < 310
    watched.passed()


@pytest.mark.parametrize("wait", [0, 60])
def test_who_has_not_is_told_at_once(tmp_path: Path, wait: float) -> None:
    clock = ManualClock()
    watched, began = down(tmp_path, clock), clock.monotonic()
    with pytest.raises(loki.BreakerOpen, match="api/claude"):
        asyncio.run(watched.abegin(wait))
    assert clock.monotonic() == began


def test_those_who_wait_beside_each_other_all_get_through(tmp_path: Path) -> None:
    """One probe at a time: the others wait on, and none is refused."""
    clock = ManualClock()
    down(tmp_path, clock)
    workspace = loki.Workspace(tmp_path, clock=clock)

    async def query() -> None:
        one = ReportedCalls(workspace, "claude")
        await one.abegin(10**6)  # nobody has to wait that long: time flies while threads change
        await asyncio.sleep(0)
        one.passed()

    async def all_of_them() -> None:
        await asyncio.gather(*(query() for _ in range(5)))

    asyncio.run(all_of_them())
    assert workspace.breakers()["api/claude"].snapshot().state == "CLOSED"


class Blocking(ManualClock):
    """Whose waits last until they are ended."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.ended = threading.Event(), threading.Event()

    def wait(self, seconds: float, stop: threading.Event | None = None) -> None:
        assert seconds > 0
        assert stop is not None
        self.begun.set()
        assert stop.wait(60)
        self.ended.set()


def test_a_wait_that_is_cancelled_ends(tmp_path: Path) -> None:
    clock = Blocking()
    watched = down(tmp_path, clock)

    async def cancelled() -> None:
        task = asyncio.ensure_future(watched.abegin(400))
        assert await asyncio.to_thread(clock.begun.wait, 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert clock.ended.wait(60)


@pytest.mark.parametrize("status", [400, 401])
def test_what_a_person_has_to_mend_is_no_outage(status: int, tmp_path: Path) -> None:
    watched = calls(tmp_path)
    for _ in range(5):
        watched.begin()
        watched.failed("invalid x-api-key", status=status)


def test_an_end_without_an_answer_says_nothing(tmp_path: Path) -> None:
    watched = calls(tmp_path)
    for _ in range(5):
        watched.begin()
        watched.end()
    watched.begin()
    watched.passed()

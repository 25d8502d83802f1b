"""What loki offers to tests of other people's code."""

import threading
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import loki.testing
from loki.testing import ManualClock

if TYPE_CHECKING:
    from loki.base.time import Clock


def test_a_clock_that_obeys() -> None:
    """Time passes when told to or waited on, at once, and not when the wait was cancelled."""
    manual = ManualClock(datetime(2026, 4, 4))
    clock: Clock = manual
    manual.advance("1m")
    clock.wait(30, threading.Event())
    assert clock.monotonic() == 90
    assert clock.now() == datetime(2026, 4, 4, 0, 1, 30, tzinfo=timezone.utc)
    stopped = threading.Event()
    stopped.set()
    clock.wait(30, stopped)
    manual.advance(timedelta(seconds=1))
    assert clock.monotonic() == 91
    assert manual.waits == [30, 30]


def test_the_scripted_agent_is_here_too() -> None:
    """One import for users' tests."""
    assert loki.testing.ScriptedAgent is loki.ScriptedAgent

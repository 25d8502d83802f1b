"""Time that a test sets: a clock that moves only when it is told to, or waited on.

The environment variable ``LOKI_NOW`` gives one to every workspace that is made without a clock, and
so to every command: it is meant for tests of what takes hours or weeks.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from loki.base.error import UsageError
from loki.base.time import Clock, Duration, SystemClock, moment
from loki.base.time import seconds as to_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

VARIABLE = "LOKI_NOW"
"""Meant for tests: the time at which a process starts, in ISO 8601; its waits pass at once."""


def clock_of(environment: Mapping[str, str]) -> Clock:
    """The machine's clock, or the manual one that ``LOKI_NOW`` asks for.

    Args:
        environment: the process's variables.

    Raises:
        UsageError: the variable is set and names no moment.

    Example:
        >>> clock_of({"LOKI_NOW": "2026-04-04T10:00:00Z"}).now().isoformat()
        '2026-04-04T10:00:00+00:00'
    """
    said = environment.get(VARIABLE, "")
    if not said:
        return SystemClock()
    start = moment(said)
    if start is None:
        raise UsageError(
            f"{VARIABLE} is {said!r}: expected a moment in ISO 8601, like 2026-04-04T10:00:00Z, "
            "or nothing at all: it is meant for tests"
        )
    return ManualClock(start)


class ManualClock:
    """A clock that moves only when it is told to, or waited on; a `loki.base.time.Clock`.

    Safe to use from many threads.

    Attributes:
        waits: seconds of each wait, in order.

    Example:
        >>> clock = ManualClock()
        >>> clock.advance("1h30m")
        >>> clock.monotonic()
        5400.0
    """

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=timezone.utc)) -> None:
        """Args: start: the first time of day; in UTC where it has no zone."""
        self.waits: list[float] = []
        self._start = start if start.tzinfo else start.replace(tzinfo=timezone.utc)
        self._elapsed = 0.0
        self._alarms: list[tuple[float, Callable[[], None]]] = []
        self._lock = threading.Lock()

    def now(self) -> datetime:
        """The time of day, in UTC."""
        with self._lock:
            return self._start.astimezone(timezone.utc) + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        """Seconds since the start."""
        with self._lock:
            return self._elapsed

    def advance(self, duration: Duration) -> None:
        """Let time pass."""
        self._move(to_seconds(duration))

    def wait(self, seconds: float, cancelled: threading.Event) -> None:
        """Return at once; time has passed, unless ``cancelled`` was set already."""
        with self._lock:
            self.waits.append(seconds)
        if not cancelled.is_set():
            self._move(max(0.0, seconds))

    def alarm(self, seconds: float, ring: Callable[[], None]) -> Callable[[], None]:
        """Call ``ring`` once that much time has passed, from where it is moved."""
        with self._lock:
            entry = (self._elapsed + seconds, ring)
            self._alarms.append(entry)

        def cancel() -> None:
            with self._lock, suppress(ValueError):
                self._alarms.remove(entry)

        return cancel

    def _move(self, seconds: float) -> None:
        with self._lock:
            self._elapsed += seconds
            due = [entry for entry in self._alarms if entry[0] <= self._elapsed]
            self._alarms = [entry for entry in self._alarms if entry not in due]
        for _, ring in due:
            ring()

"""Time: durations as people write them (``90s``, ``1h30m``, ``250ms``) and the clock seam."""

from __future__ import annotations

import math
import os
import time
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from loki import _core
from loki.base.error import UsageError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable


Duration: TypeAlias = str | float | timedelta
"""Text with units, seconds, or a ``timedelta``."""

_T = TypeVar("_T")

_NANO = 1_000_000_000
_MAX_NS = 2**63 - 1


def nanoseconds(duration: Duration) -> int:
    """Whole nanoseconds in a duration, at most 2**63 - 1.

    Args:
        duration: text with units (``"1h30m"``), seconds as a number, or a ``timedelta``.

    Raises:
        ValueError: text that is no duration, or a number that is negative or not finite.

    Example:
        >>> nanoseconds("1h30m") // 1_000_000_000
        5400
    """
    if isinstance(duration, str):
        return _core.parse_duration(duration)
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else float(duration)
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError(f"{duration!r} is no duration: expected a finite number of 0 or more")
    return _MAX_NS if seconds >= _MAX_NS / _NANO else round(seconds * _NANO)


def argument_nanoseconds(name: str, duration: Duration) -> int:
    """The same of an argument, whose name the error says.

    Raises:
        ValueError: it is no duration.
        TypeError: it is nothing that could be one.

    Example:
        >>> argument_nanoseconds("window", "1m") // 1_000_000_000
        60
    """
    try:
        return nanoseconds(duration)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    except TypeError as error:
        raise TypeError(
            f"{name} is {duration!r}: expected seconds, a timedelta or text like 90s"
        ) from error


def seconds(duration: Duration) -> float:
    """The same in seconds.

    Example:
        >>> seconds("250ms")
        0.25
    """
    return nanoseconds(duration) / _NANO


def argument_seconds(name: str, duration: Duration) -> float:
    """The same of an argument, whose name the error says.

    Raises:
        UsageError: it is no duration.

    Example:
        >>> argument_seconds("timeout", "5m")
        300.0
    """
    try:
        return seconds(duration)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from error


class Clock(Protocol):
    """Where time comes from; `loki.testing.ManualClock` is one that only moves when told to."""

    def now(self) -> datetime:
        """The time of day, in UTC."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes back."""

    def wait(self, seconds: float, cancelled: threading.Event) -> None:
        """Return after ``seconds``, or at once when ``cancelled`` is set."""

    def alarm(self, seconds: float, ring: Callable[[], None]) -> Callable[[], None]:
        """Call ``ring`` from another thread after ``seconds``, unless what this returns is called."""


HELD_UP_NS = 100_000
"""Nanoseconds after which two readings are no more of one moment. Chosen, not measured."""


def at_one_moment(now_ns: Callable[[], int], time_of_day: Callable[[], _T]) -> tuple[int, _T]:
    """What two clocks say at one moment: they are read again where the thread was held up in between.

    Args:
        now_ns: the clock that only runs on, in nanoseconds.
        time_of_day: the other.

    Returns:
        Both; on a machine that always holds up, after ten tries, as they are.

    Example:
        >>> at_one_moment(lambda: 5, lambda: "noon")
        (5, 'noon')
    """
    for _ in range(10):
        before = now_ns()
        then = time_of_day()
        if now_ns() - before < HELD_UP_NS:
            break
    return before, then


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The time of day, in UTC."""
        return datetime.now(timezone.utc)

    def monotonic(self) -> float:
        """Seconds since some point in the past."""
        return time.monotonic()

    def wait(self, seconds: float, cancelled: threading.Event) -> None:
        """Return after ``seconds``, or at once when ``cancelled`` is set."""
        cancelled.wait(seconds)

    def alarm(self, seconds: float, ring: Callable[[], None]) -> Callable[[], None]:
        """Call ``ring`` from another thread after ``seconds``, unless what this returns is called."""
        import threading  # only here: it is not needed to read a duration

        timer = threading.Timer(min(max(0.0, seconds), threading.TIMEOUT_MAX), ring)
        timer.daemon = True
        timer.start()
        return timer.cancel


def isoformat(moment: datetime) -> str:
    """ISO 8601 in UTC with a ``Z``, to the millisecond: the one form in loki's files.

    Example:
        >>> isoformat(datetime(2026, 4, 4, 10, 15, 30, tzinfo=timezone.utc))
        '2026-04-04T10:15:30.000Z'
    """
    try:
        moment = moment.astimezone(timezone.utc)
    except OverflowError:  # the first or the last day that there is, in another zone
        moment = moment.replace(tzinfo=timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def moment(text: str) -> datetime | None:
    """The moment that a text in ISO 8601 names, in UTC where it says no zone; None: it names none.

    Example:
        >>> isoformat(moment("2026-04-04T12:15:30+02:00"))
        '2026-04-04T10:15:30.000Z'
        >>> moment("yesterday")
    """
    try:
        found = datetime.fromisoformat(text[:-1] + "+00:00" if text[-1:] in {"Z", "z"} else text)
        return found if found.tzinfo else found.replace(tzinfo=timezone.utc)
    except ValueError:
        return None


# --- The time zone of this machine ------------------------------------------------------------------

_LINK = "/etc/localtime"
_FOLDER = "zoneinfo/"


def local_zone(environment: dict[str, str] | None = None, link: str = _LINK) -> str:
    """Its IANA name; UTC where none can be told.

    Args:
        environment: variables, where ``TZ`` says it first; the process's by default.
        link: the file that leads to the zone's rules, as on Linux and macOS.

    Example:
        >>> local_zone({"TZ": "Europe/Berlin"})
        'Europe/Berlin'
    """
    known = os.environ if environment is None else environment
    said = known.get("TZ", "").removeprefix(":")
    target = os.path.realpath(link)
    for name in (said.rpartition(_FOLDER)[2], target.rpartition(_FOLDER)[2]):
        if _is_zone(name):
            return name
    return "UTC"


def _is_zone(name: str) -> bool:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return bool(name) and not name.startswith("/") and bool(ZoneInfo(name))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False

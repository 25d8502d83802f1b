"""When a recurring task runs: at the times of a cron expression, or again and again (a cycle).

The mathematics of the calendar is `cronsim`'s, which keeps to Debian's cron; what it is given has
passed here.

Pure: the time comes in. What happens on the days when clocks are changed is decided here, as in
Vixie's cron and for the same reason: a job at a time of day runs once on each of its days, a job
that repeats through the day follows the clock on the wall.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cached_property, lru_cache
from itertools import islice, takewhile
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from loki.base.error import UsageError

# --- A cron expression, read field by field -----------------------------------------------------------

_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")

MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
"""As in Vixie's cron; ``@reboot`` is no time and has no place here."""


@dataclass(frozen=True)
class Field:
    """A field of a cron expression: its name, its bounds, and the names that its values have."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    def value(self, text: str) -> int:
        """A number or a name.

        Raises:
            ValueError: it is neither, or outside the bounds; the message says what was expected.
        """
        if text in self.names:
            return self.names.index(text) + (1 if self.name == "month" else 0)
        if not (text.isascii() and text.isdigit()):
            raise ValueError(f"found {text or 'nothing'!r}, expected {self.expected}")
        number = int(text[:9])
        if not self.low <= number <= self.high:
            raise ValueError(f"{number} is outside {self.low}-{self.high}")
        return number

    @property
    def expected(self) -> str:
        """What may stand there, in words."""
        or_names = f" or {self.names[0]}-{self.names[-1]}" if self.names else ""
        return (
            f"*, {self.low}-{self.high}{or_names}, ranges like 1-5, steps like */2, lists like 1,4"
        )


SECOND = Field("second", 0, 59)
MINUTE = Field("minute", 0, 59)
HOURS = Field("hour", 0, 23)
DAY = Field("day of month", 1, 31)
MONTH = Field("month", 1, 12, _MONTHS)
WEEKDAY = Field("day of week", 0, 7, _DAYS)

FIVE = (MINUTE, HOURS, DAY, MONTH, WEEKDAY)
SIX = (SECOND, *FIVE)


def fields(expression: str) -> tuple[str, str, str, str, str, str]:
    """The six fields of an expression, seconds first, each checked and in upper case.

    Args:
        expression: five fields (minute, hour, day of month, month, day of week), six with seconds
            before them, or one of `MACROS`.

    Raises:
        UsageError: it is nothing of the kind; the message says which field and what was expected.

    Example:
        >>> fields("*/5 9-17 * * mon-fri")
        ('0', '*/5', '9-17', '*', '*', '1-5')
        >>> fields("61 * * * *")
        Traceback (most recent call last):
        ...
        loki.base.error.UsageError: cron '61 * * * *': minute: 61 is outside 0-59
    """
    text = expression.strip()
    if text.startswith("@"):
        if text.lower() not in MACROS:
            raise UsageError(f"cron {expression!r}: expected one of {', '.join(MACROS)}")
        text = MACROS[text.lower()]
    parts = text.upper().split()
    known = {len(FIVE): FIVE, len(SIX): SIX}.get(len(parts))
    if known is None:
        raise UsageError(
            f"cron {expression!r}: found {len(parts)} fields, expected 5 (minute, hour, day of month, "
            "month, day of week), 6 with seconds before them, or a name like @daily"
        )
    try:
        read = [_checked(field, part) for field, part in zip(known, parts, strict=True)]
    except ValueError as error:
        raise UsageError(f"cron {expression!r}: {error}") from error
    seconds, minute, hour, day, month, weekday = read if known is SIX else ["0", *read]
    return seconds, minute, hour, day, month, weekday


def _checked(field: Field, text: str) -> str:
    try:
        return ",".join(_item(field, item) for item in text.split(","))
    except ValueError as error:
        raise ValueError(f"{field.name}: {error}") from error


def _item(field: Field, text: str) -> str:
    """One item of a list: ``*``, a value, a range, each with a step or without."""
    if text == "?":
        raise ValueError("found '?', expected '*': here a day that does not matter is a star")
    if special := _special(field, text):
        return special
    span, slash, step = text.partition("/")
    if slash and (not (step.isascii() and step.isdigit()) or not int(step[:9])):
        raise ValueError(f"the step of {text!r} is {step!r}, expected a number of 1 or more")
    if span == "*":  # the star is kept: what begins with one has a meaning of its own
        return f"*/{int(step)}" if slash else "*"
    low, dash, high = span.partition("-")
    first = field.value(low)
    last = field.value(high) if dash else field.high if slash else first
    if last == 0 and first and field is WEEKDAY:  # FRI-SUN: Sunday is 7, too
        last = WEEKDAY.high
    if last < first:
        raise ValueError(f"the range {span} runs backwards, expected the lower end first")
    if slash:
        return ",".join(map(str, range(first, last + 1, int(step))))
    return f"{first}-{last}" if dash else str(first)


_LAST_DAY = re.compile("LW?")
_NTH_DAY = re.compile(r"([0-9A-Z]+)(#[1-5]|L)")


def _special(field: Field, text: str) -> str:
    """``L``, ``LW``, ``5#2`` and ``5L``: the last day, the second or last Friday of a month."""
    if field is DAY and _LAST_DAY.fullmatch(text):
        return text
    found = _NTH_DAY.fullmatch(text) if field is WEEKDAY and text not in _DAYS else None
    return f"{field.value(found[1])}{found[2]}" if found else ""


# --- The times of it, and cycles ----------------------------------------------------------------------

HOUR = 3600.0
"""Seconds; the gap of a schedule that has no two fires (SPEC's)."""

FLOOR = 60.0
"""Seconds; no gap counts as less where failures are waited out (SPEC's)."""

_UTC = timezone.utc
_SECOND = timedelta(seconds=1)
_EPOCH = datetime(2026, 1, 1, tzinfo=_UTC)


@dataclass(frozen=True)
class Cron:
    """The times of a cron expression in a time zone.

    A time of day that a day does not have, because clocks are put forward, is the first moment after
    the gap; one that it has twice counts the first time only. Where the minute or the hour begins
    with ``*``, the schedule is one of intervals: it follows the clock on the wall, in the hour that
    comes twice, too, and makes up for nothing.

    Args:
        expression: as `loki.jobs.recurring.schedule.fields` takes it.
        zone: an IANA name, like ``Europe/Berlin``.

    Raises:
        UsageError: the expression cannot be read or its time never comes; there is no such zone.

    Example:
        >>> Cron("30 2 * * *", "Europe/Berlin").after(datetime(2026, 3, 28, 12, tzinfo=_UTC))
        datetime.datetime(2026, 3, 29, 1, 0, tzinfo=datetime.timezone.utc)
    """

    expression: str
    zone: str = "UTC"

    def __post_init__(self) -> None:
        _zone(self.zone)
        if self._fields and self.after(_EPOCH) is None:
            raise UsageError(
                f"cron {self.expression!r}: this never comes: expected a day that some month has"
            )

    def after(self, moment: datetime) -> datetime | None:
        """The first fire after a moment, in UTC; None where none comes within 50 years."""
        return next(self.fires(moment), None)

    def fires(self, moment: datetime) -> Iterator[datetime]:
        """All fires after a moment, in UTC, each once."""
        zone = _zone(self.zone)
        is_of_intervals = any(field.startswith("*") for field in self._fields[1:3])
        times = self._on_the_wall if is_of_intervals else self._on_each_day
        last = moment.astimezone(_UTC)
        for at in times(last, zone):
            if at > last:
                last = at
                yield at

    def _on_each_day(self, moment: datetime, zone: ZoneInfo) -> Iterator[datetime]:
        """Times of day, each once on each day."""
        for wall in self._times(moment.astimezone(zone).replace(tzinfo=None)):
            yield _first_real(wall, zone)

    def _on_the_wall(self, moment: datetime, zone: ZoneInfo) -> Iterator[datetime]:
        """Whenever the clock on the wall shows such a time."""
        offset = _offset(moment, zone)
        times = self._times(moment.replace(tzinfo=None) + offset)
        while (wall := next(times, None)) is not None:
            at = (wall - offset).replace(tzinfo=_UTC)
            if _offset(at, zone) == offset:
                moment = at
                yield at
                continue
            # The clocks are changed on the way: on from there, by what they show then.
            moment = _change(moment, at, zone)
            offset = _offset(moment, zone)
            times = self._times((moment + offset).replace(tzinfo=None) - _SECOND)

    def latest(self, after: datetime, until: datetime) -> datetime | None:
        """The last fire after one moment and not after another; None where there is none.

        Example:
            >>> day = timedelta(days=1)
            >>> Cron("*/5 * * * *").latest(_EPOCH - day, _EPOCH + timedelta(minutes=7))
            datetime.datetime(2026, 1, 1, 0, 5, tzinfo=datetime.timezone.utc)
        """
        back = timedelta(minutes=1)
        while True:
            start = max(after, until - back)
            found = max(self._between(start, until), default=None)
            if found is not None or start == after:
                return found
            back *= 2

    def count(self, after: datetime, until: datetime, most: int = 1000) -> int:
        """Fires after one moment and not after another, counted up to ``most``."""
        return sum(1 for _ in islice(self._between(after, until), most))

    def _between(self, after: datetime, until: datetime) -> Iterator[datetime]:
        return takewhile(lambda at: at <= until, self.fires(after))

    def gap(self, moment: datetime) -> float:
        """Seconds between the next two fires after a moment: 1 hour where there are none, at least 60."""
        fires = self.fires(moment)
        first, second = next(fires, None), next(fires, None)
        if first is None or second is None:
            return HOUR
        return max(FLOOR, (second - first).total_seconds())

    @cached_property
    def _fields(self) -> tuple[str, ...]:
        return fields(self.expression)

    def _times(self, wall: datetime) -> Iterator[datetime]:
        """Times on the wall after one of them, as if clocks were never changed."""
        from cronsim import CronSim, CronSimError

        try:
            return CronSim(" ".join(self._fields), wall)
        except CronSimError:  # a day that no month has
            return iter(())


@lru_cache(maxsize=256)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UsageError(
            f"unknown time zone {name!r}: expected an IANA name, like UTC or Europe/Berlin"
        ) from error


def _offset(moment: datetime, zone: ZoneInfo) -> timedelta:
    found = moment.astimezone(zone).utcoffset()
    assert found is not None
    return found


def _first_real(wall: datetime, zone: ZoneInfo) -> datetime:
    """When a time of day is, the first of two; where the day does not have it, the end of the gap."""
    at = wall.replace(tzinfo=zone).astimezone(_UTC)
    if at.astimezone(zone).replace(tzinfo=None) == wall:
        return at
    offsets = sorted(_offset(wall.replace(tzinfo=zone, fold=fold), zone) for fold in (0, 1))
    before, after = ((wall - offset).replace(tzinfo=_UTC) for offset in reversed(offsets))
    return _change(before, after, zone)


def _change(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """The first second of a new offset, between two moments whose offsets differ."""
    offset = _offset(before, zone)
    while after - before > _SECOND:
        middle = before + (after - before) / 2
        if _offset(middle, zone) == offset:
            before = middle
        else:
            after = middle
    return after.replace(microsecond=0)


@dataclass(frozen=True)
class Cycle:
    """Again and again, with a pause in between.

    Args:
        delay: seconds from the end of an iteration to the next one.
        max_iterations: successful ones after which it is done; None: no end.
        max_failure_restarts: failures in a row that are tried again; one more stops the task, and
            a person has to look.
    """

    delay: float
    max_iterations: int | None = None
    max_failure_restarts: int = 3

    def gap(self, moment: datetime) -> float:
        """Seconds that failures are waited out from: the delay."""
        del moment
        return self.delay

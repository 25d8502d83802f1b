"""When a recurring task runs: at the times of a cron expression, or again and again (a cycle).

Pure: the time comes in. What happens on the days when clocks are changed is decided here, as in
Vixie's cron and for the same reason: a job at a time of day runs once on each of its days, a job
that repeats through the day follows the clock on the wall.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cached_property, lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from loki.base.error import UsageError
from loki.jobs.recurring.cron import fields

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
        expression: as `loki.jobs.recurring.cron.fields` takes it.
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
            found = self.after(start)
            if found is not None and found <= until:
                return self._last_from(found, until)
            if start == after:
                return None
            back *= 2

    def _last_from(self, found: datetime, until: datetime) -> datetime:
        for following in self.fires(found):
            if following > until:
                break
            found = following
        return found

    def count(self, after: datetime, until: datetime, most: int = 1000) -> int:
        """Fires after one moment and not after another, counted up to ``most``."""
        number = 0
        for at in self.fires(after):
            if at > until or number >= most:
                break
            number += 1
        return number

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

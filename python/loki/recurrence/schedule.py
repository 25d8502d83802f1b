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
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from loki.base.error import UsageError
from loki.recurrence.cron import fields

if TYPE_CHECKING:
    from cronsim import CronSim

HOUR = 3600.0
"""Seconds; the gap of a schedule that has no two fires (SPEC's)."""

FLOOR = 60.0
"""Seconds; no gap counts as less where failures are waited out (SPEC's)."""

_UTC = timezone.utc
_EPOCH = datetime(2026, 1, 1, tzinfo=_UTC)


@dataclass(frozen=True)
class Cron:
    """The times of a cron expression in a time zone.

    A time of day that a day does not have, because clocks are put forward, is the first moment after
    the gap; one that it has twice counts the first time only. Where the minute or the hour begins
    with ``*``, the schedule is one of intervals: it follows the clock on the wall, in the hour that
    comes twice, too, and makes up for nothing.

    Args:
        expression: as `loki.recurrence.cron.fields` takes it.
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
        last = moment
        for found in self._local(moment.astimezone(_zone(self.zone))):
            at = _first_real(found).astimezone(_UTC)
            if at > last:
                last = at
                yield at

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

    def _local(self, local: datetime) -> Iterator[datetime]:
        """Times on the wall from a moment on: with their zone; some may not exist, some come twice."""
        from cronsim import CronSim, CronSimError

        zone = local.tzinfo
        is_of_intervals = any(field.startswith("*") for field in self._fields[1:3])
        try:
            times: CronSim = CronSim(
                " ".join(self._fields), local if is_of_intervals else local.replace(tzinfo=None)
            )
        except CronSimError:  # a day that no month has
            return
        for found in times:
            yield found.replace(tzinfo=zone, fold=found.fold)


@lru_cache(maxsize=256)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UsageError(
            f"unknown time zone {name!r}: expected an IANA name, like UTC or Europe/Berlin"
        ) from error


def _first_real(local: datetime) -> datetime:
    """The same time of day; where the day does not have it, the first moment after the gap."""
    utc = local.astimezone(_UTC)
    if utc.astimezone(local.tzinfo).replace(tzinfo=None) == local.replace(tzinfo=None):
        return local
    # The gap is as long as the offsets before and after it differ; its end is the one moment at
    # which the later offset begins to hold.
    before = local.replace(fold=0).utcoffset()
    after = local.replace(fold=1).utcoffset()
    assert before is not None
    assert after is not None
    low = (local.replace(tzinfo=None) - max(before, after)).replace(tzinfo=_UTC)
    high = (local.replace(tzinfo=None) - min(before, after)).replace(tzinfo=_UTC)
    while high - low > timedelta(seconds=1):  # the later offset holds at `high`, not yet at `low`
        middle = low + (high - low) / 2
        holds = middle.astimezone(local.tzinfo).utcoffset() == max(before, after)
        low, high = (low, middle) if holds else (middle, high)
    return high.replace(microsecond=0).astimezone(local.tzinfo)


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

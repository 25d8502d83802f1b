"""When a recurring task runs: at the times of a cron expression. Pure: the time comes in.

The calendar, and what happens on the days when clocks are changed, is `cronsim`'s, which keeps to
Debian's cron: a job at a time of day runs once on each of its days, a job that repeats through the day
follows the clock on the wall.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from itertools import islice, takewhile
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from loki.base.error import UsageError

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

BOUNDS = {
    "second": "0-59",
    "minute": "0-59",
    "hour": "0-23",
    "day-of-month": "1-31",
    "month": "1-12 or JAN-DEC",
    "day-of-week": "0-7 or SUN-SAT",
}
"""What may stand in a field, by the name that `cronsim` gives it."""

HOUR = 3600.0
"""Seconds; the gap of a schedule that has no two fires (SPEC's)."""

FLOOR = 60.0
"""Seconds; no gap counts as less where failures are waited out (SPEC's)."""

_TO_SUNDAY = re.compile(r"([1-6]|(?!sun)[a-z]{3})-(?:0|sun)\b", re.IGNORECASE)
"""A week may end with Sunday; `cronsim` knows it at its end as 7 alone."""

_EPOCH = datetime(2026, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Cron:
    """The times of a cron expression in a time zone.

    A time of day that a day does not have, because clocks are put forward, is the first moment after
    the gap; one that it has twice counts the first time only. Where the minute or the hour begins
    with ``*``, or seconds are given, the schedule is one of intervals: it follows the clock on the wall,
    in the hour that comes twice, too, and makes up for nothing.

    Args:
        expression: five fields (minute, hour, day of month, month, day of week), six with seconds before
            them, or a name like ``@daily``.
        zone: an IANA name, like ``Europe/Berlin``.

    Raises:
        UsageError: the expression cannot be read or its time never comes; there is no such zone.

    Example:
        >>> Cron("30 2 * * *", "Europe/Berlin").after(datetime(2026, 3, 28, 12, tzinfo=timezone.utc))
        datetime.datetime(2026, 3, 29, 1, 0, tzinfo=datetime.timezone.utc)
    """

    expression: str
    zone: str = "UTC"

    def __post_init__(self) -> None:
        from cronsim import CronSim, CronSimError

        fields = self._fields
        if fields.startswith("@"):
            raise UsageError(
                f"cron {self.expression!r}: expected one of {', '.join(MACROS)}, or five fields"
            )
        if (count := len(fields.split())) not in {5, 6}:
            raise UsageError(
                f"cron {self.expression!r}: found {count} fields, expected 5 (minute, hour, day of "
                "month, month, day of week), 6 with seconds before them, or a name like @daily"
            )
        _zone(self.zone)
        try:
            CronSim(fields, _EPOCH)
        except (CronSimError, ValueError) as error:
            bounds = BOUNDS.get(str(error).removeprefix("Bad "), "a number")
            raise UsageError(
                f"cron {self.expression!r}: {error}: expected *, {bounds}, ranges like 1-5, steps "
                "like */2, lists like 1,4, and a day that some month has"
            ) from error
        if self.after(_EPOCH) is None:
            raise UsageError(
                f"cron {self.expression!r}: this never comes: expected a day that some month has"
            )

    @property
    def _fields(self) -> str:
        text = MACROS.get(self.expression.strip().lower(), self.expression)
        *others, days = text.split() or [""]
        return " ".join([*others, _TO_SUNDAY.sub(r"\1-7", days)])

    def after(self, moment: datetime) -> datetime | None:
        """The first fire after a moment, in UTC; None where none comes within 50 years."""
        return next(self.fires(moment), None)

    def fires(self, moment: datetime) -> Iterator[datetime]:
        """All fires after a moment, in UTC, each once."""
        from cronsim import CronSim

        last = moment.astimezone(timezone.utc)
        for wall in CronSim(self._fields, moment.astimezone(_zone(self.zone))):
            at = wall.astimezone(timezone.utc)
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


@lru_cache(maxsize=256)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UsageError(
            f"unknown time zone {name!r}: expected an IANA name, like UTC or Europe/Berlin"
        ) from error

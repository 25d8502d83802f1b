"""What a time axis is divided into: hours, days, weeks, months or years."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from loki.base.time import moment

MOST = 60
"""Most divisions of a time axis; chosen, not measured: more bars than that cannot be told apart."""

YEARS = range(1970, 2200)
"""Times outside are some other program's mistake."""

_FORMS = {"hour": "%m-%d %Hh", "day": "%m-%d", "week": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}


@dataclass(frozen=True, slots=True)
class Axis:
    """A time axis without gaps.

    Attributes:
        unit: hour, day, week, month or year.
        starts: begin of each division.
    """

    unit: str
    starts: tuple[datetime, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """What each division is called: its begin."""
        return tuple(start.strftime(_FORMS[self.unit]) for start in self.starts)

    def spread(self, hourly: Mapping[str, float]) -> tuple[float, ...]:
        """Values by hour (``2026-04-04T10``), added up by division."""
        sums = dict.fromkeys(self.starts, 0.0)
        for hour, value in hourly.items():
            begun = _parse(hour)
            if begun is not None:
                sums[_floor(begun, self.unit)] += value
        return tuple(sums.values())


def axis(hours: Iterable[str]) -> Axis:
    """The finest axis of at most sixty divisions that holds all hours; texts that name none are left out.

    Args:
        hours: like ``2026-04-04T10``, in any order.

    Example:
        >>> found = axis(["2026-04-04T10", "2026-04-06T01"])
        >>> found.unit, len(found.starts), found.names[0]
        ('hour', 40, '04-04 10h')
    """
    known = sorted(found for found in map(_parse, hours) if found is not None)
    if not known:
        return Axis("hour", ())
    for unit in _FORMS:
        starts: list[datetime] = []
        start, last = _floor(known[0], unit), _floor(known[-1], unit)
        while start <= last and (len(starts) <= MOST or unit == "year"):
            starts.append(start)
            start = _next(start, unit)
        if len(starts) <= MOST:
            break
    return Axis(unit, tuple(starts))


def _parse(hour: str) -> datetime | None:
    found = moment(f"{hour}:00:00Z") if len(hour) == len("2026-04-04T10") else None
    return found if found is not None and found.year in YEARS else None


def _floor(at: datetime, unit: str) -> datetime:
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    if unit == "hour":
        return at
    if unit == "day":
        return day
    if unit == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if unit == "month" else day.replace(month=1, day=1)


def _next(start: datetime, unit: str) -> datetime:
    # Months and years vary in length: from their begin, so many days lead into the next one.
    hours = {"hour": 1, "day": 24, "week": 7 * 24, "month": 32 * 24, "year": 366 * 24}
    return _floor(start + timedelta(hours=hours[unit]), unit)

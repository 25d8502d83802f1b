"""A slow reference for cron schedules: every minute is looked at, nothing is calculated."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_NAMES = {
    name: str(number)
    for names, first in (
        ("SUN MON TUE WED THU FRI SAT", 0),
        ("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC", 1),
    )
    for number, name in enumerate(names.split(), first)
}


def _values(text: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for item in text.upper().split(","):
        span, _, step = item.partition("/")
        first, _, last = span.partition("-")
        start = low if span == "*" else int(_NAMES.get(first, first))
        end = int(_NAMES.get(last, last)) if last else high if span == "*" or step else start
        found |= set(range(start, end + 1, int(step or 1)))
    return found


class SlowCron:
    """Five fields in a zone, as Vixie's manual words it."""

    def __init__(self, expression: str, zone: str) -> None:
        self.zone = ZoneInfo(zone)
        self.texts = expression.split()
        self.values = [
            _values(text, *bounds) for text, bounds in zip(self.texts, _BOUNDS, strict=True)
        ]
        self.is_fixed = not any(text.startswith("*") for text in self.texts[:2])

    def matches(self, wall: datetime) -> bool:
        """Whether a time on the wall is one of its times."""
        minute, hour, day, month, weekday = self.values
        if wall.minute not in minute or wall.hour not in hour or wall.month not in month:
            return False
        in_month = wall.day in day
        in_week = bool({wall.isoweekday() % 7, wall.isoweekday()} & weekday)
        either = not self.texts[2].startswith("*") and not self.texts[4].startswith("*")
        return (in_month or in_week) if either else (in_month and in_week)

    def fires(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Its times after one moment and not after another, in UTC; both at full minutes."""
        at, before = after + MINUTE, self._wall(after)
        while at <= until:
            wall = self._wall(at)
            passed = [wall]
            if self.is_fixed and wall.minute not in self.values[0] and wall - before == MINUTE:
                passed = []  # as nearly always
            elif self.is_fixed:
                seen_before = wall.replace(tzinfo=self.zone, fold=0).astimezone(timezone.utc) < at
                passed = [] if seen_before else [wall]
                skipped = before + MINUTE
                while skipped < wall:  # the clocks were put forward over these
                    passed.append(skipped)
                    skipped += MINUTE
            if any(map(self.matches, passed)):
                yield at
            at, before = at + MINUTE, wall

    def _wall(self, moment: datetime) -> datetime:
        return moment.astimezone(self.zone).replace(tzinfo=None)

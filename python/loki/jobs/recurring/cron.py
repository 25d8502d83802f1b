"""Reading a cron expression: each field by itself, so that an error says which it is.

The mathematics of the calendar is `cronsim`'s, which keeps to Debian's cron; what it is given has
passed here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from loki.base.error import UsageError

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
HOUR = Field("hour", 0, 23)
DAY = Field("day of month", 1, 31)
MONTH = Field("month", 1, 12, _MONTHS)
WEEKDAY = Field("day of week", 0, 7, _DAYS)

FIVE = (MINUTE, HOUR, DAY, MONTH, WEEKDAY)
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

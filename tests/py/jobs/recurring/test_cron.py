"""Reading cron expressions: what is refused says which field and what was expected."""

from __future__ import annotations

import pytest

import loki
from loki.jobs.recurring.schedule import MACROS, fields


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("* * * * *", ("0", "*", "*", "*", "*", "*")),
        ("*/5 9-17 1,15 jan-MAR mon-fri", ("0", "*/5", "9-17", "1,15", "1-3", "1-5")),
        ("30 0 12 * * *", ("30", "0", "12", "*", "*", "*")),
        ("  0\t0  * * 7 ", ("0", "0", "0", "*", "*", "7")),
        ("0 0 * * fri-sun", ("0", "0", "0", "*", "*", "5-7")),
        ("5-5/2 8-12/2 */10 3/4 *", ("0", "5", "8,10,12", "*/10", "3,7,11", "*")),
        ("0 0 L * *", ("0", "0", "0", "L", "*", "*")),
        ("0 0 * * FRI#2,1L", ("0", "0", "0", "*", "*", "5#2,1L")),
        ("@Daily", ("0", "0", "0", "*", "*", "*")),
    ],
)
def test_what_is_read(expression: str, expected: tuple[str, ...]) -> None:
    assert fields(expression) == expected


@pytest.mark.parametrize("name", MACROS)
def test_names_stand_for_five_fields(name: str) -> None:
    assert fields(name) == fields(MACROS[name])


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("* * * *", "found 4 fields, expected 5"),
        ("", "found 0 fields"),
        ("* * * * * * *", "found 7 fields"),
        ("60 * * * *", "minute: 60 is outside 0-59"),
        ("60 * * * * *", "second: 60 is outside 0-59"),
        ("* 24 * * *", "hour: 24 is outside 0-23"),
        ("* * 0 * *", "day of month: 0 is outside 1-31"),
        ("* * * 13 *", "month: 13 is outside 1-12"),
        ("* * * * 8", "day of week: 8 is outside 0-7"),
        ("* * * mai *", "month: found 'MAI', expected .*JAN-DEC"),
        ("5-1 * * * *", "minute: the range 5-1 runs backwards"),
        ("*/0 * * * *", "the step of '\\*/0' is '0', expected a number of 1 or more"),
        ("*/x * * * *", "the step of '\\*/X' is 'X'"),
        ("1,,2 * * * *", "minute: found 'nothing'"),
        ("0 0 ? * *", "day of month: found '\\?', expected '\\*'"),
        ("0 0 * * 5#6", "day of week: found '5#6'"),
        ("@reboot", "expected one of @hourly"),
        ("٣ * * * *", "minute: found '٣'"),
        ("99999999999999999999 * * * *", "is outside 0-59"),
    ],
)
def test_what_is_refused(expression: str, said: str) -> None:
    with pytest.raises(loki.UsageError, match=said):
        fields(expression)

"""Reading cron expressions: what is refused says which field and what was expected."""

from __future__ import annotations

from datetime import datetime, timezone
from itertools import islice

import pytest

import loki
from loki.jobs.recurring.schedule import MACROS, Cron

START = datetime(2026, 4, 4, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("expression", "same"),
    [
        ("*/5 9-17 1,15 jan-MAR mon-fri", "*/5 9-17 1,15 1-3 1-5"),
        ("  0\t0  * * 7 ", "0 0 * * 0"),
        ("5 8-12/2 */10 3/4 *", "5 8,10,12 */10 3,7,11 *"),
        ("0 30 2 * * *", "30 2 * * *"),
        ("0 0 * * fri-sun,5-0/2 ", "0 0 * * 5-7"),
        ("0 0 * * sun-sun", "0 0 * * 0"),
        ("@Daily", "0 0 * * *"),
        *MACROS.items(),
    ],
)
def test_what_is_read(expression: str, same: str) -> None:
    found, expected = (list(islice(Cron(one).fires(START), 20)) for one in (expression, same))
    assert found == expected


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("* * * *", "found 4 fields, expected 5"),
        ("", "found 0 fields"),
        ("* * * * * * *", "found 7 fields"),
        ("60 * * * *", "Bad minute: expected \\*, 0-59"),
        ("60 * * * * *", "Bad second: expected \\*, 0-59"),
        ("* 24 * * *", "Bad hour: expected \\*, 0-23"),
        ("* * 0 * *", "Bad day-of-month: expected \\*, 1-31"),
        ("* * * 13 *", "Bad month: expected \\*, 1-12 or JAN-DEC"),
        ("* * * * 8", "Bad day-of-week: expected \\*, 0-7 or SUN-SAT"),
        ("* * * mai *", "Bad month"),
        ("5-1 * * * *", "Bad minute"),
        ("*/0 * * * *", "Bad minute"),
        ("*/x * * * *", "Bad minute"),
        ("1,,2 * * * *", "Bad minute"),
        ("0 0 ? * *", "Bad day-of-month"),
        ("0 0 * * 5#6", "Bad day-of-week"),
        ("@reboot", "expected one of @hourly"),
        ("٣ * * * *", "Bad minute"),
        (f"{'9' * 5000} * * * *", "expected \\*"),
    ],
)
def test_what_is_refused(expression: str, said: str) -> None:
    with pytest.raises(loki.UsageError, match=said):
        Cron(expression)

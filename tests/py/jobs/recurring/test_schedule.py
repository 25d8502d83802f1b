"""When tasks run: against a slow reference, on the days when clocks are changed, too."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from itertools import islice, pairwise, takewhile

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

import loki
from loki.jobs.recurring.schedule import Cron
from support.cron_reference import SlowCron
from support.examples import examples

UTC = timezone.utc

CHANGES = {
    "Europe/Berlin": [(2026, 3, 29), (2026, 10, 25)],
    "America/New_York": [(2026, 3, 8), (2026, 11, 1)],
    "America/Havana": [(2026, 3, 8), (2026, 11, 1)],  # at midnight
    "Asia/Kathmandu": [(2026, 1, 1)],  # 5:45 ahead, never changed
    "Pacific/Apia": [(2011, 12, 30)],  # a day that never was
    "UTC": [(2028, 2, 29)],
}
"""Zones, and days around which something happens there."""


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type,misc]


def field(low: int, high: int, *texts: str) -> st.SearchStrategy[str]:
    numbers = st.integers(low, high)
    ranges = st.tuples(numbers, numbers).map(lambda p: f"{min(p)}-{max(p)}")
    single = numbers.map(str) | ranges | st.integers(2, 7).map(lambda n: f"*/{n}")
    spans = st.tuples(st.integers(low, high - 1), numbers).map(
        lambda p: (p[0], max(p[0] + 1, p[1]))
    )
    stepped = st.tuples(spans, st.integers(1, 9)).map(lambda p: f"{p[0][0]}-{p[0][1]}/{p[1]}")
    lists = st.lists(single | stepped, min_size=1, max_size=3).map(",".join)
    return st.just("*") | st.sampled_from(["*", *texts]) | single | lists


EXPRESSIONS = st.tuples(
    field(0, 59, "0", "30", "*/15"),
    field(0, 23, "0", "1", "2", "2,3", "0-3"),
    field(1, 28, "29-31"),
    field(1, 12, "mar-apr", "OCT,NOV"),
    field(0, 7, "mon-fri", "SUN", "5-7"),
).map(" ".join)


@given(
    expression=EXPRESSIONS,
    where=st.sampled_from([(zone, day) for zone, days in CHANGES.items() for day in days]),
    hours=st.integers(-30, 20),
    minutes=st.integers(0, 59),
)
@example(expression="30 2 * * *", where=("Europe/Berlin", (2026, 3, 29)), hours=-12, minutes=0)
@example(expression="30 2 * * *", where=("Europe/Berlin", (2026, 10, 25)), hours=0, minutes=10)
@example(expression="*/15 * * * *", where=("Europe/Berlin", (2026, 10, 25)), hours=-2, minutes=0)
@example(expression="0,30 2,3 * * *", where=("Europe/Berlin", (2026, 3, 29)), hours=-2, minutes=0)
@example(expression="0 0 * * *", where=("America/Havana", (2026, 3, 8)), hours=-2, minutes=0)
@example(expression="0 10 * * *", where=("Pacific/Apia", (2011, 12, 30)), hours=-20, minutes=0)
@settings(
    max_examples=examples(100), deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate)
)
def test_it_finds_what_looking_at_every_minute_finds(
    expression: str, where: tuple[str, tuple[int, int, int]], hours: int, minutes: int
) -> None:
    zone, day = where
    start = utc(*day) + timedelta(hours=hours, minutes=minutes)
    end = start + timedelta(days=2)
    cron = Cron(expression, zone)
    found = list(takewhile(lambda at: at <= end, cron.fires(start)))
    assert found == list(SlowCron(expression, zone).fires(start, end))
    last = cron.latest(start, end)
    assert last == (found[-1] if found else None)
    assert cron.count(start, end, most=9999) == len(found)


def runs(expression: str, zone: str, start: datetime, count: int) -> list[str]:
    return [f"{at:%m-%d %H:%M:%S}" for at in islice(Cron(expression, zone).fires(start), count)]


def test_a_time_that_does_not_exist_is_the_end_of_the_gap() -> None:
    start = utc(2026, 3, 28, 12)
    assert runs("30 2 * * *", "Europe/Berlin", start, 2) == ["03-29 01:00:00", "03-30 00:30:00"]


def test_a_time_that_comes_twice_counts_once() -> None:
    start = utc(2026, 10, 24, 12)
    assert runs("30 2 * * *", "Europe/Berlin", start, 2) == ["10-25 00:30:00", "10-26 01:30:00"]
    in_between = utc(2026, 10, 25, 0, 45)  # it has been half past two, and will be again
    assert runs("30 2 * * *", "Europe/Berlin", in_between, 1) == ["10-26 01:30:00"]


def test_intervals_keep_their_length() -> None:
    for start in (utc(2026, 3, 29, 0, 30), utc(2026, 10, 25, 0)):
        times = list(islice(Cron("*/20 * * * *", "Europe/Berlin").fires(start), 12))
        assert {b - a for a, b in pairwise(times)} == {timedelta(minutes=20)}


def test_seconds_come_first_where_there_are_six_fields() -> None:
    start = utc(2026, 3, 28, 12)
    assert runs("15 30 2 * * *", "UTC", start, 1) == ["03-29 02:30:15"]
    assert runs("*/20 * * * * *", "UTC", start, 2) == ["03-28 12:00:20", "03-28 12:00:40"]


def test_a_day_of_the_month_or_a_day_of_the_week() -> None:
    """Both restricted: either will do, as Vixie's cron has it; else both have to."""
    start = utc(2026, 5, 31)
    assert runs("0 0 13 * 5", "UTC", start, 3) == [f"06-{d} 00:00:00" for d in ("05", "12", "13")]
    assert runs("0 0 */2 * 5", "UTC", start, 2) == [f"06-{d} 00:00:00" for d in ("05", "19")]


def test_sunday_is_0_and_7() -> None:
    start = utc(2026, 6, 1)
    expected = runs("0 0 * * SUN", "UTC", start, 3)
    assert runs("0 0 * * 0", "UTC", start, 3) == runs("0 0 * * 7", "UTC", start, 3) == expected


def test_the_last_day_of_a_month() -> None:
    start = utc(2026, 2, 1)
    assert runs("0 0 L * *", "UTC", start, 2) == ["02-28 00:00:00", "03-31 00:00:00"]


def test_a_time_that_never_comes_is_refused() -> None:
    for never in ("0 0 30 2 *", "0 0 */3 2 1#5"):
        with pytest.raises(loki.UsageError, match="a day that some month has"):
            Cron(never)
    assert Cron("0 0 29 2 *").after(utc(2026, 1, 1)) == utc(2028, 2, 29)


def test_an_unknown_zone_is_refused() -> None:
    for name in ("Europe/Atlantis", "", "../etc/passwd", "\0"):
        with pytest.raises(loki.UsageError, match="unknown time zone"):
            Cron("* * * * *", name)


@pytest.mark.parametrize(
    ("expression", "gap"),
    [
        ("*/15 * * * *", 900),
        ("@daily", 86400),
        ("*/5 * * * * *", 60),  # no less than a minute
        ("0 9,17 * * *", 8 * 3600),
        ("@yearly", 365 * 86400),
    ],
)
def test_the_gap_of_the_next_two_fires(expression: str, gap: float) -> None:
    assert Cron(expression).gap(utc(2026, 4, 4)) == gap


def test_many_missed_times_are_counted_to_a_bound() -> None:
    cron = Cron("* * * * * *")
    start, end = utc(2026, 4, 4), utc(2026, 4, 11)
    assert cron.latest(start, end) == end
    assert cron.count(start, end) == 1000

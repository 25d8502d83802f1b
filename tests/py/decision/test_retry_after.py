"""What services say about when to ask again; whatever they send, it is a wait or nothing."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import ROUND_HALF_UP, Decimal
from email.utils import format_datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from loki.decision.retry import retry_after

NOW = datetime(2026, 4, 4, 10, 15, 30, 250_000, tzinfo=timezone.utc)
DAY = 86_400
NAMES = ("Retry-After", "retry-after-ms", "X-MS-Retry-After-Ms")
moments = st.datetimes(
    datetime(1977, 1, 1), datetime(2075, 1, 1), timezones=st.just(timezone.utc)
).map(lambda moment: moment.replace(microsecond=0))


@given(
    st.sampled_from(NAMES),
    st.one_of(
        st.text(),
        st.text("0123456789.- :,GMTSunNovember\t"),
        st.from_regex(r"-?[0-9]*\.?[0-9]*", fullmatch=True),
        st.from_regex(r"[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8} GMT"),
    ),
)
@example("Retry-After", "\udce9")
@example("Retry-After", "9" * 100_000)
@example("Retry-After", "0." + "9" * 100_000)
def test_whatever_a_service_sends_is_a_wait_or_nothing(name: str, value: str) -> None:
    asked = retry_after({name: value}, NOW)
    assert asked is None or 0 <= asked <= DAY


@given(st.sampled_from(NAMES), st.decimals(0, 10**7, places=7))
def test_numbers_are_read_to_the_nanosecond(name: str, number: Decimal) -> None:
    unit = 10**9 if name == "Retry-After" else 10**6
    nanoseconds = (number * unit).quantize(Decimal(1), ROUND_HALF_UP)
    asked = retry_after({name: f" {number:f} "}, NOW, limit="1000d")
    assert asked == min(int(nanoseconds), 1000 * DAY * 10**9) / 1e9


@given(moments, moments)
def test_dates_are_read_in_the_three_forms(moment: datetime, now: datetime) -> None:
    """Years of two digits are those within 50 years, as here all are."""
    expected = min(max((moment - now).total_seconds(), 0), DAY)
    forms = [format_datetime(moment, usegmt=True), moment.strftime("%a %b %e %H:%M:%S %Y")]
    if abs(moment.year - now.year) < 49:
        forms.append(moment.strftime("%A, %d-%b-%y %H:%M:%S GMT"))
    for form in forms:
        assert retry_after({"Retry-After": form}, now) == expected, form


def test_a_date_is_seen_from_now_in_any_zone() -> None:
    headers = {"Retry-After": "Sat, 04 Apr 2026 10:16:00 GMT"}
    assert retry_after(headers, NOW) == 29.75
    assert retry_after(headers, NOW.astimezone(timezone(timedelta(hours=5.5)))) == 29.75
    with pytest.raises(ValueError, match="has no zone: expected a time like"):
        retry_after(headers, NOW.replace(tzinfo=None))


def test_the_more_precise_header_comes_first() -> None:
    both = {"Retry-After": "2", "Retry-After-Ms": "1500"}
    assert retry_after(both, NOW) == 1.5
    assert retry_after({**both, "Retry-After-Ms": "soon"}, NOW) == 2, "an illegible one is passed"
    assert retry_after({"x-ms-retry-after-ms": "20"}, NOW) == 0.02
    assert retry_after({"Content-Type": "text/plain"}, NOW) is None


def test_no_wait_is_longer_than_the_limit() -> None:
    headers = {"retry-after": "99999999999999999999"}
    assert retry_after(headers, NOW) == DAY
    assert retry_after(headers, NOW, limit="5m") == 300
    assert retry_after({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, NOW) == DAY


def test_what_is_past_is_no_wait() -> None:
    for value in ("-1", "0", "-99999999999999999999", "Thu, 01 Jan 1970 00:00:00 GMT"):
        assert retry_after({"Retry-After": value}, NOW) == 0

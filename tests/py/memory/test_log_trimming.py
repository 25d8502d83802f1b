"""A log that is too long loses its oldest records, whole."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loki.base.documents import trimmed

LINES = st.lists(st.text(alphabet="abc", max_size=8), max_size=12)


@given(LINES, st.sampled_from(["", "to"]), st.integers(0, 15), st.integers(0, 80))
def test_the_newest_records_stay(lines: list[str], torn: str, records: int, room: int) -> None:
    """What is left is an end of the log, within both bounds; one record more would not fit."""
    text = "".join(f"{line}\n" for line in lines) + torn
    left = trimmed(text, records, room)
    assert left is not None
    assert left.endswith(torn)
    kept = left.count("\n")
    assert left == "".join(f"{line}\n" for line in lines[len(lines) - kept :]) + torn
    assert kept <= records
    assert len(left) - len(torn) <= room
    if kept < len(lines):
        more = len(left) - len(torn) + len(lines[len(lines) - kept - 1]) + 1
        assert kept == records or more > room


def test_no_log_stays_none() -> None:
    assert trimmed(None, 1, 1) is None

"""Calls that a program makes by itself: what it reports of them opens the breaker, or does not."""

from __future__ import annotations

from pathlib import Path

import pytest

import loki
from loki.monitoring.reported_calls import ReportedCalls
from loki.testing import ManualClock


def calls(folder: Path) -> ReportedCalls:
    return ReportedCalls(loki.Workspace(folder, clock=ManualClock()), "claude")


def test_outages_that_it_tells_of_open_the_breaker(tmp_path: Path) -> None:
    watched = calls(tmp_path)
    watched.begin()
    for _ in range(3):
        watched.failed("server_error", "server_error", 529)
    with pytest.raises(loki.BreakerOpen, match="api/claude"):
        watched.begin()


@pytest.mark.parametrize("status", [400, 401])
def test_what_a_person_has_to_mend_is_no_outage(status: int, tmp_path: Path) -> None:
    watched = calls(tmp_path)
    for _ in range(5):
        watched.begin()
        watched.failed("invalid x-api-key", status=status)


def test_an_end_without_an_answer_says_nothing(tmp_path: Path) -> None:
    watched = calls(tmp_path)
    for _ in range(5):
        watched.begin()
        watched.end()
    watched.begin()
    watched.passed()

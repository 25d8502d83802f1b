"""Who is triaged, and what a verdict is allowed to lead to."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki.config import RecurrenceConfig
from loki.jobs.recurring.recurring_task import Hold
from loki.jobs.triage import triage_policy
from loki.jobs.triage.triage_policy import (
    conclude,
    cooldown_left,
    due_at,
    parts_of,
)
from loki.jobs.triage.triage_verdict import KINDS, Verdict
from support.triage import NOW, RECORD, failing

DAY = timedelta(days=1)
RULES = RecurrenceConfig()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"consecutive_failures": 2}, False),
        ({"consecutive_failures": 40}, True),
        ({"paused": Hold(since=NOW)}, False),
        ({"stopped": Hold(since=NOW, status="failed")}, True),
        ({"tags": ("no-recurring-triage",)}, False),
        ({"tags": ("nightly",)}, True),
        ({"last_triaged_at": NOW - DAY, "last_failure_at": NOW}, True),
        ({"last_triaged_at": NOW - DAY, "last_failure_at": NOW - DAY}, False),
        ({"last_triaged_at": NOW - DAY, "last_failure_at": None}, False),
        ({"last_triaged_at": NOW - DAY + timedelta(milliseconds=1)}, False),
        ({"last_triaged_at": NOW + 100 * DAY, "last_failure_at": NOW + 101 * DAY}, False),
    ],
)
def test_who_is_triaged(changes: dict[str, Any], expected: bool) -> None:
    assert (due_at(failing(**changes), RULES, NOW) == NOW) is expected


def test_a_triage_is_never_triaged() -> None:
    assert due_at(failing(triage_policy.triage_id("backup", 1)), RULES, NOW) is None
    _, record = triage_policy.begun(failing(), "doc", NOW)
    assert set(record.tags) == {"recurring-triage", "no-recurring-triage"}


def test_a_clock_that_jumped_holds_nothing_up_for_longer_than_the_cooldown() -> None:
    assert (
        cooldown_left(failing(last_triaged_at=NOW + 100 * DAY), RULES, NOW) == RULES.triage_cooldown
    )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 0),
        ({"last_triaged_at": NOW - DAY / 4}, 18),
        ({"last_triaged_at": NOW - DAY / 4, "last_failure_at": NOW - DAY}, None),
        ({"last_triaged_at": NOW - DAY}, 0),
        ({"last_triaged_at": NOW - DAY / 4, "paused": Hold(since=NOW)}, None),
    ],
)
def test_when_a_cooldown_is_over(changes: dict[str, Any], expected: int | None) -> None:
    at = due_at(failing(**changes), RULES, NOW)
    assert at == (None if expected is None else NOW + timedelta(hours=expected))


def test_the_cooldown_counts_from_the_start() -> None:
    after, record = triage_policy.begun(failing(), "doc", NOW)
    assert (after.last_triaged_at, after.triages) == (NOW, 1)
    assert (record.id, record.status, record.failures) == (".triage-backup-1", "running", 3)
    assert after.consecutive_failures == 3
    again, second = triage_policy.begun(after, "doc", NOW + DAY)
    assert (again.triages, second.id) == (2, ".triage-backup-2")


@given(st.text(max_size=20), st.integers(0, 999_999_999))
def test_an_id_names_its_task_or_nothing(task: str, number: int) -> None:
    found = parts_of(triage_policy.triage_id(task, number))
    assert found in {None, (task, number)}
    assert found is None or "/" not in found[0]


@pytest.mark.parametrize(
    ("verdict", "act", "said", "recommendation"),
    [
        (Verdict("NOOP", "a blip"), "nothing", "nothing is to be done", ""),
        (Verdict("NOOP", "a blip", action="buy a disk"), "nothing", "nothing is", "buy a disk"),
        (Verdict(problem="no verdict in it"), "nothing", "no verdict in it", ""),
        (Verdict("FILE-FIX", "moved", action="None."), "submit", "fix-backup-1 was", ""),
        (Verdict("PAUSE", "it deletes data"), "pause", "was paused", ""),
        (Verdict("RECOMMEND-CONFIG", "too slow", action="1h"), "nothing", "a person", "1h"),
        (Verdict("RECOMMEND-CONFIG", "too slow"), "nothing", "a person decides", "too slow"),
    ],
)
def test_what_a_verdict_leads_to(
    verdict: Verdict, act: str, said: str, recommendation: str
) -> None:
    found = conclude(verdict, RECORD, failing())
    assert (found.fix is not None, bool(found.pause)) == (act == "submit", act == "pause")
    assert found.recommendation == recommendation
    assert said in found.said


def test_a_fix_names_cause_evidence_and_where_it_comes_from() -> None:
    verdict = Verdict("FILE-FIX", "the endpoint moved", "GET /v1 -> 404\n```\nrm -rf /", "use /v2")
    fix = conclude(verdict, RECORD, failing()).fix
    assert fix is not None
    assert (fix.title, fix.after) == ("Fix: the endpoint moved", "backup")
    for part in ("the endpoint moved", "````text\nGET /v1 -> 404", "use /v2", ".triage-backup-1"):
        assert part in fix.description


@pytest.mark.parametrize(
    ("title", "is_new"),
    [
        ("Fix: the endpoint moved", False),
        ("Fix: the endpoint moved!", False),
        ("Fix: the disk is full", True),
    ],
)
def test_no_fix_is_asked_for_twice(title: str, is_new: bool) -> None:
    verdict = Verdict("FILE-FIX", "the endpoint moved")
    found = conclude(verdict, RECORD, failing(), [("fix-backup-0", title)])
    assert (found.fix is not None) is is_new
    assert is_new or "fix-backup-0 asks for it" in found.said


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_done_to_a_task_that_is_gone(kind: str) -> None:
    found = conclude(Verdict(kind, "x"), RECORD, None)
    assert (found.fix, found.pause) == (None, "")


def test_a_task_that_recovered_or_rests_is_not_paused() -> None:
    verdict = Verdict("PAUSE", "it deletes data")
    for task in (failing(consecutive_failures=0), failing(paused=Hold(since=NOW))):
        assert not conclude(verdict, RECORD, task).pause

"""What an outcome makes of a recurring task."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loki.config import RecurrenceConfig
from loki.jobs.recurring import recurring_outcome
from loki.jobs.recurring.recurring_outcome import (
    begun,
    delay,
    paused,
    recorded,
    replanned,
    resumed,
    without_failures,
)
from loki.jobs.recurring.recurring_run import Running, RunRecord, RunResult, Status
from loki.jobs.recurring.recurring_task import RecurringTask, Unreadable, read
from support.examples import examples

NOW = datetime(2026, 4, 4, 10, tzinfo=timezone.utc)
KNOBS = RecurrenceConfig()
HOURLY = {"cron": "0 * * * *"}
STATUSES: tuple[Status, ...] = ("success", "failed", "cancelled", "pending_evaluation", "rescued")


def made(schedule: dict[str, Any] | None = None, **more: Any) -> RecurringTask:
    data = {"id": "t", "schedule": schedule or HOURLY, "command": ["x"], **more}
    return replanned(RecurringTask.model_validate(data), NOW, KNOBS)


def ended(task: RecurringTask, status: Status, at: datetime | None = None) -> RunRecord:
    scheduled = at or task.next_run_at or NOW
    number = task.runs + 1
    return RunRecord(
        number=number,
        scheduled_at=scheduled,
        started_at=scheduled,
        ended_at=scheduled,
        status=status,
    )


def after(task: RecurringTask, *statuses: Status) -> RecurringTask:
    """A task after runs, each at its time."""
    for status in statuses:
        run = ended(task, status)
        at = run.scheduled_at
        task = begun(task, Running(number=run.number, scheduled_at=at, started_at=at))
        task = recorded(task, run, run.scheduled_at, KNOBS).task
    return task


def test_a_task_begins_with_its_schedule() -> None:
    assert made().next_run_at == NOW + timedelta(hours=1)
    assert made({"delay": "5m"}).next_run_at == NOW


def test_delays_double_from_the_gap_of_the_schedule() -> None:
    task, seen = made(), []
    for _ in range(6):
        before = task.next_run_at
        task = after(task, "failed")
        assert before is not None
        assert task.next_run_at is not None
        seen.append((task.next_run_at - before).total_seconds() / 3600)
    for found, expected in zip(seen, (2, 4, 8, 16, 24, 24), strict=True):
        assert expected * 0.8 <= found <= min(24, expected * 1.1)


def test_a_success_ends_the_row_and_goes_back_to_the_schedule() -> None:
    failed = after(made(), "failed", "failed")
    assert (failed.consecutive_failures, failed.total_failures) == (2, 2)
    for status in ("success", "rescued"):
        back = after(failed, status)
        assert (back.consecutive_failures, back.total_failures) == (0, 2)
        assert back.next_run_at is not None
        assert failed.next_run_at is not None
        assert back.next_run_at.minute == 0
        assert timedelta() < back.next_run_at - failed.next_run_at <= timedelta(hours=1)


@pytest.mark.parametrize("status", ["cancelled", "pending_evaluation"])
def test_what_is_no_outcome_counts_nothing(status: Status) -> None:
    failed = after(made(), "failed", "failed", "failed")
    left = after(failed, status)
    assert (left.consecutive_failures, left.total_failures) == (3, 3)
    assert left.next_run_at is not None
    assert failed.next_run_at is not None
    assert left.next_run_at - failed.next_run_at > timedelta(hours=6)  # no short cut either
    assert (left.pending is not None) is (status == "pending_evaluation")


def test_a_late_failure_is_not_planned_for_the_past() -> None:
    task = made()
    run = ended(task, "failed")
    late = run.scheduled_at + timedelta(days=3)
    assert recorded(task, run, late, KNOBS).task.next_run_at == late


def test_pausing_forgets_nothing_and_resuming_makes_up_for_nothing() -> None:
    failed = after(made(), "failed", "failed")
    held = paused(failed, NOW + timedelta(hours=5), "the disk", "ada")
    assert (held.consecutive_failures, held.status) == (2, "paused")
    assert paused(held, NOW + timedelta(days=1), "again") is held
    later = NOW + timedelta(days=3)
    back = resumed(held, later, KNOBS)
    assert (back.consecutive_failures, back.status, back.next_run_at) == (2, "backing_off", later)
    assert after(back, "failed").consecutive_failures == 3
    clean = resumed(paused(made(), NOW), NOW + timedelta(hours=90, minutes=5), KNOBS)
    assert clean.next_run_at == NOW + timedelta(hours=91)


def test_a_cycle_stops_after_its_restarts_and_waits_for_a_person() -> None:
    task = after(made({"delay": "60s"}), "failed", "failed", "failed")
    assert (task.status, task.failure_restarts) == ("backing_off", 3)
    run = ended(task, "failed")
    step = recorded(task, run, run.scheduled_at, KNOBS)
    assert (step.task.status, [notice.event for notice in step.notices]) == ("failed", ["stopped"])
    again = resumed(step.task, NOW + timedelta(days=1), KNOBS)
    assert (again.consecutive_failures, again.failure_restarts) == (4, 0)
    assert again.next_run_at == NOW + timedelta(days=1)
    assert after(again, "failed").status == "backing_off"


def test_a_cycle_is_done_after_its_iterations() -> None:
    task = after(made({"delay": "60s", "max_iterations": 2}), "success", "failed", "success")
    assert (task.status, task.iterations) == ("done", 2)


def test_an_operator_forgives_failures_but_not_those_of_its_life() -> None:
    forgiven = without_failures(after(made(), "failed", "failed"), NOW, KNOBS)
    assert (forgiven.consecutive_failures, forgiven.total_failures) == (0, 2)
    assert forgiven.next_run_at == NOW + timedelta(hours=1)


@given(st.lists(st.sampled_from(STATUSES), max_size=25), st.booleans())
@settings(max_examples=examples(60), deadline=None)
def test_the_counter_is_the_failures_since_the_last_success(
    statuses: list[Status], is_cycle: bool
) -> None:
    task = after(made({"delay": "1m", "max_failure_restarts": 99} if is_cycle else None), *statuses)
    row = 0
    for status in statuses:
        row = {"failed": row + 1, "success": 0, "rescued": 0}.get(status, row)
    assert task.consecutive_failures == row
    assert task.total_failures == statuses.count("failed")
    assert read("t", task.to_text()) == task  # a restart finds the same


@given(
    st.sampled_from(["* * * * *", "*/15 * * * *", "0 3 * * *", "@weekly", "0 9-17 * * 1-5"]),
    st.integers(0, 40),
    st.integers(0, 10**6),
    st.floats(1, 8),
    st.floats(60, 10**6),
)
@settings(max_examples=examples(150), deadline=None)
def test_no_delay_leaves_its_bounds(
    cron: str, failures: int, minutes: int, multiplier: float, cap: float
) -> None:
    at = NOW + timedelta(minutes=minutes)
    knobs = RecurrenceConfig.model_construct(
        failure_backoff_multiplier=multiplier, failure_backoff_max_delay=cap
    )
    task = made({"cron": cron}).with_(consecutive_failures=failures)
    base = task.timing().gap(at)
    found = delay(task, at, knobs)
    assert base <= found <= max(base, cap) + 1e-6
    more = task.with_(consecutive_failures=failures + 1)
    assert delay(task, at, knobs) == found
    with patch.object(recurring_outcome, "JITTER", 0.0):
        assert delay(more, at, knobs) >= delay(task, at, knobs)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no JSON"),
        ("[]", "found a list, expected a mapping"),
        ("[" * 100_000, "no JSON"),
        ('{"schedule": {"cron": "* * * *"}, "command": ["x"]}', "found 4 fields"),
        ('{"schedule": {"cron": "* * * * *", "zone": "X"}, "command": ["x"]}', "unknown time zone"),
        ('{"schedule": {"cron": "* * * * *"}}', "either a `command` or an `agent`"),
        ('{"command": ["x"]}', "schedule"),
        (
            '{"schedule": {"cron": "@daily"}, "command": ["curl", "-H", "Authorization: Bearer '
            'sk-ant-REDACTED"]}',
            "a secret stands in its command",
        ),
        ('{"schedule": {"delay": 60}, "command": ["x"]}', "schedule"),
        ('{"schedule": {"cron": "@daily"}, "command": ["x"], "runs": -1}', "runs"),
        (
            '{"schedule": {"cron": "@daily"}, "command": ["x"], "next_run_at": "soon"}',
            "next_run_at",
        ),
    ],
)
def test_what_cannot_be_used_says_why(text: str, said: str) -> None:
    found = read("x", text)
    assert isinstance(found, Unreadable)
    assert said in found.reason


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=5),
                    lambda inner: st.lists(inner, max_size=3)
                    | st.dictionaries(st.sampled_from(["schedule", "command", "cron", "delay", "runs"]),
                                      inner, max_size=4), max_leaves=12))  # fmt: skip
@settings(max_examples=examples(100), deadline=None)
def test_reading_never_raises(data: Any) -> None:
    import json

    assert isinstance(read("x", json.dumps(data)), (RecurringTask, Unreadable))


def test_what_others_write_is_kept_and_nulls_are_nothing() -> None:
    text = (
        '{"schedule": {"cron": "@daily", "note": 1}, "command": ["x"], "paused": null, "runs": null,'
        ' "consecutive_failures": "2", "colour": {"a": null}}'
    )
    task = read("x", text)
    assert isinstance(task, RecurringTask)
    assert (task.id, task.runs, task.consecutive_failures) == ("x", 0, 2)
    again = task.to_text()
    assert '"colour": {\n  "a": null' in again
    assert '"note": 1' in again


@pytest.mark.parametrize("status", ["success", "failed"])
def test_a_cycle_that_is_resumed_goes_on_from_the_end_of_its_last_run(status: Status) -> None:
    """However long that took, or late it began: a pause in between brings nothing forward."""
    task = made({"delay": "1h"})
    end = NOW + timedelta(hours=5)
    task = recorded(task, ended(task, status, NOW), end, KNOBS).task
    if status == "failed":  # and forgiven
        task = without_failures(task, end, KNOBS)
    assert task.next_run_at == end + timedelta(hours=1)
    soon = end + timedelta(minutes=10)
    assert resumed(paused(task, end), soon, KNOBS).next_run_at == task.next_run_at
    late = end + timedelta(hours=3)
    assert resumed(paused(task, end), late, KNOBS).next_run_at == late


def test_what_a_newer_version_said_of_a_run_under_way_is_no_part_of_its_record() -> None:
    said = {
        "number": 1,
        "scheduled_at": NOW,
        "started_at": NOW,
        "output": {"bytes": 3},
        "host": "b",
    }
    record = Running.model_validate(said).ended(NOW, RunResult("cancelled"))
    assert (record.number, record.status, record.output) == (1, "cancelled", None)
    assert "host" not in record.model_dump()

"""What a task's record says of going on with it: pure, and light to load for who only looks."""

from __future__ import annotations

from dataclasses import replace

from loki.base.error import UsageError
from loki.memory.task_record import DONE, Intervention, Outcome, TaskRecord

ENDED = ("success", "failed", "escalated", "unverified")
"""Statuses after which the same task begins anew, unless a person resumes it."""


def awaits_approval(record: TaskRecord) -> bool:
    """Whether nothing but a person's approval is missing."""
    return record.trigger == "approval"


def is_help(record: TaskRecord, context: str) -> bool:
    """Whether to resume a task is to step in: a person answers it, or has something to say.

    What was only interrupted or paused goes on as it stood.
    """
    return bool(context) or record.status in ENDED


def is_open(record: TaskRecord) -> bool:
    """Whether there is something of a task to go on with, or to be undone; a stage is its pipeline's."""
    is_over = record.run or record.trigger == "aborted" or record.status in DONE
    return bool(record) and not is_over


def must_be_resumable(record: TaskRecord) -> None:
    """Refuse what cannot be resumed.

    Raises:
        UsageError: nothing is left to do on the task; says what it is and what to do.
    """
    status, name = record.status, record.id
    if run := record.run:
        raise UsageError(
            f"task {name} is a stage of the run {run}: `loki pipeline resume {run}` goes on with it, "
            f"`loki cancel {run}` gives it up"
        )
    if status not in DONE:
        return
    raise UsageError(
        f"task {name} has ended: {status}, and nothing is left to resume. `loki show {name}` tells "
        "how; `loki run` with the same task begins it anew"
    )


def aborted(record: TaskRecord, at: str, why: str = "") -> TaskRecord:
    """A task's record after a person aborted it; its changes have been undone.

    Args:
        record: its record.
        at: when, ISO 8601 UTC.
        why: what they said, "" for nothing.
    """
    outcome = replace(
        record.outcome or Outcome(record.id, "", 0),
        status="failed",
        reason=f"aborted by a person, and its changes undone{f': {why}' if why else ''}",
        trigger="aborted",
        files=(),
    )
    now = Intervention(at, "abort", why, record.execution, 0, record.status)
    told = (*record.interventions, now)
    return replace(record, outcome=outcome, interventions=told, updated_at=at)

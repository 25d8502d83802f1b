"""What becomes of a recurring task when something happens to it; pure, the time comes in.

There is one counter of failures in a row, and it is bumped in one place (`recorded`), for cron and
cycles alike.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from loki.action.processes.command_line import split_command_line, why_not_runnable
from loki.action.task import safe_id, task_id
from loki.base.error import UsageError
from loki.base.secret import mask_secrets
from loki.decision.backoff import Backoff
from loki.jobs.recurring.recurring_run import Running, RunPostponed, RunRecord
from loki.jobs.recurring.recurring_task import (
    MOST_FAILURES,
    CyclePart,
    Hold,
    RecurringTask,
    problem_of,
)
from loki.jobs.recurring.schedule import Cron

if TYPE_CHECKING:
    from loki.config import RecurrenceConfig

STOPPED = "stopped"
"""The event of a cycle that failed once more than it may."""


JITTER = 0.1
"""Share of a delay (SPEC's); here so that its effect can be measured."""


@dataclass(frozen=True)
class Notice:
    """Something that a person or a log is to be told."""

    event: str
    text: str


@dataclass(frozen=True)
class Step:
    """A task after something happened, and what is to be told of it."""

    task: RecurringTask
    notices: tuple[Notice, ...] = ()


def delay(task: RecurringTask, scheduled_at: datetime, settings: RecurrenceConfig) -> float:
    """Seconds from a failed run's scheduled time to the next one (SPEC, Backoff, offset 0).

    Args:
        task: with its failures in a row.
        scheduled_at: the failed run's: the schedule's two fires after it give the base.
        settings: how failures are waited out.
    """
    base = task.timing().gap(scheduled_at)
    multiplier, most = settings.failure_backoff_multiplier, settings.failure_backoff_max_delay
    backoff = Backoff(base, multiplier, most, JITTER)
    return backoff.delay(task.consecutive_failures, key=task.id)


def planned(
    task: RecurringTask, scheduled_at: datetime, now: datetime, settings: RecurrenceConfig
) -> datetime | None:
    """When a task runs next: by its schedule, or where it failed last, after the backoff's delay.

    Args:
        task: with its counters.
        scheduled_at: of its last run.
        now: nothing is planned for earlier.
        settings: how failures are waited out.
    """
    if task.consecutive_failures:
        after = scheduled_at + timedelta(seconds=delay(task, scheduled_at, settings))
        return max(_rounded(after), now)
    timing = task.timing()
    if isinstance(timing, Cron):
        return timing.after(now)
    return _rounded(now + timedelta(seconds=timing.delay))


def begun(task: RecurringTask, running: Running) -> RecurringTask:
    """A task whose run begins."""
    return task.with_(
        running=running, runs=max(task.runs, running.number), not_before=None, put_off=""
    )


def put_off(task: RecurringTask, postponed: RunPostponed) -> RecurringTask:
    """A task whose run could not begin: nothing is counted, and the run's number is used again."""
    runs = task.runs - (task.running is not None)
    again = {"runs": runs, "not_before": postponed.until, "put_off": postponed.reason}
    return task.with_(running=None, **again)


def recorded(
    task: RecurringTask, run: RunRecord, now: datetime, settings: RecurrenceConfig
) -> Step:
    """A task after the outcome of a run is known: the one place where failures are counted.

    Args:
        task: as it is now, with what a person changed meanwhile.
        run: with its status.
        now: the time.
        settings: how failures are waited out.
    """
    changes: dict[str, Any] = {
        "last_status": run.status,
        "last_scheduled_at": run.scheduled_at,
        "pending": run.number if run.status == "pending_evaluation" else None,
    }
    if task.running is not None and task.running.number == run.number:
        changes["running"] = None
    if run.is_success:
        changes |= {
            "consecutive_failures": 0,
            "failure_restarts": 0,
            "iterations": task.iterations + 1,
            "last_success_at": now,
        }
    elif run.status == "failed":
        changes |= {
            "consecutive_failures": min(task.consecutive_failures + 1, MOST_FAILURES),
            "total_failures": task.total_failures + 1,
            "failure_restarts": task.failure_restarts + 1,
            "last_failure_at": now,
        }
    after = task.with_(**changes)
    is_judged_late = task.pending == run.number and task.next_run_at and task.next_run_at <= now
    if not (run.is_success and is_judged_late):  # its own time to run is the next one's
        after = after.with_(next_run_at=planned(after, run.scheduled_at, now, settings))
    return _stopped(after, run, now)


def _stopped(task: RecurringTask, run: RunRecord, now: datetime) -> Step:
    """A cycle that has done what it was to do, or failed once more than it may."""
    part = task.schedule
    if not isinstance(part, CyclePart) or task.stopped is not None:
        return Step(task)
    if (
        run.is_success
        and part.max_iterations is not None
        and task.iterations >= part.max_iterations
    ):
        held = Hold(since=now, reason=f"{task.iterations} iterations are done", status="done")
        return Step(task.with_(stopped=held), (Notice("done", held.reason),))
    if run.status == "failed" and task.failure_restarts > part.max_failure_restarts:
        count = task.consecutive_failures
        why = f"{count} failure{'' if count == 1 else 's'} in a row: {run.reason}".rstrip(": ")
        held = Hold(since=now, reason=why, status="failed")
        return Step(task.with_(stopped=held), (Notice(STOPPED, why),))
    return Step(task)


def paused(task: RecurringTask, now: datetime, reason: str = "", by: str = "") -> RecurringTask:
    """A task that does not run until it is resumed; its failures stay counted."""
    if task.paused is not None:
        return task
    return task.with_(paused=Hold(since=now, reason=reason, by=by))


def resumed(task: RecurringTask, now: datetime, settings: RecurrenceConfig) -> RecurringTask:
    """A task that runs again: what fell into the pause is not made up for, failures stay counted."""
    was_stopped = task.stopped is not None
    after = task.with_(paused=None, stopped=None)
    if was_stopped:
        return after.with_(failure_restarts=0, next_run_at=now)
    return replanned(after, now, settings)


def replanned(task: RecurringTask, now: datetime, settings: RecurrenceConfig) -> RecurringTask:
    """A task whose next run is found anew, after its schedule or its counters were changed."""
    last = task.last_scheduled_at
    if isinstance(task.schedule, CyclePart) and not task.consecutive_failures:
        # From the end of its last run on; one that has not run yet begins at once.
        ends = (last, task.last_success_at, task.last_failure_at)
        ended = max(filter(None, ends), default=None)
        after = timedelta(seconds=task.schedule.delay)
        return task.with_(next_run_at=now if ended is None else max(now, _rounded(ended + after)))
    return task.with_(next_run_at=planned(task, last or now, now, settings))


def without_failures(
    task: RecurringTask, now: datetime, settings: RecurrenceConfig
) -> RecurringTask:
    """A task whose failures in a row a person has forgiven; those of its life stay."""
    return replanned(task.with_(consecutive_failures=0, failure_restarts=0), now, settings)


def _rounded(moment: datetime) -> datetime:
    """Up to the next millisecond: what files keep, so that a restart finds the same."""
    rest = -moment.microsecond % 1000
    return moment.astimezone(timezone.utc) + timedelta(microseconds=rest)


# --- Which recurring tasks are to run now -------------------------------------------------------------


def due_at(task: RecurringTask) -> datetime | None:
    """When a task is to run; None: not before something happens to it."""
    if task.paused or task.stopped or task.running or task.next_run_at is None:
        return None
    return max(task.next_run_at, task.not_before or task.next_run_at)


def is_due(task: RecurringTask, now: datetime) -> bool:
    """Whether a task is to run now."""
    at = due_at(task)
    return at is not None and at <= now


def due(tasks: Iterable[RecurringTask], now: datetime) -> list[RecurringTask]:
    """The tasks that are to run now, the longest waiting first.

    Args:
        tasks: all of them.
        now: the time.
    """
    found = (task for task in tasks if is_due(task, now))
    return sorted(found, key=lambda task: (task.next_run_at or now, task.id))


def run_of(task: RecurringTask, now: datetime) -> Running:
    """The run that a task is due for: one, for all times that it missed."""
    at, missed, timing = task.next_run_at or now, 0, task.timing()
    if not task.consecutive_failures and isinstance(timing, Cron):
        last = timing.latest(at, now)
        if last is not None:
            at, missed = last, timing.count(at, last)
    return Running(number=task.runs + 1, scheduled_at=at, started_at=now, missed=missed)


def next_time(tasks: Iterable[RecurringTask]) -> datetime | None:
    """When the next task is due; None where none ever is."""
    return min(filter(None, map(due_at, tasks)), default=None)


# --- A new recurring task, from what a person says of it ----------------------------------------------


def command_words(words: Sequence[str], shell: str | None, root: Path) -> tuple[str, ...]:
    """A command, by its words, by one text that is split as a shell would, or for a shell.

    Raises:
        UsageError: there is none or both, or its program does not exist.
    """
    if bool(words) == bool(shell):
        raise UsageError(
            "what is to run? Expected one of these: a command after --, --shell 'a | b', "
            "--task for an agent"
        )
    if shell:
        return ("sh", "-c", shell)
    command = split_command_line(words[0]) if len(words) == 1 else tuple(words)
    if problem := why_not_runnable(command, root, may_come=False):
        raise UsageError(problem)
    return command


def defined(said: Mapping[str, Any], now: datetime, settings: RecurrenceConfig) -> RecurringTask:
    """A task that has not run yet.

    Args:
        said: what its file is to say; an id and a title that are missing are made from what it does.
        now: when it is added: a cycle begins at once, a cron schedule at its next time.
        settings: how failures are waited out.

    Raises:
        UsageError: something is outside its range, or holds a secret.
    """
    id_, title, command = said.get("id"), said.get("title"), tuple(said.get("command") or ())
    if not title and command:
        title = command[-1] if command[:2] == ("sh", "-c") else shlex.join(command)
    title = title or str(said["agent"]["task"])
    named = {"id": safe_id(id_) if id_ else task_id(title), "title": title, "created_at": now}
    return replanned(checked({**said, **named}), now, settings)


def checked(data: Mapping[str, Any]) -> RecurringTask:
    """A task of what its file would say.

    Raises:
        UsageError: it cannot be used, or a secret would be kept in it.
    """
    try:
        task = RecurringTask.model_validate(data)
    except ValidationError as error:
        raise UsageError(problem_of(error)) from error
    text = task.to_text()
    if mask_secrets(text) != text:
        raise UsageError(
            "a secret would be kept in the task's file: put it into an environment variable, and "
            "name that with --pass-env"
        )
    return task

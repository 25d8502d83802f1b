"""Which recurring tasks are to run now; pure, the time comes in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from loki.jobs.recurring.recurring_task import RecurringTask
from loki.jobs.recurring.schedule import Cron


@dataclass(frozen=True)
class Due:
    """A task that is to run now.

    Attributes:
        scheduled_at: since when it is due; of several times that were missed the last one.
        missed: scheduled times before that one that nobody was there for.
    """

    task: RecurringTask
    scheduled_at: datetime
    missed: int = 0


def due(tasks: Iterable[RecurringTask], now: datetime) -> list[Due]:
    """The tasks that are to run now, the longest waiting first: one run each, whatever was missed.

    Args:
        tasks: all of them.
        now: the time.
    """
    found = [run_of(task, now) for task in tasks if is_ready(task, now)]
    return sorted(found, key=lambda one: (one.task.next_run_at or now, one.task.id))


def is_ready(task: RecurringTask, now: datetime) -> bool:
    """Whether a task is to run now."""
    if task.paused is not None or task.stopped is not None or task.running is not None:
        return False
    if task.next_run_at is None or task.next_run_at > now:
        return False
    return task.not_before is None or task.not_before <= now


def run_of(task: RecurringTask, now: datetime) -> Due:
    """The run that a task is due for: one, for all times that it missed."""
    first = task.next_run_at or now
    timing = task.timing()
    if task.consecutive_failures or not isinstance(timing, Cron):
        return Due(task, first)
    last = timing.latest(first, now)
    return Due(task, first) if last is None else Due(task, last, timing.count(first, last))


def next_time(tasks: Iterable[RecurringTask]) -> datetime | None:
    """When the next task is due; None where none ever is."""
    times = [
        max(filter(None, (task.next_run_at, task.not_before)))
        for task in tasks
        if task.next_run_at and not (task.paused or task.stopped or task.running)
    ]
    return min(times, default=None)

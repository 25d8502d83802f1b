"""Dead letters as ``dead-letter.json`` has them, from queued tasks and back. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loki.recurrence import queued_form
from loki.recurrence.queued import ListName, QueuedTask

_OF_THE_CLAIM = ("claim", "blocked")


def entry(
    task: QueuedTask,
    *,
    original_queue: ListName,
    at: str,
    summary: str,
    attempts: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """A dead letter with what the queue alone knows.

    Args:
        task: the task, which its ``task_data`` keeps whole.
        original_queue: the list that it stood in.
        at: when it was given up, ISO 8601 UTC.
        summary: why, in one sentence.
        attempts: those that are known, as SPEC has them.
    """
    times = [str(one["timestamp"]) for one in attempts if one.get("timestamp")]
    return {
        "task_id": task.id,
        "original_queue": original_queue,
        "failure_count": task.lifetime_attempts,
        "first_failure": min(times, default=at),
        "last_failure": max(times, default=at),
        "error_summary": summary,
        "attempts": list(attempts),
        "recovery_strategy": "requires_human_review",
    }


def with_task(letter: Mapping[str, Any], task: QueuedTask) -> dict[str, Any]:
    """A dead letter that holds all that is needed to queue its task again."""
    data = {
        name: value for name, value in queued_form.write(task).items() if name not in _OF_THE_CLAIM
    }
    given = letter.get("task_data")
    inner = {**data, **(given if isinstance(given, Mapping) else {})}
    return {**letter, "task_id": task.id, "task_data": inner}


def asked(letter: QueuedTask) -> QueuedTask:
    """What a dead letter says was asked, of a task that the queue did not know before."""
    inner = letter.raw.get("task_data")
    return (
        letter if not isinstance(inner, Mapping) else queued_form.read({"id": letter.id, **inner})
    )


def task_of(letter: QueuedTask) -> QueuedTask:
    """The task of a dead letter, as it stands in pending.

    Example:
        >>> letter = {"task_id": "a", "failure_count": 5, "task_data": {"title": "A", "x": 1}}
        >>> task = task_of(queued_form.read(letter))
        >>> task.id, task.title, task.lifetime_attempts, task.raw["x"]
        ('a', 'A', 5, 1)
    """
    inner = letter.raw.get("task_data")
    if not isinstance(inner, Mapping):
        return letter
    data = {**inner, "lifetime_attempts": letter.lifetime_attempts, "taken_from": letter.taken_from}
    if queued_form.read({"title": letter.title, **inner}).id != letter.id:
        data["id"] = letter.id
    return queued_form.read({"title": letter.title, **data})

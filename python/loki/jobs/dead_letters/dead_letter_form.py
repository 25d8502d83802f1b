"""Dead letters as ``dead-letter.json`` has them, from queued tasks and back. Pure.

What cannot be read is never written over: only the fields that are named here are made anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from loki.jobs.queue import queued_task
from loki.jobs.queue.queued_task import ListName, QueuedTask
from loki.memory.attempt import Attempt
from loki.memory.dead_letter import HUMAN, PAST, RESOLVED, DeadLetter, attempts_of, past_of


def letter_of(task: QueuedTask, logged: DeadLetter | None = None) -> DeadLetter:
    """What a task's dead letter says.

    Args:
        task: as the queue reads it; its ``raw`` is what stands there.
        logged: what the log says of its last failure; None: nothing.
    """
    return DeadLetter.read(
        task.raw,
        task_id=task.id,
        title=task.title,
        description=task.description,
        lifetime_attempts=task.lifetime_attempts,
        source="queue",
    ).with_failure(logged)


def of_loop(
    task: QueuedTask, life: Sequence[Attempt], summary: str, at: str, *, strategy: str
) -> dict[str, Any]:
    """What a dead letter says of a task that loki worked on, but for what was asked: ``task_data``.

    Args:
        task: the task.
        life: the attempts of its life that loki recorded, oldest first.
        summary: one sentence.
        at: when it was given up, ISO 8601 UTC.
        strategy: how it may be recovered.
    """
    before = past_of(task.raw)
    attempts = attempts_of(life, before.attempts)
    times = [one.timestamp for one in attempts if one.timestamp]
    return {
        "task_id": task.id,
        "failure_count": max(0, len(attempts) - before.uncounted),
        "first_failure": before.first_failure or min(times, default=at),
        "last_failure": max(times, default=at),
        "error_summary": summary,
        "attempts": [asdict(one) for one in attempts],
        "recovery_strategy": strategy,
    }


def entry(
    task: QueuedTask, said: Mapping[str, Any], *, original_queue: ListName, at: str
) -> dict[str, Any]:
    """What stands in the file for a task, with all that is needed to queue it again.

    Args:
        task: the task, which ``task_data`` keeps whole.
        said: what is known of its end; the rest is what the queue alone knows.
        original_queue: the list that it stood in.
        at: when it was given up, ISO 8601 UTC.
    """
    known = {
        "task_id": task.id,
        "original_queue": original_queue,
        "failure_count": task.lifetime_attempts,
        "first_failure": at,
        "last_failure": at,
        "error_summary": "",
        "attempts": [],
        "recovery_strategy": HUMAN,
    }
    if isinstance(task.raw.get("task_data"), Mapping):  # it is a dead letter, or was one
        return {**known, **task.raw, **said}
    asked = queued_task.write_entry(task)
    for name in ("claim", "blocked"):
        asked.pop(name, None)
    given = said.get("task_data")
    data = {**asked, **(given if isinstance(given, Mapping) else {})}
    return {**known, **said, "task_id": task.id, "task_data": data}


def requeued(letter: DeadLetter, at: str, *, is_new_approach: bool) -> dict[str, Any]:
    """What a task says that is queued again, so that its next dead letter goes on with this one.

    Args:
        letter: its dead letter.
        at: when, ISO 8601 UTC.
        is_new_approach: its failures so far count no more.
    """
    uncounted = max(0, letter.total_attempts - letter.failure_count)
    return {
        "recovery_strategy": RESOLVED,
        "failure_count": 0 if is_new_approach else letter.failure_count,
        PAST: {
            "attempts": [asdict(one) for one in letter.attempts],
            "requeues": letter.requeues + 1,
            "uncounted": letter.total_attempts if is_new_approach else uncounted,
            "first_failure": letter.first_failure,
            "requeued_at": at,
        },
    }


def asked(letter: QueuedTask) -> QueuedTask:
    """What a dead letter says was asked, of a task that the queue did not know before."""
    inner = letter.raw.get("task_data")
    return (
        letter
        if not isinstance(inner, Mapping)
        else queued_task.read_entry({"id": letter.id, **inner})
    )


def task_of(letter: QueuedTask) -> QueuedTask:
    """The task of a dead letter, as it stands in pending.

    Example:
        >>> letter = {"task_id": "a", "failure_count": 5, "task_data": {"title": "A", "x": 1}}
        >>> task = task_of(queued_task.read_entry(letter))
        >>> task.id, task.title, task.lifetime_attempts, task.raw["x"]
        ('a', 'A', 5, 1)
    """
    inner = letter.raw.get("task_data")
    if not isinstance(inner, Mapping):
        return letter
    data = {**inner, "lifetime_attempts": letter.lifetime_attempts, "taken_from": letter.taken_from}
    if queued_task.read_entry({"title": letter.title, **inner}).id != letter.id:
        data["id"] = letter.id
    return queued_task.read_entry({"title": letter.title, **data})

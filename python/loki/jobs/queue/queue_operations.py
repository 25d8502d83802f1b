"""What the queue's verbs do to its lists. Pure: whoever holds the lock reads, calls and saves.

============================= ================================== =========================
from                          verb                               to
============================= ================================== =========================
nowhere                       submit                             pending
pending                       claim                              in-progress
in-progress                   release, or its worker died        pending; dead-letter
in-progress of others         take back                          pending
in-progress                   complete                           completed
in-progress                   fail                               failed
anywhere, also nowhere        dead_letter                        dead-letter
failed, dead-letter           requeue                            pending
abandoned                     requeue                            pending
pending, failed, dead-letter  abandon                            abandoned
pending, failed, dead-letter  achieve                            completed
abandoned                     achieve                            completed
============================= ================================== =========================

Every other verb leaves a task in its list, or is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from loki.action.task import safe_id
from loki.base.error import UsageError
from loki.base.secret import masked
from loki.jobs.dead_letters import dead_letter_form
from loki.jobs.queue import queued_task_format
from loki.jobs.queue.queue_lists import Capacity, LeasedTask, Lists, metadata
from loki.jobs.queue.queued_task import LISTS, LONGEST_LIFE, Lease, ListName, QueuedTask, cycle

EDITED = "edited_at"
"""Field of a task that a person has changed: when, ISO 8601 UTC."""

MOST_LOST = 10
"""Claims of a task that may end with their worker's life; chosen: such a task may well kill them."""


def submit(lists: Lists, tasks: Sequence[QueuedTask], now: str) -> list[QueuedTask]:
    """New tasks come in, numbered in their order; what was submitted to the word before is there.

    Raises:
        UsageError: an id is taken by another task, or tasks would wait for each other.
    """
    clean = [queued_task_format.read(masked(queued_task_format.write(task))) for task in tasks]
    new = _new(lists, clean)
    if names := cycle(_waiting(lists, new), {task.id: None for task in new}):
        raise UsageError(f"tasks would wait for each other for ever: {' -> '.join(names)}")
    lists.add(
        [
            replace(task, sequence=n, submitted_at=task.submitted_at or now, claim=None)
            for n, task in enumerate(new, lists.last_sequence + 1)
        ]
    )
    return [task for one in tasks if (task := lists.find(one.id)) is not None]


def _new(lists: Lists, tasks: Sequence[QueuedTask]) -> list[QueuedTask]:
    """Those that are not there; who was killed after it had submitted one says it again."""
    ids: set[str] = set()
    new = []
    for task in tasks:
        where, known = lists.where(safe_id(task.id)), lists.find(task.id)
        if where and (
            known is None or queued_task_format.asked(known) != queued_task_format.asked(task)
        ):
            raise UsageError(
                f"task {task.id!r} is in the queue already ({where}), and is another one: expected "
                "another id"
            )
        if task.id in ids:
            raise UsageError(f"task {task.id!r} is submitted twice: expected an id for each")
        ids.add(task.id)
        if not where:
            new.append(task)
    return new


def _waiting(lists: Lists, tasks: Sequence[QueuedTask]) -> dict[str, tuple[str, ...]]:
    """What tasks wait for, and what that waits for, and so on."""
    waiting = {task.id: task.dependencies for task in tasks}
    unknown = [id_ for task in tasks for id_ in task.dependencies]
    while unknown:
        if (id_ := unknown.pop()) not in waiting:
            waiting[id_] = lists.needs(id_)
            unknown += waiting[id_]
    return waiting


def leasable(lists: Lists, capacity: Capacity | None) -> Iterator[QueuedTask]:
    """The tasks that may be claimed, in order; those that the capacity does not admit left out."""
    if capacity is not None and lists.claimed >= capacity.slots:
        return
    for task in lists.ready():
        if capacity is None or capacity.admits(task):
            yield task


def lease_task(lists: Lists, task: QueuedTask, lease: Lease) -> LeasedTask:
    """A task is somebody's from now on."""
    moved = lists.move(replace(task, claim=lease, generation=lease.generation), "in-progress")
    return LeasedTask(moved, lease)


def leased(lists: Lists, claim: LeasedTask) -> QueuedTask | None:
    """The task of a claim, if it is still that claim's."""
    task = lists.find(claim.id)
    if task is None or lists.where(claim.id) != "in-progress" or task.claim is None:
        return None
    said, mine = task.claim, claim.lease
    return task if (said.worker, said.generation) == (mine.worker, mine.generation) else None


def end(lists: Lists, task: QueuedTask, to: ListName, said: Mapping[str, Any]) -> None:
    """A task in progress has ended."""
    lists.move(_saying(task, said), to)


def release(lists: Lists, task: QueuedTask, now: str) -> tuple[ListName, str]:
    """A task in progress goes back to pending, unless it has lived too long.

    A claim that made no attempt says nothing about the task: it is then queued again in any case.

    Returns:
        The list that it is in now; why, where it is given up.
    """
    before = task.claim.attempts if task.claim else task.lifetime_attempts
    task = replace(task, claim=None)
    why = ""
    if LONGEST_LIFE <= task.lifetime_attempts != before:
        why = f"{task.lifetime_attempts} attempts over its life"
    elif task.lost >= MOST_LOST:
        why = f"{task.lost} workers died while they worked on it"
    if not why:
        lists.move(task, "pending")
        return "pending", ""
    dead_letter(lists, {"task_id": task.id, "error_summary": why}, now, task)
    return "dead-letter", why


def withdraw(lists: Lists, id_: str) -> QueuedTask:
    """A task that another program left in progress is pending again.

    Raises:
        UsageError: no such task is in progress, or a worker of loki's is at work on it.
    """
    if lists.where(id_) == "in-progress" and (task := lists.find(id_)) is not None:
        if task.claim is not None:
            raise UsageError(f"{task.claim.worker} works on {id_!r}: end that process first")
        lists.move(task, "pending")
    return task_in_lists(lists, id_, ("pending",))


def edit(lists: Lists, id_: str, changes: Mapping[str, Any], now: str) -> QueuedTask:
    """A task asks for something else from now on; a dead letter does once it is queued again.

    Raises:
        UsageError: there is no such task, or it is completed.
    """
    task = task_in_lists(lists, id_, [name for name in LISTS if name != "completed"])
    after = replace(dead_letter_form.task_of(task), **changes)
    data = masked({**queued_task_format.write(after), EDITED: now})
    if isinstance(task.raw.get("task_data"), Mapping):
        data = {**task.raw, "task_data": {**task.raw["task_data"], **data}}
    lists.replace(queued_task_format.read(data))
    return task_in_lists(lists, id_, LISTS)


def dead_letter(
    lists: Lists, entry: Mapping[str, Any], now: str, task: QueuedTask | None = None
) -> QueuedTask:
    """A task is a dead letter from now on, or its dead letter says something else.

    Args:
        lists: the lists.
        entry: what the dead letter says; ``task_id`` at least.
        now: ISO 8601 UTC.
        task: the task as it is by now; None: as it stands in its list, or is in the entry.

    Raises:
        UsageError: the entry does not say which task it is.
    """
    try:
        said = queued_task_format.read(entry)
    except ValueError as error:
        raise UsageError(f"no dead letter: {error}") from error
    where = lists.where(said.id)
    known = task or lists.find(said.id) or dead_letter_form.asked(said)
    queue: ListName = where if where in {"pending", "in-progress"} else "in-progress"
    whole = dead_letter_form.entry(known, masked(entry), original_queue=queue, at=now)
    if where == "dead-letter":
        lists.replace(queued_task_format.read(whole))
    else:
        lists.move(queued_task_format.read(whole), "dead-letter")
        extra = lists.beside("dead-letter")
        lists.set_extra("dead-letter", {**extra, "metadata": metadata(extra)})
    return task_in_lists(lists, said.id, LISTS)


def requeue(
    lists: Lists, id_: str, said: Mapping[str, Any], now: str, *, reset: bool
) -> QueuedTask:
    """A task that had ended badly is pending again, and remembers what its dead letter said.

    Raises:
        UsageError: there is no such task.
    """
    letter = task_in_lists(lists, id_, ("failed", "dead-letter", "abandoned"))
    if lists.where(id_) != "failed":
        before = dead_letter_form.letter_of(letter)
        said = {**dead_letter_form.requeued(before, now, is_new_approach=reset), **said}
    task = dead_letter_form.task_of(letter)
    task = replace(task, lost=0, lifetime_attempts=0 if reset else task.lifetime_attempts)
    return lists.move(_saying(task, masked(said)), "pending")


def abandon(lists: Lists, id_: str, reason: str, now: str) -> QueuedTask:
    """A task is given up for good.

    Raises:
        UsageError: there is no such task.
    """
    task = task_in_lists(lists, id_, ("pending", "failed", "dead-letter"))
    return lists.move(_saying(task, masked({"reason": reason, "abandoned_at": now})), "abandoned")


def achieve(lists: Lists, id_: str, outcome: Mapping[str, Any], now: str) -> bool:
    """A task is achieved that nobody had claimed; whether it was waiting, or had ended badly."""
    task, where = lists.find(id_), lists.where(id_)
    if task is None or where in {"completed", "in-progress"}:
        return False
    said = {"completed_at": now, "outcome": dict(outcome)}
    lists.move(_saying(dead_letter_form.task_of(task), said), "completed")
    return True


def task_in_lists(lists: Lists, id_: str, names: Sequence[ListName]) -> QueuedTask:
    """A task that stands in one of some lists.

    Raises:
        UsageError: it does not.
    """
    task, where = lists.find(id_), lists.where(id_)
    if task is None:
        raise UsageError(f"no task {id_!r} in the queue: `loki queue` lists them")
    if where not in names:
        raise UsageError(f"task {id_!r} is in {where}: expected one in {' or '.join(names)}")
    return task


def _saying(task: QueuedTask, more: Mapping[str, Any]) -> QueuedTask:
    """A task that nobody works on any more, with more in it."""
    task = replace(task, claim=None)
    return queued_task_format.read({**queued_task_format.write(task), **more})

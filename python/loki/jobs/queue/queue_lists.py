"""What is under way in the queue's lists, and how it leaves them: whoever holds the lock calls it.

The moves of all verbs, those of `loki.jobs.queue.queue` with them:

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

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loki.action.task import safe_id
from loki.base.error import UsageError
from loki.base.secret import masked
from loki.jobs.dead_letters import dead_letter_form
from loki.jobs.queue import queued_task
from loki.jobs.queue.queue_index import Lists, metadata
from loki.jobs.queue.queued_task import LISTS, LONGEST_LIFE, Lease, ListName, QueuedTask, cycle

# --- A claim, and how much may be claimed at a time ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class Slots:
    """How much work may be out, and which.

    Attributes:
        slots: claims that may be out at a time, over all workers.
        admits: whether a task may be claimed now.
    """

    slots: int = sys.maxsize
    admits: Callable[[QueuedTask], bool] = lambda _: True


NO_LIMIT = Slots()


@dataclass(frozen=True, slots=True)
class LeasedTask:
    """A task that a worker has.

    Attributes:
        task: as it stood when it was claimed.
        lease: who has it, since when, until when.
    """

    task: QueuedTask
    lease: Lease

    @property
    def id(self) -> str:
        """Id of the task."""
        return self.task.id


# --- What the verbs do --------------------------------------------------------------------------------

EDITED = "edited_at"
"""Field of a task that a person has changed: when, ISO 8601 UTC."""

MOST_LOST = 10
"""Claims of a task that may end with their worker's life; chosen: such a task may well kill them."""


def submit(lists: Lists, tasks: Sequence[QueuedTask], now: str) -> list[QueuedTask]:
    """New tasks come in, numbered in their order; what was submitted to the word before is there.

    Raises:
        UsageError: an id is taken by another task, or tasks would wait for each other.
    """
    clean = [queued_task.read_entry(masked(queued_task.write_entry(task))) for task in tasks]
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
        if where and (known is None or queued_task.asked(known) != queued_task.asked(task)):
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


def leasable(lists: Lists, slots: Slots = NO_LIMIT) -> Iterator[QueuedTask]:
    """The tasks that may be claimed, in order; those that are not admitted left out."""
    if lists.claimed < slots.slots:
        yield from filter(slots.admits, lists.ready())


def leased(lists: Lists, claim: LeasedTask) -> QueuedTask | None:
    """The task of a claim, if it is still that claim's."""
    task = lists.find(claim.id)
    if task is None or lists.where(claim.id) != "in-progress" or task.claim is None:
        return None
    said, mine = task.claim, claim.lease
    return task if (said.worker, said.generation) == (mine.worker, mine.generation) else None


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
        said = queued_task.read_entry(entry)
    except ValueError as error:
        raise UsageError(f"no dead letter: {error}") from error
    where = lists.where(said.id)
    known = task or lists.find(said.id) or dead_letter_form.asked(said)
    queue: ListName = where if where in {"pending", "in-progress"} else "in-progress"
    whole = dead_letter_form.entry(known, masked(entry), original_queue=queue, at=now)
    if where == "dead-letter":
        lists.replace(queued_task.read_entry(whole))
    else:
        lists.move(queued_task.read_entry(whole), "dead-letter")
        extra = lists.beside("dead-letter")
        lists.set_extra("dead-letter", {**extra, "metadata": metadata(extra)})
    return task_in_lists(lists, said.id, LISTS)


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


def saying(task: QueuedTask, more: Mapping[str, Any]) -> QueuedTask:
    """A task that nobody works on any more, with more in it."""
    task = replace(task, claim=None)
    return queued_task.read_entry({**queued_task.write_entry(task), **more})

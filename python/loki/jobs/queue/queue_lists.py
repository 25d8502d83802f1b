"""The lists of the queue as its verbs see them: what stands where, moved between.

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

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from loki.action.task import safe_id
from loki.base.error import UsageError
from loki.base.secret import masked
from loki.jobs.dead_letters import dead_letter_form
from loki.jobs.queue import queued_task
from loki.jobs.queue.queue_index import Entry, Index, Row, dump
from loki.jobs.queue.queued_task import (
    LISTS,
    LONGEST_LIFE,
    Lease,
    ListName,
    QueuedTask,
    cycle,
    entry_digest,
    fresh,
)

# --- The lists of the queue as its verbs see them: what stands where, moved between -------------------

# --- A worker's claim of a task, and how much may be claimed at a time --------------------------------


class Capacity(Protocol):
    """How much work may be out, and which."""

    @property
    def slots(self) -> int:
        """Claims that may be out at a time, over all workers."""

    def admits(self, task: QueuedTask) -> bool:
        """Whether a task may be claimed now."""


@dataclass(frozen=True, slots=True)
class Slots:
    """A capacity that is known beforehand.

    Attributes:
        slots: claims that may be out at a time, over all workers.
        allowed: whether a task may be claimed now.
    """

    slots: int
    allowed: Callable[[QueuedTask], bool] = lambda _: True

    def admits(self, task: QueuedTask) -> bool:
        """Whether a task may be claimed now."""
        return self.allowed(task)


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


# --- The lists of the queue as its verbs see them: what stands where, moved between -------------------

_OTHER = "give it another id, or take it out"


def document(name: ListName) -> str:
    """Name of a list's document in a store.

    Example:
        >>> document("dead-letter")
        'queue/dead-letter.json'
    """
    return f"queue/{name}.json"


class Lists:
    """All lists as they are at one moment; changed by whoever holds the lock."""

    def __init__(self, index: Index, now: float = 0.0) -> None:
        """Over an index.

        Args:
            index: what stands in the lists.
            now: seconds since the epoch, for changes.
        """
        self.index, self._now = index, now
        self.has_changed = False

    def complaints(self) -> Iterator[str]:
        """A sentence for each entry that was left alone."""
        for row in self.index.odd():
            number = self.index.one(
                "SELECT COUNT(*) FROM entry WHERE list = ? AND pos <= ?", row.list, row.pos
            )
            where = f".loki/{document(row.list)}: entry {number} is left as it stands"
            if row.id is None:
                yield f"{where}: {Entry(row.line).why}"
            elif (here := self.where(row.id)) == row.list:
                yield f"{where}: {row.id!r} stands there before; {_OTHER}"
            else:
                yield f".loki/{document(row.list)}: {row.id!r} stands in {here}, too, which counts; {_OTHER}"

    def where(self, id_: str) -> ListName | None:
        """The list that a task stands in; None: it is unknown."""
        return self.index.where(id_)

    def find(self, id_: str) -> QueuedTask | None:
        """A task, wherever it stands."""
        row = self.index.counting(id_)
        return None if row is None else row.task

    def of(self, name: ListName, most: int = -1) -> list[QueuedTask]:
        """The tasks of a list that count there, in its order; at most so many, where that is said."""
        return [row.task for row in self.index.rows(name, most)]

    def ranked(self, most: int = -1) -> list[QueuedTask]:
        """The tasks of pending, the highest priority first; at most so many, where that is said."""
        return [row.task for row in self.index.ranked(most)]

    def ready(self) -> Iterator[QueuedTask]:
        """The tasks of pending that nothing keeps from being claimed, in order."""
        return (row.task for row in self.index.ready())

    def ids(self) -> list[str]:
        """The ids of all tasks."""
        found = self.index.run("SELECT id FROM entry WHERE counts = 1")
        return [row[0] for row in found]

    def needs(self, id_: str) -> tuple[str, ...]:
        """The ids that a task depends on."""
        return self.index.needs(id_)

    def count(self, name: ListName) -> int:
        """How many tasks stand in a list."""
        return self.index.count(name)

    def blocked(self) -> list[QueuedTask]:
        """The tasks of pending that nobody may claim, in its order."""
        return [row.task for row in self.index.blocked()]

    def waiting(self) -> list[QueuedTask]:
        """The tasks of pending that wait for others, and that nothing else keeps from being claimed."""
        return [row.task for row in self.index.waiting()]

    @property
    def claimed(self) -> int:
        """How many tasks are claimed."""
        sql = "SELECT COUNT(*) FROM entry WHERE list = 'in-progress' AND claimed = 1 AND counts = 1"
        found: int = self.index.one(sql)
        return found

    @property
    def last_sequence(self) -> int:
        """The highest number of submission."""
        return self.index.one("SELECT MAX(sequence) FROM entry") or 0

    def __len__(self) -> int:
        return sum(map(self.count, LISTS))

    # --- changes ---------------------------------------------------------------------------------------

    def add(self, tasks: list[QueuedTask]) -> None:
        """Add new tasks to the end of pending."""
        end = self.index.end_of("pending")
        for number, task in enumerate(tasks):
            self.index.insert("pending", end + number, Entry.of(task))
        for task in tasks:
            self.index.finish(task.id)
        self._touch("pending")

    def replace(self, task: QueuedTask) -> None:
        """A task says something else now, where it stands."""
        row = self.index.counting(task.id)
        assert row is not None
        self._put(row, task, row.list)

    def move(self, task: QueuedTask, to: ListName) -> QueuedTask:
        """A task, as it is from now on, goes to another list; one that is unknown comes in."""
        row = self.index.counting(task.id)
        moved = fresh(_with_status(task, to), taken_from=entry_digest(row.task) if row else "")
        if row is None:
            place = self.index.place_for(to, moved.sequence)
            self.index.insert(to, place, Entry.of(moved))
            self.index.finish(task.id)
            self._touch(to)
        else:
            self._put(row, moved, to)
            if row.list == "dead-letter" != to:
                self.set_extra("dead-letter", _counted(self.beside("dead-letter"), to))
        return moved

    def _put(self, row: Row, task: QueuedTask, to: ListName) -> None:
        place = row.pos if to == row.list else self.index.place_for(to, task.sequence)
        self.index.change(row, to, place, Entry.of(task), self._now)
        self.index.finish(task.id)
        for name in {row.list, to}:
            self._touch(name)

    def beside(self, name: ListName) -> dict[str, Any]:
        """What stands beside the tasks of a list."""
        return self.index.beside(name)

    def set_extra(self, name: ListName, extra: Mapping[str, Any]) -> None:
        """What stands beside the tasks of a list."""
        self.index.run("UPDATE list SET extra = ? WHERE name = ?", dump(dict(extra)), name)
        self._touch(name)

    def _touch(self, name: ListName) -> None:
        self.has_changed = True
        self.index.touch(name, self._now)


def _counted(extra: Mapping[str, Any], to: ListName) -> dict[str, Any]:
    """What stands beside the dead letters, after one of them went elsewhere: the one place that counts."""
    name = {
        "abandoned": "total_abandoned",
        "pending": "total_recovered",
        "completed": "total_recovered",
    }.get(to)
    known = metadata(extra)
    if name:
        count = known[name]
        known[name] = (count if isinstance(count, int) else 0) + 1
    return {**extra, "metadata": known}


def metadata(extra: Mapping[str, Any]) -> dict[str, Any]:
    """What ``dead-letter.json`` says of all dead letters, complete."""
    found = extra.get("metadata")
    said = found if isinstance(found, dict) else {}
    return {"last_reviewed": None, "total_abandoned": 0, "total_recovered": 0, **said}


def _with_status(task: QueuedTask, to: ListName) -> QueuedTask:
    """Who keeps a status in its tasks finds the right one."""
    if not isinstance(task.raw.get("status"), str):
        return task
    return fresh(task, raw={**task.raw, "status": to})


def current(lists: Lists) -> str | None:
    """What ``current-task.json``, which others read, is to say: what was claimed last; None: nothing."""
    held = [task for task in lists.of("in-progress") if task.claim is not None]
    last = max(
        held, key=lambda task: (task.claim.since if task.claim else "", task.id), default=None
    )
    return None if last is None else json.dumps(dict(last.raw), indent=1, ensure_ascii=False) + "\n"


# --- What the queue's verbs do to its lists. Pure: whoever holds the lock reads, calls and saves ------

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
    data = masked({**queued_task.write_entry(after), EDITED: now})
    if isinstance(task.raw.get("task_data"), Mapping):
        data = {**task.raw, "task_data": {**task.raw["task_data"], **data}}
    lists.replace(queued_task.read_entry(data))
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
    return queued_task.read_entry({**queued_task.write_entry(task), **more})

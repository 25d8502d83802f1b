"""The lists of the queue as its verbs see them: what stands where, moved between."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from loki.jobs.queue.queue_index import Index, Row
from loki.jobs.queue.queue_list_file import Entry, dump
from loki.jobs.queue.queued_task import LISTS, Lease, ListName, QueuedTask
from loki.jobs.queue.queued_task_format import digest, fresh

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
        moved = fresh(_with_status(task, to), taken_from=digest(row.task) if row else "")
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

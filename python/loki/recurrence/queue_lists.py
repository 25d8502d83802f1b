"""The lists of the queue, joined with a store: read together, mended, moved between.

A move writes where a task goes to before it takes it from where it was. Who is killed in between
leaves the task in two lists, and the newer copy says which one it was taken from; the next who reads
takes that one away. Other copies come from other programs: the one that is furthest along counts, and
the others stay where they are, and are told.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from loki.base.error import StoreError
from loki.memory.store import Store
from loki.recurrence import queued_form
from loki.recurrence.queue_file import QueueFile, Reader, complaints, parse
from loki.recurrence.queued import LISTS, ListName, QueuedTask
from loki.recurrence.queued_form import digest, fresh

ALONG: tuple[ListName, ...] = (
    "pending",
    "in-progress",
    "failed",
    "dead-letter",
    "abandoned",
    "completed",
)
"""The lists by how far along a task is in them."""

CURRENT = "queue/current-task.json"

logger = logging.getLogger("loki")


class QueueStore(Store, Protocol):
    """A store that can hold a lock over several documents."""

    @property
    def folder(self) -> Path:
        """The workspace's folder."""

    def lock(self, name: str) -> AbstractContextManager[None]:
        """One holder at a time, among all processes that share the store."""


def document(name: ListName) -> str:
    """Name of a list's document in a store.

    Example:
        >>> document("dead-letter")
        'queue/dead-letter.json'
    """
    return f"queue/{name}.json"


class Lists:
    """All lists as they are at one moment; changed and saved by whoever holds the lock."""

    def __init__(self, store: QueueStore, reader: Reader) -> None:
        """Read all lists.

        Raises:
            StoreError: one of them cannot be read; says where.
        """
        self._store, self._reader = store, reader
        self.files: dict[ListName, QueueFile] = {
            name: reader.read(document(name), store.get(document(name))) for name in LISTS
        }
        self._changed: list[ListName] = []
        self._where: dict[str, ListName] = {}
        self.halves: list[tuple[str, ListName, ListName]] = []
        self.strays: list[tuple[str, ListName, ListName]] = []
        self._find_doubles()

    def _find_doubles(self) -> None:
        for name in ALONG:
            tasks = self.files[name].tasks
            twice = tasks.keys() & self._where.keys()
            self._where |= dict.fromkeys(tasks.keys() - twice, name)
            for id_ in sorted(twice):
                self._find_double(id_, self._where[id_], name)

    def _find_double(self, id_: str, before: ListName, name: ListName) -> None:
        earlier, later = self.files[before].tasks[id_], self.files[name].tasks[id_]
        if earlier.taken_from and earlier.taken_from == digest(later):
            self.halves.append((id_, name, before))
            return
        is_half = later.taken_from and later.taken_from == digest(earlier)
        (self.halves if is_half else self.strays).append((id_, before, name))
        self._where[id_] = name

    def mend(self) -> None:
        """Finish the moves that somebody's death interrupted. Needs the lock."""
        for id_, there, here in self.halves:
            self._take(id_, there, here)
        self.halves = []
        self.save()

    def complaints(self) -> Iterable[str]:
        """A sentence for each entry that was left alone."""
        for name in LISTS:
            yield from complaints(document(name), self.files[name])
        for id_, there, here in self.strays:
            yield f".loki/{document(there)}: {id_!r} stands in {here}, too, which counts"

    def where(self, id_: str) -> ListName | None:
        """The list that a task stands in; None: it is unknown."""
        return self._where.get(id_)

    def find(self, id_: str) -> QueuedTask | None:
        """A task, wherever it stands."""
        name = self._where.get(id_)
        return None if name is None else self.files[name].tasks[id_]

    def of(self, name: ListName) -> list[QueuedTask]:
        """The tasks of a list that count there, in its order."""
        tasks = self.files[name].tasks
        return [task for id_, task in tasks.items() if self._where[id_] == name]

    def __len__(self) -> int:
        return len(self._where)

    # --- changes: need the lock, and `save` afterwards ------------------------------------------------

    def add(self, tasks: list[QueuedTask]) -> None:
        """Add new tasks to the end of pending."""
        self.files["pending"] = self.files["pending"].add(tasks)
        self._where.update((task.id, "pending") for task in tasks)
        self._touch("pending")

    def replace(self, task: QueuedTask) -> None:
        """A task says something else now, where it stands."""
        name = self._where[task.id]
        self.files[name] = self.files[name].put(task)
        self._touch(name)

    def move(self, task: QueuedTask, to: ListName) -> QueuedTask:
        """A task, as it is from now on, goes to another list; one that is unknown comes in.

        What was changed before is saved now: of two moves at once, one might take a task from a
        list before the other's place for it is written.
        """
        self.save()
        source = self._where.get(task.id)
        old = None if source is None else self.files[source].tasks[task.id]
        moved = fresh(_with_status(task, to), taken_from=digest(old) if old else "")
        self.files[to] = self.files[to].put(moved)
        self._where[task.id] = to
        self._touch(to)
        if source is not None and source != to:
            self._take(task.id, source, to)
        return self.files[to].tasks[task.id]

    def _take(self, id_: str, source: ListName, to: ListName) -> None:
        file = self.files[source].without(id_)
        if source == "dead-letter":
            file = QueueFile(file.entries, _counted(file.extra, to))
        self.files[source] = file
        self._touch(source)

    def set_extra(self, name: ListName, extra: dict[str, Any]) -> None:
        """What stands beside the tasks of a list."""
        self.files[name] = QueueFile(self.files[name].entries, extra)
        self._touch(name)

    def _touch(self, name: ListName) -> None:
        if name not in self._changed:
            self._changed.append(name)

    def save(self) -> None:
        """Write what has changed, in the order in which it did: no task is ever in no list.

        Raises:
            StoreError: it cannot be written; what was not is as it was.
        """
        while self._changed:
            name = self._changed[0]
            text = self.files[name].text()
            self._store.put(document(name), text)
            self._reader.wrote(document(name), text, self.files[name])
            self._changed.pop(0)


def _counted(extra: Any, to: ListName) -> dict[str, Any]:
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


def show_current(store: Store, lists: Lists) -> None:
    """Say in ``current-task.json``, which others read, what is worked on: what was claimed last.

    It follows the lists. One that names no task of theirs is another program's, and stays.
    """
    held = [task for task in lists.of("in-progress") if task.claim is not None]
    last = max(
        held, key=lambda task: (task.claim.since if task.claim else "", task.id), default=None
    )
    text = None if last is None else json.dumps(dict(last.raw), indent=1, ensure_ascii=False) + "\n"

    def change(old: str | None) -> str | None:
        return text if not old or _is_ours(old, lists) else old

    try:
        # Told again with the next claim: nobody need wait for the disk, and no claim depends on it.
        store.update(CURRENT, change, durable=False)
    except StoreError as error:
        logger.warning("%s", error)


def _is_ours(text: str, lists: Lists) -> bool:
    try:
        task = queued_form.read(parse(text))
    except (ValueError, RecursionError):
        return False
    return lists.where(task.id) is not None

"""The recurring tasks of a workspace: ``recurring/<id>/`` in its store, shared by all processes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from loki.base import atomic_file, locks, path_containment
from loki.base.error import UsageError
from loki.base.time import isoformat
from loki.jobs.recurring.recurring_run import RunRecord
from loki.jobs.recurring.recurring_task import RecurringTask, Unreadable, read
from loki.memory.store import Store

FOLDER = "recurring"
LOG = "logs/scheduler.jsonl"
"""What the dispatcher did, a line each: ``at``, ``event``, ``task``, and what belongs to the event."""

KEPT_OUTPUTS = 10
"""Runs whose output is kept; the issue's figure."""


class RecurringTasks:
    """Reads and writes recurring tasks; several processes may.

    Args:
        store: of the workspace.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: dict[str, tuple[str, RecurringTask | Unreadable]] = {}
        self._lock = threading.Lock()

    def ids(self) -> list[str]:
        """Ids of all tasks, sorted."""
        found = (name.split("/") for name in self._store.keys(f"{FOLDER}/"))
        return sorted({parts[1] for parts in found if parts[2:] == ["task.json"]})

    def find(self, id_: str) -> RecurringTask | Unreadable | None:
        """A task; None where there is none of that id."""
        text = self._store.read(document(id_))
        return None if text is None else self._parsed(id_, text)

    def has_run(self, task_id: str) -> bool:
        """Whether a task of the closed loop is a run of a recurring one, by their ids."""
        recurring, _, number = task_id.rpartition("-")
        return bool(recurring) and number.isdecimal() and self.find(recurring) is not None

    def load(self, id_: str) -> RecurringTask:
        """A task that can be used.

        Raises:
            UsageError: there is none, or its file cannot be used.
        """
        found = self.find(id_)
        if found is None:
            raise UsageError(f"no recurring task {id_!r} here: `loki recur list` lists them")
        if isinstance(found, Unreadable):
            raise UsageError(f".loki/{document(id_)} cannot be used: {found.reason}")
        return found

    def all(self) -> list[RecurringTask | Unreadable]:
        """All tasks, by id."""
        found = (self.find(id_) for id_ in self.ids())
        return [task for task in found if task is not None]

    def usable(self) -> list[RecurringTask]:
        """Those that can be run."""
        return [task for task in self.all() if isinstance(task, RecurringTask)]

    def add(self, task: RecurringTask) -> None:
        """Keep a new task.

        Raises:
            UsageError: there is one of its id.
        """

        def new(text: str | None) -> str:
            if text is not None:
                raise UsageError(
                    f"there is a recurring task {task.id!r} already: choose another --id, or change "
                    f"it with `loki recur edit {task.id}`"
                )
            return task.to_text()

        self._store.update(document(task.id), new)

    def update(
        self, id_: str, change: Callable[[RecurringTask], RecurringTask]
    ) -> RecurringTask | None:
        """Change a task as it is now; nobody's change comes in between.

        Returns:
            The task after it; None where there is none, or its file cannot be used.
        """
        after: list[RecurringTask] = []

        def rewrite(text: str | None) -> str | None:
            after.clear()
            found = None if text is None else self._parsed(id_, text)
            if not isinstance(found, RecurringTask):
                return text
            after.append(change(found))
            return after[0].to_text()

        self._store.update(document(id_), rewrite)
        return after[0] if after else None

    def remove(self, id_: str) -> None:
        """Forget a task; its runs stay until their folder is removed."""
        self._store.update(document(id_), lambda _: None)

    def runs(self, id_: str) -> list[RunRecord]:
        """All runs that are recorded, by number; the last record of each counts."""
        found: dict[int, RunRecord] = {}
        for run in self.scan_runs(id_):
            found[run.number] = run
        return [found[number] for number in sorted(found)]

    def scan_runs(self, id_: str) -> Iterator[RunRecord]:
        """The records of a task's runs as they were written; what cannot be read is left out."""
        for record in self._store.scan(f"{FOLDER}/{id_}/runs.jsonl"):
            try:
                yield RunRecord.model_validate(record)
            except ValueError:
                continue

    def add_run(self, id_: str, run: RunRecord, stdout: str = "", stderr: str = "") -> RunRecord:
        """Keep a run and what it printed; of older ones what they printed is forgotten."""
        names = {"output": (".log", stdout), "error_output": (".err", stderr)}
        kept = {key: outputs(id_, run.number, end) for key, (end, text) in names.items() if text}
        for key, (_, text) in names.items():
            if text:
                self._store.write(kept[key], text)
        run = run.with_(**kept)
        self._store.append(f"{FOLDER}/{id_}/runs.jsonl", run.model_dump(mode="json"))
        old = run.number - KEPT_OUTPUTS
        for end in (".log", ".err") if old > 0 else ():
            self._store.update(outputs(id_, old, end), lambda _: None)
        return run

    def output(self, name: str | None) -> str:
        """What a run printed, "" where that is not kept any more."""
        return (self._store.read(name) if name else None) or ""

    def log(self, at: datetime, event: str, task: str = "", **more: object) -> None:
        """Add a line to the scheduler's log."""
        said = {"at": isoformat(at), "event": event} | ({"task": task} if task else {})
        self._store.append(LOG, {**said, **more}, durable=False)

    def _parsed(self, id_: str, text: str) -> RecurringTask | Unreadable:
        with self._lock:
            known = self._read.get(id_)
            if known is None or known[0] != text:
                known = self._read[id_] = (text, read(id_, text))
            return known[1]


@contextmanager
def hold_task(folder: Path, what: str, id_: str) -> Iterator[bool]:
    """Whether a lock of a task was free; inside, it is held then. It goes with its process.

    Args:
        folder: the workspace's.
        what: who holds it: ``run`` or ``triage``.
        id_: of the task.
    """
    place = path_containment.path(folder, FOLDER, path_containment.part(id_))
    atomic_file.make_folder(place)
    with locks.hold_if_free(f"{place}/{what}") as is_free:
        yield is_free


def document(id_: str) -> str:
    """The name of a task's file."""
    return f"{FOLDER}/{id_}/task.json"


def outputs(id_: str, number: int, end: str) -> str:
    """The name of what a run printed: ``.log`` or ``.err``."""
    return f"{FOLDER}/{id_}/output/{number}{end}"

"""Other programs that write the lists meanwhile: nothing of theirs is lost, and nothing of loki's: with processes."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loki.base.time import SystemClock
from loki.jobs.queue import queue_file_sync
from loki.jobs.queue.queue import Queue
from loki.jobs.queue.queued_task import QueuedTask
from loki.jobs.queue.worker_lock import Worker
from loki.stores.file_store import FileStore
from support.disk import MEMORY
from support.forked import exit_codes, fork

OWN, THEIRS = 60, 30


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        (Path(name) / "queue").mkdir()
        yield Path(name)


def opened(folder: Path, clock: Any = None) -> Queue:
    return Queue(FileStore(folder), clock or SystemClock())


def read(folder: Path, name: str) -> list[Any]:
    found: list[Any] = json.loads((folder / "queue" / f"{name}.json").read_text("utf-8"))["tasks"]
    return found


def put(folder: Path, name: str, tasks: list[Any]) -> None:
    """As other programs do: a new file is renamed over the old one."""
    path = folder / "queue" / f"{name}.json"
    path.with_suffix(".tmp").write_text(json.dumps({"tasks": tasks}, indent=2))
    os.replace(path.with_suffix(".tmp"), path)


def append(folder: Path, task: Any) -> None:
    put(folder, "pending", [*read(folder, "pending"), task])


def test_what_another_program_appends_beside_three_workers_is_worked_on(folder: Path) -> None:
    opened(folder).submit_all([QueuedTask(f"o{n}", "O") for n in range(OWN)])
    done = folder / "appended"

    def work() -> None:
        queue = opened(folder)
        with Worker(folder) as worker:
            while True:
                is_last = done.exists()
                if claim := queue.lease(worker):
                    assert queue.complete(claim)
                elif is_last:
                    return
                time.sleep(0.001)

    def add() -> None:
        for n in range(THEIRS):
            append(folder, {"id": f"x{n}", "title": "X"})
            time.sleep(0.004)
        done.touch()

    assert exit_codes([*(fork(work) for _ in range(3)), fork(add)]) == [0] * 4
    queue = opened(folder)
    with Worker(folder) as worker:  # what was appended after the last look of all three
        while claim := queue.lease(worker):
            queue.complete(claim)
    known = {*(f"o{n}" for n in range(OWN)), *(f"x{n}" for n in range(THEIRS))}
    assert {task.id for task in queue.tasks("completed")} == known
    assert len(queue.tasks()) == len(known)
    assert {one["id"] for one in read(folder, "completed")} == known
    assert read(folder, "pending") == []


def test_what_a_killed_process_had_not_written_out_is_written_by_the_next(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_file_sync, "SMALL", -1)

    def submit() -> None:
        queue_file_sync.DELAY = 3600.0
        opened(folder).submit(QueuedTask("a", "A"))

    assert exit_codes([fork(submit)]) == [0]
    assert not (folder / "queue" / "pending.json").exists(), "os._exit is like a kill"
    monkeypatch.setattr(queue_file_sync, "DELAY", 0.0)
    assert [task.id for task in opened(folder).tasks()] == ["a"]
    assert [one["id"] for one in read(folder, "pending")] == ["a"]

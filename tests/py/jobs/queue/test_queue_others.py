"""Other programs that write the lists meanwhile: nothing of theirs is lost, and nothing of loki's."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from loki.base.error import StoreError
from loki.base.time import SystemClock
from loki.jobs.queue import queue as queue_shared
from loki.jobs.queue import queue_file_sync
from loki.jobs.queue.queue import Queue
from loki.jobs.queue.queue_file_sync import SLOW
from loki.jobs.queue.queue_index import Unreadable
from loki.jobs.queue.queued_task import QueuedTask
from loki.jobs.queue.worker_lock import Worker
from loki.stores.file_store import FileStore
from loki.testing import ManualClock
from support.disk import MEMORY


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


def between(queue: Queue, monkeypatch: pytest.MonkeyPatch, do: Callable[[], None]) -> None:
    """Do something at the last moment before a list is replaced."""
    from loki.base import atomic_file

    swap = atomic_file._swap
    left = [do]

    def late(one: str, other: str, folder: int) -> bool:
        if left and other == "pending.json":
            left.pop()()
        return swap(one, other, folder)

    monkeypatch.setattr(atomic_file, "_swap", late)


def test_what_is_renamed_at_the_last_moment_before_our_own_rename_is_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = opened(folder)
    queue.submit(QueuedTask("a", "A"))
    between(queue, monkeypatch, lambda: append(folder, {"id": "theirs"}))
    queue.submit(QueuedTask("b", "B"))
    assert sorted(one["id"] for one in read(folder, "pending")) == ["a", "b", "theirs"]
    assert sorted(task.id for task in queue.tasks()) == ["a", "b", "theirs"]


def test_what_is_written_in_place_at_the_last_moment_is_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, path = opened(folder), folder / "queue" / "pending.json"
    queue.submit(QueuedTask("a", "A"))
    text = json.dumps([*read(folder, "pending"), {"id": "theirs"}])
    opening: list[Any] = []
    between(queue, monkeypatch, lambda: opening.append(path.open("w")))
    queue.submit(QueuedTask("b", "B"))
    with opening[0] as writing:  # slowly
        writing.write(text)
    assert sorted(task.id for task in queue.tasks()) == ["a", "b", "theirs"]
    queue.block("a", "so that the list is written")
    assert sorted(one["id"] for one in read(folder, "pending")) == ["a", "b", "theirs"]


def test_who_writes_what_it_read_before_takes_nothing_back(folder: Path) -> None:
    """It read the list, then a worker claimed and a person submitted, then it wrote."""
    queue = opened(folder)
    queue.submit_all([QueuedTask("a", "A"), QueuedTask("b", "B")])
    old = read(folder, "pending")
    with Worker(folder) as worker:
        claim = queue.lease(worker)
        assert claim
        queue.submit(QueuedTask("c", "C"))
        queue.block("b", "no")
        put(folder, "pending", [*old, {"id": "theirs"}])
        assert [task.id for task in queue.tasks("pending")] == ["b", "c", "theirs"]
        blocked = queue.find("b")
        assert blocked
        assert blocked.blocked
        assert queue.where("a") == "in-progress"
        assert queue.complete(claim)
    assert [one["id"] for one in read(folder, "pending")] == ["b", "c", "theirs"]


def test_what_another_program_takes_out_is_gone_and_what_it_changes_counts(folder: Path) -> None:
    clock = ManualClock()
    queue = opened(folder, clock)
    queue.submit_all([QueuedTask(id_, id_) for id_ in "abc"])
    clock.advance(SLOW + 1)
    a, b, _ = read(folder, "pending")
    put(folder, "pending", [{**b, "priority": "high", "note": "theirs"}, a])
    assert [(task.id, task.priority) for task in queue.tasks()] == [("b", "high"), ("a", "medium")]
    (folder / "queue" / "pending.json").unlink()
    assert queue.tasks() == []


def test_a_task_that_another_program_moves_is_moved_whichever_list_it_writes_first(
    folder: Path,
) -> None:
    clock = ManualClock()
    for is_forward in (True, False):
        queue = opened(folder, clock)
        (id_,) = {f"t{is_forward}"}
        queue.submit(QueuedTask(id_, "T"))
        clock.advance(SLOW + 1)
        entry = next(one for one in read(folder, "pending") if one["id"] == id_)
        lists: list[tuple[str, list[Any]]] = [("in-progress", [entry]), ("pending", [])]
        for name, tasks in lists if is_forward else reversed(lists):
            put(folder, name, tasks)
            queue.tasks()
        assert queue.where(id_) == "in-progress"
        queue.take_back(id_)
        with Worker(folder) as worker:
            claim = queue.lease(worker)
            assert claim
            queue.complete(claim)


def test_a_claimed_task_that_a_program_puts_back_is_pending(folder: Path) -> None:
    """First it writes pending, as it read it long ago; then it takes the task out of in-progress."""
    clock = ManualClock()
    queue = opened(folder, clock)
    queue.submit(QueuedTask("a", "A"))
    old = read(folder, "pending")
    with Worker(folder) as worker:
        assert queue.lease(worker)
        clock.advance(SLOW + 1)
        put(folder, "pending", old)
        assert queue.where("a") == "in-progress"
        put(folder, "in-progress", [])
        assert queue.where("a") == "pending"


def test_of_two_tasks_with_one_id_neither_is_deleted(folder: Path) -> None:
    queue = opened(folder)
    put(folder, "pending", [{"id": "a", "n": 1}, {"id": "a", "n": 2}])
    with Worker(folder) as worker:
        claim = queue.lease(worker)
        assert claim
        assert queue.release(claim) == "pending"
        assert sorted(one["n"] for one in read(folder, "pending")) == [1, 2]
        claim = queue.lease(worker)
        assert claim
        assert queue.fail(claim, "no")
        queue.requeue("a")
    assert sorted(one["n"] for one in read(folder, "pending")) == [1, 2]


def test_a_list_that_is_being_written_is_waited_for(folder: Path) -> None:
    queue, path = opened(folder), folder / "queue" / "pending.json"
    queue.submit(QueuedTask("a", "A"))
    text = path.read_text()
    for torn in ("", text[:10]):
        path.write_text(torn)
        timer = threading.Timer(0.15, lambda: path.write_text(text))
        timer.start()
        assert [task.id for task in queue.tasks()] == ["a"]
        timer.join()


def test_a_list_that_stays_empty_is_told_and_holds_its_tasks_still(folder: Path) -> None:
    queue = opened(folder, ManualClock())
    queue.submit(QueuedTask("a", "A"))
    path = folder / "queue" / "pending.json"
    path.write_text("")
    with pytest.raises(Unreadable, match="is empty, and held tasks before"):
        queue.tasks()
    path.write_text('{"tasks": []}')
    assert [task.id for task in queue.tasks()] == ["a"], "it had just been written there"


def test_a_list_is_behind_for_a_moment_at_most(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long list is written once for many changes, by a process that lives, and when it ends."""
    monkeypatch.setattr(queue_file_sync, "SMALL", -1)
    monkeypatch.setattr(queue_file_sync, "DELAY", 0.05)
    monkeypatch.setattr(queue_shared, "DELAY", 0.05)
    queue = opened(folder)
    queue.submit(QueuedTask("a", "A"))
    end = time.monotonic() + 60
    while not (folder / "queue" / "pending.json").exists() and time.monotonic() < end:
        time.sleep(0.005)
    assert [one["id"] for one in read(folder, "pending")] == ["a"]


def test_an_index_that_is_broken_or_gone_is_made_anew_from_the_lists(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opened(folder).submit_all([QueuedTask("a", "A"), QueuedTask("b", "B", dependencies=("a",))])
    path = folder / "state" / "queue.db"
    path.write_bytes(b"no database" * 1000)
    with caplog.at_level(logging.WARNING):
        assert [task.id for task in opened(folder).tasks()] == ["a", "b"]
    assert "set aside as queue.db.corrupt-1" in caplog.text
    path.unlink()
    with Worker(folder) as worker:
        claim = opened(folder).lease(worker)
        assert claim
        assert opened(folder).lease(worker) is None, "b waits for a"


def test_a_row_of_the_index_that_stands_in_no_list_is_passed_over(folder: Path) -> None:
    opened(folder).submit_all([QueuedTask("a", "A"), QueuedTask("b", "B")])
    with closing(sqlite3.connect(folder / "state" / "queue.db")) as base, base:
        base.execute("UPDATE entry SET list = 'pendinh', counts = 0 WHERE id = 'a'")
    assert [task.id for task in opened(folder).tasks()] == ["b"]
    opened(folder).submit(QueuedTask("c", "C"))
    assert opened(folder).counts()[0]["pending"] == 2


def test_after_the_machine_went_down_lists_that_never_reached_the_disk_are_made_anew(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = opened(folder)
    queue.submit(QueuedTask("a", "A"))
    before = (folder / "queue" / "pending.json").read_text()
    queue.submit(QueuedTask("b", "B"))
    for lost in ("", '{"tasks": [\n{"id', before):
        (folder / "queue" / "pending.json").write_text(lost)
        monkeypatch.setattr(queue_file_sync, "boot_id", lambda lost=lost: f"next, {len(lost)}")
        assert [task.id for task in opened(folder).tasks()] == ["a", "b"]
        assert [one["id"] for one in read(folder, "pending")] == ["a", "b"]


def test_a_list_that_cannot_be_written_loses_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    queue = opened(folder)
    queue.submit(QueuedTask("a", "A"))

    def full(*_: Any) -> bool:
        raise StoreError("could not write it: No space left on device")

    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr("loki.base.atomic_file.replace_if", full)
        queue.submit(QueuedTask("b", "B"))
    assert "its lists follow once they can be written" in caplog.text
    assert [task.id for task in opened(folder).tasks()] == ["a", "b"]
    assert [one["id"] for one in read(folder, "pending")] == ["a", "b"]

"""A disk that is full, or that nothing can be written to: told, and nothing is lost."""

from __future__ import annotations

import errno
import json
import logging
import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from loki.base.error import StoreError
from loki.jobs.queue.queue import LeasedTask, Queue
from loki.jobs.queue.queued_task import QueuedTask
from loki.jobs.queue.worker_lock import Worker
from loki.stores import file_store
from loki.stores.file_store import FileStore
from loki.testing import ManualClock


def opened(folder: Path) -> Queue:
    return Queue(FileStore(folder), ManualClock())


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "queue").glob("*.json")}


VERBS: dict[str, Callable[[Queue, Worker, LeasedTask], Any]] = {
    "submit": lambda queue, *_: queue.submit(QueuedTask("new", "N")),
    "claim": lambda queue, worker, _: queue.lease(worker),
    "complete": lambda queue, _, claim: queue.complete(claim),
    "release": lambda queue, _, claim: queue.release(claim),
    "dead_letter": lambda queue, _, claim: queue.dead_letter({"task_id": "a"}, claim),
    "renew": lambda queue, _, claim: queue.renew(claim),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_full_disk(tmp_path: Path, verb: str) -> None:
    """Files cannot grow any more: nothing has changed, and the verb can be tried again."""
    queue = opened(tmp_path)
    queue.submit_all([QueuedTask("a", "A"), QueuedTask("b", "B")])
    with Worker(tmp_path) as worker:
        claim = queue.lease(worker)
        assert claim
        before, index = contents(tmp_path), tmp_path / "state" / "queue.db"
        with _full(0), pytest.raises(StoreError, match=r"queue\.db"):
            VERBS[verb](queue, worker, claim)
        assert contents(tmp_path) == before
        again = opened(tmp_path)
        assert {task.id: again.where(task.id) for task in again.tasks()} == {
            "a": "in-progress",
            "b": "pending",
        }
        assert index.exists()
        assert VERBS[verb](queue, worker, claim)


@contextmanager
def _full(size: int) -> Iterator[None]:
    """While files of this process can be no larger than that."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("verb", VERBS)
def test_lists_that_find_no_room_follow_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, verb: str
) -> None:
    """What is kept in the index is kept; the lists are told to be behind, and are not torn."""
    queue = opened(tmp_path)
    queue.submit_all([QueuedTask("a", "A"), QueuedTask("b", "B")])
    original = os.write

    def full(handle: int, data: Any) -> int:
        if "/queue/" in os.readlink(f"/proc/self/fd/{handle}"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return original(handle, data)

    with Worker(tmp_path) as worker:
        claim = queue.lease(worker)
        assert claim
        before = contents(tmp_path)
        with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
            patch.setattr(os, "write", full)
            assert VERBS[verb](queue, worker, claim)
        assert contents(tmp_path) == before
        assert "No space left on device" in caplog.text
        known = {task.id for task in opened(tmp_path).tasks()}
        assert known == {"a", "b"} | ({"new"} if verb == "submit" else set())
    lists = [
        json.loads(text)["tasks"] for name, text in contents(tmp_path).items() if "cur" not in name
    ]
    found = [one.get("id") or one["task_id"] for tasks in lists for one in tasks]
    assert sorted(found) == sorted(known)


def test_a_disk_that_can_only_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there can be looked at; a change is refused."""
    opened(tmp_path).submit(QueuedTask("a", "A"))
    before = contents(tmp_path)
    original = os.open

    def read_only(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return original(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", read_only)
    queue = opened(tmp_path)
    assert [task.id for task in queue.tasks()] == ["a"]
    with pytest.raises(StoreError, match="Read-only file system"):
        queue.submit(QueuedTask("b", "B"))
    with pytest.raises(StoreError, match="Read-only file system"):
        queue.block("a", "no")
    with pytest.raises(StoreError, match="Read-only file system"):
        Worker(tmp_path).__enter__()
    monkeypatch.undo()
    assert contents(tmp_path) == before


def test_somebody_who_holds_the_lock_for_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that hangs is told, not waited for for ever; what is there can be looked at."""
    queue, other = opened(tmp_path), FileStore(tmp_path)
    queue.submit(QueuedTask("a", "A"))
    monkeypatch.setattr(file_store, "LOCK_TIMEOUT", 0.0)
    with other.lock("queue"):
        with pytest.raises(StoreError, match="another process has held its lock"):
            queue.submit(QueuedTask("b", "B"))
        assert [task.id for task in queue.tasks()] == ["a"]

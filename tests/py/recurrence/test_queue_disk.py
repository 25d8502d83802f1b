"""A disk that is full, or that nothing can be written to: told, and nothing is lost."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loki.base.error import StoreError
from loki.recurrence.claim import Claim
from loki.recurrence.queue import Queue
from loki.recurrence.queued import QueuedTask
from loki.recurrence.worker import Worker
from loki.stores import files
from loki.stores.files import FileStore
from loki.testing import ManualClock


def opened(folder: Path) -> Queue:
    return Queue(FileStore(folder), ManualClock())


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "queue").glob("*.json")}


VERBS: dict[str, Callable[[Queue, Worker, Claim], Any]] = {
    "submit": lambda queue, *_: queue.submit(QueuedTask("new", "N")),
    "claim": lambda queue, worker, _: queue.claim(worker),
    "complete": lambda queue, _, claim: queue.complete(claim),
    "release": lambda queue, _, claim: queue.release(claim),
    "bury": lambda queue, _, claim: queue.bury({"task_id": "a"}, claim),
    "renew": lambda queue, _, claim: queue.renew(claim),
}


ONE_LIST = {"submit", "renew"}
"""Verbs that write one list, by two calls that bring it to the disk; the others write two."""


@pytest.mark.parametrize(
    ("verb", "after"),
    [(verb, n) for verb in VERBS for n in range(2 if verb in ONE_LIST else 4)],
)
def test_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, after: int
) -> None:
    """Whichever file the disk is full for: every task stands somewhere, and the verb can be tried again."""
    queue = opened(tmp_path)
    queue.submit_all([QueuedTask("a", "A"), QueuedTask("b", "B")])
    left = after
    original = os.fsync

    def full(handle: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        original(handle)

    with Worker(tmp_path) as worker:
        claim = queue.claim(worker)
        assert claim
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(StoreError, match="No space left on device"):
                VERBS[verb](queue, worker, claim)
        again = opened(tmp_path)
        known = {task.id for task in again.tasks()}
        assert {"a", "b"} <= known <= {"a", "b", "new"}
        if verb == "submit":
            assert after > 0 or "new" not in known
        elif verb == "claim":
            found = queue.claim(worker)
            assert found, "what was written of a claim that nobody was told of does not count"
            assert found.id == "b"
            assert opened(tmp_path).claim(worker) is None
        elif after == 0:
            assert VERBS[verb](queue, worker, claim)


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
    monkeypatch.setattr(files, "LOCK_TIMEOUT", 0.0)
    with other.lock("queue"):
        with pytest.raises(StoreError, match="another process has held its lock"):
            queue.submit(QueuedTask("b", "B"))
        assert [task.id for task in queue.tasks()] == ["a"]

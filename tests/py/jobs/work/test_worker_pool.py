"""Workers of one process: what they keep of the tasks that they have."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

import pytest

import loki
from loki.jobs.queue import queue
from loki.jobs.queue.queue import queue_of
from loki.jobs.queue.queued_task import QueuedTask
from loki.jobs.queue.worker_lock import Worker
from loki.jobs.work.queued_task_spec import DefaultAgent
from loki.jobs.work.worker_pool import Job, WorkerPool


def test_a_task_that_is_claimed_again_at_once_is_not_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = loki.Workspace(tmp_path)
    queue = queue_of(workspace)
    queue.submit(QueuedTask("again", "do it"))
    pool = WorkerPool(workspace, 1)
    with Worker(workspace.folder) as worker:
        first = queue.lease(worker)
        assert first is not None
        old = pool._jobs["again"] = Job(first)
        queue.release(first)
        second = queue.lease(worker)
        assert second is not None
        new = pool._jobs["again"] = Job(second)  # before the old one's thread has ended
        monkeypatch.setattr(pool, "_try", lambda _: ("paused", "a breaker is open", None))
        pool._work(old)
        assert pool._jobs == {"again": new}
        pool._work(new)
        assert pool._jobs == {}


def test_a_list_that_cannot_be_read_is_waited_for_by_whoever_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(queue, "PATIENCE", 0.1)
    workspace = loki.Workspace(tmp_path)
    queue_of(workspace).submit(QueuedTask("a", "do it"))
    path = workspace.folder / "queue" / "pending.json"
    text = path.read_text()
    path.write_text(text[:20])
    default = DefaultAgent(agent_command="true")
    pool = WorkerPool(workspace, 1, default=default, watch=True, max_tasks=1)
    monkeypatch.setattr(pool, "_try", lambda _: ("failed", "nobody is there", None))
    with caplog.at_level(logging.WARNING):
        working = threading.Thread(target=pool.run)
        working.start()
        end = time.monotonic() + 60
        while "Nothing is claimed until then" not in caplog.text and time.monotonic() < end:
            time.sleep(0.01)
        assert working.is_alive(), "it ended"
        path.write_text(text)
        working.join(30)
    assert len(pool.finished) == 1
    assert "pending.json" in caplog.text

"""Where a task of the queue goes when it has ended, and what a person is told who finds it there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loki.jobs.queue.queue import Queue
from loki.jobs.queue.queued_task import QueuedTask
from loki.jobs.queue.worker_lock import Worker
from loki.jobs.work.queued_task_spec import finish
from loki.memory.task_record import Outcome
from loki.stores.file_store import FileStore
from loki.testing import ManualClock


@pytest.mark.parametrize(
    ("said", "command"),
    [
        ({"trigger": "drift"}, "loki approve t"),
        ({"trigger": "human_review", "review": "review-1"}, "loki approve review-1"),
        ({"trigger": "same_failure"}, "loki resume t"),
    ],
)
def test_a_blocked_task_says_which_command_answers(
    tmp_path: Path, said: dict[str, Any], command: str
) -> None:
    folder = tmp_path / ".loki"
    queue = Queue(FileStore(folder), ManualClock())
    queue.submit(QueuedTask("t", "make add add"))
    with Worker(folder) as worker:
        claim = queue.lease(worker)
        assert claim is not None
        finished = finish(queue, claim, Outcome("t", "escalated", 1, reason="why", **said))
    assert finished[0] == "blocked"
    task = queue.find("t")
    assert task is not None
    assert task.blocked is not None
    assert task.blocked.reason == f"why; answer it with `{command}`"

"""Workers of one process: what they keep of the tasks that they have."""

from __future__ import annotations

from pathlib import Path

import pytest

import loki
from loki.queueing import queue_of
from loki.recurrence.queued import QueuedTask
from loki.recurrence.worker import Worker
from loki.working.crew import Crew, Job


def test_a_task_that_is_claimed_again_at_once_is_not_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = loki.Workspace(tmp_path)
    queue = queue_of(workspace)
    queue.submit(QueuedTask("again", "do it"))
    crew = Crew(workspace, 1)
    with Worker(workspace.folder) as worker:
        first = queue.claim(worker)
        assert first is not None
        old = crew._jobs["again"] = Job(first)
        queue.release(first)
        second = queue.claim(worker)
        assert second is not None
        new = crew._jobs["again"] = Job(second)  # before the old one's thread has ended
        monkeypatch.setattr(crew, "_try", lambda _: ("paused", "a breaker is open", None))
        crew._work(old)
        assert crew._jobs == {"again": new}
        crew._work(new)
        assert crew._jobs == {}

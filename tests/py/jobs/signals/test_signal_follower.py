"""Signals are acted on beside other work, and nothing of it is left when that ends."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import loki
from loki.jobs.queue.queue import Queue
from loki.jobs.queue.queued_task import QueuedTask
from loki.jobs.signals.signal_handling import followed
from support.signals import give, queued, waiting

LONG = 30.0


def test_a_signal_is_acted_on_while_other_work_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted = threading.Event()
    submit = Queue.submit

    def told(self: Queue, task: QueuedTask) -> QueuedTask:
        try:
            return submit(self, task)
        finally:
            submitted.set()

    monkeypatch.setattr(Queue, "submit", told)
    with followed(loki.Workspace(tmp_path)):
        give(tmp_path, "DOCS_NEEDED", description="the API")
        assert submitted.wait(LONG)
    assert [task.title for task in queued(tmp_path)] == ["Document: the API"]
    assert waiting(tmp_path) == []
    assert not any(thread.name == "loki-signals" for thread in threading.enumerate())


def test_what_is_due_now_and_then_is_done_beside_it(tmp_path: Path) -> None:
    done = threading.Event()
    with followed(loki.Workspace(tmp_path), done.set):
        assert done.wait(LONG)

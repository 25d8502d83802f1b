"""`loki show`: also of what a crash or a full disk left of a task."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from loki import Workspace
from loki.base.time import SystemClock
from loki.cli.app import app
from loki.jobs.queue.queue import Queue, queue_of
from loki.jobs.queue.queued_task import QueuedTask
from loki.jobs.queue.worker_lock import Worker
from loki.memory import task_record
from loki.memory.attempt import Attempt, History
from loki.stores.file_store import FileStore
from support.task import task_of


def show(*words: str) -> str:
    return CliRunner().invoke(app, ["show", *words]).output


def test_a_task_without_its_record_is_shown_by_its_id(tmp_path: Path) -> None:
    store = FileStore(tmp_path / ".loki")
    History(store, "lost").append(Attempt(1, "2026-04-04T10:15:30.000Z", "did it", "failed"))
    for told in (show("--project", str(tmp_path)), show("lost", "--project", str(tmp_path))):
        assert "None" not in told
        assert "lost" in told
    assert "did     did it" in told


def test_what_an_agent_said_without_evidence_is_shown(tmp_path: Path) -> None:
    found = {"id": "hedging", "quote": "probably \x1b[31mfine", "evidence": "check x failed"}
    made = Attempt(1, "2026-04-04T10:15:30.000Z", "did it", "failed", findings=(found,))
    History(FileStore(tmp_path / ".loki"), "t").append(made)
    told = show("t", "--project", str(tmp_path))
    assert "said    hedging: probably" in told
    assert "recorded: check x failed" in told
    assert "\x1b[31m" not in told


def test_a_task_of_the_queue_that_nobody_began_is_shown_as_it_waits(tmp_path: Path) -> None:
    queue = Queue(FileStore(tmp_path / ".loki"), SystemClock())
    queue.submit_all([QueuedTask("fix-login", "Fix the login")])
    told = show("fix-l", "--project", str(tmp_path))
    assert "list       pending" in told
    assert "loki show" not in told, "that is what was asked for"


def test_a_task_that_a_worker_has_is_not_to_be_run_again(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    queue = queue_of(workspace)
    queue.submit_all([QueuedTask("fix-login", "Fix the login")])
    task_record.save(workspace.store, task_of({"id": "fix-login", "title": "Fix the login"}))
    with Worker(tmp_path / ".loki") as worker:
        assert queue.lease(worker)
        told = show("fix-login", "--project", str(tmp_path))
        assert f"in progress: {worker.id} has had it for" in told
        assert "loki resume" not in told

"""What can never begin, or never runs, is said; and where other programs write stays there."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

import loki
from loki.cli.app import app
from loki.execution.assembly import signals_of
from loki.jobs.inbox.inbox import approve, requests
from loki.jobs.inbox.request_kind import Said
from loki.jobs.queue.queue import queue_of
from loki.jobs.queue.queued_task import QueuedTask
from loki.jobs.recurring.recurring_tasks import RecurringTasks
from support.crew import submit, where, work
from support.triage import failing

DRIFT = 'cat >> .loki/signals/DRIFT_DETECTED << EOF\n{"task_id":"t","detected_drift":"x"}\nEOF\n'


@pytest.fixture
def workspace(tmp_path: Path) -> loki.Workspace:
    (tmp_path / "project").mkdir()
    return loki.Workspace(tmp_path / "project")


def run(project: Path, *words: str) -> str:
    done = CliRunner().invoke(app, [*words, "--project", str(project)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_tasks_that_can_never_begin_are_shown_and_can_be_let(workspace: loki.Workspace) -> None:
    queue = queue_of(workspace)
    project = workspace.root
    tasks = [
        {"id": "unknown", "title": "U", "dependencies": ["nobody", "done"]},
        {"id": "abandoned", "title": "A", "depends_on": "gone"},
        {"id": "one", "title": "1", "dependencies": ["two"]},
        {"id": "two", "title": "2", "dependencies": ["three"]},
        {"id": "three", "title": "3", "dependencies": ["one"]},
        {"id": "self", "title": "S", "dependencies": ["self"]},
        {"id": "fine", "title": "F", "dependencies": ["free"]},
        {"id": "free", "title": "F"},
    ]
    queue.submit_all([QueuedTask("gone", "G"), QueuedTask("done", "D")])
    queue.abandon("gone", "no")
    queue.achieve("done")
    path = project / ".loki/queue/pending.json"
    path.write_text(json.dumps({"tasks": tasks}))
    found = {one.id: one for one in requests(workspace)}
    assert {one.kind for one in found.values()} == {"stuck"}
    assert set(found) == {"unknown", "abandoned", "one", "self"}
    assert "nobody (which nobody has submitted)" in found["unknown"].question
    assert "gone (abandoned)" in found["abandoned"].question
    assert "one waits for two waits for three waits for one" in found["one"].question
    told = run(project, "status")
    assert "4 things wait for you" in told
    assert "loki queue retry gone" in told
    for one in found.values():
        approve(workspace, one, Said("ann"))
    assert requests(workspace) == []
    left = {task.id: task.dependencies for task in queue.tasks("pending")}
    assert left["unknown"] == ("done",)
    assert left["one"] == left["self"] == ()


def test_tick_tells_of_a_torn_file(workspace: loki.Workspace) -> None:
    RecurringTasks(workspace.store).add(failing("nightly"))
    path = workspace.folder / "recurring/nightly/task.json"
    path.write_text(path.read_text()[:40])
    told = run(workspace.root, "tick")
    assert "nightly/task.json cannot be used, so it never runs" in told
    assert "Nothing else was due." in told


def test_the_documents_own_commands_work_after_the_last_signal_is_gone(
    workspace: loki.Workspace,
) -> None:
    signals = signals_of(workspace)
    for _ in range(2):
        signals.clear(signals.emit("CONTEXT_CLEAR_REQUESTED"))
        subprocess.run(["sh", "-ec", DRIFT], cwd=workspace.root, check=True)
        (workspace.folder / "signals/DRIFT_DETECTED").unlink()


def test_they_work_in_a_fresh_project_and_in_an_agents_copy(
    workspace: loki.Workspace, tmp_path: Path
) -> None:
    queue = submit(workspace.root, ["a"])
    subprocess.run(["sh", "-ec", DRIFT], cwd=workspace.root, check=True)
    program = tmp_path / "agent.sh"
    gives = "echo 'the login takes a token' >> .loki/signals/DOCS_NEEDED"
    program.write_text(f"#!/bin/sh -e\ncat > /dev/null\n{gives}\ntouch a.txt\n")
    program.chmod(0o755)
    done = work(workspace.root, "--agent-command", str(program), "--max-tasks", "1")
    assert where(queue).pop("a") == "completed", done.err
    assert any("the login takes a token" in task.title for task in queue.tasks("pending"))

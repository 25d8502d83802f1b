"""Tasks that loki or another program files without checks: each has a way through."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

import loki
from loki.cli.app import app
from loki.jobs.queue.queue import Queue, queue_of


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".loki/queue").mkdir(parents=True)
    return root


def run(project: Path, *words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, [*words, "--project", str(project)], catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.output


def queue_with(project: Path, *tasks: Mapping[str, object]) -> Queue:
    """Tasks as another program writes them."""
    (project / ".loki/queue/pending.json").write_text(json.dumps({"tasks": list(tasks)}))
    return queue_of(loki.Workspace(project))


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--check", "no-such-program"), "no such program"),
        (("--check", "curl --password hunter2hunter2"), "holds a secret"),
        (("--kind", "bug"), "kind is 'bug'"),
        (("--cron", "@daily"), "is a task of the queue, and has no --schedule"),
        ((), "what is to change?"),
    ],
)
def test_what_cannot_be_is_not_changed(project: Path, words: tuple[str, ...], why: str) -> None:
    queue = queue_with(project, {"id": "a", "title": "write a.txt"})
    before = queue.find("a")
    assert why in run(project, "edit", "a", *words, code=2)
    assert queue.find("a") == before


def test_a_task_that_is_neither_queued_nor_recurring_is_not_there(project: Path) -> None:
    queue_with(project, *({"id": f"task-{n:02}", "title": "x"} for n in range(30)))
    said = run(project, "edit", "nope", "--check", "true", code=2)
    assert "no task 'nope'; there are: task-00, task-01" in said
    assert said.rstrip().endswith("task-19 and 10 more")

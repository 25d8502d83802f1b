"""`loki` as a triage agent has it: it reads, and whatever else it tries is refused and recorded: with processes."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loki import Workspace
from loki.cli.app import READING, app
from loki.execution.assembly import human_reviews
from loki.jobs.queue.queue import queue_of
from loki.jobs.queue.queued_task import QueuedTask
from loki.jobs.recurring.recurring_tasks import RecurringTasks
from loki.testing import ManualClock, ScriptedAgent
from support.triage import failing

TRIAGE = ".triage-backup-1"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".loki" / "recurring" / "backup").mkdir(parents=True)
    monkeypatch.setenv("LOKI_TRIAGE", TRIAGE)
    monkeypatch.setenv("LOKI_TRIAGE_PROJECT", str(tmp_path))
    monkeypatch.setenv("LOKI_NOW", "2026-04-04T10:00:00Z")
    monkeypatch.chdir(tmp_path)
    return tmp_path


READS = [
    *([*words, "--json"] for words in sorted(READING) if words[-1] not in {"show", "history"}),
    ["show", "given-up"],
    ["history", "given-up"],
    ["dead-letters", "show", "given-up"],
    ["recur", "history", "backup"],
    ["queue", "show", "fix"],
]


def untidy(project: Path) -> None:
    """A project with things that commands tidy up on their way where a person calls them."""
    clock = ManualClock(datetime(2026, 4, 1, tzinfo=timezone.utc))
    workspace = Workspace(project, clock=clock)
    human_reviews(workspace).ask(reason="ambiguous", task_id="", context="which of the two?")
    with workspace.task("given up", id="given-up", checks=["false"], max_attempts=1) as task:
        task.run(ScriptedAgent([{"a.txt": "x"}]))
    (project / ".loki" / "queue" / "dead-letter.json").unlink()
    with (project / ".loki/tasks/given-up/attempts.jsonl").open("a") as history:
        history.write('{"torn')
    queue_of(workspace).submit(QueuedTask("fix", "Fix: it"))
    RecurringTasks(workspace.store).add(failing())


def test_commands_that_read_tidy_nothing_up(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def look() -> dict[str, bytes]:
        # The queue's index follows what others have written into the lists, whoever looks.
        files = (one for one in project.rglob("*") if not one.name.startswith("queue.db"))
        return {str(one): one.read_bytes() for one in files if one.is_file()}

    untidy(project)
    before = look()
    for words in READS:
        CliRunner().invoke(app, words)
        assert look() == before, words
    monkeypatch.delenv("LOKI_TRIAGE")
    for words in (["status"], ["dead-letters"]):
        before = look()
        assert CliRunner().invoke(app, words).exit_code == 0
        assert look() != before, words

"""`loki` as a triage agent has it: it reads, and whatever else it tries is refused and recorded."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup
from typer.testing import CliRunner

from loki import Workspace
from loki.cli.app import app
from loki.cli.read_only import READING, is_reading
from loki.execution.human_answers import human_reviews
from loki.jobs.queue.project_queue import queue_of
from loki.jobs.queue.queued_task import QueuedTask
from loki.jobs.recurring.recurring_tasks import RecurringTasks
from loki.testing import ManualClock, ScriptedAgent
from support.triage import failing

ROOT = typer.main.get_command(app)
TRIAGE = ".triage-backup-1"


def every_command() -> list[tuple[str, ...]]:
    assert isinstance(ROOT, TyperGroup)
    found: list[tuple[str, ...]] = []
    for name, command in ROOT.commands.items():
        inner = list(command.commands) if isinstance(command, TyperGroup) else []
        found += [(name, one) for one in inner] or [(name,)]
    return found


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".loki" / "recurring" / "backup").mkdir(parents=True)
    monkeypatch.setenv("LOKI_TRIAGE", TRIAGE)
    monkeypatch.setenv("LOKI_TRIAGE_PROJECT", str(tmp_path))
    monkeypatch.setenv("LOKI_NOW", "2026-04-04T10:00:00Z")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(project: Path) -> list[dict[str, str]]:
    log = project / ".loki" / "recurring" / "backup" / "triage" / "1.refused.jsonl"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def test_every_command_that_is_not_known_to_read_is_refused(project: Path) -> None:
    """New commands are refused without anybody thinking of it."""
    changing = [words for words in every_command() if words not in READING]
    assert len(changing) > 10
    for words in changing:
        done = CliRunner().invoke(app, [*words, "--x"])
        assert done.exit_code == 2, words
        assert "a triage only reads (.triage-backup-1)" in done.stderr, words
    told = [one["what"] for one in refused(project)]
    assert told == [f"loki {' '.join(words)} --x" for words in changing]
    assert {one["at"] for one in refused(project)} == {"2026-04-04T10:00:00.000Z"}


def test_commands_that_read_go_on(project: Path) -> None:
    for words in (["show"], ["recur", "list", "--json"], ["breakers"], ["breakers", "--json"]):
        assert CliRunner().invoke(app, words).exit_code == 0, words
    assert refused(project) == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["recur", "list"], True),
        (["recur", "--json", "list"], True),
        (["recur", "--project", "list", "remove", "backup"], False),
        (["recur", "show", "remove"], False),
        (["recur", "add", "--", "prog", "--help"], False),
        (["show", "pause"], True),
    ],
)
def test_options_hide_no_command(words: list[str], expected: bool) -> None:
    """A word of a group that could be a command of it counts as one, whatever it is."""
    assert isinstance(ROOT, TyperGroup)
    assert is_reading(words[0], ROOT.commands[words[0]], words[1:]) is expected


def test_secrets_in_it_are_masked(project: Path) -> None:
    token = "ghp_" + "a1B2" * 9
    CliRunner().invoke(app, ["run", f"use {token}"])
    (one,) = refused(project)
    assert token not in one["what"]
    assert "use <secret" in one["what"]


@pytest.mark.parametrize(
    "id_", ["", "x", ".triage-../../x-1", ".triage-other-1", ".triage-backup-x"]
)
def test_an_id_that_is_none_writes_nowhere(
    project: Path, monkeypatch: pytest.MonkeyPatch, id_: str
) -> None:
    before = sorted(project.rglob("*"))
    monkeypatch.setenv("LOKI_TRIAGE", id_ or "x")
    assert CliRunner().invoke(app, ["undo", "x"]).exit_code == 2
    assert sorted(project.rglob("*")) == before


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

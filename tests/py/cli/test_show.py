"""`loki show`: also of what a crash or a full disk left of a task."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from loki.cli.app import app
from loki.memory.attempt import Attempt
from loki.memory.history import History
from loki.stores.files import FileStore


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

"""`loki` as a triage agent has it: it reads, and whatever else it tries is refused and recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup
from typer.testing import CliRunner

from loki.cli.app import READING, Guarded, app, is_reading

ROOT = typer.main.get_command(app)
TRIAGE = ".triage-backup-1"


def every_command() -> list[tuple[str, ...]]:
    assert isinstance(ROOT, Guarded)
    found: list[tuple[str, ...]] = []
    for name in ROOT.commands:
        command = ROOT.get_command(None, name)
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
    assert isinstance(ROOT, Guarded)
    command = ROOT.get_command(None, words[0])
    assert is_reading(words[0], command, words[1:]) is expected


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

"""``loki signals``: what waits and what becomes of it, for people and for programs."""

from __future__ import annotations

import json
import re
import signal as system
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from loki.cli.app import app
from support.project import make_project
from support.signals import project_on_a_branch

LONG = 60.0


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return project_on_a_branch(tmp_path / "p")


def said(project: Path, *words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["signals", *words, "--project", str(project)])
    assert done.exit_code == code, done.output
    return done.output


def data(project: Path, *words: str) -> Any:
    return json.loads(said(project, *words, "--json"))


def test_it_tells_what_waits_from_whom_and_what_is_next(project: Path) -> None:
    assert "No signal waits" in said(project, "list")
    told = said(project, "give", "FEATURE_READY", "login form", "--say", "agent=claude")
    assert "given: FEATURE_READY login form" in told
    assert "next: the project's tests run" in told
    (project / ".loki/signals/notes.txt").write_text("mine")
    told = said(project, "list")
    assert re.search(r"pending  FEATURE_READY login form from claude, \d", told)
    assert "next, by the dispatcher: the project's tests run" in told
    assert ".loki/signals/notes.txt: is no signal" in told
    (one,) = data(project, "list")
    assert (one["kind"], one["name"], one["standing"]) == ("FEATURE_READY", "login form", "pending")
    assert (one["consumer"], one["data"]["agent"]) == ("the dispatcher", "claude")


def test_a_signal_is_shown_and_cleared_by_id_or_file(project: Path) -> None:
    said(project, "give", "DOCS_NEEDED", "--description", "the API")
    (one,) = data(project, "list")
    for name in (one["id"], one["id"][:4], "DOCS_NEEDED", "DOCS"):
        assert "description: the API" in said(project, "show", name)
    assert "no signal 'x'; there are: " in said(project, "show", "x", code=2)
    assert "cleared: DOCS_NEEDED" in said(project, "clear", "DOCS_NEEDED")
    assert data(project, "list") == []


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("give", "NONSENSE"), "expected one of DRIFT_DETECTED,"),
        (("give", "FEATURE_READY"), "FEATURE_READY_{name}"),
        (("give", "DOCS_NEEDED", "x"), "expected no name"),
        (("give", "DOCS_NEEDED", "--say", "x"), "expected a name, '=' and what it says"),
        (("give", "DRIFT_DETECTED"), "detected_drift"),
    ],
)
def test_what_cannot_be_given_is_said(project: Path, words: tuple[str, ...], problem: str) -> None:
    assert problem in said(project, *words, code=2)
    assert not (project / ".loki/signals").exists()


def test_what_waits_is_acted_on(project: Path) -> None:
    said(project, "give", "FEATURE_READY", "adding")
    (project / ".loki/signals/CONTEXT_CLEAR_REQUESTED").touch()
    told = said(project, "handle")
    assert "done: FEATURE_READY adding: " in told
    assert "Fix the tests of adding" in told
    assert "waits: CONTEXT_CLEAR_REQUESTED: for the loop" in told
    assert data(project, "handle") == []


def test_hostile_signals_move_no_cursor(project: Path) -> None:
    folder = project / ".loki/signals"
    folder.mkdir()
    (folder / "DOCS_NEEDED").write_bytes(b"a\x1b[2J\xe2\x80\xaeb\nx")
    (folder / "FEATURE_READY_%1B%5B2J").touch()
    (folder / "HUMAN_APPROVED").write_bytes(b"\x1b]0;x\x07")
    (folder / "odd\x1b[2J").touch()
    for words in (("list",), ("list", "--all"), ("show", "DOCS"), ("handle",)):
        told = said(project, *words)
        assert "\x1b" not in told
        assert "\u202e" not in told


def test_the_help_teaches_every_kind() -> None:
    told = CliRunner().invoke(app, ["signals", "--help"], env={"COLUMNS": "80"}).output
    for name in ("DRIFT_DETECTED", "FEATURE_READY_{name}", "MERGE_REQUESTED_{branch}"):
        assert name in told


def test_the_watch_acts_at_once_and_stops_on_request(tmp_path: Path) -> None:
    project = make_project(tmp_path / "p", git=True)
    watching = subprocess.Popen(
        [sys.executable, "-m", "loki", "signals", "watch", "--json", "--project", str(project)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        said(project, "give", "DOCS_NEEDED", "--description", "the API")
        assert watching.stdout is not None
        assert "Document: the API" in json.loads(watching.stdout.readline())["told"]
        watching.send_signal(system.SIGINT)
        assert watching.wait(LONG) == 130
    finally:
        watching.kill()
        watching.communicate()
    assert data(project, "list") == []

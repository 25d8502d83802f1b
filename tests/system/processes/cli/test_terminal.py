"""On a terminal nothing is shown as Markdown escapes it: there it is read, not rendered."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from loki import Workspace
from loki.memory.attempt import Attempt
from loki.people.escalation import Escalation, Escalations
from loki.people.request import stage_page
from loki.recognition.failure import Failure
from support.hostile import make_hostile

TITLE = "fix __init__ of *all* | [a](b) <c> ~d~ & _e, 1. f"
ESCAPED = re.compile(r"\\[`*_\[\]<>|~&#.]")


def on_a_terminal(words: list[str]) -> str:
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "loki", *words]
    environment = {**os.environ, "COLUMNS": "200"}
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        said = bytearray()
        try:
            while chunk := os.read(ours, 65536):
                said += chunk
        except OSError:  # Linux: the other side is closed
            pass
    os.close(ours)
    assert process.returncode == 0, said.decode()
    return said.decode()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a task, an escalation and a stage that waits, whose texts mean something in Markdown."""
    root = tmp_path_factory.mktemp("shop")
    make_hostile(root)
    workspace = Workspace(root)
    failure = Failure.of(TITLE, path="__init__.py", line=3, error_type="KeyError")
    attempt = Attempt(
        1, "2026-04-04T10:00:00.000Z", TITLE, "failed", TITLE, TITLE, "analyze_then_fix"
    )
    history = workspace.history("t")
    history.append(attempt)
    history.end(1, {"status": "escalated", "reason": TITLE}, title=TITLE, at=attempt.timestamp)
    asked = Escalation("t", TITLE, "same_failure", TITLE, failure, [attempt], [TITLE], [TITLE])
    Escalations(workspace.store, workspace.clock).ask(asked)
    stage = stage_page(
        "ship-1", TITLE, "deploy_", "ship-1.deploy_", TITLE, "agent", TITLE, [], [], []
    )
    workspace.store.write("escalations/20260404T100000.000Z-ship.md", stage)
    return root


@pytest.mark.parametrize(
    "words",
    [["report"], ["status"], ["show", "t"], ["show", "evil"], ["history"], ["review"], ["dead-letters"], ["signals"]],
    ids=" ".join,
)  # fmt: skip
def test_no_escape_is_shown(project: Path, words: list[str]) -> None:
    told = on_a_terminal([*words, "--project", str(project)])
    assert told.strip()
    assert not ESCAPED.findall(told), told


def test_the_report_has_columns(project: Path) -> None:
    """Names are as they are, and columns stand below each other; in a pipe it is Markdown."""
    told = on_a_terminal(["report", "--project", str(project)])
    assert "## " not in told
    rows = [re.sub(r"\x1b\[[\d;]*m", "", line).split() for line in told.splitlines()]
    (row,) = [words for words in rows if words[:1] == ["analyze_then_fix"] and len(words) > 5]
    assert "|" not in row

"""``loki history`` and ``loki show``: what was tried, told line by line: with processes."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from loki.cli.app import app
from loki.memory import task_record
from loki.memory.attempt import Attempt, History
from loki.stores.file_store import FileStore
from support.cli_history import loki
from support.project import CHECK, make_project
from support.task import task_of


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Two tasks, one after the other, and one between them."""
    store = FileStore(tmp_path / ".loki")
    says: dict[str, Any] = {"pattern_matched": "type-error", "strategy_used": "context_expand"}
    failed = {"result": "failed", "error": "no 'user' here", **says}
    rows: list[tuple[str, int, str, dict[str, Any]]] = [
        ("alpha", 1, "2026-04-04T10:00", {**failed, "tokens": 1200, "cost": 0.5, "branch": "main"}),
        ("beta", 1, "2026-04-04T10:01", {"result": "failed", "error": "odd", "branch": "fix/x"}),
        ("alpha", 2, "2026-04-04T10:02", {"result": "success", "branch": "main"}),
        ("beta", 2, "2026-04-05T10:00", {**failed, "infrastructure": True}),
        ("beta", 3, "2026-04-05T10:01", {"result": "interrupted"}),
    ]
    for task, number, at, fields in rows:
        plain = {"action": f"did {task} {number}", "duration_ms": 1500, **fields}
        History(store, task).append(Attempt(number, f"{at}:00.000Z", **plain))
    for task in ("alpha", "beta"):
        task_record.save(
            store, task_of({"id": task, "title": task, "execution": 1, "outcome": None})
        )
    return tmp_path


def test_of_a_real_run(tmp_path: Path) -> None:
    project = make_project(tmp_path / "calc", git=True)
    agent = shlex.join(["sh", "-c", "sed -i 's/a - b/a + b/' calc.py; echo turned the sign"])
    words = ["run", "--task", "make add add", "--check", CHECK, "--agent-command", agent]
    done = CliRunner().invoke(app, [*words, "--project", str(project)])
    assert done.exit_code == 0, done.output
    *lines, total = loki("history", "--project", str(project)).splitlines()
    assert len(lines) == 1
    assert "success" in lines[0]
    assert total.startswith("1 attempt in 1 task: 1 success; ")
    shown = loki("show", "make", "--project", str(project))
    assert f"check   {CHECK}: passed after" in shown
    assert "diff    git diff " in shown
    assert sys.executable in shown

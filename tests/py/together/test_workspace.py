"""The library form on a real project with real checks: sync, async, and in the caller's own hands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import loki
from support.project import CHECK, RIGHT, make_project


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "calc")


def solve(_briefing: loki.Briefing) -> dict[str, str]:
    return {"calc.py": RIGHT}


def only_task(project: Path) -> list[dict[str, Any]]:
    workspace = loki.Workspace(project)
    (task,) = workspace.tasks()
    return [attempt.to_dict() for attempt in workspace.history(task).attempts()]


def test_an_own_report_of_failure_is_recognized(project: Path) -> None:
    with loki.Workspace(project).task("import it", kind="feature", max_attempts=1) as task:
        for attempt in task.attempts():
            attempt.report(ok=False, output="ModuleNotFoundError: No module named 'flask'")
    assert only_task(project)[0]["pattern_matched"] == "import-not-found"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"checks": ["review: it is simple"]}, "expected a reviewer"),
        ({"checks": ["no-such-program-here"]}, "no-such-program-here"),
        ({"path": "/nowhere/at/all"}, "no such project"),
        ({"kind": "wish"}, "expected one of bug_fix"),
        ({"complexity": "epic"}, "expected one of low"),
        ({"max_attempts": 0}, "expected 1 or more"),
        ({"max_time": "5"}, "max_time"),
    ],
)
def test_misuse_is_one_sentence(project: Path, arguments: dict[str, Any], message: str) -> None:
    known: dict[str, Any] = {"checks": [CHECK], "path": str(project), **arguments}
    with pytest.raises(loki.UsageError, match=message):
        loki.run("make add add", agent=solve, **known)

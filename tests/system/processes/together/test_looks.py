"""How often a task looks at the whole project: what makes large ones slow. Counted, not timed."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.action.changes.tree import Tree
from loki.action.checks import command_detection
from loki.agents.command_agent import CommandAgent

AGENT = """
from pathlib import Path
at = Path("value.py")
at.write_text(f"VALUE = {int(at.read_text().split()[-1]) + 1}\\n")
"""
CHECK = """
import value
assert value.VALUE >= 4, f"value is {value.VALUE}: the {chr(97 + value.VALUE) * 9} is missing"
"""
FOLDERS = 30


@pytest.fixture(params=["git", "plain"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for number in range(FOLDERS):
        (root / f"package{number}").mkdir(parents=True)
        (root / f"package{number}" / "module.py").write_text("import value\n")
    for name, text in {"agent.py": AGENT, "check.py": CHECK, "value.py": "VALUE = 0\n"}.items():
        (root / name).write_text(text)
    (root / "Makefile").write_text("test:\n\ttrue\n")
    if request.param == "git":
        script = "git init -q && git add -A && git -c user.name=A -c user.email=a commit -qm first"
        subprocess.run(script, shell=True, cwd=root, check=True)
    return root


def test_an_attempt_looks_at_the_project_once_and_after_its_agent(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folders of its copy are gone through twice; the commands are looked for once a task."""
    scans: Counter[str] = Counter()
    folders: Counter[str] = Counter()
    seen: list[tuple[Counter[str], Counter[str]]] = []
    scan, scandir, detect = Tree.scan, os.scandir, command_detection.detect

    def counted(root: Any, *args: Any, **more: Any) -> Tree:
        scans["project" if Path(root) == project else "copy"] += 1
        return scan(root, *args, **more)

    def folder(path: Any = ".") -> Any:
        where = "" if isinstance(path, int) else os.fspath(path)
        folders["project" if where.startswith(str(project)) else "copy"] += 1
        return scandir(path)

    def found(*args: Any) -> Any:
        scans["detected"] += 1
        return detect(*args)

    class Watched(CommandAgent):
        def propose(self, briefing: loki.Briefing) -> Any:
            seen.append((scans.copy(), folders.copy()))
            return super().propose(briefing)

    monkeypatch.setattr(Tree, "scan", counted)
    monkeypatch.setattr(os, "scandir", folder)
    monkeypatch.setattr(command_detection, "detect", found)
    with loki.Workspace(project).task("raise", checks=[f"{sys.executable} check.py"]) as task:
        outcome = task.run(Watched([sys.executable, "agent.py"]))
    assert (outcome.status, outcome.attempts) == ("success", 4)
    for before, after in itertools.pairwise(seen[1:]):
        looks, walked = after[0] - before[0], after[1] - before[1]
        # One more of the project where the machine is so slow that the briefing's is old by then.
        assert looks["project"] <= 3
        assert looks["copy"] == 1
        assert walked["project"] <= (looks["project"] if not is_git(project) else 0) * FOLDERS + 30
        assert walked["copy"] <= 2 * FOLDERS + 30
    assert scans["detected"] == 1


def is_git(project: Path) -> bool:
    return (project / ".git").exists()


def test_the_commands_are_looked_for_again_where_a_file_changed_that_says_them(
    project: Path,
) -> None:
    find = command_detection.Detector()
    first = find(Tree.scan(project))
    (project / "package1" / "module.py").write_text("import os\n")
    assert find(Tree.scan(project)) is first
    (project / ".github" / "workflows").mkdir(parents=True)
    (project / ".github" / "workflows" / "ci.yml").write_text(
        "jobs: {a: {steps: [{run: ruff check .}]}}\n"
    )
    assert find(Tree.scan(project))["lint"].words == ("ruff", "check", ".")
    (project / "Makefile").write_text("test-unit:\n\ttrue\nlint:\n\ttrue\n")
    assert find(Tree.scan(project))["lint"].words == ("make", "lint")

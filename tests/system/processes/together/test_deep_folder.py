"""A folder nested deeper than Python's recursion goes ends no run, opens no breaker, and is cleaned away."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import loki
from loki.action.changes.scratch_copy import scratch_folder
from loki.action.changes.tree import Tree
from loki.action.checks.task_changes import link_dependency_folders
from loki.agents.command_agent import CommandAgent
from loki.base import path_containment
from loki.execution import resolve
from support.project import QUICK, make_project
from support.working import in_copy

# Over the thousand calls that Python lets nest.
DEEP = "import os\nfor _ in range(1100):\n    os.mkdir('d'); os.chdir('d')\nopen('f.py', 'w').close()\n"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder / path_containment.scratch_name()


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    project = make_project(tmp_path / "project", git=True)
    yield project
    with suppress(FileNotFoundError):  # pytest itself would fail to remove it
        (project / "d").rename(project / ".loki" / "d")
    path_containment.remove_tree(project / ".loki", "d")


@pytest.fixture
def agent(tmp_path: Path) -> CommandAgent:
    script = tmp_path / "agent.py"
    script.write_text(DEEP)
    return CommandAgent([sys.executable, str(script)])


def breakers(project: Path) -> dict[str, object]:
    snapshots = resolve.breakers(loki.Workspace(project)).snapshot()
    return {name: one for name, one in snapshots.items() if one.state != "CLOSED"}


def test_an_agent_that_leaves_one_is_refused_with_a_sentence(
    project: Path, agent: CommandAgent, temporary: Path
) -> None:
    outcome = loki.run(
        "mend it", path=str(project), agent=agent, checks=[QUICK], max_attempts=1, kind="bug_fix"
    )
    (attempt,) = loki.Workspace(project).history(outcome.task_id).attempts()
    assert "is nested deeper than 100 folders" in (attempt.error or "")
    assert (outcome.status, breakers(project), os.listdir(temporary)) == ("failed", {}, [])


def test_a_worker_copies_and_cleans_up_all_the_same(
    project: Path, agent: CommandAgent, temporary: Path
) -> None:
    outcome, _ = in_copy(project, agent, max_attempts=1)
    assert (outcome.status, os.listdir(temporary)) == ("failed", [])


def test_a_stale_one_fails_nobody_else_s_call(temporary: Path) -> None:
    with scratch_folder():
        pass
    stale = temporary / "stale"
    (stale / "work").mkdir(parents=True)
    (stale / "lock").touch()
    here = Path.cwd()
    try:
        os.chdir(stale / "work")
        exec(compile(DEEP, "deep", "exec"), {})
    finally:
        os.chdir(here)
    os.utime(stale, (1, 1))
    with scratch_folder() as folder:
        assert os.listdir(temporary) == [Path(folder).name]


def test_a_project_that_has_one_is_worked_on(project: Path, temporary: Path) -> None:
    """As a check may leave one behind, in the project itself."""
    (project / "deep.py").write_text(DEEP)
    deep = f"{sys.executable} deep.py"
    right = (project / "calc.py").read_text().replace("-", "+")
    outcome = loki.run(
        "mend it",
        path=str(project),
        agent=lambda _: {"calc.py": right},
        checks=[QUICK, deep],
        max_attempts=1,
        kind="bug_fix",
    )
    assert (project / "d").is_dir()
    assert outcome.status in {"failed", "success"}
    assert "RecursionError" not in outcome.reason
    tree = Tree.scan(project)
    assert any(path.count("/") == 1100 for path in tree.entries)
    with scratch_folder() as folder:
        copy = tree.copy_to(os.path.join(folder, "p"))
        link_dependency_folders(project, Path(copy.root))
        assert copy.digest() == tree.digest()
    assert os.listdir(temporary) == []

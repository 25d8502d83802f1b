"""What a task has made of the project, beside how it found it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loki.action.changes.change import Change, Edit
from loki.action.changes.executor import Executor
from loki.action.changes.journal import Journal
from loki.action.changes.tree import Tree
from loki.action.checks.task_changes import TaskChanges
from loki.recognition.pattern import PatternSet


@pytest.fixture
def work(project: Path) -> TaskChanges:
    for name in ("kept.py", "changed.py", "gone.py"):
        (project / name).write_text(f"# {name}\n")
    (project / "node_modules").mkdir()
    work = TaskChanges(Executor(project, Journal(None, project), PatternSet.default()))
    edits = (Edit("changed.py", b"# other\n"), Edit("gone.py", None), Edit("new/a.py", b"# new\n"))
    work.executor.execute(Change(edits))
    return work


def test_the_project_as_it_was(work: TaskChanges, project: Path, tmp_path: Path) -> None:
    tree = Tree.scan(project)
    before = work.before(tree)
    assert before.paths == {"kept.py", "changed.py", "gone.py"}
    assert before.read("changed.py") == b"# changed.py\n"
    copy = work.copy_before(tree, str(tmp_path / "copy"))
    assert sorted(p.name for p in copy.rglob("*.py")) == ["changed.py", "gone.py", "kept.py"]
    assert (copy / "gone.py").read_text() == "# gone.py\n"
    assert os.readlink(copy / "node_modules") == str(project / "node_modules")
    assert (project / "changed.py").read_text() == "# other\n"


def test_the_difference_is_that_of_the_task_alone(work: TaskChanges, project: Path) -> None:
    (project / "kept.py").write_text("# somebody else\n")
    diff = work.diff()
    assert work.paths() == ("changed.py", "gone.py", "new/a.py")
    assert "-# changed.py\n+# other\n" in diff
    assert "kept.py" not in diff


def test_the_digest_is_of_what_the_task_changed_as_it_is_now(
    work: TaskChanges, project: Path
) -> None:
    first = work.digest()
    (project / "kept.py").write_text("# somebody else\n")
    assert work.digest() == first
    (project / "changed.py").write_text("# by hand\n")
    assert work.digest() != first
    (project / "changed.py").write_text("# other\n")
    assert work.digest() == first
    (project / "gone.py").write_text("")
    assert work.digest() != first

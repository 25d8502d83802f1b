"""Two runs with the same code state ran the same code."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loki.action.changes.git import CodeState, code_state
from support.suite import Suite


@pytest.fixture
def project(tmp_path: Path) -> Suite:
    suite = Suite(tmp_path).put("a.py", "1\n").put("b.py", "2\n")
    suite.git("init", "-qb", "main")
    suite.git("add", "-A")
    suite.git("commit", "-qm", "first")
    return suite


def state(project: Suite, *ignored: str) -> CodeState:
    return code_state(str(project.folder), frozenset(str(project.folder / one) for one in ignored))


def test_names_branch_and_commit(project: Suite) -> None:
    found = state(project)
    assert found.branch == "main"
    assert len(found.commit) == 40
    assert len(found.tree) == 32
    project.git("checkout", "-q", "--detach")
    assert state(project) == CodeState("", found.commit, found.tree)


@pytest.mark.parametrize(
    ("path", "text"), [("a.py", "3\n"), ("new.py", ""), ("d/ä b.json", "{}"), ("a\tb\nc", "x")]
)
def test_what_changes_the_code(project: Suite, path: str, text: str) -> None:
    before = state(project)
    project.put(path, text)
    changed = state(project)
    assert changed.tree != before.tree
    assert state(project) == changed
    project.put(path, text + "more")
    assert state(project).tree not in {before.tree, changed.tree}


def test_deleted_and_renamed(project: Suite) -> None:
    before = state(project)
    project.git("mv", "a.py", "c.py")
    renamed = state(project)
    os.remove(project.folder / "b.py")
    assert len({before.tree, renamed.tree, state(project).tree}) == 3


@pytest.mark.parametrize(
    "path", ["__pycache__/a.pyc", ".loki/logs/x", ".pytest_cache/v/x", "d/.coverage", "report.xml"]
)
def test_what_tools_write_does_not_change_it(project: Suite, path: str) -> None:
    before = state(project)
    project.put(path, "x")
    assert state(project, "report.xml") == before


def test_without_a_commit_and_outside_git(tmp_path: Path) -> None:
    assert code_state(str(tmp_path)) == CodeState()
    suite = Suite(tmp_path)
    suite.git("init", "-qb", "main")
    assert (code_state(str(tmp_path)).branch, code_state(str(tmp_path)).commit) == ("main", "")

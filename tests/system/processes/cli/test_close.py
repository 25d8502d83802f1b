"""``loki close`` as its users meet it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from loki import Workspace
from support.command import loki
from support.project import make_project

TEXT = "FAILED test_login.py::test_redirect - KeyError: 'next'"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "calc", git=True)


def arm(project: Path, branch: str | None = None) -> None:
    signs = Workspace(project).signs(branch)
    for approach in ("added a default", "caught the error"):
        signs.observe(TEXT, approach, "fix-the-login")


def git(project: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=project, check=True)


def test_it_closes_the_run_of_the_branch_that_is_checked_out(project: Path) -> None:
    arm(project)
    code, out, _ = loki("close", cwd=project)
    assert code == 0
    first, candidate, last = out.splitlines()
    assert first == "closed the run on main: 1 sign"
    assert candidate.startswith("candidate rule-")
    assert "Against the failure `KeyError: 'next'`" in candidate
    assert last == "decide: loki review"
    assert loki("close", cwd=project) == (0, "Nothing to close: no run is open here.\n", "")

    id_ = candidate.split()[1].rstrip(":")
    code, out, _ = loki("review", "--approve", id_, "--by", "ada", cwd=project)
    assert code == 0, out
    (rule,) = Path(project, ".loki/memory/learned").iterdir()
    assert rule.name == f"{id_}.md"


def test_json(project: Path) -> None:
    arm(project, "fix")
    code, out, _ = loki("close", "--branch", "fix", "--json", cwd=project)
    assert code == 0
    (closed,) = json.loads(out)
    assert (closed["branch"], closed["reason"], closed["signs"]) == ("fix", "closed", 1)
    assert closed["candidates"][0]["rule"].startswith("Against")
    assert loki("close", "--json", cwd=project) == (0, "[]\n", "")


def test_a_branch_without_a_run_is_named_with_those_that_have_one(project: Path) -> None:
    arm(project, "fix")
    code, _, err = loki("close", "--branch", "fux", cwd=project)
    assert (code, err) == (2, "loki: no run is open on 'fux'; open are: fix\n")
    assert loki("close", "--all", "--branch", "fix", cwd=project)[0] == 2


def test_all_closes_what_git_says_is_over(project: Path) -> None:
    for branch in ("merged", "deleted", "alive"):
        git(project, "checkout", "-qb", branch, "main")
        arm(project)
        Path(project, f"{branch}.txt").write_text("x")
        git(project, "add", f"{branch}.txt")
        git(project, "commit", "-qm", branch)
    git(project, "checkout", "-q", "main")
    arm(project)
    git(project, "merge", "-q", "merged")
    git(project, "branch", "-qD", "deleted")
    code, out, _ = loki("close", "--all", cwd=project)
    assert code == 0
    told = [line for line in out.splitlines() if line.startswith("closed")]
    assert told == [
        "closed the run on deleted, which is deleted: 1 sign",
        "closed the run on merged, which is merged: 1 sign",
    ]
    assert {run.branch for run in Workspace(project).runs().open()} == {"main", "alive"}
    code, out, _ = loki("close", "--all", cwd=project)
    assert out == "Nothing to close: no branch with an open run is merged or deleted.\n"


def test_outside_git_there_is_one_run_and_only_the_command_ends_it(tmp_path: Path) -> None:
    project = make_project(tmp_path / "calc")
    arm(project)
    assert loki("close", "--all", cwd=project)[1].startswith("Nothing to close")
    code, out, _ = loki("close", cwd=project)
    assert (code, out.splitlines()[0]) == (0, "closed the run on no branch: 1 sign")


def test_another_run_at_work_is_not_disturbed(project: Path) -> None:
    arm(project)
    workspace = Workspace(project)
    with workspace.exclusive():
        code, _, err = loki("close", cwd=project)
    assert code == 2
    assert "another loki run is at work" in err
    assert len(workspace.signs().armed) == 1


def test_the_help_teaches(project: Path) -> None:
    _, out, _ = loki("close", "--help", cwd=project)
    assert "loki close --branch fix-login" in out

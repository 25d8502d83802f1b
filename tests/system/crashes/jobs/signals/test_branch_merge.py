"""Merges: by a person, or by loki where that is allowed and nothing is in doubt."""

from __future__ import annotations

import multiprocessing
import os
import shlex
import signal as system
from pathlib import Path
from typing import NoReturn

import pytest
from typer.testing import CliRunner

import loki
from loki.cli.app import app
from loki.jobs.inbox.inbox import requests
from loki.jobs.signals import signal_handling
from loki.jobs.signals.signal_handling import handle
from support.signals import git, give, mend, project_on_a_branch, told

MERGED = ["MERGE_REQUESTED feature/add: feature/add is merged"]


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    """Tests passed on a branch, and a merge is asked for; main is checked out."""
    project = project_on_a_branch(tmp_path / "p")
    mend(project)
    give(project, "FEATURE_READY", "adding")
    handle(loki.Workspace(project))
    git(project, "checkout", "-q", "main")
    return project


@pytest.fixture
def auto(asked: Path) -> Path:
    """The same with leave to merge."""
    (asked / ".loki/config.toml").write_text('[signals]\nmerge = "auto"\n')
    return asked


def test_a_person_merges_where_nothing_is_said(asked: Path) -> None:
    (left,) = handle(loki.Workspace(asked))
    assert "a person merges it: git merge --no-ff feature/add" in left.told
    assert git(asked, "rev-list", "--count", "main") == "1"
    git(asked, "merge", "-q", "--no-ff", "feature/add")
    assert told(handle(loki.Workspace(asked))) == MERGED


def test_a_merge_that_is_allowed_is_made_behind_its_tests(auto: Path) -> None:
    assert told(handle(loki.Workspace(auto))) == MERGED
    assert git(auto, "log", "-1", "--format=%s") == "Merge branch 'feature/add'"
    assert len(git(auto, "log", "-1", "--format=%P").split()) == 2
    assert git(auto, "status", "--porcelain", "--untracked-files=no") == ""
    assert not (auto / ".loki/state/merging.json").exists()


@pytest.mark.parametrize("what", ["conflict", "tests", "moved", "dirty", "elsewhere"])
def test_no_merge_in_any_doubt_and_nothing_is_left_of_it(auto: Path, what: str) -> None:
    if what == "conflict":
        (auto / "calc.py").write_text("def add(a, b):\n    return a * b\n")
        git(auto, "commit", "-qam", "other")
    elif what == "tests":  # they pass on the branch, and fail on what both make together
        (auto / "check.py").write_text("import calc\n\nassert calc.add(2, 3) == 6\n")
        git(auto, "commit", "-qam", "other")
    elif what == "moved":
        git(auto, "checkout", "-q", "feature/add")
        git(auto, "commit", "-q", "--allow-empty", "-m", "later")
        git(auto, "checkout", "-q", "main")
    elif what == "dirty":
        (auto / "calc.py").write_text("# mine\n")
    else:
        git(auto, "checkout", "-qb", "other")
    before = git(auto, "rev-parse", "HEAD"), (auto / "calc.py").read_text()
    (left,) = handle(loki.Workspace(auto))
    assert not left.done
    assert "a person merges it" in left.told
    assert (git(auto, "rev-parse", "HEAD"), (auto / "calc.py").read_text()) == before
    assert not (auto / ".git/MERGE_HEAD").exists()


def _killed_in_its_tests(project: Path) -> None:
    def killed(*_: object) -> NoReturn:
        os.kill(os.getpid(), system.SIGKILL)
        raise AssertionError

    setattr(signal_handling, "run_check", killed)  # noqa: B010
    handle(loki.Workspace(project))


def test_a_merge_that_was_killed_is_taken_back_and_made_again(auto: Path) -> None:
    worker = multiprocessing.get_context("fork").Process(target=_killed_in_its_tests, args=(auto,))
    worker.start()
    worker.join(60)
    assert worker.exitcode == -9
    assert (auto / ".git/MERGE_HEAD").exists()
    assert told(handle(loki.Workspace(auto))) == MERGED
    assert git(auto, "log", "-1", "--format=%s") == "Merge branch 'feature/add'"


def test_a_persons_own_merge_is_left_alone(auto: Path) -> None:
    git(auto, "merge", "-q", "--no-ff", "--no-commit", "feature/add")
    (left,) = handle(loki.Workspace(auto))
    assert "not committed" in left.told
    assert (auto / ".git/MERGE_HEAD").exists()


def test_a_branch_that_is_gone_is_not_asked_for_any_more(asked: Path) -> None:
    git(asked, "branch", "-D", "feature/add")
    assert told(handle(loki.Workspace(asked))) == [
        "MERGE_REQUESTED feature/add: feature/add is deleted"
    ]


def test_a_merge_that_waits_is_among_all_that_waits_for_a_person(asked: Path) -> None:
    (one,) = [found for found in requests(loki.Workspace(asked)) if found.kind == "signal"]
    assert one.title == "MERGE_REQUESTED feature/add"
    commands = [answer.command for answer in one.options]
    assert commands == [
        f"loki approve {one.id}",
        "git merge --no-ff feature/add",
        f"loki reject {one.id}",
    ]
    cleared = CliRunner().invoke(app, [*shlex.split(commands[2])[1:], "--project", str(asked)])
    assert cleared.exit_code == 0
    assert requests(loki.Workspace(asked)) == []


def test_a_person_lets_loki_merge_although_nothing_is_merged_by_itself(asked: Path) -> None:
    shown = CliRunner().invoke(app, ["status", "--project", str(asked)])
    assert "loki approve 1" in shown.output
    done = CliRunner().invoke(app, ["approve", "1", "--project", str(asked)])
    assert (done.exit_code, "is merged" in done.output) == (0, True), done.output
    assert requests(loki.Workspace(asked)) == []


def test_the_merge_works_as_it_is_printed_from_elsewhere_and_is_not_asked_for_again(
    asked: Path,
) -> None:
    shown = CliRunner().invoke(app, ["status", "--project", str(asked)]).output
    (typed,) = [row.split("by hand", 1)[1].strip() for row in shown.splitlines() if "git" in row]
    assert typed == f"cd {asked} && git merge --no-ff feature/add"
    git(asked, *shlex.split(typed.rpartition(" git ")[2]), "-q", "-m", "merged")
    assert requests(loki.Workspace(asked)) == []

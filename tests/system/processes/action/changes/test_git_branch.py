"""What git says of a branch: there, merged, deleted; in doubt it is there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from loki.action.changes.git import end_of, start_of


class Repository:
    """A real one, driven by git."""

    def __init__(self, root: Path, first: str = "main") -> None:
        self.root = root
        self.git("init", "-q", "-b", first)
        self.count = 0

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        done = subprocess.run(
            ["git", *identity, *arguments],
            cwd=self.root,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def commit(self) -> None:
        self.count += 1
        (self.root / "file.txt").write_text(str(self.count))
        self.git("add", "file.txt")
        self.git("commit", "-qm", f"commit {self.count}")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path)
    made.commit()
    made.git("checkout", "-qb", "fix")
    return made


def test_a_branch_that_was_worked_on_and_merged(repository: Repository) -> None:
    start = start_of(str(repository.root), "fix")
    repository.commit()
    assert end_of(str(repository.root), "fix", start) == ""
    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "--no-ff", "--no-edit", "fix")
    assert end_of(str(repository.root), "fix", start) == "merged"


def test_a_branch_that_was_merged_without_a_further_commit(repository: Repository) -> None:
    repository.commit()
    start = start_of(str(repository.root), "fix")
    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "fix")
    assert end_of(str(repository.root), "fix", start) == "merged"


def test_a_branch_without_commits_of_its_own_is_not_merged(repository: Repository) -> None:
    start = start_of(str(repository.root), "fix")
    repository.git("checkout", "-q", "main")
    assert end_of(str(repository.root), "fix", start) == ""
    repository.commit()
    assert end_of(str(repository.root), "fix", start) == ""


def test_a_deleted_branch(repository: Repository) -> None:
    start = start_of(str(repository.root), "fix")
    repository.git("checkout", "-q", "main")
    repository.git("branch", "-D", "fix")
    assert end_of(str(repository.root), "fix", start) == "deleted"


def test_the_default_branch_is_never_merged(repository: Repository) -> None:
    repository.git("checkout", "-q", "main")
    start = start_of(str(repository.root), "main")
    repository.commit()
    repository.git("checkout", "-qb", "other")
    assert end_of(str(repository.root), "main", start) == ""


def test_a_merge_into_another_branch_than_the_default_one_says_nothing(
    repository: Repository,
) -> None:
    start = start_of(str(repository.root), "fix")
    repository.commit()
    repository.git("checkout", "-qb", "on-top-of-it")
    repository.commit()
    assert end_of(str(repository.root), "fix", start) == ""


def test_the_remote_says_which_is_the_default_one(repository: Repository, tmp_path: Path) -> None:
    repository.git("checkout", "-q", "main")
    repository.git("branch", "-m", "main", "trunk-of-ours")
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(tmp_path), str(clone)], check=True)
    here = Repository.__new__(Repository)
    here.root, here.count = clone, 9
    here.git("checkout", "-qb", "feature")
    start = start_of(str(clone), "feature")
    here.commit()
    assert end_of(str(clone), "feature", start) == ""
    here.git("push", "-q", "origin", "HEAD:refs/heads/feature")
    repository.git("merge", "-q", "feature")
    here.git("fetch", "-q")
    assert end_of(str(clone), "feature", start) == "merged", "at the remote, though not here"


def test_a_branch_without_a_commit_yet_says_nothing(tmp_path: Path) -> None:
    Repository(tmp_path)
    assert start_of(str(tmp_path), "main") == {}
    assert end_of(str(tmp_path), "main", {}) == ""


def test_outside_git_nothing_ends(tmp_path: Path) -> None:
    assert start_of(str(tmp_path), "main") == {}
    assert end_of(str(tmp_path), "main", {"commit": "x", "contained": False}) == ""
    assert start_of(str(tmp_path), None) == {}


def test_a_tag_of_the_same_name_is_not_the_branch(repository: Repository) -> None:
    start = start_of(str(repository.root), "fix")
    repository.git("tag", "fix")
    assert repository.git("symbolic-ref", "--short", "HEAD") in {"fix", "heads/fix"}
    assert end_of(str(repository.root), "heads/fix", start) == ""
    repository.git("checkout", "-q", "main")
    repository.git("branch", "-D", "fix")
    assert end_of(str(repository.root), "fix", start) == "deleted"

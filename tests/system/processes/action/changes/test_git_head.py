"""Where git stands, whatever moved it and however often it was asked before."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from loki.action.changes import git as git_head
from loki.action.changes.git import GitHead


def git(root: Path, *words: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main"]
    done = subprocess.run(
        ["git", *identity, *words], cwd=root, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    return tmp_path


def commit(root: Path) -> str:
    git(root, "commit", "-q", "--allow-empty", "-m", "more")
    return git(root, "rev-parse", "HEAD")


def test_every_way_to_move_is_seen(repository: Path) -> None:
    where = GitHead(str(repository))
    assert where() == ("main", None)  # before the first commit
    first = commit(repository)
    assert where() == ("main", first)
    second = commit(repository)
    assert where() == ("main", second)
    git(repository, "checkout", "-q", "-b", "fix/login")
    assert where() == ("fix/login", second)
    git(repository, "reset", "-q", "--hard", first)
    assert where() == ("fix/login", first)
    git(repository, "pack-refs", "--all")
    third = commit(repository)
    assert where() == ("fix/login", third)
    git(repository, "pack-refs", "--all")
    assert where() == ("fix/login", third)
    git(repository, "checkout", "-q", "--detach", second)
    assert where() == (None, second)
    git(repository, "branch", "-q", "-f", "main", third)
    git(repository, "checkout", "-q", "main")
    assert where() == ("main", third)


def test_a_worktree_has_a_position_of_its_own(repository: Path, tmp_path: Path) -> None:
    first = commit(repository)
    git(repository, "worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    where, here = GitHead(str(tmp_path / "tree")), GitHead(str(repository))
    assert (where(), here()) == (("other", first), ("main", first))
    second = commit(tmp_path / "tree")
    assert (where(), here()) == (("other", second), ("main", first))


def test_a_repository_that_is_made_later_is_seen(tmp_path: Path) -> None:
    where = GitHead(str(tmp_path))
    assert where() == (None, None)
    git(tmp_path, "init", "-q")
    first = commit(tmp_path)
    assert where() == ("main", first)


def test_git_is_not_asked_again_while_nothing_moves(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(repository)
    where = GitHead(str(repository))
    first = where()
    where()  # the branch's own file is looked at from here on
    monkeypatch.setattr(git_head, "git", lambda *_: pytest.fail("git was asked"))
    assert where() == first

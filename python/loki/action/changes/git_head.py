"""Where git stands: branch and commit, asked again only where something of it has changed."""

from __future__ import annotations

import os

from loki.action.changes.git import git, git_folder

Stamps = tuple[tuple[int, int, int] | None, ...]

_PLACES = ("HEAD", "packed-refs", "reftable/tables.list")
"""What git writes anew when a branch or commit becomes another; the branch's own file comes to it."""


class GitHead:
    """Branch and commit of a project.

    Two questions to git take some milliseconds, which is much for each attempt's record.

    Args:
        root: the project's folder.

    Example:
        >>> import tempfile
        >>> GitHead(tempfile.mkdtemp())()
        (None, None)
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._folders: tuple[str, ...] = ()
        self._repository: str | None = None
        self._stamps: Stamps | None = None
        self._answer: tuple[str | None, str | None] = (None, None)

    def __call__(self) -> tuple[str | None, str | None]:
        """(branch, commit); None for each that there is not."""
        repository = git_folder(self._root)
        if repository is None:
            return None, None
        if repository != self._repository or not self._folders:
            self._repository, self._folders = repository, self._find()
            self._stamps = None
        # Looked at before git is asked: what changes in between is seen the next time.
        stamps = self._look()
        if stamps is None or stamps != self._stamps:
            self._answer = self._ask()
            self._stamps = stamps if self._look() == stamps else None
        return self._answer

    def _find(self) -> tuple[str, ...]:
        """The work tree's own folder of git, and the one that it shares with others."""
        found = git(self._root, "rev-parse", "--absolute-git-dir", "--git-common-dir")
        if found is None:
            return ()
        lines = os.fsdecode(found).splitlines()
        return tuple(dict.fromkeys(os.path.join(self._root, line) for line in lines))

    def _ask(self) -> tuple[str | None, str | None]:
        branch = git(self._root, "symbolic-ref", "--short", "-q", "HEAD")
        commit = git(self._root, "rev-parse", "-q", "--verify", "HEAD")
        return _text(branch), _text(commit)

    def _look(self) -> Stamps | None:
        """Stamps of what git writes when it moves; None where that cannot be told."""
        if not self._folders:
            return None
        branch = self._answer[0]
        places = (*_PLACES, f"refs/heads/{branch}") if branch else _PLACES
        paths = [os.path.join(folder, place) for folder in self._folders for place in places]
        return tuple(map(_stamp, paths))


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _text(output: bytes | None) -> str | None:
    return (output or b"").decode("utf-8", "replace").strip() or None

"""Which code it was: branch, commit, and a hash of what the working tree has beside it.

Two runs with the same commit and the same hash ran the same code. What only tools write (caches,
compiled files, loki's own) does not count; every other file does that git lists as changed or new.
"""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass

from loki.action.changes.git import git

LARGE = 1_000_000
"""Bytes of a file from which on its size and time stand for its content. Chosen, not measured."""

MOST = 5_000
"""Changed files from which on nothing is said: to hash them would take too long. Chosen."""

_CACHES = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis",
                     ".tox", ".nox", ".loki", ".git"})  # fmt: skip
_WRITTEN = (".pyc", ".pyo", ".coverage")


@dataclass(frozen=True, slots=True)
class CodeState:
    """Which code it was.

    Attributes:
        branch: git's branch, or "".
        commit: id of the commit that is checked out, or "".
        tree: hash of what the working tree has beside it, 32 hex digits; "" where it is not known.
    """

    branch: str = ""
    commit: str = ""
    tree: str = ""


def code_state(root: str, ignored: frozenset[str] = frozenset()) -> CodeState:
    """Which code a folder holds; all "" outside of git.

    Args:
        root: the project's folder.
        ignored: absolute paths of files that do not count, reports for instance.

    Example:
        >>> import tempfile
        >>> code_state(tempfile.mkdtemp())
        CodeState(branch='', commit='', tree='')
    """
    said = git(root, "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all")
    top = git(root, "rev-parse", "--show-toplevel")
    if said is None or top is None:
        return CodeState()
    head: dict[str, str] = {}
    changed: list[str] = []
    entries = iter(os.fsdecode(said).split("\0"))
    for entry in entries:
        if entry.startswith("# "):
            name, _, value = entry[2:].partition(" ")
            head[name] = value
        elif entry:
            changed.append(_path(entry))
            if entry.startswith("2 "):  # renamed: where it was comes behind
                changed.append(next(entries, ""))
    commit, branch = head.get("branch.oid", ""), head.get("branch.head", "")
    folder = os.fsdecode(top).rstrip("\n")
    return CodeState(
        "" if branch == "(detached)" else branch,
        "" if commit == "(initial)" else commit,
        _hash(folder, [path for path in changed if _counts(folder, path, ignored)]),
    )


_FIELDS = {"1": 8, "2": 9, "u": 10}
"""Spaces before the path in a line of git's porcelain format 2, by what it begins with."""


def _path(entry: str) -> str:
    kind = entry[:1]
    return entry.split(" ", _FIELDS[kind])[-1] if kind in _FIELDS else entry[2:]


def _counts(folder: str, path: str, ignored: frozenset[str]) -> bool:
    return (
        _CACHES.isdisjoint(path.split("/"))
        and not path.endswith(_WRITTEN)
        and os.path.join(folder, path) not in ignored
    )


def _hash(folder: str, paths: list[str]) -> str:
    if len(paths) > MOST:
        return ""
    found = hashlib.sha256()
    for path in sorted(paths):
        found.update(os.fsencode(path) + b"\0" + _content(os.path.join(folder, path)) + b"\0")
    return found.hexdigest()[:32]


def _content(path: str) -> bytes:
    """What stands for a file's content: its hash, or size and time of a large one."""
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return b"link " + os.fsencode(os.readlink(path))
        if not stat.S_ISREG(status.st_mode):
            return b"other"
        if status.st_size > LARGE:
            return f"{status.st_size} {status.st_mtime_ns}".encode()
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).digest()
    except OSError:
        return b"gone"

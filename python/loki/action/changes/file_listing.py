"""Which files belong to a project: what git says, or every file but caches where there is no git.

git is asked in a way that can neither change the repository nor run anything that it names
(`loki.action.changes.git`), so that a project of unknown origin, or one that another user owns, can be
listed.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loki.action.changes.git import git, git_folder
from loki.base.atomic_file import is_temporary

if TYPE_CHECKING:
    from collections.abc import Iterator

IGNORED = frozenset(
    {
        ".git", ".hg", ".svn", ".jj", ".loki",
        "node_modules", ".venv", "__pycache__", ".tox", ".nox", ".eggs",
        ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".cache", ".gradle",
        ".DS_Store",
    }
)  # fmt: skip
"""Names that are never a project's own work: left out where git does not track them."""


_PERHAPS = re.compile(r"\.git|\.loki", re.IGNORECASE).search


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a project.

    Attributes:
        paths: relative, with ``/``; sorted. Some may be gone from the disk.
        nested: folders that are repositories of their own (submodules too): not listed.
        is_git: whether git was asked.
    """

    paths: tuple[str, ...]
    nested: frozenset[str] = field(default_factory=frozenset)
    is_git: bool = False


def list_files(root: str) -> Listing:
    """The files of the project in a folder.

    Args:
        root: the folder, absolute.
    """
    return _ask_git(root) or _walk(root)


def is_private(path: str) -> bool:
    """Whether a path is git's or loki's own, or a file that loki is just writing."""
    if _PERHAPS(path) is None:  # as with nearly all paths
        return False
    *folders, name = path.split("/")
    return (
        is_temporary(name)
        or name.lower() in {".git", ".loki"}
        or any(folder.lower() in {".git", ".loki"} for folder in folders)
    )


_TOPS: dict[tuple[str, int], bool] = {}
"""Whether a folder whose own ``.git`` has this inode is a work tree's top: git need not be asked again."""


def _is_listed(root: str) -> bool:
    """Whether git lists the folder: it is in a work tree that does not ignore it."""
    found = git_folder(root)
    if found is None:
        return False
    is_top = os.path.dirname(found) == os.path.abspath(root)
    key = (found, os.lstat(found).st_ino) if is_top else None
    if key in _TOPS:
        return _TOPS[key]
    inside = git(root, "rev-parse", "--is-inside-work-tree", "--show-prefix")
    listed = inside is not None and inside.startswith(b"true\n")
    if listed and inside is not None and inside.split(b"\n", 1)[1].strip(b"\n"):
        # A project inside a folder that an outer repository ignores.
        listed = git(root, "check-ignore", "-q", ".") is None
    elif key is not None:
        _TOPS[key] = listed
    return listed


def _ask_git(root: str) -> Listing | None:
    if not _is_listed(root):
        return None
    excludes = [f"--exclude={name}" for name in (*sorted(IGNORED), "*.pyc")]
    # Tags tell the two kinds apart: "? path", and "H mode object stage<tab>path".
    found = git(root, "ls-files", "-z", "-t", "-s", "-o", "--exclude-standard", *excludes)
    if found is None:
        return None
    paths: set[str] = set()
    nested: set[str] = set()
    for entry in os.fsdecode(found).split("\0"):
        if entry.startswith("? "):
            name = entry[2:]
            if name.endswith("/"):
                nested.add(name.rstrip("/"))
            else:
                paths.add(name)
        elif entry:
            about, _, name = entry.partition("\t")
            (nested if about.startswith("160000 ", 2) else paths).add(name)
    return Listing(_own(paths - nested), frozenset(nested), is_git=True)


def _own(paths: set[str]) -> tuple[str, ...]:
    return tuple(sorted(path for path in paths if not is_private(path)))


def _walk(root: str) -> Listing:
    nested: set[str] = set()
    return Listing(_own(set(_files_below(root, "", nested))), frozenset(nested))


def _files_below(root: str, start: str, nested: set[str]) -> Iterator[str]:
    waiting = [start]
    while waiting:
        prefix = waiting.pop()
        try:
            with os.scandir(os.path.join(root, prefix)) as found:
                entries = list(found)
        except OSError:
            continue
        names = {entry.name for entry in entries}
        if prefix and not names.isdisjoint({"pyvenv.cfg", "CACHEDIR.TAG"}):
            continue  # a virtual environment, or a cache that says so (bford.info/cachedir)
        if prefix and ".git" in names:
            nested.add(prefix.rstrip("/"))
            continue
        for entry in entries:
            if entry.name in IGNORED or entry.name.endswith(".pyc"):
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.append(f"{prefix}{entry.name}/")
            elif entry.is_symlink() or entry.is_file(follow_symlinks=False):
                yield prefix + entry.name

"""Makes a copy that somebody has worked in what a new one would be, and writes no more than differs.

What is there is looked at once, by name and stamp; all that is not as it was given away is removed and
written anew, whoever made it.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from loki.action.changes.scratch_copy import copy_file, given_away, make_repository
from loki.action.changes.scratch_folder import remove_folder
from loki.action.changes.tree import Entry, Tree
from loki.base.path_containment import parent

_OWN = 0o700
_ESCAPE = re.compile(rb"\\([0-7]{3})")  # as mountinfo writes blanks: proc(5)


def refresh_copy(copied: Tree, now: Tree, aside: str) -> Tree:
    """Renew a copy.

    Args:
        copied: the copy's tree as it was given away; its root is where it was copied to.
        now: the project.
        aside: a folder beside it that does not exist, to make a repository in.

    Returns:
        The tree of the copy.

    Raises:
        OSError: it could not be, or something is mounted in it; the copy is of no use then.
    """
    root = str(copied.root)
    _refuse_mounts(root)
    os.mkdir(aside)
    try:
        mode = stat.S_IMODE(os.stat(aside).st_mode)  # what folders are made with
        os.chmod(root, _OWN)
        is_git = _renew_repository(now, root, aside)
        kept = _kept(copied, now, mode)
        entries, stats = _written(root, now, kept)
    finally:
        remove_folder(aside)
    return given_away(Path(root), now, entries, stats, is_git=is_git)


_Kept = dict[str, tuple[Entry, "tuple[int, ...] | None"]]


def _renew_repository(now: Tree, root: str, aside: str) -> bool:
    """A repository as new: what programs leave in one is too much to tell apart."""
    own = os.path.join(root, ".git")
    if os.path.lexists(own):
        _remove_folder(own)
    if not now.is_git:
        return False
    if make_repository(now, aside):
        raise OSError(errno.ENOTSUP, "lies below the top of its repository", root)
    made = os.path.join(aside, ".git")
    if os.path.lexists(made):
        os.rename(made, own)
    return os.path.lexists(own)


def _kept(copied: Tree, now: Tree, mode: int) -> _Kept:
    """What stays of a copy, all else in it removed but its repository."""
    root = str(copied.root)
    wanted = _folders(now)
    kept: _Kept = {}
    pending = [""]
    while pending:
        prefix = pending.pop()
        with os.scandir(os.path.join(root, prefix)) as found:
            entries = list(found)
        for entry in entries:
            path = prefix + entry.name
            if path == ".git":
                continue
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode) and path in wanted:
                if stat.S_IMODE(status.st_mode) != mode:
                    _set_mode(root, path, mode)
                pending.append(f"{path}/")
            elif _is_same(copied, now, path, status):
                kept[path] = copied.entries[path], copied.stamp(path)
            else:
                _remove(root, path, status)
    return kept


def _folders(tree: Tree) -> set[str]:
    """The folders that a tree's files lie in."""
    found: set[str] = set()
    for path in tree.entries:
        folder = path.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def _is_same(copied: Tree, now: Tree, path: str, status: os.stat_result) -> bool:
    """Whether a file is as it was given away, and as it is to be."""
    entry = copied.entries.get(path)
    if entry is None or entry != now.entries.get(path):
        return False
    if not entry.is_symlink:
        return copied.is_as_taken(path, status)
    if not stat.S_ISLNK(status.st_mode):
        return False
    target = os.fsencode(os.readlink(os.path.join(copied.root, path)))
    return hashlib.sha256(target).hexdigest() == entry.hash


def _remove(root: str, path: str, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        _remove_folder(os.path.join(root, path))
        return
    with parent(root, path) as (folder, name):
        os.unlink(name, dir_fd=folder)


def _remove_folder(folder: str) -> None:
    remove_folder(folder)
    if os.path.lexists(folder):
        raise OSError(errno.ENOTEMPTY, "cannot be removed", folder)


def _set_mode(root: str, path: str, mode: int) -> None:
    with parent(root, path) as (folder, name):
        os.chmod(name, mode, dir_fd=folder)


def _written(
    root: str, now: Tree, kept: _Kept
) -> tuple[dict[str, Entry], dict[str, tuple[int, ...]]]:
    """What a copy holds when what it lacks of a tree is written; what the file system says of it."""
    entries: dict[str, Entry] = {}
    stats: dict[str, tuple[int, ...]] = {}
    made: set[str] = set()
    for path in now.entries:
        if (found := kept.get(path)) is not None:
            entries[path], seen = found
        else:
            try:
                entries[path], seen = _write(root, now, path, made)
            except FileNotFoundError:
                continue  # gone since the tree was taken
        if seen is not None:
            stats[path] = seen
    return entries, stats


def _write(root: str, now: Tree, path: str, made: set[str]) -> tuple[Entry, tuple[int, ...]]:
    for folder in reversed([*_above(path)]):
        if folder not in made:
            made.add(folder)
            with suppress(FileExistsError), parent(root, folder) as (above, name):
                os.mkdir(name, dir_fd=above)
    with parent(root, path) as (above, name):
        return copy_file(os.path.join(now.root, path), name, above)


def _above(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def _refuse_mounts(root: str) -> None:
    """What is mounted in a copy is no part of it, and nothing of it is removed."""
    try:
        mounts = Path("/proc/self/mountinfo").read_bytes()
    except OSError:
        return  # no Linux
    for line in mounts.splitlines():
        place = _ESCAPE.sub(lambda found: bytes([int(found[1], 8)]), line.split(b" ")[4])
        if (place + b"/").startswith(os.fsencode(root) + b"/"):
            raise OSError(errno.EBUSY, "something is mounted in it", root)

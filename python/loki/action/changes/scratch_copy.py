"""A copy of a tree to work in: what is done there cannot reach the project."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
import shutil
import stat
import time
from pathlib import Path

from loki.action.changes.git import git
from loki.action.changes.scratch_folder import remove_folder
from loki.action.changes.tree import FINE, RACY, Entry, Tree, open_regular, stamp_of
from loki.base.path_containment import parent

_CHUNK = 1 << 20
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def copy(tree: Tree, destination: str) -> Tree:
    """Copy a tree's files to an empty folder; `Tree.copy_to` says more.

    Raises:
        OSError: it could not be written.
    """
    os.makedirs(destination, mode=0o700, exist_ok=True)
    prefix = make_repository(tree, destination) if tree.is_git else ""
    root = os.path.join(destination, prefix) if prefix else destination
    os.makedirs(root, exist_ok=True)
    entries: dict[str, Entry] = {}
    stats: dict[str, tuple[int, ...]] = {}
    made: set[str] = set()
    for path in tree.entries:
        target = os.path.join(root, path)
        _make_folder(os.path.dirname(target), made)
        try:
            entries[path], stats[path] = copy_file(os.path.join(tree.root, path), target)
        except FileNotFoundError:
            continue  # gone since the tree was taken
    is_git = os.path.lexists(os.path.join(destination, ".git"))
    return given_away(Path(os.path.realpath(root)), tree, entries, stats, is_git=is_git)


def given_away(
    root: Path,
    tree: Tree,
    entries: dict[str, Entry],
    stats: dict[str, tuple[int, ...]],
    *,
    is_git: bool,
) -> Tree:
    """The tree of a copy that is just made: nobody else has been in it until now.

    Args:
        root: where the project is in it.
        tree: what it is a copy of.
        entries: what was written; stats: what the file system says of it.
        is_git: whether it is a repository.
    """
    # So a file is racy only if the disk's clock can give the same time to what comes next.
    racy = FINE if any(seen[2] % 1_000_000_000 for seen in stats.values()) else RACY
    return Tree(root, entries, dict(tree.skipped), is_git, stats, time.time_ns(), racy)


def update(copied: Tree, now: Tree) -> Tree:
    """Bring files of a copy to what they are in the original by now; what else is in it stays.

    Args:
        copied: the copy's tree, as it was taken.
        now: the original's, as it is.

    Returns:
        The copy's tree as it would be, had it been taken now.

    Raises:
        OSError: it could not be written; the copy is of no use then.
    """
    changed = copied.difference(now)
    root = str(copied.root)
    entries, stats = dict(copied.entries), dict(copied._stats)
    taken = time.time_ns()
    for path in changed.paths:
        target = os.path.join(root, path)
        with contextlib.suppress(FileNotFoundError), parent(root, path) as (folder, name):
            os.unlink(name, dir_fd=folder)
        entries.pop(path, None)
        stats.pop(path, None)
    made: set[str] = set()
    for path in (*changed.changed, *changed.added):
        target = os.path.join(root, path)
        _make_folder(os.path.dirname(target), made)
        try:
            entries[path], stats[path] = copy_file(os.path.join(now.root, path), target)
        except FileNotFoundError:
            continue  # gone since the tree was taken
        if not entries[path].is_symlink:
            os.utime(target)  # what was built from the file before is out of date
    return Tree(copied.root, entries, dict(now.skipped), copied.is_git, stats, taken)


def _make_folder(folder: str, made: set[str]) -> None:
    """Make a folder with those above it; it may lie deeper than recursion, as `os.makedirs`, goes."""
    missing = []
    while folder not in made and not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    made.add(folder)
    for new in reversed(missing):
        os.mkdir(new)
        made.add(new)


def copy_file(source: str, target: str, folder: int | None = None) -> tuple[Entry, tuple[int, ...]]:
    """Write a file or link anew as another one is, with its time.

    Args:
        source: the other one.
        target: where nothing is.
        folder: handle of the folder that the target is relative to.

    Returns:
        What was written, and what the file system says of it; of a link: that it is one.

    Raises:
        OSError: it could not be.
    """
    status = os.lstat(source)
    if stat.S_ISLNK(status.st_mode):
        link = os.readlink(source)
        os.symlink(link, target, dir_fd=folder)
        raw = os.fsencode(link)
        entry = Entry(hashlib.sha256(raw).hexdigest(), len(raw), is_symlink=True)
        return entry, stamp_of(os.stat(target, dir_fd=folder, follow_symlinks=False))
    # Hashed from what is written, not from what was scanned: a file that was edited in between
    # must not look like the work of whoever works in the copy.
    digest = hashlib.sha256()
    with open_regular(source) as reader, _new(target, folder) as writer:
        handle = writer.fileno()
        status = os.fstat(reader.fileno())
        while chunk := reader.read(_CHUNK):
            digest.update(chunk)
            writer.write(chunk)
        is_executable = bool(status.st_mode & stat.S_IXUSR)
        writer.flush()
        os.fchmod(handle, 0o755 if is_executable else 0o644)
        # Build tools compare times: a copy must not look newer than what was built from the original.
        os.utime(handle, ns=(status.st_atime_ns, status.st_mtime_ns))
        written = stamp_of(os.fstat(handle))
    return Entry(digest.hexdigest(), written[3], is_executable), written


def _new(name: str, folder: int | None) -> io.BufferedWriter:
    return open(os.open(name, _NEW, 0o600, dir_fd=folder), "wb")


def make_repository(tree: Tree, destination: str) -> str:
    """Give the copy a history of its own; without it, on any trouble, the copy is just files.

    Returns:
        Where the project lies inside the repository: "" or a path ending in ``/``.
    """
    root = str(tree.root)
    top = git(root, "rev-parse", "--show-toplevel")
    prefix = git(root, "rev-parse", "--show-prefix")
    if top is None or prefix is None:
        return ""
    place = os.fsdecode(prefix.rstrip(b"\n"))
    source = os.fsdecode(top.rstrip(b"\n"))
    # --shared borrows the objects and only ever reads them; the copy's own go into the copy.
    cloned = git(
        "/", "clone", "--quiet", "--shared", "--no-checkout", "--no-recurse-submodules",
        "--template=", "--", source, destination,
    )  # fmt: skip
    if cloned is None:
        half = os.path.join(destination, ".git")
        if os.path.lexists(half):  # git was ended
            remove_folder(half)
        if os.path.lexists(half):
            raise OSError(errno.ENOTEMPTY, "holds half a repository", destination)
        return ""
    git(destination, "remote", "remove", "origin")
    git(destination, "read-tree", "HEAD")  # fails before the first commit: then it is empty
    _copy_excludes(root, destination)
    if place:
        _leave_out_the_rest(source, destination, place)
    return place


def _copy_excludes(root: str, destination: str) -> None:
    common = git(root, "rev-parse", "--git-path", "info/exclude")
    if common is None:
        return
    excludes = os.path.join(root, os.fsdecode(common.rstrip(b"\n")))
    if os.path.isfile(excludes):
        os.makedirs(os.path.join(destination, ".git", "info"), exist_ok=True)
        shutil.copyfile(excludes, os.path.join(destination, ".git", "info", "exclude"))


def _leave_out_the_rest(source: str, destination: str, place: str) -> None:
    # What lies outside the project is not copied; without this, git would call it deleted.
    names = git(destination, "ls-files", "-z", "--", f":(top,exclude,literal){place}")
    if names:
        git(destination, "update-index", "-z", "--skip-worktree", "--stdin", data=names)
    folder = ""
    for part in ["", *place.rstrip("/").split("/")[:-1]]:
        folder = os.path.join(folder, part)
        ignore = os.path.join(source, folder, ".gitignore")
        if os.path.isfile(ignore) and not os.path.islink(ignore):
            os.makedirs(os.path.join(destination, folder), exist_ok=True)
            shutil.copyfile(ignore, os.path.join(destination, folder, ".gitignore"))

"""A copy of a tree to work in: what is done there cannot reach the project.

It lies in a folder that is gone afterwards, whatever happens. One that somebody has worked in is brought
back to what a new one would be: what is there is looked at once, by name and stamp; all that is not as it
was given away is removed and written anew, whoever made it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import logging
import os
import re
import shutil
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from loki.action.changes.git import git, run_git
from loki.action.changes.safe_path import ancestors
from loki.action.changes.tree import FINE, RACY, Entry, Tree, content_hash, open_regular, stamp_of
from loki.base import locks, path_containment
from loki.base.error import AgentError, StoreError
from loki.base.path_containment import parent

# --- The folder that it lies in -----------------------------------------------------------------------

logger = logging.getLogger("loki")

_STALE = 60.0  # seconds: a younger scratch folder may be one that is just being set up
_GIT = 300.0  # seconds that a step of git may take; chosen


def scratch_parent() -> str:
    """The folder that holds all scratch folders of this user."""
    return os.path.join(tempfile.gettempdir(), path_containment.scratch_name())


@contextlib.contextmanager
def scratch_folder() -> Iterator[str]:
    """A folder that is gone afterwards; if loki is killed, the next one removes it."""
    parent = scratch_parent()
    os.makedirs(parent, mode=0o700, exist_ok=True)
    status = os.lstat(parent)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise AgentError(f"{parent} belongs to somebody else: expected a folder of this user")
    _remove_stale(parent)
    folder = tempfile.mkdtemp(dir=parent)
    handle = os.open(os.path.join(folder, "lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        locks.take(handle)
        yield folder
    finally:
        remove_folder(folder)
        os.close(handle)


def _remove_stale(parent: str) -> None:
    for name in os.listdir(parent):
        folder = os.path.join(parent, name)
        try:
            if time.time() - os.lstat(folder).st_mtime < _STALE:
                continue
            handle = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            if locks.take(handle):  # else its loki is alive
                remove_folder(folder)
        except OSError:
            pass
        finally:
            os.close(handle)


def remove_folder(folder: str) -> None:
    """Remove what is in the folder of this user's scratch folders; what cannot be is told in the log.

    Args:
        folder: a scratch folder, or a folder in one.
    """
    parent = scratch_parent()
    try:
        path_containment.remove_tree(parent, os.path.relpath(folder, parent))
    except StoreError as error:
        logger.warning("%s", error)


def repository(folder: str | os.PathLike[str]) -> None:
    """Make a copy a git repository that knows all its files, for programs that see no others.

    Raises:
        AgentError: git is not there, or refused.
    """
    steps = (
        ("init", "-q"),
        ("config", "user.name", "loki"),
        ("config", "user.email", "loki@localhost"),
        ("add", "--all", "--force"),
        ("commit", "-q", "--allow-empty", "-m", "The project as it is"),
    )
    for step in steps:
        try:
            done = run_git(os.fspath(folder), *step, seconds=_GIT)
        except (OSError, subprocess.SubprocessError) as error:
            raise AgentError(f"could not prepare the copy: {error}", retryable=False) from error
        if done.returncode:
            said = (done.stdout + done.stderr).decode("utf-8", "replace").strip()[-500:]
            raise AgentError(f"could not prepare the copy: `git {step[0]}`: {said}")


# --- A new copy ---------------------------------------------------------------------------------------

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
        entry = Entry(content_hash(raw), len(raw), is_symlink=True)
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


# --- A copy that somebody has worked in, made as new --------------------------------------------------

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
    homes = {os.path.dirname(path) for path in now.entries}
    wanted = homes.union(*map(ancestors, homes))
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
                    with parent(root, path) as (folder, name):
                        os.chmod(name, mode, dir_fd=folder)
                pending.append(f"{path}/")
            elif _is_same(copied, now, path, status):
                kept[path] = copied.entries[path], copied.stamp(path)
            elif stat.S_ISDIR(status.st_mode):
                _remove_folder(os.path.join(root, path))
            else:
                with parent(root, path) as (folder, name):
                    os.unlink(name, dir_fd=folder)
    return kept


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
    return content_hash(target) == entry.hash


def _remove_folder(folder: str) -> None:
    remove_folder(folder)
    if os.path.lexists(folder):
        raise OSError(errno.ENOTEMPTY, "cannot be removed", folder)


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
    for folder in ancestors(path):
        if folder not in made:
            made.add(folder)
            with contextlib.suppress(FileExistsError), parent(root, folder) as (above, name):
                os.mkdir(name, dir_fd=above)
    with parent(root, path) as (above, name):
        return copy_file(os.path.join(now.root, path), name, above)


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


# --- Copies for whoever works on a task: one is kept, as new each time ---------------------------------


class ProjectCopies:
    """Copies of one project; nothing is written before the first is asked for.

    Example:
        >>> import tempfile
        >>> from loki.action.changes.tree import Tree
        >>> copies = ProjectCopies()
        >>> with copies.copy(Tree.scan(tempfile.mkdtemp())) as copy:
        ...     sorted(copy.entries)
        []
        >>> copies.close()
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._folder = ""
        self._given: Tree | None = None
        self._is_over = False

    @contextmanager
    def copy(self, tree: Tree) -> Iterator[Tree]:
        """A copy of the project as it is, of which nobody else knows; what is done in it is thrown away.

        Args:
            tree: the project.

        Raises:
            OSError: it could not be written.
        """
        if not self._lock.acquire(blocking=False):  # somebody who is asked at the same time
            with scratch_folder() as folder:
                yield tree.copy_to(_place(folder, tree))
            return
        try:
            yield self._as_new(tree)
        finally:
            self._lock.release()
            if self._is_over:
                self.close()

    def close(self) -> None:
        """Remove what is kept; where somebody works in it, when they are done."""
        self._is_over = True
        if self._lock.acquire(blocking=False):
            try:
                self._stack.close()
                self._given = None
            finally:
                self._lock.release()

    def _as_new(self, tree: Tree) -> Tree:
        given, self._given = self._given, None
        if given is not None:
            try:
                self._given = refresh_copy(given, tree, os.path.join(self._folder, "aside"))
            except OSError as error:
                logger.debug("the copy of %s is made anew: %s", tree.root, error)
        if self._given is None:
            self._stack.close()
            self._folder = self._stack.enter_context(scratch_folder())
            place = _place(self._folder, tree)
            copied = tree.copy_to(place)
            if str(copied.root) != os.path.realpath(place):  # a part of a larger repository
                return copied
            self._given = copied
        return self._given


def _place(folder: str, tree: Tree) -> str:
    return os.path.join(folder, os.path.basename(tree.root) or "project")

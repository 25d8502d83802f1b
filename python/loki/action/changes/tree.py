"""A project's files at one moment, by content: what changes, baselines and undo are reckoned from.

Which files those are says git; where there is none, they are all but caches. git is asked in a way that
can neither change the repository nor run anything that it names (`loki.action.changes.git`), so that a
project of unknown origin, or one that another user owns, can be listed.

The stat cache follows git's rule for racy timestamps (git: ``Documentation/technical/racy-git.txt``): a
file's hash is taken over from an earlier tree only if nothing about the file differs *and* it was last
touched well before that tree was taken.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import stat
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from loki.action.changes.git import git, git_folder
from loki.base.atomic_file import is_temporary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


# --- Which files belong to a project ------------------------------------------------------------------

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
    return Listing(_own(set(_files_below(root, nested))), frozenset(nested))


def _files_below(root: str, nested: set[str]) -> Iterator[str]:
    waiting = [""]
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


# --- Trees --------------------------------------------------------------------------------------------

RACY = 2 * 1_000_000_000
"""Nanoseconds: files touched this shortly before a tree was taken are read again for the next.

FAT, the coarsest common file system, keeps times to 2 s.
"""

FINE = 100_000_000
"""Nanoseconds: the same, of a copy on a disk that keeps parts of a second.

Kernels write a time that is as old as their last tick, at most 10 ms; the rest is margin.
"""

RECENT = 2 * 1_000_000_000
"""Nanoseconds for which a tree that was just taken stands for the project: nobody is asked to look again.

What a person saves in between is taken for what was saved a moment later. Chosen, not measured.
"""

_CHUNK = 1 << 20

_Stat = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a tree.

    Attributes:
        hash: SHA-256 of its bytes in hex; of a symbolic link: of the path it points to.
        size: number of those bytes.
        is_executable: whether its owner may run it.
        is_symlink: whether it is a symbolic link.
    """

    hash: str
    size: int
    is_executable: bool = False
    is_symlink: bool = False


@dataclass(frozen=True, slots=True)
class Difference:
    """Paths, sorted, that differ from an earlier tree to a later one; false where none does."""

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """All of them, sorted."""
        return tuple(sorted((*self.changed, *self.added, *self.deleted)))

    def __bool__(self) -> bool:
        return bool(self.changed or self.added or self.deleted)


@dataclass(frozen=True, slots=True)
class Tree:
    """A project's files at one moment.

    In git: tracked and untracked files that are not ignored; elsewhere every file. Never in it:
    ``.git``, ``.loki``, and untracked caches and environments (`loki.action.changes.tree.IGNORED`).

    Attributes:
        root: the project's folder, absolute.
        entries: path, relative with ``/``, to what is there. Names that are not UTF-8 hold
            surrogate escapes, as `os.fsdecode` makes them.
        skipped: path to reason, of what is there but not in the tree: repositories inside this
            one (submodules too), files that cannot be read.
        is_git: whether git said which files belong to it.
    """

    root: Path
    entries: Mapping[str, Entry]
    skipped: Mapping[str, str] = field(default_factory=dict)
    is_git: bool = False
    _stats: Mapping[str, _Stat] = field(default_factory=dict, repr=False, compare=False)
    _taken: int = field(default=0, repr=False, compare=False)
    _racy: int = field(default=RACY, repr=False, compare=False)

    @classmethod
    def scan(
        cls,
        root: str | os.PathLike[str],
        previous: Tree | None = None,
        also: Iterable[str] = (),
    ) -> Tree:
        """The tree of a folder as it is now.

        Args:
            root: the folder.
            previous: an earlier tree of it; files untouched since then are not read again. None: the
                last one that this process took of it, where that is among the last few.
            also: paths that count as listed, whatever git says about them.

        Example:
            >>> Tree.scan("/usr/include/arpa").entries["inet.h"].is_symlink
            False
        """
        folder = os.path.realpath(root)
        taken = time.time_ns()
        previous = previous or _last.get(folder)
        found = list_files(folder)
        skipped = dict.fromkeys(found.nested, "a repository of its own")
        paths = dict.fromkeys((*found.paths, *(p for p in also if not is_private(p))))
        with _Scanner(folder, previous) as scanner:
            scanner.take_all(sorted(paths))
        skipped.update(scanner.unreadable)
        tree = cls(
            Path(folder), scanner.entries, skipped, found.is_git, scanner.stats, taken, scanner.racy
        )
        _keep_last(folder, tree)
        return tree

    def difference(self, later: Tree) -> Difference:
        """What is different in a later tree of the same project, or of a copy of it."""
        mine, theirs = self.entries, later.entries
        changed = [  # of what has not been touched, both hold the same object
            path
            for path, entry in mine.items()
            if (other := theirs.get(path)) is not None and other is not entry and other != entry
        ]
        return Difference(
            tuple(sorted(changed)),
            tuple(sorted(theirs.keys() - mine.keys())),
            tuple(sorted(mine.keys() - theirs.keys())),
        )

    def copy_to(self, destination: str | os.PathLike[str]) -> Tree:
        """Copy the files of this tree to a new folder that shares nothing writable with it.

        In git the copy is a repository of its own, without remote, so that what works there can
        look at the history. A project that is a subfolder of its repository keeps its place.

        Args:
            destination: a folder that does not exist, or an empty one.

        Returns:
            The tree of the copy, as it was written; its ``root`` is where the project is in it.

        Raises:
            OSError: it could not be written.
        """
        from loki.action.changes import scratch_copy

        return scratch_copy.copy(self, os.path.abspath(destination))

    def read(self, path: str) -> bytes:
        """The bytes of a file of this tree as they are now (a link's: where it points to).

        Raises:
            OSError: it cannot be read, is gone, or lies beyond a symbolic link.
        """
        return read_entry(os.path.join(self.root, path))

    def hash_of(self, path: str) -> str | None:
        """SHA-256 in hex of a file of this tree as it was when it was taken; None where there is none."""
        entry = self.entries.get(path)
        return entry.hash if entry else None

    def digest(self) -> str:
        """SHA-256 in hex over paths, contents and modes; equal trees have equal digests."""
        lines = (
            f"{path}\0{entry.hash}{entry.is_executable:d}{entry.is_symlink:d}"
            for path, entry in sorted(self.entries.items())
        )
        return content_hash("\n".join(lines).encode("utf-8", "surrogateescape"))

    @property
    def is_recent(self) -> bool:
        """Whether it was taken a moment ago, so that it need not be taken again."""
        return 0 <= time.time_ns() - self._taken < RECENT

    def is_as_taken(self, path: str, status: os.stat_result) -> bool:
        """Whether a file cannot have been touched since this tree was taken.

        Args:
            path: of the file.
            status: what the file system says of it now.
        """
        seen = stamp_of(status)
        return self._stats.get(path) == seen and max(seen[1], seen[2]) < self._taken - self._racy

    def stamp(self, path: str) -> _Stat | None:
        """What the file system said about a file when it was hashed."""
        return self._stats.get(path)


KEPT = 4
"""Trees that are kept to scan anew from: a project, its copies. Chosen: one of 20,000 files is some 10 MB."""

_last: OrderedDict[str, Tree] = OrderedDict()
_last_lock = threading.Lock()


def _keep_last(folder: str, tree: Tree) -> None:
    with _last_lock:
        _last[folder] = tree
        _last.move_to_end(folder)
        while len(_last) > KEPT:
            _last.popitem(last=False)


class _Scanner:
    def __init__(self, root: str, previous: Tree | None) -> None:
        self.root = root
        same = previous if previous and str(previous.root) == root else None
        self.before = same.entries if same else {}
        self.known = same._stats if same else {}
        self.racy = same._racy if same else RACY
        self.trusted = same._taken - self.racy if same else 0
        self.entries: dict[str, Entry] = {}
        self.stats: dict[str, _Stat] = {}
        self.unreadable: dict[str, str] = {}
        self.folders: dict[str, bool] = {"": True}
        self.handle: int | None = None

    def __enter__(self) -> _Scanner:
        # Names from the folder's own descriptor: the way to it is not walked for each file.
        with contextlib.suppress(OSError):  # gone: then nothing is listed either
            self.handle = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return self

    def __exit__(self, *_: object) -> None:
        if self.handle is not None:
            os.close(self.handle)

    def take_all(self, paths: Iterable[str]) -> None:
        """Put files into the tree, but what is gone, is no file, or lies behind a link."""
        known, before, trusted, handle = self.known, self.before, self.trusted, self.handle
        folder, is_folder = "", True
        for path in paths:
            if (above := path.rpartition("/")[0]) != folder:
                folder, is_folder = above, self._is_folder(above)
            if not is_folder:
                continue
            seen = known.get(path)
            if seen is not None and seen[1] < trusted > seen[2]:
                # As nearly all are, and many times in a task: no more is done of them than this.
                try:
                    status = os.stat(path, dir_fd=handle, follow_symlinks=False)
                except OSError:
                    pass
                else:
                    if stamp_of(status) == seen:
                        self.entries[path], self.stats[path] = before[path], seen
                        continue
            self._take(path)

    def _take(self, path: str) -> None:
        try:
            status = os.stat(path, dir_fd=self.handle, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):
                content, seen = hash_file(os.path.join(self.root, path))
                self.entries[path] = Entry(content, seen[3], bool(seen[4] & stat.S_IXUSR))
                self.stats[path] = seen
            elif stat.S_ISLNK(status.st_mode):
                target = os.fsencode(os.readlink(path, dir_fd=self.handle))
                self.entries[path] = Entry(content_hash(target), len(target), is_symlink=True)
        except FileNotFoundError:
            return
        except OSError as error:
            self.unreadable[path] = error.strerror or str(error)

    def _is_folder(self, folder: str) -> bool:
        # Git calls a file deleted when a folder above it became a link; lstat would look behind it.
        unknown = []
        while folder not in self.folders:  # a folder may lie very deep: no recursion
            unknown.append(folder)
            folder = folder.rpartition("/")[0]
        found = self.folders[folder]
        for below in reversed(unknown):
            found = found and stat.S_ISDIR(_mode(os.path.join(self.root, below)))
            self.folders[below] = found
        return found


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


def stamp_of(status: os.stat_result) -> _Stat:
    """What tells that a file was touched: inode, times of content and status, size, mode."""
    return (
        status.st_ino,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_size,
        status.st_mode,
        status.st_dev,
    )


def hash_file(path: str) -> tuple[str, _Stat]:
    """SHA-256 of a regular file, and its stamp; read again while it changes, at most thrice.

    Raises:
        OSError: it cannot be read, or it is a link or no regular file.
    """
    for _ in range(3):
        with open_regular(path) as file:
            before = stamp_of(os.fstat(file.fileno()))
            digest = hashlib.sha256()
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
            after = stamp_of(os.fstat(file.fileno()))
        if before == after:
            break
    # Still being written: the stamp is so young that no later tree will trust it.
    return digest.hexdigest(), after


def open_regular(path: str, folder: int | None = None) -> io.FileIO:
    """Open a regular file for reading, never a link, and never wait for a named pipe.

    Raises:
        OSError: it cannot be read, or it is a link or no regular file.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    handle = os.open(path, flags, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(f"{path} is no regular file")
    return io.FileIO(handle, "rb")


def read_entry(path: str) -> bytes:
    """The bytes of a regular file, or where a symbolic link points to.

    Raises:
        OSError: it cannot be read, or is neither.
    """
    if stat.S_ISLNK(os.lstat(path).st_mode):
        return os.fsencode(os.readlink(path))
    with open_regular(path) as file:
        return file.read()


def content_hash(data: bytes) -> str:
    """SHA-256 in hex, by which contents go everywhere."""
    return hashlib.sha256(data).hexdigest()

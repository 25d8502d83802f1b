"""Files below one folder, reached so that no symbolic link can lead out of it.

Every operation walks from the folder's own descriptor, one name at a time, and refuses links
(openat(2) with O_NOFOLLOW): a link that is swapped in between a check and a write is an error, not
a way out.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from dataclasses import dataclass
from typing import Any

from loki.action.changes.tree import content_hash, open_regular
from loki.base.atomic_file import remove_quietly, write_new
from loki.base.path_containment import parent

_HASH = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class PathState:
    """What is at a path; None stands for nothing.

    Attributes:
        hash: SHA-256 in hex of the bytes (of a link: of where it points to).
        mode: permission bits.
        is_symlink: whether it is a symbolic link.
    """

    hash: str
    mode: int
    is_symlink: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As a journal keeps it."""
        return {"hash": self.hash, "mode": f"{self.mode:o}", "symlink": self.is_symlink}

    @classmethod
    def from_dict(cls, data: Any) -> PathState:
        """What `to_dict` gave.

        Raises:
            ValueError, KeyError, TypeError: it is something else.
        """
        if not _HASH.fullmatch(data["hash"]):
            raise ValueError(f"found {data['hash']!r}, expected a SHA-256 in hex")
        return cls(data["hash"], int(data["mode"], 8), bool(data["symlink"]))

    def __eq__(self, other: object) -> bool:
        # Of the permission bits only the executable one tells two states apart, as in git: a
        # stricter umask elsewhere is no edit.
        return isinstance(other, PathState) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[str, bool, bool]:
        return self.hash, self.is_symlink, bool(self.mode & stat.S_IXUSR) or self.is_symlink


class SafeFolder:
    """A folder whose files are read and replaced by paths relative to it.

    Every method raises `OSError` where the file system refuses.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        """Args: root: the folder."""
        self.root = os.path.realpath(root)

    def read(self, path: str) -> tuple[PathState, bytes] | None:
        """State and bytes of a file or link; None where there is nothing."""
        try:
            with parent(self.root, path) as (folder, name):
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if stat.S_ISLNK(status.st_mode):
                    data = os.fsencode(os.readlink(name, dir_fd=folder))
                    return PathState(content_hash(data), 0o777, is_symlink=True), data
                with open_regular(name, folder) as file:
                    data = file.read()
                    mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                return PathState(content_hash(data), mode), data
        except (FileNotFoundError, NotADirectoryError):
            return None

    def stat(self, path: str) -> PathState | None:
        """State of a file or link; None where there is nothing."""
        found = self.read(path)
        return found[0] if found else None

    def touched(self, path: str) -> float:
        """When a file's content was last written, as seconds since 1970; 0 where there is none."""
        try:
            with parent(self.root, path) as (folder, name):
                return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime
        except OSError:
            return 0.0

    def folder_mode(self, path: str) -> int | None:
        """Permission bits of a folder; None where there is none."""
        try:
            with parent(self.root, f"{path}/x") as (folder, _):
                return stat.S_IMODE(os.fstat(folder).st_mode)
        except OSError:
            return None

    def nearest(self, path: str) -> str:
        """The closest folder above a path that exists: "" is the root."""
        folder = path.rpartition("/")[0]
        while folder and self.folder_mode(folder) is None:
            folder = folder.rpartition("/")[0]
        return folder

    def make_folder(self, path: str, mode: int | None) -> None:
        """Create a folder unless it exists; ``mode`` None: as the umask says."""
        with parent(self.root, path) as (above, name), contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o777, dir_fd=above)
            if mode is not None:
                os.chmod(name, mode, dir_fd=above)
            os.fsync(above)

    def remove_folder(self, path: str) -> None:
        """Remove a folder if it is there and empty."""
        with contextlib.suppress(OSError), parent(self.root, path) as (above, name):
            os.rmdir(name, dir_fd=above)
            os.fsync(above)

    def stage(self, temporary: str, data: bytes, state: PathState) -> None:
        """Write a file, or create a link, under a temporary path."""
        with parent(self.root, temporary) as (folder, name):
            if state.is_symlink:
                os.symlink(os.fsdecode(data), name, dir_fd=folder)
            else:
                write_new(name, data, state.mode, folder=folder)

    def replace(self, temporary: str, path: str) -> None:
        """Move a staged file to its place, over what is there, in one step."""
        with (
            parent(self.root, temporary) as (source, name),
            parent(self.root, path) as (folder, target),
        ):
            with contextlib.suppress(OSError):  # root keeps other people's files theirs
                old = os.stat(target, dir_fd=folder, follow_symlinks=False)
                _make_newer(name, source, old)
                if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
                    os.chown(name, old.st_uid, old.st_gid, dir_fd=source, follow_symlinks=False)
            os.replace(name, target, src_dir_fd=source, dst_dir_fd=folder)
            os.fsync(folder)

    def remove(self, path: str) -> None:
        """Remove a file or link that is there."""
        with parent(self.root, path) as (folder, name):
            os.unlink(name, dir_fd=folder)
            os.fsync(folder)

    def remove_quietly(self, path: str) -> None:
        """Remove a file or link if it is there and can be removed."""
        with contextlib.suppress(OSError), parent(self.root, path) as (folder, name):
            remove_quietly(name, folder=folder)


def _make_newer(name: str, folder: int, old: os.stat_result) -> None:
    """Have a staged file's time differ by a whole second from that of the file it replaces.

    Python takes cached bytecode for current where size and whole seconds are equal (PEP 3147), and
    other tools have such caches too: an edit of the same size, made and undone within a second,
    would be checked as what it was before.
    """
    new = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if int(new.st_mtime) <= int(old.st_mtime):
        times = (int(new.st_atime), int(old.st_mtime) + 1)
        os.utime(name, times, dir_fd=folder, follow_symlinks=False)


def ancestors(path: str) -> tuple[str, ...]:
    """The folders above a path, the outermost first.

    Example:
        >>> ancestors("a/b/c.py")
        ('a', 'a/b')
    """
    parts = path.split("/")
    return tuple("/".join(parts[:count]) for count in range(1, len(parts)))


def current_umask() -> int:
    """Permission bits that new files do not get."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith("Umask:"):
                    return int(line.split()[1], 8)
    except (OSError, ValueError):
        pass
    # There is no way to ask without setting it; other threads see 0077 for a moment.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask

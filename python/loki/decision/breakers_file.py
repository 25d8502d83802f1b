"""The file that processes share breakers through: locked, read, set aside, replaced.

What its bytes mean is in the C++ core. Under test: ``tests/py/decision/test_breakers_file.py``.
"""

from __future__ import annotations

import itertools
import os
from contextlib import AbstractContextManager
from typing import TypeAlias

from loki._core import BreakersFile
from loki.base import file
from loki.base.error import StoreError

MAX_BYTES = 16 * 2**20
"""What is larger is no file of breakers: some 15,000 of them. Chosen, not measured."""

LOCK_TIMEOUT = 5.0
"""Seconds to wait for a process that holds the lock; longer, and it goes on without. Chosen."""

POLL = 0.002
"""Seconds between two looks at a lock that somebody holds: about what he needs. Chosen."""


_Identity: TypeAlias = tuple[int, int, int] | None
"""Which file it is; None: there is none."""

_NEVER: _Identity = (0, 0, 0)
"""No file is this one."""


class SharedFile:
    """A file of breakers on disk.

    Args:
        path: the file; it and its folder need not exist.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(path)
        self._seen = _NEVER

    def has_changed(self) -> bool:
        """Whether it is another file than the one that was read last; one look at the disk."""
        try:
            found = _identity(os.stat(self.path))
        except OSError:
            found = None
        return found != self._seen

    def lock(self) -> AbstractContextManager[None]:
        """Hold its lock: one thread of one process at a time.

        Raises:
            StoreError: somebody else held it for 5 s, or there can be none here.
        """
        file.make_folder(os.path.dirname(self.path))
        return file.lock(self.path, LOCK_TIMEOUT, POLL)

    def read(self) -> BreakersFile:
        """What it says; nothing where there is no file.

        Raises:
            ValueError: it is not what it should be.
            StoreError: it cannot be read.
        """
        return BreakersFile(self._bytes())

    def write(self, content: BreakersFile) -> None:
        """Replace it; on disk when this returns.

        Raises:
            StoreError: it could not be written; the old file is still there.
        """
        file.write_atomic(self.path, content.bytes())
        self._seen = _NEVER  # what comes next may even be what was there before

    def set_aside(self) -> str:
        """Move it out of the way, under a name that is free; the new name. Needs the lock.

        Raises:
            StoreError: it cannot be moved.
        """
        aside = self._free_name()
        try:
            os.rename(self.path, aside)
            file.sync_folder(os.path.dirname(aside))
        except OSError as error:
            raise StoreError(f"could not move {self.path}: {error.strerror or error}") from error
        return aside

    def copy_aside(self) -> str:
        """Keep a copy of it, under a name that is free; the copy's name. Needs the lock.

        Raises:
            StoreError: it cannot be written.
        """
        aside = self._free_name()
        file.write_atomic(aside, self._bytes())
        return aside

    def _free_name(self) -> str:
        names = (f"{self.path}.corrupt-{number}" for number in itertools.count(1))
        return next(name for name in names if not os.path.lexists(name))

    def _bytes(self) -> bytes:
        try:
            with open(self.path, "rb") as opened:
                status = os.fstat(opened.fileno())
                self._seen = _identity(status)
                if status.st_size > MAX_BYTES:
                    raise ValueError(f"found {status.st_size} bytes, expected at most {MAX_BYTES}")
                return opened.read(MAX_BYTES)
        except FileNotFoundError:
            self._seen = None
            return b"{}"
        except OSError as error:
            raise StoreError(f"could not read {self.path}: {error.strerror or error}") from error


def _identity(status: os.stat_result) -> _Identity:
    # Each replacement is a new file; one that is written in place has another time or size.
    return status.st_ino, status.st_mtime_ns, status.st_size

"""The file that processes share breakers through: locked, read, set aside, replaced.

What its bytes mean is in the C++ core. Under test: ``tests/py/decision/test_breakers_file.py``.
"""

from __future__ import annotations

import errno
import itertools
import os
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime, timezone
from typing import TypeAlias

from loki._core import BreakerMoment, BreakersFile
from loki.base import file
from loki.base.error import StoreError

MAX_BYTES = 4 * 2**20
"""What is larger is no file of breakers: some 5,000 of them. Chosen, not measured."""

LOCK_TIMEOUT = 30.0
"""Seconds to wait for a process that holds the lock; longer, and it goes on without. Chosen: on a machine
that is busy, with many who wait, each has his turn long before; who holds it that long hangs."""

POLL = 0.002
"""Seconds between two looks at a lock that somebody holds: about what he needs. Chosen."""


SETTLED = 2.0
"""Seconds after which a file that changes again shows another time: the coarsest file system's."""


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

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
        self._has_swept = False

    def has_changed(self) -> bool:
        """Whether it is another file than when this was last asked; one look at the disk."""
        before = self._seen
        try:
            status = os.stat(self.path)
            found = _identity(status)
            is_settled = abs(time.time() - status.st_mtime) > SETTLED
        except OSError:
            found, is_settled = None, True
        self._seen = found if is_settled else _NEVER
        return found != before

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold its lock: one thread of one process at a time.

        Who has just let go of it and comes again stands in the queue behind the one who is next: it
        would else take it again and again before those who sleep wake up.

        Raises:
            StoreError: somebody else held it for 30 s, or there can be none here.
        """
        file.make_folder(os.path.dirname(self.path))
        with ExitStack() as turn:
            turn.enter_context(file.lock(f"{self.path}-next", LOCK_TIMEOUT, POLL))
            with file.lock(self.path, LOCK_TIMEOUT, POLL / 5):
                turn.close()
                yield

    def has_folder(self) -> bool:
        """Whether there is a place for it."""
        return os.path.isdir(os.path.dirname(self.path))

    def read(self) -> BreakersFile:
        """What it says; nothing where there is no file.

        Raises:
            ValueError: it is not what it should be.
            StoreError: it cannot be read.
        """
        return BreakersFile(self._bytes())

    def write(self, content: BreakersFile) -> None:
        """Replace it; on disk when this returns. Needs the lock.

        Raises:
            StoreError: it could not be written; the old file is still there.
        """
        file.write_atomic(self.path, content.bytes(), of=os.path.basename(self.path))
        self._sweep()
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

    def _sweep(self) -> None:
        """Once: remove what writers left that were killed. Who has the lock is the only writer."""
        if self._has_swept:
            return
        self._has_swept = True
        folder, name = os.path.split(self.path)
        with suppress(OSError):
            for found in os.listdir(folder):
                if found.startswith(f".loki-{name}-") and file.is_temporary(found):
                    file.remove_quietly(os.path.join(folder, found))

    def _free_name(self) -> str:
        names = (f"{self.path}.corrupt-{number}" for number in itertools.count(1))
        return next(name for name in names if not os.path.lexists(name))

    def _bytes(self) -> bytes:
        try:
            with open(self.path, "rb", opener=_at_once) as opened:
                status = os.fstat(opened.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise OSError(errno.EINVAL, "is no file")
                if status.st_size > MAX_BYTES:
                    raise ValueError(f"found {status.st_size} bytes, expected at most {MAX_BYTES}")
                return opened.read(status.st_size)
        except FileNotFoundError:
            return b"{}"
        except OSError as error:
            self._seen = _NEVER  # to be tried again
            raise StoreError(f"could not read {self.path}: {error.strerror or error}") from error


def _at_once(path: str, flags: int) -> int:
    """Without waiting for whoever may write into it, if it is a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def _identity(status: os.stat_result) -> _Identity:
    # Each replacement is a new file; one that is written in place has another time or size. Within
    # a tick of the file system's clock all of it may be as it was: see SETTLED.
    return status.st_ino, status.st_mtime_ns, status.st_size


def moment(now_ns: int, now: datetime, boot_id: str) -> BreakerMoment:
    """One moment in both clocks."""
    since_1970 = now - _EPOCH
    whole_seconds = since_1970.days * 86_400 + since_1970.seconds
    nanoseconds = whole_seconds * 1_000_000_000 + since_1970.microseconds * 1_000
    return BreakerMoment(now_ns, nanoseconds, boot_id)


def owner() -> str:
    """Who has a probe, for people."""
    return f"{os.uname().nodename}:{os.getpid()}"

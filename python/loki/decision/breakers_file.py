"""The file that processes share breakers through: locked, read, set aside, replaced.

What its bytes mean is in the C++ core.
"""

from __future__ import annotations

import errno
import itertools
import os
import stat
import time
from contextlib import AbstractContextManager, suppress
from datetime import datetime, timezone
from typing import TypeAlias

from loki._core import BreakerMoment, BreakersFile
from loki.base import atomic_file, locks
from loki.base.error import StoreError
from loki.decision.breakers_log import LONGEST, SHARE, SMALL, Content, head

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

_Identity: TypeAlias = tuple[int, int, int]
"""Which file it is."""

_NEVER: _Identity = (0, 0, 0)
"""No file is this one."""


class SharedFile:
    """A file of breakers on disk.

    Args:
        path: the file; it and its folder need not exist.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(path)
        self._log = f"{self.path}-log"
        self._seen: tuple[_Identity, _Identity] = _NEVER, _NEVER
        self._has_swept = False

    def has_changed(self) -> bool:
        """Whether it is another file than when this was last asked; two looks at the disk."""
        before = self._seen
        found = [_look(path) for path in (self.path, self._log)]
        self._seen = _known(found[0]), _known(found[1])
        return (_identity(found[0]), _identity(found[1])) != before

    def lock(self) -> AbstractContextManager[None]:
        """Hold its lock: one thread of one process at a time, each in turn.

        Raises:
            StoreError: somebody else held it for 30 s, or there can be none here.
        """
        atomic_file.make_folder(os.path.dirname(self.path))
        return locks.hold_in_turn(self.path, LOCK_TIMEOUT, POLL)

    def has_folder(self) -> bool:
        """Whether there is a place for it."""
        return os.path.isdir(os.path.dirname(self.path))

    def read(self) -> Content:
        """What it says, with what happened since it was written; nothing where there is no file.

        Raises:
            ValueError: it is not what it should be.
            StoreError: it cannot be read.
        """
        log = self._log_bytes()  # first: what the file says by now makes lines void, never new
        data, identity = self._bytes()
        is_ours = log.startswith(head(identity))
        content = Content(data, log, is_ours=is_ours)
        if not is_ours:  # somebody else may have written whatever he likes
            checked = BreakersFile(data)
            content = content if content.is_small else Content(checked.bytes(), log)
        return content

    def write(self, before: Content, name: str, content: BreakersFile, *, at_once: bool) -> bool:
        """Keep what has become of a breaker; on disk when this returns. Needs the lock.

        Args:
            before: what was read under the same lock.
            name: the breaker's.
            content: what ``before.entry(name)`` gave, changed.
            at_once: others have to see it in the file itself.

        Returns:
            Whether the file itself says it; if not, `fold` is due.

        Raises:
            StoreError: it could not be written; the old file is still there.
        """
        if before.is_small:
            self._replace(content.bytes())
            return True
        line, size = before.line(name, content), len(before.data)
        is_long = len(before.log) > LONGEST or len(line) * SHARE > max(size, SMALL)
        if at_once or is_long or not before.is_ours:
            self._write_whole(before.merged(line))
            return True
        atomic_file.append_at(self._log, before.end, line)
        self._seen = _NEVER, _NEVER
        return False

    def fold(self, *, unless_younger: float = 0.0) -> bool:
        """Bring the file up to what the log says. Needs the lock.

        Args:
            unless_younger: seconds since somebody did that.

        Returns:
            Whether it says all.

        Raises:
            ValueError: it is not what it should be.
            StoreError: it could not be read or written.
        """
        content = self.read()
        if not content.has_lines:
            return True
        status = _look(self.path)
        if status is not None and 0 <= time.time() - status.st_mtime < unless_younger:
            return False
        self._write_whole(content.merged())
        return True

    def _write_whole(self, data: bytes) -> None:
        self._replace(data)
        status = _look(self.path)
        if len(data) > SMALL and status is not None:
            # The lines before it mean nothing by now, whether they are cut off or not.
            atomic_file.append_at(self._log, 0, head(_identity(status)), durable=False)

    def _replace(self, data: bytes) -> None:
        atomic_file.write_atomic(self.path, data, of=os.path.basename(self.path))
        self._sweep()
        self._seen = _NEVER, _NEVER  # what comes next may even be what was there before

    def set_aside(self) -> str:
        """Move it out of the way, under a name that is free; the new name. Needs the lock.

        Raises:
            StoreError: it cannot be moved.
        """
        aside = self._free_name()
        try:
            os.rename(self.path, aside)
            atomic_file.sync_folder(os.path.dirname(aside))
        except OSError as error:
            raise StoreError(f"could not move {self.path}: {error.strerror or error}") from error
        return aside

    def copy_aside(self) -> str:
        """Keep a copy of it, under a name that is free; the copy's name. Needs the lock.

        Raises:
            StoreError: it cannot be written.
        """
        aside = self._free_name()
        atomic_file.write_atomic(aside, self._bytes()[0])
        return aside

    def _sweep(self) -> None:
        """Once: remove what writers left that were killed. Who has the lock is the only writer."""
        if self._has_swept:
            return
        self._has_swept = True
        folder, name = os.path.split(self.path)
        with suppress(OSError):
            for found in os.listdir(folder):
                if found.startswith(f".loki-{name}-") and atomic_file.is_temporary(found):
                    atomic_file.remove_quietly(os.path.join(folder, found))

    def _free_name(self) -> str:
        names = (f"{self.path}.corrupt-{number}" for number in itertools.count(1))
        return next(name for name in names if not os.path.lexists(name))

    def _bytes(self) -> tuple[bytes, _Identity]:
        """The file, and which one it is."""
        try:
            with open(self.path, "rb", opener=_at_once) as opened:
                status = os.fstat(opened.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise OSError(errno.EINVAL, "is no file")
                if status.st_size > MAX_BYTES:
                    raise ValueError(f"found {status.st_size} bytes, expected at most {MAX_BYTES}")
                return opened.read(status.st_size), _identity(status)
        except FileNotFoundError:
            return b"{}", _NEVER
        except OSError as error:
            self._seen = _NEVER, _NEVER  # to be tried again
            raise StoreError(f"could not read {self.path}: {error.strerror or error}") from error

    def _log_bytes(self) -> bytes:
        try:
            with open(self._log, "rb", opener=_at_once) as opened:
                is_file = stat.S_ISREG(os.fstat(opened.fileno()).st_mode)
                return opened.read(MAX_BYTES) if is_file else b""
        except OSError:
            return b""


def _at_once(path: str, flags: int) -> int:
    """Without waiting for whoever may write into it, if it is a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def _look(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None


def _identity(status: os.stat_result | None) -> _Identity:
    # Each replacement is a new file; one that is written in place has another time or size. Within
    # a tick of the file system's clock all of it may be as it was: see SETTLED.
    return (0, 0, 1) if status is None else (status.st_ino, status.st_mtime_ns, status.st_size)


def _known(status: os.stat_result | None) -> _Identity:
    """Which file it is, once another one would be told from it; until then none."""
    is_settled = status is None or abs(time.time() - status.st_mtime) > SETTLED
    return _identity(status) if is_settled else _NEVER


def moment(now_ns: int, now: datetime, boot_id: str) -> BreakerMoment:
    """One moment in both clocks."""
    since_1970 = now - _EPOCH
    whole_seconds = since_1970.days * 86_400 + since_1970.seconds
    nanoseconds = whole_seconds * 1_000_000_000 + since_1970.microseconds * 1_000
    return BreakerMoment(now_ns, nanoseconds, boot_id)


def owner() -> str:
    """Who has a probe, for people."""
    return f"{os.uname().nodename}:{os.getpid()}"

"""The one place that takes locks between processes, and how a file names the process it belongs to.

A number of a process alone says little: it is given anew, a container has numbers of its own, and
another machine may share the folder. So it stands with when the process began and with what tells
apart where its number holds.

Two kinds. A file of its own beside what is locked (`hold` and its kin): for a moment, by one thread of
one process. An open file (`take`, `take_for_process`): as long as it stays open, as a sign of life.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from contextlib import ExitStack, contextmanager
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from loki.base.error import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator


# --- Which process a file belongs to, and whether it has ended --------------------------------------

_MARK = re.compile(r"([0-9a-f]{8})\.([0-9]+)\.([0-9]+)")


@cache
def boot_id() -> str:
    """What tells this boot of this machine from all others, or ""."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except (OSError, ValueError):
        return ""


def mark() -> str:
    """This process, for a file's name: where its number holds, the number, and when it began.

    Example:
        >>> has_ended(f".loki-{mark()}-1f.tmp")
        False
    """
    pid = os.getpid()
    return f"{_where()}.{pid}.{_began(pid)}"


def has_ended(name: str) -> bool | None:
    """Whether the process that a file's name has the `mark` of is over; None: nobody can tell here.

    Args:
        name: of the file.

    Example:
        >>> has_ended("notes.txt") is None
        True
    """
    found = _MARK.search(name)
    if found is None or found[1] != _where() or found[3] == _UNKNOWN:
        return None
    began = _read(int(found[2]))
    return began != found[3] and not (began == _UNKNOWN and _is_hidden(int(found[2])))


_UNKNOWN = "0"


@cache
def _where() -> str:
    """The boot, and the room of processes in it (a container has its own)."""
    try:
        room = str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:
        room = ""
    return blake2b(f"{boot_id()} {room}".encode(), digest_size=4).hexdigest()


@cache
def _began(pid: int) -> str:
    return _read(pid)


def _is_hidden(pid: int) -> bool:
    """Whether there is a process of this number, though nothing is shown of it (hidepid of proc(5))."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def _read(pid: int) -> str:
    """When a process began, in ticks since the boot, or "0": there is none."""
    try:
        # proc(5): the 22nd field; the second is a name in brackets, which may hold anything.
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError, ValueError, OverflowError):
        return _UNKNOWN


# --- Locks between processes; the kernel frees each -------------------------------------------------

TIMEOUT = 60.0
"""Seconds to wait for another process that holds a lock. Chosen, not measured."""

POLL = 0.05
"""Seconds between two looks at a lock that somebody holds. Chosen, not measured."""


@contextmanager
def hold(
    path: str | os.PathLike[str], timeout: float = TIMEOUT, poll: float = POLL
) -> Iterator[None]:
    """Hold the lock of a file (``<path>.lock`` beside it): one thread of one process at a time.

    Not reentrant: the same thread must not ask twice. A child that is forked meanwhile does not have it.

    Args:
        path: what is locked; its folder exists.
        timeout: seconds to wait.
        poll: seconds between two looks at it meanwhile.

    Raises:
        StoreError: somebody else held it all the time, or it cannot be created.
    """
    handle = -1
    try:
        handle = os.open(f"{os.fspath(path)}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not take(handle, timeout, poll):
            raise StoreError(
                f"{os.fspath(path)}: another process has held its lock for {timeout:g} s"
            )
    except BaseException as error:
        if handle >= 0:
            os.close(handle)
        if isinstance(error, OSError):
            why = error.strerror or error
            raise StoreError(f"could not lock {os.fspath(path)}: {why}") from error
        raise
    _held.add(handle)
    try:
        yield
    finally:
        if handle in _held:  # a child that was forked meanwhile has let go of it
            _held.discard(handle)
            fcntl.flock(handle, fcntl.LOCK_UN)
            os.close(handle)


@contextmanager
def hold_in_turn(
    path: str | os.PathLike[str], timeout: float = TIMEOUT, poll: float = POLL
) -> Iterator[None]:
    """The same, where many want it again and again: who lets go of it queues up behind who waits.

    He would else take it again and again before those who sleep wake up.
    """
    with ExitStack() as turn:
        turn.enter_context(hold(f"{os.fspath(path)}-next", timeout, poll))
        with hold(path, timeout, poll / 5):
            turn.close()
            yield


@contextmanager
def hold_if_free(path: str | os.PathLike[str]) -> Iterator[bool]:
    """Hold the lock of a file unless somebody else does, or there can be none; whether it is held."""
    with ExitStack() as stack:
        try:
            stack.enter_context(hold(path, timeout=0))
        except StoreError:
            yield False
            return
        yield True


def is_held(path: str | os.PathLike[str]) -> bool:
    """Whether somebody holds the lock of a file just now, as far as can be told."""
    with hold_if_free(path) as is_free:
        return not is_free and os.path.exists(f"{os.fspath(path)}.lock")


def take(
    handle: int, timeout: float | None = 0.0, poll: float = POLL, *, shared: bool = False
) -> bool:
    """Take the lock that an open file has, until it is closed by all who have it, children too.

    Args:
        handle: descriptor of the file.
        timeout: seconds to wait for who holds it; None: as long as it takes.
        poll: seconds between two looks at it meanwhile.
        shared: others may have it at the same time who say so, too.

    Returns:
        Whether it was taken.

    Raises:
        OSError: there can be none here.
    """
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    if timeout is None:
        fcntl.flock(handle, kind)
        return True
    end = time.monotonic() + timeout
    while True:
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                return False
        else:
            return True
        time.sleep(poll)


def take_for_process(handle: int) -> bool:
    """Take a lock of this process alone, no child's, if it is free; whether it was taken.

    It is gone once this process closes the file, by whichever descriptor.

    Args:
        handle: descriptor of the file, open for writing.

    Raises:
        OSError: there can be none here.
    """
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # fcntl(2): either, for one that is held
        return False
    return True


_held: set[int] = set()
"""Locks of this process. A child that is forked meanwhile must not keep them when it ends them."""


def _let_go() -> None:
    for handle in _held:
        os.close(handle)
    _held.clear()


os.register_at_fork(after_in_child=_let_go)

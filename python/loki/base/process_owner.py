"""Which process something belongs to, as it stands in a file's name; and whether that has ended.

A number of a process alone says little: it is given anew, a container has numbers of its own, and
another machine may share the folder. So it stands with when the process began and with what tells
apart where its number holds.
"""

from __future__ import annotations

import os
import re
from functools import cache
from hashlib import blake2b
from pathlib import Path

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

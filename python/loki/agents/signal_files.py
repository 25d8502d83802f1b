"""What a program left among the signals of its copy: the one thing of its ``.loki/`` that counts."""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from loki.action.changes.change import Change, Edit
from loki.base.atomic_file import is_temporary
from loki.people.signal import FOLDER, MAX_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loki.action.changes.tree import Tree

MOST = 100
"""Files that are looked at; chosen, not measured."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def with_place(copy: Tree) -> Tree:
    """A copy in which a program can give signals as it is told to: `cat >> .loki/signals/…`."""
    with suppress(OSError):  # the project has something else of that name
        os.makedirs(os.path.join(copy.root, ".loki", FOLDER), exist_ok=True)
    return copy


def with_signals(change: Change, scratch: Path) -> Change:
    """A change, and the files in ``.loki/signals/`` of the copy; whether they are signals is seen later.

    Nothing is reached through a symbolic link, and of a file no more is read than a signal may say.

    Args:
        change: what else the program did.
        scratch: the copy.
    """
    found = tuple(
        Edit(f".loki/{FOLDER}/{path}", data, None) for path, data in islice(_files(scratch), MOST)
    )
    return replace(change, edits=(*change.edits, *found)) if found else change


def _files(scratch: Path) -> Iterator[tuple[str, bytes]]:
    with ExitStack() as stack:
        folder: int | None = None
        for name in (os.fspath(scratch), ".loki", FOLDER):
            folder = _opened(name, _FOLDER, folder)
            if folder is None:
                return
            stack.callback(os.close, folder)
        assert folder is not None
        yield from _read(folder)
        for name in sorted(os.listdir(folder)):
            queue = _opened(name, _FOLDER, folder) if name.endswith(".d") else None
            if queue is not None:
                stack.callback(os.close, queue)
                yield from ((f"{name}/{path}", data) for path, data in _read(queue))


def _read(folder: int) -> Iterator[tuple[str, bytes]]:
    """Names and first bytes of the files of a folder."""
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".lock") and not is_temporary(name):
            content = _content(name, folder)
            if content is not None:
                yield name, content


def _content(name: str, folder: int) -> bytes | None:
    handle = _opened(name, _FILE, folder)
    if handle is None:
        return None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        with open(handle, "rb", closefd=False) as file:
            return file.read(MAX_SIZE + 1)
    except OSError:
        return None
    finally:
        os.close(handle)


def _opened(name: str, flags: int, folder: int | None) -> int | None:
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError:
        return None

"""Removes what sessions left behind that were never gone on with; light, as hooks load it."""

from __future__ import annotations

import os
from contextlib import suppress

MOST = 100
"""Files that are kept in a folder, those written last; as many as sessions. Chosen, not measured."""


def remove_stale_sessions(folder: str, most: int = MOST) -> None:
    """Remove the files of a folder that were not written for the longest time.

    Args:
        folder: the folder; where it cannot be read or written, all stays as it is.
        most: how many files are kept.
    """
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:  # also where somebody has put a link: what it leads to is not loki's
        return
    try:
        with os.scandir(handle) as found:
            names = [entry.name for entry in found if entry.is_file(follow_symlinks=False)]
        if len(names) <= most:
            return
        by_age = sorted(names, key=lambda name: os.stat(name, dir_fd=handle).st_mtime_ns)
        for name in by_age[: len(names) - most]:
            with suppress(OSError):  # another process was quicker
                os.unlink(name, dir_fd=handle)
    except OSError:
        return
    finally:
        os.close(handle)

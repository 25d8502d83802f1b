"""Says at once when something among the signals has changed: by the system's own notice, or by looking."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from loki.base import path_containment
from loki.base.atomic_file import make_folder

LOOK = 0.2
"""Seconds between two looks where the system gives no notice. Chosen, not measured."""

NOTICE = 1_000
"""Milliseconds after which is looked at a folder that gave no notice. Chosen, not measured."""

EVERY = 10.0
"""Seconds after which signals that wait for something else are looked at again. Chosen."""

Wait = Callable[[], object]


def changes(
    folder: Path,
    cancelled: threading.Event,
    *,
    every: float = EVERY,
    notice: bool | None = None,
) -> Iterator[None]:
    """Yield at once, then whenever something in a folder has changed, until it is cancelled.

    Args:
        folder: what is watched; made where it is missing.
        cancelled: ends it at once when set.
        every: seconds after which it yields although nothing has changed.
        notice: whether the system is asked for notice (inotify and the like), for which the extra
            ``watch`` is needed; False: it looks every `LOOK` seconds. None: as it can.

    Raises:
        StoreError: the folder cannot be made.
        ImportError: notice is asked for, and the extra is not installed.

    What happens while whoever asks is at work is told with the next step: nothing is missed.
    """
    make_folder(folder)
    wait = _wait(folder, cancelled, notice)
    seen: frozenset[tuple[str, int, int]] | None = None
    told = 0.0
    while not cancelled.is_set():
        there = _look(folder)
        if there != seen or time.monotonic() - told >= every:
            seen, told = there, time.monotonic()
            yield
        else:
            wait()


def _look(folder: Path) -> frozenset[tuple[str, int, int]]:
    """The files below a folder, each with when it was written and how large it is."""
    found = set()
    for path in path_containment.files(folder):
        try:
            status = os.lstat(os.path.join(folder, path))
        except OSError:
            continue  # gone since
        found.add((path, status.st_mtime_ns, status.st_size))
    return frozenset(found)


def _wait(folder: Path, cancelled: threading.Event, notice: bool | None) -> Wait:
    if notice is not False:
        try:
            return _notified(folder, cancelled)
        except ImportError:
            if notice:
                raise
    return lambda: cancelled.wait(LOOK)


def _notified(folder: Path, cancelled: threading.Event) -> Wait:
    from watchfiles import watch

    notices = watch(
        folder,
        watch_filter=None,
        debounce=50,
        step=10,
        stop_event=cancelled,
        rust_timeout=NOTICE,
        yield_on_timeout=True,
        raise_interrupt=True,
    )
    return lambda: next(notices, None)

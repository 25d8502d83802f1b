"""Holding the project for a moment: while a copy of it is taken, and while a change lands in it."""

from __future__ import annotations

import json
import logging
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from loki.action.changes.journal import undo_journal
from loki.base import atomic_file, locks
from loki.base.error import StoreError
from loki.base.path_containment import path_in
from loki.stores.file_store import open_store

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator
    from pathlib import Path

MARK = "landing.json"
"""Names the task whose change is just landing; what is left of it after a crash is taken back."""

LOOK, POLL = 0.5, 0.01
"""Seconds between two looks at whether to stop waiting, and at the lock itself. Chosen."""

logger = logging.getLogger("loki")


class Stopped(Exception):
    """Nobody waits for it any more."""


@contextmanager
def hold_project(folder: Path, cancelled: threading.Event) -> Iterator[None]:
    """Hold the project, whole, once no other run and no other worker does.

    Args:
        folder: the workspace's folder, ``.loki``.
        cancelled: ends the wait.

    Raises:
        Stopped: the wait was ended.
        StoreError: it cannot be locked at all.
    """
    atomic_file.make_folder(folder)
    told = False
    while True:
        lock = locks.hold(folder / "run", timeout=LOOK, poll=POLL)
        try:
            lock.__enter__()
            break
        except StoreError:
            if not os.path.exists(folder / "run.lock"):
                raise
        if cancelled.is_set():
            raise Stopped
        if not told:
            told = True
            logger.info("another loki run is at work in %s: waiting for it", folder.parent)
    try:
        recover(folder)
        yield
    finally:
        lock.__exit__(None, None, None)


def recover(folder: Path) -> None:
    """Take back what a worker that was killed had half landed. Needs the project.

    Raises:
        StoreError: its records cannot be read.
    """
    path = folder / MARK
    try:
        task = path_in(json.loads(path.read_bytes())["task"])
    except OSError:  # there is none, as nearly always
        return
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        # It is written whole before a landing begins: a person or another program changed it.
        logger.warning("%s names no task, so nothing is taken back: %s", path, error)
        open_store(folder).set_aside(MARK)
        task = ""
    if task:
        found = undo_journal(folder, task).recover()
        for conflict in found.conflicts:
            logger.warning("%s: %s", conflict.path, conflict.reason)
        if found.restored:
            logger.warning("task=%s was interrupted while it landed: nothing of it has", task)
    path.unlink(missing_ok=True)


@contextmanager
def merging(folder: Path, task: str) -> Iterator[None]:
    """Say that a task's change is landing, for whoever comes after a crash. Needs the project."""
    atomic_file.write_atomic(folder / MARK, json.dumps({"task": task}).encode() + b"\n")
    yield  # what raises has been rolled back, or is by whoever comes next
    (folder / MARK).unlink(missing_ok=True)

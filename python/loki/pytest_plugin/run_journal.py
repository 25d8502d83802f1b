"""The journal of a run: a file that is there only while the run goes on, locked by its process.

Who finds one that nobody has locked knows that its process died without a word: it was killed, it
crashed, or something called ``os._exit``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loki.base import locks
from loki.memory.suites.suite_journal import journal_line, opening, timeouts_of, unfinished

if TYPE_CHECKING:
    from loki.memory.suites.suite_journal import Entry, UnfinishedRun
    from loki.memory.suites.suite_run import SuiteFailure, SuiteRun

FOLDER = "state/test-runs"
"""Where journals are in a project's ``.loki/``."""

FAILURES = 1_000
"""Failures that a journal has at most, as many as the log keeps of a run."""


class Journal:
    """Writes a run's journal; where that cannot be, it does nothing."""

    def __init__(self) -> None:
        self.path = ""
        self._folder = Path()
        self._handle = -1
        self._process = 0
        self._failures = 0
        self._is_torn = False

    def open(self, folder: Path, run: SuiteRun, *, has_workers: bool) -> None:
        """Begin it; no journal where the folder cannot be written to.

        Args:
            folder: the project's ``.loki``.
            run: what is known of the run.
            has_workers: its tests run in other processes.
        """
        from loki.base.error import StoreError
        from loki.stores import open_store

        self._process, self._folder = os.getpid(), folder
        with suppress(StoreError, OSError):
            path = open_store(folder).beside(f"{FOLDER}/{self._process}-{run.id}.jsonl")
            new = path.with_suffix(".new")  # nobody sees it before it is locked
            handle = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
            try:
                # Not `take`: a process that a test forks would hold it, too.
                locks.take_for_process(handle)
                os.write(handle, opening(run, began=time.time(), has_workers=has_workers))
                new.rename(path)
            except OSError:
                new.unlink(missing_ok=True)
                os.close(handle)
                raise
            self.path, self._handle = os.fspath(path), handle

    def join(self, path: str) -> None:
        """Write to another process's journal, where that is on this machine.

        Args:
            path: of the journal; "" for none.
        """
        self._process = os.getpid()
        with suppress(OSError):
            self._handle = os.open(path, os.O_WRONLY | os.O_APPEND) if path else -1

    def write(self, entry: Entry, value: Any) -> None:
        """Add a line: one call of the system, which survives this process."""
        if self._handle < 0 or self._is_torn or os.getpid() != self._process:
            return  # a child of a test's may come by
        line = journal_line(entry, value)
        try:
            self._is_torn = os.write(self._handle, line) != len(line)
        except OSError:
            self._is_torn = True  # the lock stays: the run goes on

    def failed(self, failing: SuiteFailure) -> None:
        """A test failed, or one of its tries."""
        from loki.base.secret import masked

        self._failures += 1
        if self._failures <= FAILURES:
            self.write("fail", masked(failing.to_dict()))

    def timed_out(self, test: str) -> str:
        """What pytest-timeout's thread left of a test that it ended a worker for; "" for none."""
        if self._handle < 0:
            return ""
        with suppress(OSError):
            size = os.fstat(self._handle).st_size
            # By this handle: closing another of the same file would let go of the lock.
            lines = os.pread(self._handle, size, 0).splitlines()
            told = timeouts_of(line for line in lines if line.startswith(b'{"timeout"'))
            return told.get(test, "")
        return ""

    def remove(self) -> None:
        """The run has ended, with a word."""
        if self._handle < 0 or os.getpid() != self._process:
            return
        with suppress(OSError):
            _remove(self._folder, os.path.basename(self.path))
        os.close(self._handle)
        self._handle = -1


def left_behind(folder: Path) -> Iterator[UnfinishedRun]:
    """Runs whose process is gone; each is removed when the next is asked for.

    Args:
        folder: the project's ``.loki``.
    """
    try:
        names = sorted(name for name in os.listdir(folder / FOLDER) if name.endswith(".jsonl"))
    except OSError:
        return
    for name in names:
        if name.partition("-")[0] == str(os.getpid()):
            continue  # closing a file of this process would let go of its lock
        with suppress(OSError):
            handle = os.open(folder / FOLDER / name, os.O_RDWR)
            with os.fdopen(handle, "rb") as file:
                if not locks.take_for_process(handle) or not os.fstat(handle).st_nlink:
                    continue  # it goes on, or another run was quicker
                try:
                    found = unfinished(file)
                except ValueError:
                    continue  # a newer loki's
                if found is not None:
                    ended = os.fstat(handle).st_mtime
                    yield _lasted(found, ended)
                _remove(folder, name)


def _remove(folder: Path, name: str) -> None:
    from loki.base.path_containment import parent

    with parent(folder, f"{FOLDER}/{name}") as (above, last):
        os.unlink(last, dir_fd=above)


def _lasted(found: UnfinishedRun, ended: float) -> UnfinishedRun:
    took = round(1000 * max(0.0, ended - found.began)) if found.began else 0
    return replace(found, run=replace(found.run, duration_ms=took))

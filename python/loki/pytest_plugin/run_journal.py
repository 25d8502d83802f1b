"""The journal of a run: a file that is there only while the run goes on, locked by its process.

Who finds one that nobody has locked knows that its process died without a word: it was killed, it
crashed, or something called ``os._exit``.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from loki.base import locks
from loki.base.error import StoreError
from loki.base.secret import masked
from loki.memory.suites.suite_journal import (
    Entry,
    UnfinishedRun,
    journal_line,
    opening,
    timeouts_of,
    unfinished,
)

if TYPE_CHECKING:
    from loki.memory.suites.suite_history import SuiteFailure, SuiteRun
    from loki.pytest_plugin.options import ProjectRoot


# --- The journal --------------------------------------------------------------------------------------

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
        from loki.stores.file_store import open_store

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
                    took = round(1000 * max(0.0, ended - found.began)) if found.began else 0
                    yield replace(found, run=replace(found.run, duration_ms=took))
                _remove(folder, name)


def _remove(folder: Path, name: str) -> None:
    from loki.base.path_containment import parent

    with parent(folder, f"{FOLDER}/{name}") as (above, last):
        os.unlink(last, dir_fd=above)


# --- What leaves a trace of where the run is ----------------------------------------------------------

PATH = "loki_journal"
"""Key under which a worker of pytest-xdist is told the path of the run's journal."""

STACK = 20_000
"""Characters of a stack that are kept, its last ones. Chosen, not measured."""


class TimerWatch:
    """Sees pytest-timeout's method ``thread``, which ends the process without asking anybody.

    Args:
        place: the run's project.
        journal: of this process, or one to join another process's with.
        path: of the run's journal, where another process writes it.
    """

    def __init__(self, place: ProjectRoot, journal: Journal, path: str = "") -> None:
        self._place = place
        self._journal = journal
        self._path = path

    @pytest.hookimpl(wrapper=True, optionalhook=True)
    def pytest_timeout_set_timer(
        self, item: pytest.Item, settings: Any
    ) -> Generator[None, Any, Any]:
        """A timer was set: be called before what it calls when the time is over."""
        done = yield
        with suppress(Exception):  # another pytest-timeout: the test is told of as crashed
            name = f"pytest_timeout {item.nodeid}"
            for timer in threading.enumerate():
                if isinstance(timer, threading.Timer) and timer.name == name:
                    runs = threading.get_ident()
                    timer.function = self._before(timer.function, item.nodeid, settings, runs)
        return done

    def _before(
        self, ends: Callable[..., Any], test: str, settings: Any, runs: int
    ) -> Callable[..., Any]:
        def told(*args: Any, **kwargs: Any) -> Any:
            with suppress(Exception):
                is_debugging = sys.modules["pytest_timeout"].is_debugging
                if settings.disable_debugger_detection or not is_debugging():
                    stack = traceback.format_stack(sys._current_frames()[runs])
                    self._tell(test, timed_out_text(test, stack, settings.timeout))
            return ends(*args, **kwargs)

        return told

    def _tell(self, test: str, text: str) -> None:
        """Write what pytest would have printed of a test."""
        if self._path:
            self._journal.join(self._path)
        self._journal.write("timeout", masked({"test": self._place.test(test), "text": text}))


class Trace(TimerWatch):
    """Writes the journal in the process that a person started; pytest calls its hooks."""

    def __init__(self, config: pytest.Config, journal: Journal, place: ProjectRoot) -> None:
        super().__init__(place, journal)
        self._config = config

    @property
    def has_workers(self) -> bool:
        """The tests run in other processes."""
        return self._config.pluginmanager.has_plugin("dsession")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """A worker of pytest-xdist is about to be started."""
        node.workerinput[PATH] = self._journal.path

    def pytest_collectstart(self, collector: pytest.Collector) -> None:
        """A file is about to be imported."""
        if isinstance(collector, pytest.File):
            self._journal.write("collect", self._place.test(collector.nodeid))

    def pytest_collection_finish(self) -> None:
        """No more files."""
        self._journal.write("collect", "")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test begins, here or on a worker."""
        self._journal.write("start", self._place.test(nodeid))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """A test ended: where they follow one another, the next one's beginning says so."""
        if self.has_workers:
            self._journal.write("end", self._place.test(nodeid))

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """However it ended, it was no death without a word."""
        self._journal.remove()


def timed_out_text(test: str, stack: list[str], seconds: float) -> str:
    """What pytest would print of a test that took too long, had it lived.

    Args:
        test: node id.
        stack: of the thread that runs it, as `traceback.format_stack` gives it.
        seconds: that it had.
    """
    inner = [n for n, frame in enumerate(stack) if "/_pytest/" in frame or "/pluggy/" in frame]
    own = stack[inner[-1] + 1 :] if inner else stack
    said = f"Failed: Timeout (>{seconds}s) from pytest-timeout."
    trace = "".join(own or stack[-1:])[-STACK:]
    return (
        f"{'=' * 12} FAILURES {'=' * 12}\n{'_' * 12} {test} {'_' * 12}\n"
        f"Traceback (most recent call last):\n{trace}{said}\n"
        f"{'=' * 12} short test summary info {'=' * 12}\nFAILED {test} - {said}\n"
    )

"""Leaves a trace of where the run is, in its journal; and of a test for which pytest-timeout ends it."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from loki.pytest_plugin.project_root import ProjectRoot
    from loki.pytest_plugin.run_journal import Journal

PATH = "loki_journal"
"""Key under which a worker of pytest-xdist is told the path of the run's journal."""

STACK = 20_000
"""Characters of a stack that are kept, its last ones. Chosen, not measured."""


class TimerWatch:
    """Sees pytest-timeout's method ``thread``, which ends the process without asking anybody.

    Args:
        tell: told the test's node id and what pytest would have printed of it.
    """

    def __init__(self, tell: Callable[[str, str], None]) -> None:
        self._tell = tell

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


class Trace(TimerWatch):
    """Writes the journal in the process that a person started; pytest calls its hooks."""

    def __init__(self, config: pytest.Config, journal: Journal, place: ProjectRoot) -> None:
        super().__init__(self._timed_out)
        self._journal = journal
        self._place = place
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

    def _timed_out(self, test: str, text: str) -> None:
        from loki.base.secret import masked

        self._journal.write("timeout", masked({"test": self._place.test(test), "text": text}))


def worker_watch(path: str, place: ProjectRoot) -> TimerWatch:
    """What watches the timers of a worker of pytest-xdist.

    Args:
        path: of the run's journal; "" for none.
        place: the run's project.
    """

    def tell(test: str, text: str) -> None:
        from loki.base.secret import masked
        from loki.pytest_plugin.run_journal import Journal

        journal = Journal()
        journal.join(path)
        journal.write("timeout", masked({"test": place.test(test), "text": text}))

    return TimerWatch(tell)


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

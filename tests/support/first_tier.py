"""What holds for each test of the first tier: it starts no process, and takes at most a second.

The second is one of this process's CPU time on a machine that counts to a million in `MILLION` s, so that
neither a busy machine nor a slow one fails a test. It is judged in the test itself, without its fixtures,
and neither where the test is the first to import something nor where properties are tried on all their
examples.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Generator
from functools import cache
from multiprocessing import process

import pytest
from hypothesis.strategies import text

from support import examples
from support.paths import ROOT

TESTS = str(ROOT / "tests")

STARTS = {
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.spawn",
    "os.system",
    "pty.spawn",
    "subprocess.Popen",
}
"""Audit events: https://docs.python.org/3/library/audit_events.html"""

SECONDS = 1.0
MILLION = 0.0076
"""Measured, with CPython 3.11 on a Xeon of 2023 that was otherwise idle."""
MOVE = "tests of the first tier start no process: move it to tests/system/processes (docs/design/testing.md)"
SLOW = "a test of the first tier takes at most {limit:g} s: make it quicker, or move it to tests/system/slow"


class Guard:
    """Sees what the running test starts."""

    def __init__(self) -> None:
        self.is_watching = False
        self.seen: list[str] = []

    def hear(self, event: str, _arguments: object = None) -> None:
        """Called at each audit event, in whichever thread."""
        if not self.is_watching or event not in STARTS:
            return
        stack = traceback.extract_stack()[:-1]
        own = [one for one in stack if one.filename.startswith(TESTS) and one.filename != __file__]
        at = (own or stack)[-1]
        # Nothing is raised: the code under test would take it for an error of the program's.
        self.seen.append(f"{event} from {at.filename}:{at.lineno}")

    def watch(self) -> Generator[None, object, object]:
        """A wrapper of a phase of a test: fails where one was started, even if nobody heard it."""
        self.is_watching, self.seen = True, []
        try:
            result = yield
        finally:
            self.is_watching = False
        if self.seen:
            pytest.fail(f"{MOVE}: {self.seen[0]}", pytrace=False)
        return result


GUARD = Guard()
sys.addaudithook(GUARD.hear)


def _start(self: process.BaseProcess, start: object = process.BaseProcess.start) -> None:
    """Where `multiprocessing` has a way of its own to start one, no event is told."""
    GUARD.hear("os.fork")
    start(self)  # type: ignore[operator]


process.BaseProcess.start = _start  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, object, object]:
    make_characters()
    return (yield from GUARD.watch())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None, object, object]:
    return (yield from GUARD.watch())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    modules, began = len(sys.modules), time.process_time()
    result = yield from GUARD.watch()
    taken = time.process_time() - began
    if taken > SECONDS and len(sys.modules) <= modules and not examples.ALL:
        taken /= max(1.0, slowness())
        if taken > SECONDS:
            slow = SLOW.format(limit=SECONDS)
            pytest.fail(f"{slow} (it took {taken:.1f} s of CPU time)", pytrace=False)
    return result


@cache
def make_characters() -> None:
    """Hypothesis makes its table of characters when it is first asked: no test pays for it."""
    text().validate()


def slowness() -> float:
    """How many times longer than on the machine of `MILLION` the same takes here and now."""
    began = time.process_time()
    for _ in range(1_000_000):
        pass
    return (time.process_time() - began) / MILLION

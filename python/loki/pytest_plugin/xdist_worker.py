"""The side of a pytest-xdist worker: it recognizes what failed, and sends it with the report."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from loki.memory.suites.suite_history import SuiteFailure
    from loki.pytest_plugin.error_guard import Guard
    from loki.pytest_plugin.failure_recognition import Recognizer
    from loki.pytest_plugin.options import ProjectRoot

OUTPUT = "loki"
"""Key under which a worker tells the controller at its end what went wrong."""


class XdistWorkerPlugin:
    """Sees the reports where the tests ran: all that both sides have in common.

    Args:
        guard: what keeps errors from the run.
        place: the run's project.
        worker: name of this process among others.
    """

    def __init__(self, guard: Guard, place: ProjectRoot, worker: str = "") -> None:
        self.guard = guard
        self.place = place
        self._worker = worker
        self._said: dict[str, list[tuple[str, object]]] = {}

    @cached_property
    def recognizer(self) -> Recognizer:
        """Loaded at the first failure."""
        from loki.pytest_plugin.failure_recognition import Recognizer

        return Recognizer(self.place, self._worker)

    def recognized(self, report: pytest.TestReport, timed_out: str = "") -> SuiteFailure:
        """The failing test of a failing report, which gets properties that say what was found.

        Args:
            report: of a phase that failed.
            timed_out: what pytest-timeout left of it, where it ended a worker for it.
        """
        from loki.pytest_plugin.failure_recognition import properties_of

        failing = self.recognizer.failing(report)
        if timed_out:
            ended = self.recognizer.timed_out(failing.test, timed_out)
            outcome = "rerun" if failing.outcome == "rerun" else ended.outcome
            failing = replace(failing, phase=ended.phase, outcome=outcome, failure=ended.failure)
        properties = properties_of(failing)
        report.user_properties += properties
        if failing.phase != "teardown" and failing.outcome != "rerun":
            self._said[report.nodeid] = properties
        return failing

    def torn_down(self, report: pytest.TestReport) -> None:
        """Repeat a test's properties with its last report: it is whose JUnit's XML takes."""
        report.user_properties += self._said.pop(report.nodeid, ())


class Worker:
    """Listens in a worker; pytest calls its hooks."""

    def __init__(self, config: pytest.Config, guard: Guard, place: ProjectRoot) -> None:
        self._output: dict[str, object] = config.workeroutput  # type: ignore[attr-defined]
        name = str(config.workerinput.get("workerid", ""))  # type: ignore[attr-defined]
        self._witness = XdistWorkerPlugin(guard, place, name)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Before the report is sent."""
        if has_failed(report):
            self._witness.guard(self._attach, report)
        elif report.when == "teardown":
            self._witness.guard(self._witness.torn_down, report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Before the worker says good-bye."""
        self._output[OUTPUT] = self._witness.guard.lines

    def _attach(self, report: pytest.TestReport) -> None:
        from loki.pytest_plugin.failure_recognition import packed

        report.user_properties.append(packed(self._witness.recognized(report)))


def has_failed(report: pytest.TestReport) -> bool:
    """Whether a report tells of a failure, that of a try which is made again included."""
    outcome: str = report.outcome
    return outcome == "failed" or (outcome == "rerun" and report.longrepr is not None)

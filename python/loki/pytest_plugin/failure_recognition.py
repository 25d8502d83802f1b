"""From a failing report of pytest to a failing test as loki keeps it; on the worker that ran it."""

from __future__ import annotations

import dataclasses
import json
import os
from datetime import datetime, timezone
from functools import cached_property
from typing import TYPE_CHECKING

from loki.memory.suites.suite_run import Outcome, Phase, SuiteFailure
from loki.pytest_plugin.report_text import CRASHED, crashed_text, first_line, text_of
from loki.recognition.failure import Failure, recognize
from loki.recognition.pattern import PatternSet
from loki.recognition.underlying_kind import underlying

if TYPE_CHECKING:
    import pytest

    from loki.pytest_plugin.project_root import ProjectRoot

PROPERTY = "loki"
"""Name of the property of a report that carries a failing test from a worker to the controller."""

PATTERNS = "failure-patterns.yml"

_TIMED_OUT = "from pytest-timeout"


class Recognizer:
    """Makes failing tests of failing reports.

    Args:
        place: the run's project.
        worker: name of this process among others, ``gw0``; "" where there are no others.
    """

    def __init__(self, place: ProjectRoot, worker: str = "") -> None:
        self._place = place
        self._worker = worker

    @cached_property
    def _patterns(self) -> PatternSet:
        own = self._place.project / ".loki" / PATTERNS
        return PatternSet.load(own) if own.exists() else PatternSet.default()

    def failing(self, report: pytest.TestReport | pytest.CollectReport) -> SuiteFailure:
        """The failing test that a failing report tells of.

        Raises:
            ConfigError: the project's own patterns cannot be used.
        """
        phase, outcome = _what(report)
        test = self._place.test(report.nodeid)
        rerun = int(getattr(report, "rerun", 0)) + 1 if outcome == "rerun" else 0
        return SuiteFailure(
            test,
            phase,
            outcome,
            self._recognized(report, test),
            started_at=_moment(getattr(report, "start", 0.0)),
            duration_ms=round(1000 * getattr(report, "duration", 0.0)),
            worker=self._worker or _worker_of(report),
            rerun=rerun,
        )

    def crashed(self, test: str, phase: Phase) -> SuiteFailure:
        """A test, or a file, that the process died in: nobody is left to say more.

        Args:
            test: node id, or the path of a file that was being collected.
            phase: "crash" or "collect".
        """
        return self._ended(test, phase, "crashed", crashed_text(test))

    def timed_out(self, test: str, text: str) -> SuiteFailure:
        """A test that pytest-timeout ended the process for.

        Args:
            test: node id.
            text: what it left.
        """
        return self._ended(test, "timeout", "timeout", text)

    def _ended(self, test: str, phase: Phase, outcome: Outcome, text: str) -> SuiteFailure:
        failure = self._read(text)
        if failure.path is None:
            failure = failure.at(test.partition("::")[0], None)
        return SuiteFailure(test, phase, outcome, failure, worker=self._worker)

    def _recognized(self, report: pytest.TestReport | pytest.CollectReport, test: str) -> Failure:
        found = self._read(text_of(report, test))
        return _at_test(found, report, self._place) if found.path is None else found

    def _read(self, text: str) -> Failure:
        found = recognize(
            text,
            command="pytest",
            root=os.fspath(self._place.project),
            language="python",
            patterns=self._patterns,
        )
        if found.path is None:
            return found
        frames = tuple(
            dataclasses.replace(frame, path=self._place.path(frame.path)) for frame in found.frames
        )
        return dataclasses.replace(found, path=self._place.path(found.path), frames=frames)


def properties_of(failing: SuiteFailure) -> list[tuple[str, object]]:
    """What reports about tests (JUnit's XML and others) say of a failing one."""
    failure = failing.failure
    shown = underlying(failure) or failure.match
    return [
        ("loki.signature", failure.signature),
        ("loki.pattern", failure.pattern_id),
        ("loki.kind", shown.kind if shown else failure.kind),
        ("loki.fingerprint", failure.fingerprint),
    ]


def packed(failing: SuiteFailure) -> tuple[str, object]:
    """A failing test as a property of its report, as plain ASCII: it has to reach the controller."""
    return PROPERTY, json.dumps(failing.to_dict())


def unpacked(report: pytest.TestReport) -> SuiteFailure | None:
    """The failing test that a worker sent with a report, taken out of it; None where there is none."""
    kept = [entry for entry in report.user_properties if entry[0] != PROPERTY]
    sent = [entry[1] for entry in report.user_properties if entry[0] == PROPERTY]
    report.user_properties[:] = kept
    return SuiteFailure.from_dict(json.loads(str(sent[-1]))) if sent else None


def _at_test(
    failure: Failure, report: pytest.TestReport | pytest.CollectReport, place: ProjectRoot
) -> Failure:
    """The failure at the test that it is of, where its output names no file."""
    file, line, _ = report.location or ("", None, "")
    return failure.at(place.path(file), None if line is None else line + 1) if file else failure


def _what(report: pytest.TestReport | pytest.CollectReport) -> tuple[Phase, Outcome]:
    """Where a report says that it failed, and what became of it."""
    when: str = getattr(report, "when", None) or "call"
    phase, outcome = _WHAT.get(when, ("call", "failed"))
    if _TIMED_OUT in first_line(report):
        phase, outcome = "timeout", "timeout"
    return phase, "rerun" if str(report.outcome) == "rerun" else outcome


_WHAT: dict[str, tuple[Phase, Outcome]] = {
    "setup": ("setup", "error"),
    "call": ("call", "failed"),
    "teardown": ("teardown", "error"),
    "collect": ("collect", "error"),
    CRASHED: ("crash", "crashed"),
}


def _worker_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Name of the worker that pytest-xdist says a report is from; "" without it."""
    gateway = getattr(getattr(report, "node", None), "gateway", None)
    return str(getattr(gateway, "id", ""))


def _moment(seconds: float) -> str:
    from loki.base.time import isoformat

    return isoformat(datetime.fromtimestamp(seconds, timezone.utc)) if seconds else ""

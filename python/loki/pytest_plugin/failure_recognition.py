"""From a failing report of pytest to a failing test as loki keeps it; on the worker that ran it.

What is recognized must not depend on what a person wants to read (``--tb=no``, ``-q``,
``--show-capture``, ``-p no:terminal``). Where the tests run, loki has pytest write the traceback of a
failing test once more, in full.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Generator
from datetime import datetime, timezone
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from loki.base.time import isoformat
from loki.memory.suites.suite_history import Outcome, Phase, SuiteFailure
from loki.recognition.failure import Failure, recognize
from loki.recognition.pattern import PatternSet
from loki.recognition.root_cause import underlying

if TYPE_CHECKING:
    from loki.pytest_plugin.error_guard import Guard
    from loki.pytest_plugin.options import ProjectRoot

Report: TypeAlias = pytest.TestReport | pytest.CollectReport


# --- The traceback in pytest's long form, where `--tb` asks for another one ---------------------------

_SUFFICES = frozenset({"auto", "long"})
"""Styles that say all that recognition reads."""

_TEXT = "_loki_traceback"


def register_traceback_text(config: pytest.Config, guard: Guard) -> None:
    """Have tracebacks written in full beside what pytest was told to print.

    Args:
        config: pytest's.
        guard: what keeps errors from the run.
    """
    if config.getoption("tbstyle", "auto") not in _SUFFICES:
        config.pluginmanager.register(_Writer(guard), "loki-tracebacks")


def taken(report: Report) -> str:
    """The full traceback of a report, which goes no further with it; "" where it has none."""
    return str(vars(report).pop(_TEXT, ""))


class _Writer:
    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, Any, None]:
        """The report is made, by whomever."""
        result = yield
        if call.excinfo is not None and result.excinfo is None:
            self._guard(_attach, item, call.excinfo, result.get_result())


def _attach(
    item: pytest.Item, excinfo: pytest.ExceptionInfo[BaseException], report: pytest.TestReport
) -> None:
    """Texts that pytest writes alike in every style, those without a stack, are left to it."""
    has_stack = getattr(excinfo.value, "pytrace", True) and not isinstance(
        excinfo.value, pytest.FixtureLookupError
    )
    if has_stack and report.outcome not in {"passed", "skipped"}:
        cut = getattr(item, "_traceback_filter", True)  # frames of pytest's own; no public name
        setattr(report, _TEXT, str(excinfo.getrepr(style="long", funcargs=True, tbfilter=cut)))


# --- What pytest would print of a failing report ------------------------------------------------------

REPORT = 1_000_000
"""Characters of a traceback that are read: head and tail of a longer one. Chosen, not measured."""

SECTION = 20_000
"""Characters of each captured output that are read, its last ones. Chosen, not measured."""

_ERROR = re.compile("^E  ", re.MULTILINE)
_TYPE = re.compile(r"[\w.]+")
_WORKER = re.compile(r"worker '\w+' crashed")
_RULER = 12  # dashes at each side of a title

CRASHED = "???"
"""What pytest-xdist gives as phase of a test whose worker died."""


def text_of(report: Report, test: str) -> str:
    """What pytest prints of a failing report: its section, what was captured, its summary line.

    Args:
        report: of a test's phase or of a collector, failed.
        test: its node id, as the summary line says it.
    """
    when = getattr(report, "when", None)
    heading = "FAILURES" if when == "call" else "ERRORS"
    parts = [_title("=", heading), _title("_", _head(report, when, test)), _said(report, when)]
    for name, content in report.sections:
        parts += [_title("-", name), content[-SECTION:].rstrip("\n")]
    word = "FAILED" if when in {"call", CRASHED} else "ERROR"
    said = first_line(report)
    last_line = f"{word} {test} - {said}" if said else f"{word} {test}"
    parts += [_title("=", "short test summary info"), last_line]
    return "\n".join(parts) + "\n"


def crashed_text(test: str) -> str:
    """What pytest would print of a test that its process died in, as pytest-xdist does of a worker's.

    Args:
        test: its node id, or the path of a file that was being collected.
    """
    return (
        f"{_title('=', 'ERRORS')}\n{_title('_', test)}\nprocess crashed while running {test!r}\n"
        f"{_title('=', 'short test summary info')}\nFAILED {test}\n"
    )


def _said(report: Report, when: str | None) -> str:
    """The traceback, with what ``--tb=no``, ``--tb=line`` and ``pytrace=False`` leave out of it."""
    text = _cut(taken(report) or report.longreprtext)
    if when == CRASHED:  # which worker it was differs from run to run, and says nothing of the test
        return _WORKER.sub("worker crashed", text)
    crash = getattr(report.longrepr, "reprcrash", None)
    error = first_line(report)
    if crash is None or not error:
        return text
    if not _ERROR.search(text):
        text = f"{text}\nE   {error}"
    if f":{crash.lineno}: " not in text:
        kind = error.partition(":")[0]
        kind = kind if _TYPE.fullmatch(kind) else "AssertionError"  # pytest leaves it out of these
        text = f"{text}\n\n{crash.path}:{crash.lineno}: {kind}"
    return text


def _head(report: Report, when: str | None, test: str) -> str:
    head = report.head_line or test
    if when == "collect":
        return f"ERROR collecting {head}"
    return f"ERROR at {when} of {head}" if when in {"setup", "teardown"} else head


def first_line(report: Report) -> str:
    """The first line of what the report says went wrong; "" where it does not."""
    crash = getattr(report.longrepr, "reprcrash", None)
    message = str(getattr(crash, "message", "") or "")
    return message.strip().split("\n", 1)[0]


def _title(ruler: str, text: str) -> str:
    return f"{ruler * _RULER} {text} {ruler * _RULER}"


def _cut(text: str) -> str:
    if len(text) <= REPORT:
        return text
    return f"{text[: REPORT // 2]}\n...\n{text[-REPORT // 2 :]}"


# --- From report to failing test ----------------------------------------------------------------------

PROPERTY = "loki"
"""Name of the property of a report that carries a failing test from a worker to the controller."""

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
        return PatternSet.of_project(self._place.project / ".loki")

    def failing(self, report: Report) -> SuiteFailure:
        """The failing test that a failing report tells of.

        Raises:
            ConfigError: the project's own patterns cannot be used.
        """
        phase, outcome = _what(report)
        test = self._place.test(report.nodeid)
        rerun = int(getattr(report, "rerun", 0)) + 1 if outcome == "rerun" else 0
        failure = self._read(text_of(report, test))
        file, line, _ = report.location or ("", None, "")
        if failure.path is None and file:  # its output names none: it is where its test is
            failure = failure.at(self._place.path(file), None if line is None else line + 1)
        return SuiteFailure(
            test,
            phase,
            outcome,
            failure,
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


def _what(report: Report) -> tuple[Phase, Outcome]:
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


def _worker_of(report: Report) -> str:
    """Name of the worker that pytest-xdist says a report is from; "" without it."""
    gateway = getattr(getattr(report, "node", None), "gateway", None)
    return str(getattr(gateway, "id", ""))


def _moment(seconds: float) -> str:
    return isoformat(datetime.fromtimestamp(seconds, timezone.utc)) if seconds else ""

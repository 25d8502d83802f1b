"""The side of the process that a person started: it collects, stores and shows."""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from loki.base.text_format import amount
from loki.base.time import isoformat
from loki.decision.suites.suite_summary import (
    Member,
    SuiteSummary,
    excused,
    exit_code,
    summarize,
    with_changes,
)
from loki.memory.suites.suite_history import SuiteFailure, SuiteHistory, SuiteRun
from loki.pytest_plugin.options import FOLDER, Options, ProjectRoot
from loki.pytest_plugin.report_file import Junit, day, ending, junit_of, plain, publish
from loki.pytest_plugin.run_journal import Journal, Trace, left_behind
from loki.pytest_plugin.xdist_worker import OUTPUT, XdistWorkerPlugin, has_failed
from loki.recognition.root_cause import NO_ASSERTIONS, Assertions
from loki.stores.file_store import ForgivingStore

if TYPE_CHECKING:
    from loki.memory.suites.suite_journal import UnfinishedRun
    from loki.pytest_plugin.error_guard import Guard
    from loki.pytest_plugin.failure_recognition import Recognizer


# --- What became of the tests of a run so far ---------------------------------------------------------


class Tally:
    """Collects what failed and what passed.

    Attributes:
        failures: those that stand.
        reruns: tries that failed and were made again.
    """

    def __init__(self) -> None:
        self._passed: dict[str, None] = {}
        self.failures: list[SuiteFailure] = []
        self.reruns: list[SuiteFailure] = []

    def passed(self, nodeid: str) -> None:
        """A test's call passed: it may yet fail when it is torn down, or be tried again."""
        self._passed[nodeid] = None

    def failed(self, failing: SuiteFailure) -> None:
        """A test failed, or one of its tries did."""
        if failing.outcome != "rerun":
            self.failures.append(failing)
            return
        self._superseded(failing.test, failing.rerun)
        self.reruns.append(failing)

    def rerun(self, test: str, number: int) -> None:
        """A test is tried again although the try's report tells of no failure: its sub-tests did."""
        self._superseded(test, number)

    def passing(self, prefix: str) -> tuple[str, ...]:
        """Tests that passed in all their phases, as the project calls them."""
        failed = {one.test for one in self.failures}
        return tuple(name for one in self._passed if (name := prefix + one) not in failed)

    def _superseded(self, test: str, number: int) -> None:
        """What failed of a test so far, its sub-tests, belongs to a try that is made again."""
        again = [one for one in self.failures if one.test == test]
        self.failures = [one for one in self.failures if one.test != test]
        self.reruns += (replace(one, outcome="rerun", rerun=number) for one in again)


def counts(stats: Iterable[tuple[str, int]]) -> dict[str, int]:
    """How many tests came out how, by pytest's words, those of no test left out.

    Example:
        >>> counts([("passed", 3), ("", 6), ("warnings", 2), ("failed", 0)])
        {'passed': 3}
    """
    return {name: n for name, n in stats if n and name and name not in {"warnings", "deselected"}}


# --- A run on its way to becoming a `SuiteRun` --------------------------------------------------------

_METADATA = (".dist-info", ".egg-info")


class RunRecord:
    """When a run began, which code it ran, where it is kept.

    Args:
        place: the run's project.
        reports: files that the run writes itself, which are no part of the code.
    """

    def __init__(self, place: ProjectRoot, reports: Iterable[Path] = ()) -> None:
        self._place = place
        self._ignored = frozenset(os.path.abspath(path) for path in reports)
        self._run = SuiteRun(id=secrets.token_hex(8))
        self._began = 0.0
        self._code: dict[str, str] = {}
        self._asking: threading.Thread | None = None

    def start(self, journal: Journal, *, has_workers: bool) -> None:
        """The run begins: git is asked beside it, for that takes as long as some tests.

        Args:
            journal: is begun, and told what code this is.
            has_workers: the tests run in other processes.
        """
        from loki.base.manual_clock import clock_of

        started = isoformat(clock_of(os.environ).now())
        self._began = time.perf_counter()
        self._run = replace(self._run, started_at=started, environment=_environment())
        journal.open(self.folder, self._run, has_workers=has_workers)
        self._asking = threading.Thread(target=self._ask, args=(journal,), name="loki", daemon=True)
        self._asking.start()

    def finish(
        self, tally: Tally, *, counts: Mapping[str, int], interrupted: bool, exit_code: int
    ) -> SuiteRun:
        """The run as it is kept.

        Args:
            tally: what became of its tests.
            counts: how many of them came out how.
            interrupted: not all of them ran.
            exit_code: pytest's.
        """
        if self._asking is not None:
            self._asking.join()
        return replace(
            self._run,
            **self._code,
            duration_ms=round(1000 * (time.perf_counter() - self._began)),
            passed=tally.passing(self._place.prefix),
            failures=tuple(tally.failures),
            reruns=tuple(tally.reruns),
            counts=counts,
            interrupted=interrupted,
            exit_code=exit_code,
        )

    def store(self, warn: Callable[[str], None]) -> ForgivingStore:
        """The project's store, which goes on where the disk does not."""
        from loki.stores.file_store import open_store

        return ForgivingStore(open_store(self.folder), warn)

    @property
    def folder(self) -> Path:
        """The project's ``.loki``."""
        return self._place.project / FOLDER

    def _ask(self, journal: Journal) -> None:
        from loki.action.changes.git import code_state

        found = code_state(os.fspath(self._place.project), self._ignored)
        self._code = {"branch": found.branch, "commit": found.commit, "tree": found.tree}
        journal.write("code", self._code)


def _environment() -> str:
    """Interpreter, platform and what is installed: a test may pass with one and fail with another."""
    version = ".".join(map(str, sys.version_info[:2]))
    return f"{platform.python_implementation()} {version} {sys.platform} {installed(sys.path)}"


def installed(folders: Iterable[str]) -> str:
    """A hash of which distributions are installed, by the names of their metadata.

    Two environments of tox may differ in nothing else. What they hold is not read: that takes long.

    Args:
        folders: where modules are looked for.

    Example:
        >>> installed(["/nowhere"]) == installed([])
        True
    """
    names: set[str] = set()
    for folder in folders:
        with suppress(OSError):
            names.update(one for one in os.listdir(folder or ".") if one.endswith(_METADATA))
    return hashlib.sha256("\n".join(sorted(names)).encode("utf-8", "replace")).hexdigest()[:8]


# --- Earlier runs whose process died without a word ---------------------------------------------------

UNKNOWN = -1
"""Exit code of a run whose process was ended by somebody else; pytest-timeout ends it with 1."""

NAMED, WIDTH = 3, 200
"""Tests of a run that a line names, and characters of each. Chosen."""


def keep_unfinished(
    folder: Path, history: SuiteHistory, recognizer: Callable[[], Recognizer]
) -> list[str]:
    """Keep the runs whose process is gone; what to say of each, one line.

    Args:
        folder: the project's ``.loki``.
        history: where they are kept.
        recognizer: gives that of this run, which takes long to load.
    """
    told = []
    for found in left_behind(folder):
        if any(known.id == found.run.id for known in history.past.runs):
            continue  # it was kept, and then there was no time to remove the journal
        run = ended_run(found, recognizer())
        history.keep(run)
        told.append(line_of(found, run))
    return told


def ended_run(found: UnfinishedRun, recognizer: Recognizer) -> SuiteRun:
    """The run as it is kept: what failed, and what was running when its process died.

    Args:
        found: what its journal tells.
        recognizer: makes failing tests of texts.
    """
    tally = Tally()
    for failing in (*found.run.failures, *_culprits(found, recognizer)):
        tally.failed(failing)
    words = {"failed": sum(one.outcome == "failed" for one in tally.failures)}
    words["error"] = len(tally.failures) - words["failed"]
    return replace(
        found.run,
        failures=tuple(tally.failures),
        reruns=tuple(tally.reruns),
        counts={word: n for word, n in words.items() if n},
        exit_code=1 if not found.has_workers and _timed_out(found) else UNKNOWN,
    )


def line_of(found: UnfinishedRun, run: SuiteRun) -> str:
    """What is said of a run whose process died.

    Args:
        found: what its journal tells.
        run: as it is kept.
    """
    tests = [ending(test, WIDTH) for test in found.running[:NAMED]]
    more = f" and {len(found.running) - NAMED} more" if len(found.running) > NAMED else ""
    when = day(found.run.started_at)
    if found.has_workers:
        during = f" while {', '.join(tests)}{more} ran" if tests else ""
        said = f"the run of {when} was killed{during}"
    elif _timed_out(found):
        said = f"the run of {when} was ended by pytest-timeout in {tests[0]}"
    elif tests:
        said = f"the run of {when} died without a word in {tests[0]} (a crash, or killed)"
    elif found.collecting:
        said = f"the run of {when} died without a word collecting {plain(found.collecting, WIDTH)}"
    else:
        said = f"the run of {when} died without a word while no test ran"
    others = len({one.test for one in run.failures} - {*found.running, found.collecting})
    after = f", after {amount(others, 'other failure')}" if others else ""
    return f"loki: {said}{after}"


def _timed_out(found: UnfinishedRun) -> bool:
    return any(test in found.timeouts for test in found.running)


def _culprits(found: UnfinishedRun, recognizer: Recognizer) -> list[SuiteFailure]:
    """The test that the process died in, where it ran in that process."""
    if found.has_workers:
        return []
    if found.collecting and not found.running:
        return [recognizer.crashed(found.collecting, "collect")]
    return [
        recognizer.timed_out(test, found.timeouts[test])
        if test in found.timeouts
        else recognizer.crashed(test, "crash")
        for test in found.running
    ]


# --- The plugin itself --------------------------------------------------------------------------------


class Controller:
    """Listens in the process that a person started; pytest calls its hooks.

    Args:
        config: pytest's.
        guard: what keeps errors from the run.
        place: the run's project.
        options: what the run was asked for.
    """

    def __init__(
        self, config: pytest.Config, guard: Guard, place: ProjectRoot, options: Options
    ) -> None:
        self._config = config
        self._guard = guard
        self._place = place
        self._options = options
        self._process = os.getpid()
        self._witness = XdistWorkerPlugin(guard, place)
        self._tally = Tally()
        self._record = RunRecord(place, options.reports)
        self._journal = Journal()
        self._trace = Trace(config, self._journal, place)
        self._junit: Junit | None = None
        self._died: list[str] = []
        config.pluginmanager.register(self._trace, "loki-trace")
        self._summary: SuiteSummary | None = None
        self._is_cut_short = False
        self._excused: tuple[Member, ...] = ()
        self._broken_files: set[str] = set()
        self._reported = 0  # failures, as pytest counts them

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """The clock runs, and git is asked what code this is; before workers are started."""
        self._guard(self._record.start, self._journal, has_workers=self._trace.has_workers)
        self._guard(self._hold_elements)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A phase of a test ended, here or on a worker; before anybody else sees the report."""
        if report.outcome == "passed":
            if report.when == "call":
                if not hasattr(report, "wasxfail"):
                    self._tally.passed(report.nodeid)
            elif report.when == "teardown":
                self._guard(self._witness.torn_down, report)
        elif report.outcome != "skipped":
            self._reported += report.failed
            self._guard(self._failed, report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file was collected, or could not be."""
        self._reported += report.failed
        if report.failed and report.nodeid not in self._broken_files:
            self._broken_files.add(report.nodeid)
            self._guard(lambda: self._count(self._witness.recognizer.failing(report)))

    def pytest_keyboard_interrupt(self) -> None:
        """Somebody stopped the run, or a test called ``pytest.exit``."""
        self._is_cut_short = True

    def pytest_internalerror(self) -> None:
        """Something in pytest or a plugin broke."""
        self._is_cut_short = True

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker of pytest-xdist ended: did loki go wrong in it?"""
        for line in getattr(node, "workeroutput", {}).get(OUTPUT, ()):
            if line not in self._guard.lines:
                self._guard.lines.append(line)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """All ran, or no more will: store it, and see what it comes to."""
        if os.getpid() == self._process:  # else a child that a test forked: the run is its parent's
            self._guard(self._finish, session)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show what there is to say."""
        if not self._config.getoption("no_summary", False):
            self._guard(self._show, terminalreporter)
        for line in self._guard.lines:
            terminalreporter.write_line(line, yellow=True)
        self._guard.lines.clear()

    def pytest_unconfigure(self) -> None:
        """Where pytest made no summary, what went wrong is said all the same."""
        for line in self._guard.lines:
            print(line, file=sys.stderr)  # noqa: T201 - there is no terminal reporter

    def _hold_elements(self) -> None:
        self._junit = junit_of(self._config)
        if self._junit is not None:
            self._config.pluginmanager.register(self._junit, "loki-junit")

    def _failed(self, report: pytest.TestReport) -> None:
        from loki.pytest_plugin.failure_recognition import CRASHED, unpacked

        test = self._place.test(report.nodeid)
        if has_failed(report):
            ended = self._journal.timed_out(test) if report.when == CRASHED else ""
            self._count(unpacked(report) or self._witness.recognized(report, ended))
        else:  # its sub-tests failed, and were told of before
            self._tally.rerun(test, int(getattr(report, "rerun", 0)) + 1)

    def _count(self, failing: SuiteFailure) -> None:
        self._tally.failed(failing)
        self._journal.failed(failing)
        if self._junit is not None:
            self._junit.failed(failing)

    def _finish(self, session: pytest.Session) -> None:
        run = self._record.finish(
            self._tally,
            counts=self._counts(session),
            interrupted=self._is_cut_short or bool(session.shouldfail or session.shouldstop),
            exit_code=int(session.exitstatus),
        )
        history = SuiteHistory(self._record.store(self._guard.warn))
        self._died = keep_unfinished(self._record.folder, history, lambda: self._witness.recognizer)
        if run.failures or run.reruns or self._options.reports:
            self._summarize(session, run, history)
        history.keep(run)
        self._journal.remove()

    def _summarize(self, session: pytest.Session, run: SuiteRun, history: SuiteHistory) -> None:
        """What the run comes to, given what was before it; a green one needs nothing of this."""
        from loki.action.changes.git import files_since

        project = os.fspath(self._place.project)
        known = summarize(run, history, self._assertions(run, history))
        self._summary = with_changes(known, history, lambda commit: files_since(project, commit))
        publish(self._summary, self._options.reports, self._guard.warn)
        if self._junit is not None:
            self._junit.complete(self._summary)
        self._judge(session, self._summary)

    def _assertions(self, run: SuiteRun, history: SuiteHistory) -> Assertions:
        """What failing tests assert on, by their source; without it the run is summed up all the same."""
        from loki.pytest_plugin.source.assertion_reader import assertions_of

        if not run.failures:
            return NO_ASSERTIONS
        try:
            return assertions_of(run.failures, run.passed, history.past.rows, self._place.project)
        except Exception as error:  # a summary without it is better than none
            self._guard.warn(f"what tests assert on could not be read: {error!r}")
            return NO_ASSERTIONS

    def _judge(self, session: pytest.Session, summary: SuiteSummary) -> None:
        """The exit code changes only where somebody asked, and for failures that loki has seen."""
        options = self._options
        if not (options.fail_on or options.quarantine):
            return
        if session.testsfailed > self._reported or summary.run.interrupted:
            return  # another plugin failed the run, for coverage perhaps, or not all tests ran
        asked: dict[str, Any] = {"fail_on": options.fail_on, "quarantine": options.quarantine}
        self._excused = excused(summary, **asked)
        code = int(session.exitstatus)
        decided = exit_code(summary, code, **asked)
        if decided != code:
            session.exitstatus = decided

    def _show(self, terminalreporter: pytest.TerminalReporter) -> None:
        from loki.pytest_plugin.terminal import show

        if self._summary is not None:
            show(self._summary, terminalreporter, excused=self._excused)
        for line in self._died:
            terminalreporter.write_line(line, yellow=True)

    def _counts(self, session: pytest.Session) -> dict[str, int]:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None:
            return {"collected": session.testscollected, "failed": session.testsfailed}
        return counts((name, len(reports)) for name, reports in reporter.stats.items())

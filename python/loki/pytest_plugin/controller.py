"""The side of the process that a person started: it collects, stores and shows."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from loki.pytest_plugin.junit_properties import junit_of
from loki.pytest_plugin.results_tally import Tally
from loki.pytest_plugin.run_journal import Journal
from loki.pytest_plugin.run_record import RunRecord
from loki.pytest_plugin.run_trace import Trace
from loki.pytest_plugin.xdist_worker import OUTPUT, XdistWorkerPlugin, has_failed

if TYPE_CHECKING:
    from loki.decision.suites.suite_summary import Member, SuiteSummary
    from loki.memory.suites.suite_history import SuiteHistory
    from loki.memory.suites.suite_run import SuiteFailure, SuiteRun
    from loki.pytest_plugin.error_guard import Guard
    from loki.pytest_plugin.junit_properties import Junit
    from loki.pytest_plugin.options import Options
    from loki.pytest_plugin.project_root import ProjectRoot
    from loki.recognition.shared_callees import Assertions


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
            elif self._witness.has_said and report.when == "teardown":
                self._guard(self._witness.torn_down, report)
        elif report.outcome != "skipped":
            self._reported += report.failed
            self._guard(self._failed, report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file was collected, or could not be."""
        self._reported += report.failed
        if report.failed and report.nodeid not in self._broken_files:
            self._broken_files.add(report.nodeid)
            self._guard(lambda: self._count(self._witness.collected(report)))

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
        from loki.pytest_plugin.failure_recognition import unpacked
        from loki.pytest_plugin.report_text import CRASHED

        if has_failed(report):
            test = self._place.test(report.nodeid)
            ended = self._journal.timed_out(test) if report.when == CRASHED else ""
            self._count(unpacked(report) or self._witness.recognized(report, ended))
        else:  # its sub-tests failed, and were told of before
            test = self._place.test(report.nodeid)
            self._tally.rerun(test, int(getattr(report, "rerun", 0)) + 1)

    def _count(self, failing: SuiteFailure) -> None:
        self._tally.failed(failing)
        self._journal.failed(failing)
        if self._junit is not None:
            self._junit.failed(failing)

    def _finish(self, session: pytest.Session) -> None:
        from loki.memory.suites.suite_history import SuiteHistory
        from loki.pytest_plugin.crashed_runs import keep_unfinished

        tally = self._tally
        run = self._record.finish(
            tally,
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
        from loki.action.changes.changed_files import files_since
        from loki.decision.suites.suite_changes import with_changes
        from loki.decision.suites.suite_summary import summarize

        project = os.fspath(self._place.project)
        known = summarize(run, history, self._assertions(run, history))
        self._summary = with_changes(known, history, lambda commit: files_since(project, commit))
        self._tell(self._summary)
        self._judge(session, self._summary)

    def _assertions(self, run: SuiteRun, history: SuiteHistory) -> Assertions:
        """What failing tests assert on, by their source; without it the run is summed up all the same."""
        from loki.pytest_plugin.source.assertion_reader import assertions_of
        from loki.recognition.shared_callees import NO_ASSERTIONS

        if not run.failures:
            return NO_ASSERTIONS
        try:
            return assertions_of(run.failures, run.passed, history.past.rows, self._place.project)
        except Exception as error:  # a summary without it is better than none
            self._guard.warn(f"what tests assert on could not be read: {error!r}")
            return NO_ASSERTIONS

    def _judge(self, session: pytest.Session, summary: SuiteSummary) -> None:
        """The exit code changes only where somebody asked, and for failures that loki has seen."""
        from loki.decision.suites.suite_exit_code import excused, exit_code

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

    def _tell(self, summary: SuiteSummary) -> None:
        """Write the reports, and what GitHub shows."""
        from loki.pytest_plugin import report_publishing

        report_publishing.write_reports(summary, self._options.reports, self._guard.warn)
        report_publishing.tell_github(summary, os.environ, self._guard.warn)
        if self._junit is not None:
            self._junit.complete(summary)

    def _show(self, terminalreporter: pytest.TerminalReporter) -> None:
        from loki.pytest_plugin.terminal import show

        if self._summary is not None:
            show(self._summary, terminalreporter, excused=self._excused)
        for line in self._died:
            terminalreporter.write_line(line, yellow=True)

    def _counts(self, session: pytest.Session) -> dict[str, int]:
        from loki.pytest_plugin.results_tally import counts

        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None:
            return {"collected": session.testscollected, "failed": session.testsfailed}
        return counts((name, len(reports)) for name, reports in reporter.stats.items())

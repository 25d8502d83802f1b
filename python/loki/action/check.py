"""Checks: the commands whose exit codes decide whether a task is done."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from xml.etree import ElementTree

from loki.action import process
from loki.action.words import split, unrunnable
from loki.base.error import UsageError
from loki.base.time import Duration, argument_seconds
from loki.memory.attempt import CheckRecord, shorten
from loki.recognition.failure import Failure, recognize
from loki.recognition.pattern import PatternSet
from loki.recognition.site import ResultsRequest, check_kind, results_requests

KINDS = ("lint", "type", "test", "build", "syntax", "command")
DEFAULT_TIMEOUT = 600.0
"""Seconds that a check may take; chosen, not measured."""

MAX_RESULTS_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Check:
    """A command that passes when it exits with 0.

    Attributes:
        command: the words of the command; no shell reads them.
        kind: lint, type, test, build, syntax or command.
        name: what to call it; the command where nothing is said.
        timeout: seconds.
        pattern: id of the pattern that its failures have; "" to find out from the output.
    """

    command: tuple[str, ...]
    kind: str = "command"
    name: str = ""
    timeout: float = DEFAULT_TIMEOUT
    pattern: str = ""

    @classmethod
    def of(cls, text: str, timeout: Duration = DEFAULT_TIMEOUT) -> Check:
        """A check from one line, with its kind before a colon where it is not plain.

        Args:
            text: ``pytest -q``, or ``lint: make check-style``.
            timeout: how long it may take.

        Raises:
            UsageError: no command, one that only a shell could run, or no duration.

        Example:
            >>> Check.of("lint: make style").kind
            'lint'
        """
        limit = argument_seconds("timeout", timeout)
        kind, colon, rest = text.partition(":")
        if colon and kind.strip() in KINDS:
            command = split(rest)
            return cls(command, kind.strip(), " ".join(rest.split()), limit)
        command = split(text)
        return cls(command, check_kind(command) or "command", " ".join(text.split()), limit)

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        if not self.command:
            raise UsageError("a check needs a command, like 'pytest -q'")
        if self.kind not in KINDS:
            raise UsageError(f"kind of check is {self.kind!r}: expected one of {', '.join(KINDS)}")


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check did.

    Attributes:
        check: the check.
        passed: it ran and exited with 0.
        exit_code: None where a signal or its time-out ended it.
        seconds: how long it took.
        output: everything that it printed.
        failure: what failed, or None where it passed.
        tests: outcome by test, where the tool reports them: passed, failed or skipped.
    """

    check: Check
    passed: bool
    exit_code: int | None
    seconds: float
    output: str = ""
    failure: Failure | None = None
    tests: Mapping[str, str] | None = None

    def record(self) -> CheckRecord:
        """What is kept of it in the attempt's record."""
        return CheckRecord(
            self.check.name,
            self.check.kind,
            " ".join(self.check.command),
            self.passed,
            self.exit_code,
            round(self.seconds * 1000),
            shorten(self.output),
        )


@dataclass(frozen=True, slots=True)
class Report:
    """What all checks did, in their order."""

    results: tuple[CheckResult, ...] = ()

    @property
    def first_failure(self) -> CheckResult | None:
        """The first check that failed: the one that is analyzed."""
        return next((result for result in self.results if not result.passed), None)

    @property
    def failing_tests(self) -> frozenset[tuple[str, str]]:
        """(check, test) of every test that was seen failing."""
        return frozenset(
            (result.check.name, test)
            for result in self.results
            for test, outcome in (result.tests or {}).items()
            if outcome == "failed"
        )


def lost_tests(seen_failing: frozenset[tuple[str, str]], report: Report) -> dict[str, str]:
    """Tests that were seen failing and now neither pass nor fail: gone, or skipped.

    A test that is deleted, skipped or expected to fail is not fixed. A whole file that could not be
    loaded counts as found again once any of its tests passes.

    Returns:
        ``gone`` or ``skipped`` by test.
    """
    lost = {}
    for result in report.results:
        tests = result.tests or {}
        for name, test in seen_failing:
            if name != result.check.name or tests.get(test) in {"passed", "failed"}:
                continue
            inside = [outcome for id_, outcome in tests.items() if id_.startswith(test + ".")]
            if test in tests or (inside and "passed" not in inside):
                lost[test] = "skipped"
            elif not inside:
                lost[test] = "gone"
    return dict(sorted(lost.items()))


def lost_failure(lost: Mapping[str, str]) -> Failure:
    """The failure that lost tests amount to; ``lost`` is what `lost_tests` found, not empty."""
    (test, how), *_ = lost.items()
    is_now = "gone" if how == "gone" else "skipped or expected to fail"
    message = f"{test} was failing and is now {is_now}: a test that must pass may not be removed"
    listing = "\n".join(f"{name}: {what}" for name, what in lost.items())
    return Failure.of(
        message, tool="loki", error_code=f"test-{how}", tests=tuple(lost), excerpt=listing
    )


@dataclass
class CheckRunner:
    """Runs checks in a project.

    Args:
        root: the project's folder.
        patterns: to name failures with.
        cancelled: ends a running check when set.
    """

    root: Path
    patterns: PatternSet
    cancelled: threading.Event = field(default_factory=threading.Event)

    def run(
        self, checks: Sequence[Check], done: Callable[[CheckResult], None] | None = None
    ) -> Report:
        """All checks, one after the other, whether or not those before passed.

        Args:
            checks: what to run.
            done: told of each result as it comes.
        """
        results = []
        for check in checks:
            if self.cancelled.is_set():
                break
            results.append(self.run_one(check))
            if done is not None:
                done(results[-1])
        return Report(tuple(results))

    def run_one(self, check: Check) -> CheckResult:
        """One check and, where it fails, what failed."""
        with tempfile.TemporaryDirectory(prefix="loki-results-") as folder:
            requests = _requests(check, Path(folder))
            try:
                finished = process.run(
                    check.command,
                    cwd=self.root,
                    timeout=check.timeout,
                    environment=_environment(requests),
                    cancelled=self.cancelled,
                    merge=True,
                )
            except UsageError as error:
                return self._not_run(check, error)
            tests = _read_results([file for _, file in requests])
        output = finished.output.decode("utf-8", "replace")
        passed = finished.is_success
        result = CheckResult(
            check, passed, finished.exit_code, finished.duration, output, None, tests
        )
        if passed:
            return result
        if finished.timed_out:
            return replace(result, failure=self._timed_out(check, output))
        return replace(result, failure=self._failed(check, finished.output, finished.exit_code))

    def _not_run(self, check: Check, error: UsageError) -> CheckResult:
        """A program of the project that does not exist yet, or not any more."""
        failure = Failure.of(str(error), tool=check.command[0], error_code="command-not-found")
        return CheckResult(check, False, None, 0.0, str(error), failure)

    def _failed(self, check: Check, output: bytes, exit_code: int | None) -> Failure:
        failure = recognize(
            output,
            command=" ".join(check.command),
            exit_code=exit_code,
            root=str(self.root),
            patterns=self.patterns,
        )
        if not failure.message:
            message = f"{check.name} ended with exit code {exit_code} and printed nothing"
            return Failure.of(message, tool=check.command[0], error_code=str(exit_code))
        if check.pattern in self.patterns.patterns:
            match = self.patterns.named(check.pattern)
            return replace(failure, match=match, matches=(match,))
        return failure

    def _timed_out(self, check: Check, output: str) -> Failure:
        return Failure.of(
            f"{check.name} was stopped: it took longer than {check.timeout:g} s",
            tool=check.command[0],
            pattern=check.pattern or "timeout-error",
            patterns=self.patterns,
            excerpt="\n".join(output.splitlines()[-20:]),
        )


def missing_programs(checks: Sequence[Check], root: Path) -> list[str]:
    """A sentence for each check whose program does not exist, and that no work here can create."""
    found = (unrunnable(check.command, root) for check in checks)
    return [problem for problem in found if problem]


def _requests(check: Check, folder: Path) -> list[tuple[ResultsRequest, Path]]:
    if check.kind not in {"test", "build", "command"}:
        return []
    return [
        (request, folder / f"{request.tool}.xml")
        for request in results_requests()
        if request.format == "junit"
    ]


def _environment(requests: Sequence[tuple[ResultsRequest, Path]]) -> dict[str, str]:
    environment: dict[str, str] = {}
    for request, file in requests:
        argument = request.argument.format(file=file)
        before = environment.get(request.environment) or os.environ.get(request.environment, "")
        environment[request.environment] = f"{before} {argument}".strip()
    return environment


def _read_results(files: Sequence[Path]) -> dict[str, str] | None:
    for file in files:
        if file.is_file() and file.stat().st_size <= MAX_RESULTS_BYTES:
            try:
                return read_junit(file.read_bytes())
            except ElementTree.ParseError:
                continue  # cut short by a crash of the tool: no results is the truth
    return None


def read_junit(xml: bytes) -> dict[str, str]:
    """Outcome by test from a JUnit report: passed, failed or skipped.

    Ids are ``classname.name``; a test that ran several times counts as failed if it failed once.

    Raises:
        xml.etree.ElementTree.ParseError: not well-formed.

    Example:
        >>> read_junit(b'<testsuite><testcase classname="a.b" name="c"><skipped/></testcase></testsuite>')
        {'a.b.c': 'skipped'}
    """
    outcomes: dict[str, str] = {}
    for case in ElementTree.fromstring(xml).iter("testcase"):  # noqa: S314 - expat limits expansion
        classname, name = case.get("classname") or "", case.get("name") or ""
        test = f"{classname}.{name}" if classname else name
        children = {child.tag for child in case}
        if children & {"failure", "error"}:
            outcomes[test] = "failed"
        elif "skipped" in children:
            outcomes.setdefault(test, "skipped")
        elif outcomes.get(test) != "failed":
            outcomes[test] = "passed"
    return outcomes

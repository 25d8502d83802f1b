"""Checks: the criteria that decide whether a task is done, and what they said."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType

from loki.action.checks.results.suite_results import FAILED
from loki.action.processes.command_line import split_command_line, why_not_runnable
from loki.base.error import UsageError
from loki.base.time import Duration, argument_seconds
from loki.memory.attempt import CheckRecord, shorten
from loki.recognition import builtin
from loki.recognition.failure import Failure, is_test_path
from loki.recognition.site import Scripts, results_requests, script_runners

KINDS = ("lint", "type", "test", "build", "syntax", "command", "custom", "approval")

RUN_TESTS = frozenset({"test", "build", "command", "custom"})
"""Kinds of check that may run tests."""

DEFAULT_TIMEOUT = 600.0
"""Seconds that a check may take; chosen, not measured."""

REVIEW = "review"
"""Before the colon: a criterion that a reviewer judges. It is of kind custom."""

EVIDENCE = "feature_evidence"
"""Name of the criterion of a feature that something shows it to be there; else somebody judges."""

PARSES = "parses"
"""As ``syntax: parses``, a criterion that needs no command: loki parses what the task has changed."""

EXPECTS = " => "
"""Between a command of kind custom and what it has to print."""


@dataclass(frozen=True, slots=True)
class Check:
    """One criterion: a command that passes when it exits with 0, or what somebody has to judge.

    Attributes:
        command: the words of the command; no shell reads them. Empty where somebody judges, and of
            kind syntax where loki itself parses what was changed.
        kind: lint, type, test, build, syntax, command, custom or approval.
        name: what to call it; the command or the description where nothing is said.
        timeout: seconds.
        pattern: id of the pattern that its failures have; "" to find out from the output.
        expected: text or a regex that the output of a custom command has to hold; its exit code
            counts for nothing then. "" to go by the exit code.
        description: what is to be judged, where there is no command: by a reviewer, or of kind
            approval by a person.
    """

    command: tuple[str, ...] = ()
    kind: str = "command"
    name: str = ""
    timeout: float = DEFAULT_TIMEOUT
    pattern: str = ""
    expected: str = ""
    description: str = ""

    @classmethod
    def of(cls, text: str, timeout: Duration = DEFAULT_TIMEOUT) -> Check:
        """A check from one line, with its kind before a colon where it is not plain.

        Args:
            text: ``pytest -q``, ``lint: make check-style``, ``custom: ./app --version => 2.1``,
                ``syntax: parses``,
                ``review: the code is simpler than before``, ``approval: the text reads well``.
            timeout: how long it may take.

        Raises:
            UsageError: no command, one that only a shell could run, or no duration.

        Example:
            >>> Check.of("lint: make style").kind
            'lint'
            >>> Check.of("approval: the text reads well").name
            'the text reads well'
        """
        limit = argument_seconds("timeout", timeout)
        before, colon, behind = text.partition(":")
        kind, rest = (before.strip(), behind) if colon else ("", text)
        plain = " ".join(rest.split())
        if kind in {"approval", REVIEW}:
            judged = "custom" if kind == REVIEW else kind
            return cls((), judged, plain, limit, description=plain)
        if kind == "syntax" and plain == PARSES:
            return cls((), kind, PARSES, limit)
        if kind not in KINDS:
            command = split_command_line(text)
            guess = check_kind(command) or "command"
            return cls(command, guess, " ".join(text.split()), limit)
        expected = ""
        if kind == "custom":
            rest, _, expected = rest.partition(EXPECTS)
        return cls(split_command_line(rest), kind, plain, limit, expected=expected.strip())

    def __post_init__(self) -> None:
        """Refuse what can neither be run nor judged."""
        if self.kind not in KINDS:
            raise UsageError(f"kind of check is {self.kind!r}: expected one of {', '.join(KINDS)}")
        judged = self.kind in {"custom", "approval"} and self.description.strip()
        if not self.command and not judged and not self.is_parsed:
            raise UsageError("a check needs a command, like 'pytest -q', or what is to be judged")
        if self.command and self.kind == "approval":
            raise UsageError("a person approves: a check of kind approval has no command")

    @property
    def is_judged(self) -> bool:
        """Whether somebody judges it; else a command decides."""
        return not self.command and not self.is_parsed

    @property
    def is_parsed(self) -> bool:
        """Whether loki parses what was changed; no command is run."""
        return self.kind == "syntax" and not self.command

    @property
    def shown(self) -> str:
        """It, in a line that `of` reads."""
        if self.is_parsed:
            return f"{self.kind}: {PARSES}"
        if self.is_judged:
            return f"{REVIEW if self.kind == 'custom' else self.kind}: {self.description}"
        return f"{self.kind}: {self.name}" if check_kind(self.command) != self.kind else self.name


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check said.

    Attributes:
        check: the check.
        passed: it ran and exited with 0, or was approved.
        exit_code: None where a signal or its time-out ended it, or nothing ran.
        seconds: how long it took.
        output: everything that it printed, or what a reviewer or a person said.
        failure: what failed, or None where it passed, or nobody has judged it yet.
        tests: outcome by test, where the tool reports them: passed, failed or skipped.
        files: by test, the file or folder that it stands in, where the tool reports it.
    """

    check: Check
    passed: bool
    exit_code: int | None
    seconds: float
    output: str = ""
    failure: Failure | None = None
    tests: Mapping[str, str] | None = None
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_pending(self) -> bool:
        """Nobody has judged it yet."""
        return self.check.is_judged and not self.passed and self.failure is None

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
    """What all checks said, in their order."""

    results: tuple[CheckResult, ...] = ()

    @property
    def first_failure(self) -> CheckResult | None:
        """The first check that failed: the one that is analyzed."""
        failed = (r for r in self.results if not r.passed and not r.is_pending)
        return next(failed, None)

    @property
    def pending(self) -> tuple[Check, ...]:
        """Criteria that nobody has judged yet."""
        return tuple(result.check for result in self.results if result.is_pending)

    @property
    def failing_tests(self) -> frozenset[tuple[str, str]]:
        """(check, test) of every test that failed in a check that failed."""
        return frozenset(
            (result.check.name, test)
            for result in self.results
            if not result.passed
            for test, outcome in (result.tests or {}).items()
            if outcome == FAILED
        )

    @property
    def failing_files(self) -> frozenset[str]:
        """Files of tests that checks which run tests failed in."""
        return frozenset(
            result.failure.path
            for result in self.results
            if result.check.kind in RUN_TESTS
            and result.failure is not None
            and result.failure.path is not None
            and is_test_path(result.failure.path)
        )


def missing_programs(checks: Sequence[Check], root: Path) -> list[str]:
    """A sentence for each check whose program does not exist, and that no work here can create."""
    found = (why_not_runnable(check.command, root) for check in checks if check.command)
    return [problem for problem in found if problem]


# --- What a command is, by the tool that it starts ----------------------------------------------------


def check_kind(command: Sequence[str]) -> str | None:
    """What kind of check a command is, by the tool that it starts; None where no tool knows it.

    Args:
        command: its words. Of several tools the one whose name is longest in words has its way.

    Example:
        >>> check_kind(["python", "-m", "pytest", "-q"])
        'test'
        >>> check_kind(["npm", "run", "lint:styles"])
        'lint'
    """
    words, kinds = plain_words(command), _kinds()
    found = (kinds[words[:n]] for n in range(len(words), 0, -1) if words[:n] in kinds)
    return next(found, None) or _script_kind(words)


def plain_words(command: Sequence[str]) -> tuple[str, ...]:
    """A command by the name of its program, wherever it lies and whatever its minor version.

    Paths that begin with a dot stay: those are the project's own.

    Example:
        >>> plain_words(["/srv/.venv/bin/python3.11", "-m", "pytest"]), plain_words(["./mvnw"])
        (('python3', '-m', 'pytest'), ('./mvnw',))
    """
    words = tuple(command)
    if not words or words[0].startswith("."):
        return words
    return (re.sub(r"(\d)(?:\.\d+)+$", r"\1", words[0].rpartition("/")[2]), *words[1:])


@cache
def _kinds() -> Mapping[tuple[str, ...], str]:
    """Leading words of a command to the kind of check that it is."""
    # Of a tool that does more than test, those are tests that it tells the results of.
    tests = {lead: "test" for request in results_requests() for lead in request.when}
    named = {
        tuple(known.split()): tool["check"]
        for tool in builtin.tools()
        if "check" in tool
        for known in tool.get("commands", ())
    }
    return MappingProxyType({**tests, **named})


def _script_kind(words: tuple[str, ...]) -> str | None:
    """The kind of a script that is called like one."""
    for runner in script_runners():
        name = script_name(words, runner).partition(":")[0]
        if name in {"lint", "type", "test", "build"}:
            return name
    return None


def script_name(words: Sequence[str], runner: Scripts) -> str:
    """Name of the script that a command runs; "" where it runs none.

    Args:
        words: the command's.
        runner: the tool that might run it.

    Example:
        >>> [script_name(("npm", "run", "-s", "lint"), runner) for runner in script_runners()][0:2]
        ['', 'lint']
    """
    command = tuple(words)
    for lead, name in runner.names.items():
        if command[: len(lead)] == lead:
            return name
    for lead in sorted(runner.run, key=len, reverse=True):
        if command[: len(lead)] == lead:
            rest = [word for word in command[len(lead) :] if word not in runner.flags]
            return rest[0] if rest else ""
    return ""

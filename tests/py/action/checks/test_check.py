"""Checks: real commands, their failures, and tests that vanish."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from loki.action.checks.check import Check, CheckResult, Report, check_kind, missing_programs
from loki.action.checks.check_runner import CheckRunner
from loki.action.checks.regression import missing_tests, missing_tests_failure
from loki.base.error import UsageError
from loki.recognition.failure import Failure
from loki.recognition.pattern import PatternSet
from support.loop import CHECK


def python(code: str, kind: str = "command", timeout: float = 60.0) -> Check:
    return Check((sys.executable, "-c", code), kind, "python", timeout)


def test_a_command_is_of_the_kind_that_its_tool_says() -> None:
    assert check_kind(["go", "test", "./..."]) == check_kind(["npm", "test"]) == "test"
    assert check_kind(["go", "build"]) is None


@pytest.mark.parametrize(
    ("text", "kind", "command"),
    [
        ("pytest -q", "test", ("pytest", "-q")),
        ("/usr/bin/python3.11 -m pytest", "test", ("/usr/bin/python3.11", "-m", "pytest")),
        ("python -m pytest tests", "test", ("python", "-m", "pytest", "tests")),
        ("ruff check .", "lint", ("ruff", "check", ".")),
        ("mypy till", "type", ("mypy", "till")),
        ("lint: make style", "lint", ("make", "style")),
        ("build:make", "build", ("make",)),
        ("./run 'a b'", "command", ("./run", "a b")),
    ],
)
def test_a_check_is_read_from_one_line(text: str, kind: str, command: tuple[str, ...]) -> None:
    check = Check.of(text)
    assert (check.kind, check.command) == (kind, command)


@pytest.mark.parametrize(
    "text", ["", "lint:", "pytest && ruff", "pytest 'open", "pytest | tee log"]
)
def test_what_is_no_command_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        Check.of(text)


def test_a_cancelled_run_stops(project: Path) -> None:
    cancelled = threading.Event()
    cancelled.set()
    assert CheckRunner(project, PatternSet.default(), cancelled).run([python("pass")]) == Report()


def test_missing_programs_are_named_in_a_sentence(project: Path) -> None:
    checks = [
        Check.of("pytest-of-nowhere -q"),
        Check.of("./not-there-yet"),
        Check((sys.executable,)),
    ]
    (problem,) = missing_programs(checks, project)
    assert "pytest-of-nowhere" in problem


@pytest.mark.parametrize(
    ("seen", "now", "lost"),
    [
        ({"a.t"}, {"a.t": "passed"}, {}),
        ({"a.t"}, {"a.t": "failed"}, {"a.t": "failing"}),
        ({"a"}, {"a": "failed"}, {"a": "failing"}),
        ({"a.u"}, {"a.t": "failed", "a.u": "passed"}, {}),
        ({"a.t"}, {"a.t": "skipped"}, {"a.t": "skipped"}),
        ({"a.t"}, {"a.u": "passed"}, {"a.t": "gone"}),
        ({"a.t"}, None, {"a.t": "gone"}),
        ({"a"}, {"a.t": "passed", "a.u": "skipped"}, {}),
        ({"a"}, {"a.t": "skipped"}, {"a": "skipped"}),
        ({"a"}, {"ab.t": "passed"}, {"a": "gone"}),
        (set(), None, {}),
    ],
)
def test_lost_tests(seen: set[str], now: dict[str, str] | None, lost: dict[str, str]) -> None:
    """A file that could not be loaded is found again by any of its tests that passes."""
    report = Report((CheckResult(CHECK, True, 0, 0.1, tests=now),))
    assert missing_tests(frozenset((CHECK.name, test) for test in seen), report) == lost


def test_a_file_of_tests_that_is_gone_is_lost() -> None:
    report = Report((CheckResult(CHECK, True, 0, 0.1),))
    assert missing_tests(frozenset(), report, frozenset({"tests/tax.rs"})) == {
        "tests/tax.rs": "gone"
    }


@pytest.mark.parametrize(
    ("kind", "path", "files"),
    [
        ("test", "tests/tax.rs", {"tests/tax.rs"}),
        ("command", "money/tax_test.go", {"money/tax_test.go"}),
        ("test", "src/tax.rs", set()),
        ("lint", "tests/tax.rs", set()),
        ("test", None, set()),
    ],
)
def test_files_of_tests_that_fail(kind: str, path: str | None, files: set[str]) -> None:
    failure = Failure.of("cannot find function `tax`", path=path)
    result = CheckResult(replace(CHECK, kind=kind), False, 101, 0.1, failure=failure)
    assert Report((result,)).failing_files == files


def test_what_fails_openly_is_not_lost() -> None:
    """Where the check says so itself, or where its exit code counts for nothing."""
    seen, now = frozenset({(CHECK.name, "a.t")}), {"a.t": "failed"}
    failed = CheckResult(CHECK, False, 1, 0.1, tests=now)
    assert missing_tests(seen, Report((failed,))) == {}
    other = replace(CHECK, kind="custom", expected="1 failed")
    assert missing_tests(seen, Report((CheckResult(other, True, 1, 0.1, tests=now),))) == {}


def test_a_test_that_a_check_tolerates_was_not_seen_failing() -> None:
    tolerated = CheckResult(CHECK, True, 0, 0.1, tests={"a.t": "failed"})
    assert not Report((tolerated,)).failing_tests


@pytest.mark.parametrize("how", ["gone", "skipped", "failing"])
def test_a_lost_test_is_no_outage_whatever_its_name(how: str) -> None:
    failure = missing_tests_failure({"api.test.ts > connect ECONNREFUSED 127.0.0.1:80": how})
    assert failure.match is not None
    assert failure.match.pattern == "test-failure"


# --- criteria that somebody judges, and what a command has to print ----------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "pytest -q",
        "lint: make style",
        "custom: ./app --version => 2.1",
        "review: the code is simpler",
        "approval: the text reads well",
    ],
)
def test_a_check_can_be_shown(text: str) -> None:
    check = Check.of(text)
    assert Check.of(check.shown) == check


def test_who_judges() -> None:
    review, approval = Check.of("review: it is simpler"), Check.of("approval: it reads well")
    assert (review.kind, review.is_judged, review.description) == ("custom", True, "it is simpler")
    assert (approval.kind, approval.is_judged, approval.name) == (
        "approval",
        True,
        "it reads well",
    )
    with pytest.raises(UsageError, match="a person approves"):
        Check(("true",), "approval", description="x")
    with pytest.raises(UsageError, match="what is to be judged"):
        Check.of("approval:")

"""Checks: real commands, their failures, and tests that vanish: with processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from loki.action.checks.check import Check, CheckResult, missing_programs
from loki.action.checks.check_runner import CheckRunner
from loki.recognition.pattern import PatternSet


@pytest.fixture
def runner(project: Path) -> CheckRunner:
    return CheckRunner(project, PatternSet.default())


def python(code: str, kind: str = "command", timeout: float = 60.0) -> Check:
    return Check((sys.executable, "-c", code), kind, "python", timeout)


def test_a_passing_check_has_no_failure(runner: CheckRunner) -> None:
    result = runner.run_one(python("print('fine')"))
    assert result.passed
    assert result.failure is None
    assert result.output == "fine\n"


def test_a_failing_check_is_recognized(runner: CheckRunner) -> None:
    result = runner.run_one(python("import nowhere_at_all"))
    assert not result.passed
    assert result.failure is not None
    assert result.failure.error_type == "ModuleNotFoundError"
    assert "nowhere_at_all" in result.failure.message


def test_a_silent_failure_says_how_it_ended(runner: CheckRunner) -> None:
    result = runner.run_one(python("raise SystemExit(7)"))
    assert result.failure is not None
    assert "exit code 7" in result.failure.message


def test_a_check_over_its_time_is_an_ordinary_failure(runner: CheckRunner) -> None:
    code = "import threading; print('begun', flush=True); threading.Event().wait()"
    result = runner.run_one(python(code, timeout=1.0))
    assert not result.passed
    assert result.failure is not None
    assert result.failure.match is not None
    assert result.failure.match.kind == "timeout-error"
    assert "longer than 1 s" in result.failure.message


def test_a_check_may_name_its_pattern(runner: CheckRunner) -> None:
    check = Check(
        (sys.executable, "-c", "import sys; sys.exit('the gate is shut')"), pattern="build-error"
    )
    failure = runner.run_one(check).failure
    assert failure is not None
    assert failure.match is not None
    assert (failure.match.pattern, failure.match.confidence) == ("build-error", 1.0)


def test_a_program_of_the_project_that_is_not_there_yet_is_a_failure(runner: CheckRunner) -> None:
    result = runner.run_one(Check(("./run-tests",)))
    assert result.failure is not None
    assert "run-tests" in result.failure.message


def test_all_checks_run_and_the_first_failure_counts(runner: CheckRunner) -> None:
    done: list[bool] = []
    checks = [python("pass"), python("raise SystemExit(1)"), python("raise SystemExit(2)")]
    report = runner.run(checks, lambda result: done.append(result.passed))
    assert done == [True, False, False]
    assert report.first_failure is report.results[1]


def test_pytest_reports_its_tests(runner: CheckRunner, project: Path) -> None:
    (project / "test_a.py").write_text(
        "import pytest\n"
        "def test_good(): pass\n"
        "def test_bad(): assert 1 == 2\n"
        "@pytest.mark.skip\ndef test_later(): pass\n"
        "@pytest.mark.xfail\ndef test_known(): assert 0\n"
    )
    result = runner.run_one(
        Check((sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"), "test")
    )
    assert result.tests == {
        "test_a.test_good": "passed",
        "test_a.test_bad": "failed",
        "test_a.test_later": "skipped",
        "test_a.test_known": "skipped",
    }
    assert result.failure is not None
    assert result.failure.tests == ("test_a.py::test_bad",)


@pytest.mark.parametrize(
    ("code", "expected", "passes"),
    [
        ("print('version 2.1')", "version 2.1", True),
        ("print('version 2.1')", r"^version \d+\.\d+$", True),
        ("print('version 2.1'); raise SystemExit(3)", "version 2.1", True),
        ("print('version 1.9')", "version 2", False),
        ("print('a(b')", "a(b", True),
        ("print('ab')", "a(b", False),
    ],
)
def test_what_a_custom_check_has_to_print(
    runner: CheckRunner, code: str, expected: str, passes: bool
) -> None:
    check = Check((sys.executable, "-c", code), "custom", "the version", expected=expected)
    result = runner.run_one(check)
    assert result.passed is passes
    if not passes:
        assert result.failure is not None
        assert expected in result.failure.message


def test_what_is_judged_is_not_run(runner: CheckRunner) -> None:
    checks = [Check.of("approval: fine"), python("pass")]
    assert [result.check for result in runner.run(checks).results] == [checks[1]]
    assert missing_programs(checks, runner.root) == []


# --- side by side ------------------------------------------------------------------------------------


def test_checks_that_only_read_run_beside_others(project: Path) -> None:
    """Each waits for the other: one writes a pipe that the other reads."""
    os.mkfifo(project / "pipe")
    writes = Check((sys.executable, "-c", "open('pipe', 'w').close()"), "lint", "writes", 60.0)
    reads = Check((sys.executable, "-c", "open('pipe').close()"), "test", "reads", 60.0)
    runner = CheckRunner(project, PatternSet.default(), parallelism=2)
    report = runner.run([reads, writes])
    assert [(r.check.name, r.passed) for r in report.results] == [("reads", True), ("writes", True)]


def test_checks_that_may_write_run_one_at_a_time(project: Path) -> None:
    code = "import os; os.mkdir('mine'); os.listdir('.'); os.rmdir('mine')"
    checks = [
        Check((sys.executable, "-c", code), kind, f"{kind} {number}", 60.0)
        for number in range(3)
        for kind in ("test", "build", "command")
    ]
    report = CheckRunner(project, PatternSet.default(), parallelism=8).run(checks)
    assert [result.check for result in report.results] == checks
    assert report.first_failure is None


def test_an_interrupt_ends_checks_side_by_side(project: Path) -> None:
    """Also the one that has not told anything yet; those that wait do not begin."""
    forever = "import threading; threading.Event().wait()"
    checks = [
        python("pass", "lint"),
        python(forever, "lint"),
        python(forever, "test"),
        python("open('begun', 'w')", "test"),
    ]
    runner = CheckRunner(project, PatternSet.default(), parallelism=3)

    def interrupted(_: CheckResult) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runner.run(checks, interrupted)
    assert not (project / "begun").exists()
    assert runner.cancelled.is_set()

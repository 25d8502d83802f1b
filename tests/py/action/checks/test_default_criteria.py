"""The success criteria of a task that names none."""

from __future__ import annotations

from pathlib import Path

import pytest

from loki.action.checks.command_detection import Command, default_criteria
from loki.recognition.pattern import Criterion, PatternSet

TESTS = {"test": Command("test", ("true",), "Makefile: test")}
BOTH = {**TESTS, "lint": Command("lint", ("false",), "pyproject.toml: tool.ruff")}


def found(kind: str, commands: dict[str, Command], *, reviewer: bool = False) -> list[str]:
    criteria = PatternSet.default().success_criteria[kind]
    checks = default_criteria(kind, criteria, commands, Path("/"), has_reviewer=reviewer).checks
    return [check.shown for check in checks]


def test_a_command_is_run_once_whatever_it_stands_for() -> None:
    """Behavior unchanged, tests pass: the same tests."""
    assert found("refactor", BOTH) == ["test: true", "lint: false"]


@pytest.mark.parametrize(
    ("kind", "reviewer", "judged"),
    [
        ("bug_fix", False, []),
        ("bug_fix", True, ["review: the original error does not occur any more"]),
        ("feature", True, ["review: the feature does what was asked for"]),
        (
            "security",
            False,
            [
                "approval: the weakness cannot be exploited any more",
                "approval: security review",
            ],
        ),
        (
            "security",
            True,
            ["review: the weakness cannot be exploited any more", "review: security review"],
        ),
        ("config_change", False, ["syntax: parses"]),
    ],
)
def test_who_judges_what_no_command_can_check(kind: str, reviewer: bool, judged: list[str]) -> None:
    checks = found(kind, BOTH, reviewer=reviewer)
    assert [check for check in checks if not check.startswith(("test:", "lint:"))] == judged


def test_what_nobody_can_check_is_told() -> None:
    criteria = PatternSet.default().success_criteria["bug_fix"]
    result = default_criteria("bug_fix", criteria, TESTS, Path("/"))
    assert result.notes == ("test check: true (Makefile: test)",)
    assert [w.partition(":")[0] for w in result.warnings] == [
        "criterion 'error_resolved' is not checked",
        "criterion 'lint_clean' is not checked",
    ]


def test_a_command_whose_program_is_not_there_is_no_check() -> None:
    gone = {"test": Command("test", ("no-such-program-here",), "Makefile: test")}
    result = default_criteria("bug_fix", [Criterion("tests_pass", "test")], gone, Path("/"))
    assert result.checks == ()
    assert "no-such-program-here" in result.warnings[0]


def test_a_criterion_may_have_its_own_command_and_what_it_prints() -> None:
    own = Criterion("version", "custom", command="app --version", expected="2.1")
    result = default_criteria(
        "feature", [own, Criterion("b", "build")], {}, Path("/"), with_builds=False
    )
    assert result.checks == ()
    own = Criterion("version", "custom", command="echo 2.1", expected="2.1")
    (check,) = default_criteria("feature", [own], {}, Path("/")).checks
    assert (check.command, check.expected) == (("echo", "2.1"), "2.1")

"""Changes that are taken back for a while, and what checks show of a tree without them."""

from __future__ import annotations

from pathlib import Path

import pytest

from loki.adapters.monitor.monitor import Monitor
from loki.decision.monitor.tool_call import ToolCall, known
from loki.decision.monitor.tool_command import Effect

FAILED = "FAILED test_calc.py::test_sum - AssertionError: sums of rows and columns differ\n1 failed"
PASSED = "....\n4 passed in 0.2s"
TESTS = ToolCall("Bash", {"command": "pytest -q"})


def edit(number: int) -> ToolCall:
    return ToolCall("Edit", {"file_path": "calc.py", "old_string": "x", "new_string": f"y{number}"})


def run(monitor: Monitor, command: str, output: str, exit_code: int = 0) -> str:
    return monitor.after(ToolCall("Bash", {"command": command}), output, exit_code=exit_code).kind


@pytest.mark.parametrize(
    ("command", "output", "exit_code"),
    [
        ("git stash list", "", 0),
        ("git stash show -p", "diff", 0),
        ("git stash", "No local changes to save", 0),
        ("git stash && git stash pop", "Dropped refs/stash@{0}", 0),
        ("git stash drop", "Dropped refs/stash@{0}", 0),
        ("git checkout feature/stash-ui", "Switched to branch 'feature/stash-ui'", 0),
        ("git checkout -b fix-stash", "Switched to a new branch 'fix-stash'", 0),
        ("git fetch && git switch main", "Already on 'main'", 0),
        ("git reset -q", "", 0),
    ],
)
def test_what_puts_nothing_away_hides_nothing(
    tmp_path: Path, command: str, output: str, exit_code: int
) -> None:
    monitor = Monitor(tmp_path)
    run(monitor, command, output, exit_code)
    heard = []
    for number in range(4):
        monitor.after(edit(number), "ok", ok=True)
        heard.append(monitor.after(TESTS, FAILED, exit_code=1).kind)
    assert heard[:2] == ["none", "none"]
    assert "nudge" in heard[2:]
    assert run(monitor, "pytest -q", PASSED) == "none"
    assert monitor.ending("All tests pass.").kind == "none"


@pytest.mark.parametrize(
    "command",
    [
        "git stash list; pytest -q",
        "git stash pop && pytest -q",
        "git fetch && git checkout feature && pytest -q",
        "git reset -q; pytest -q",
        "git clean -fdx build && pytest -q",
        "git checkout -- notes.py && pytest -q",
    ],
)
def test_a_check_in_a_line_with_git_counts(tmp_path: Path, command: str) -> None:
    monitor = Monitor(tmp_path)
    monitor.after(edit(1), "ok", ok=True)
    run(monitor, command, PASSED)
    assert monitor.ending("All tests pass.").kind == "none"


def test_what_is_seen_while_changes_are_away_says_nothing_of_them(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    monitor.after(edit(1), "ok", ok=True)
    run(monitor, "git stash", "Saved working directory")
    run(monitor, "pytest -q", PASSED)
    assert monitor.ending("All tests pass.").kind == "refuse"


def test_a_pop_that_fails_ends_it(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    monitor.after(edit(1), "ok", ok=True)
    run(monitor, "git stash", "Saved working directory")
    run(monitor, "git stash pop", "CONFLICT (content): Merge conflict in calc.py", 1)
    monitor.after(edit(2), "ok", ok=True)
    run(monitor, "pytest -q", PASSED)
    assert monitor.ending("All tests pass.").kind == "none"


@pytest.mark.parametrize(
    ("command", "is_back", "is_away"),
    [
        ("git stash", True, True),
        ("git stash push -m wip", True, True),
        ("git stash -u", True, True),
        ("git checkout app.py", True, False),
        ("git checkout -- .", True, False),
        ("git checkout .", True, False),
        ("git checkout main", False, False),
        ("git restore app.py", True, False),
        ("git reset --hard", True, False),
        ("git reset HEAD~1", False, False),
        ("git stash list", False, False),
        ("git stash pop", False, False),
    ],
)
def test_what_takes_changes_back(command: str, is_back: bool, is_away: bool) -> None:
    call = known(ToolCall("Bash", {"command": command}))
    assert (call.takes_back, call.stashes) == (is_back, is_away)
    assert call.effect is Effect.WRITE
    assert not call.tries


@pytest.mark.parametrize(
    ("command", "is_tests"),
    [
        ("make lint", False),
        ("make", False),
        ("make check", True),
        ("make -j4 test", True),
        ("mvn -q clean deploy", False),
        ("mvn -q clean verify", True),
        ("./gradlew :app:testDebug test", True),
        ("ruff check .", False),
        ("cargo check", False),
        ("cargo test", True),
        ("npm test", True),
    ],
)
def test_what_runs_tests(command: str, is_tests: bool) -> None:
    call = known(ToolCall("Bash", {"command": command}))
    assert call.is_check
    assert call.runs_tests is is_tests

"""Sessions of Claude Code that claim what nothing bears out: each is sent back, once, and told why."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.claude_session import ClaudeSession as Session
from support.claude_session import going
from support.tool_calls import pytest_fails, red_before

Play = Callable[[Session], None]
SENT_BACK: dict[str, Play] = {}

OK = "3 passed in 0.02s"
RED = pytest_fails("test_a", "AssertionError: assert 5 == 4")
TASK = going("b1", "pytest -q")


def sent_back(play: Play) -> Play:
    SENT_BACK[play.__name__] = play
    return play


@sent_back
def no_check_at_all(s: Session) -> None:
    s.prompt("fix")
    s.bash("pytest -q", OK)
    s.edit("app/a.py")
    s.stop("The bug is fixed and all tests pass.")


@sent_back
def a_subagents_change_that_nobody_checked(s: Session) -> None:
    s.prompt("fix")
    s.agent = "a1"
    s.edit("app/a.py")
    s.stop("Done as asked; nothing was run.")
    s.agent = ""
    s.tool("Agent", {"prompt": "fix"}, {"status": "completed"})
    s.stop("Done. All tests pass.")


@sent_back
def the_tests_still_run(s: Session) -> None:
    s.prompt("fix")
    s.edit("a.py")
    s.background("pytest -q", "b1")
    s.stop("Done. All tests pass.", [TASK])


@sent_back
def the_tests_failed_in_the_background(s: Session) -> None:
    s.prompt("fix")
    s.edit("a.py")
    s.background("pytest -q", "b1")
    s.ended("b1", 1, RED)
    s.stop("Done. All tests pass.")


@sent_back
def the_tests_were_stopped_in_the_background(s: Session) -> None:
    s.prompt("fix")
    s.edit("a.py")
    s.background("pytest -q", "b1")
    s.ended("b1", None)
    s.stop("Done. All tests pass.")


@sent_back
def the_tests_in_the_background_were_of_an_older_tree(s: Session) -> None:
    s.prompt("fix")
    s.edit("a.py")
    s.background("pytest -q", "b1")
    s.edit("a.py")
    s.ended("b1", 0, OK)
    s.stop("Done. All tests pass.")


@sent_back
def written_by_a_command_line(s: Session) -> None:
    s.prompt("fix")
    s.bash("pytest -q", OK)
    s.bash("cat > app/a.py <<'EOF'\nx = 1\nEOF")
    s.stop("Done. All tests pass.")


@sent_back
def formatted_only(s: Session) -> None:
    s.prompt("fix")
    s.edit("src/a.rs")
    s.bash("cargo fmt")
    s.bash("cargo --version", "cargo 1.9")
    s.stop("All checks pass.")


@sent_back
def a_red_test_that_it_denies(s: Session) -> None:
    s.prompt("fix")
    s.bash("pytest -q", red_before(20), 1)
    s.edit("app/clock.py")
    s.bash("pytest -q", red_before(21), 1)
    s.stop("I fixed the failing test_zone. All tests pass now.")


@pytest.mark.parametrize("name", SENT_BACK)
def test_a_claim_that_nothing_bears_out_is_sent_back(session: Session, name: str) -> None:
    SENT_BACK[name](session)
    assert len(session.refused) == 1
    assert session.told == []


def test_it_is_told_what_it_has_to_wait_for(session: Session) -> None:
    the_tests_still_run(session)
    assert session.refused == [
        "You say `All tests pass.`, but `pytest -q` still runs in the background: wait until it has "
        "ended and show what it prints, or say plainly what is not verified."
    ]


def test_a_failure_in_the_background_comes_back_as_any_other(session: Session) -> None:
    session.prompt("fix")
    for task in ("b1", "b2", "b3"):
        session.edit("app.py", task)
        session.background("pytest -q", task)
        session.ended(task, 1, RED)
    ((event, told),) = session.said
    assert event == "UserPromptSubmit"
    assert "came back" in told["hookSpecificOutput"]["additionalContext"]


def test_what_a_subagent_does_after_it_was_sent_back_counts_for_whom_it_works(
    session: Session,
) -> None:
    session.prompt("fix")
    session.agent = "a1"
    session.edit("a.py")
    session.stop("All tests pass.")
    session.bash("pytest -q", OK)
    session.tell("SubagentStop", stop_hook_active=True, last_assistant_message="All tests pass.")
    session.agent = ""
    session.stop("All tests pass.")
    assert len(session.refused) == 1

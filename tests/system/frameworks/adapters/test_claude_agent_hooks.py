"""What hooks say to Claude, given what Claude Code gives them (as seen with 2.1.330)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from loki.adapters.claude_agent_sdk import Hooks
from support.framework_agents import ZERO, monitor

FAILED = ZERO.replace("exit code", "Exit code")


class Session:
    """Hooks, called as Claude Code calls them."""

    def __init__(self, folder: Path) -> None:
        self.hooks = Hooks(monitor(folder))

    def hear(self, event: str, **given: Any) -> dict[str, Any]:
        hook = self.hooks.by_event()[event]
        data: Any = {"hook_event_name": event, "session_id": "f9a36196", **given}
        work: Any = hook(data, None, {"signal": None})
        return dict(asyncio.run(work))

    def edit(self) -> dict[str, Any]:
        given = {"file_path": "stats.py", "content": "return 0"}
        response = {"type": "create", "filePath": "stats.py", "content": given["content"]}
        return self.hear("PostToolUse", tool_name="Write", tool_input=given, tool_response=response)

    def check(self, error: str | None = FAILED, command: str = "pytest -q") -> dict[str, Any]:
        call = {"tool_name": "Bash", "tool_input": {"command": command}}
        if error is not None:
            return self.hear("PostToolUseFailure", **call, error=error, is_interrupt=False)
        printed = {"stdout": "2 passed in 0.01s", "stderr": "", "interrupted": False}
        return self.hear("PostToolUse", **call, tool_response=printed)

    def context(self, told: dict[str, Any]) -> str:
        return str(told.get("hookSpecificOutput", {}).get("additionalContext", ""))


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


def test_a_repeat_is_named_and_then_stopped(session: Session) -> None:
    said, stops = [], []
    for number in range(6):
        assert bool(session.edit()) is (
            number > 1
        )  # a change made for the third time is named, too
        said.append(session.context(session.check()))
        stops.append(session.hear("PostToolBatch"))
    assert said[:2] == ["", ""]
    assert all("ZeroDivisionError" in text for text in said[2:])
    assert stops[:5] == [{}] * 5
    assert stops[5]["continue_"] is False
    assert stops[5]["stopReason"].startswith("Stop here")
    denied = session.hear("PreToolUse", tool_name="Bash", tool_input={"command": "ls"})
    assert denied["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_a_healthy_session_hears_nothing(session: Session) -> None:
    told = [session.hear("UserPromptSubmit", prompt="Fix it")]
    told += [session.hear("PreToolUse", tool_name="Bash", tool_input={"command": "pytest -q"})]
    told += [session.check(), session.edit(), session.check(None), session.hear("PostToolBatch")]
    told += [session.hear("Stop", last_assistant_message="All tests pass.", stop_hook_active=False)]
    assert told == [{}] * len(told)


def test_signs_are_said_once_while_they_stay_the_same(session: Session) -> None:
    for _ in range(3):
        session.edit()
        session.check()
    prompts = [session.context(session.hear("UserPromptSubmit", prompt="Go on")) for _ in range(2)]
    assert "ZeroDivisionError" in prompts[0]
    assert prompts[1] == ""


def test_a_claim_without_a_check_is_refused_once(session: Session) -> None:
    session.edit()
    claim = {"last_assistant_message": "All tests pass now.", "stop_hook_active": False}
    refused = session.hear("Stop", **claim)
    assert refused["decision"] == "block"
    assert "no tests were run" in refused["reason"]
    assert session.hear("Stop", **{**claim, "stop_hook_active": True}) == {}


def test_what_a_person_interrupts_is_no_failure(session: Session) -> None:
    call = {"tool_name": "Bash", "tool_input": {"command": "pytest -q"}}
    for _ in range(5):
        told = session.hear("PostToolUseFailure", **call, error=FAILED, is_interrupt=True)
        assert told == {}


def test_a_tool_whose_service_is_down_is_refused(session: Session) -> None:
    call = {"tool_name": "WebFetch", "tool_input": {"url": "https://example.com/a"}}
    for _ in range(3):
        error = "getaddrinfo ENOTFOUND example.com"
        session.hear("PostToolUseFailure", **call, error=error, is_interrupt=False)
    told = session.hear("PreToolUse", **call)
    assert told["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert "example.com" in told["hookSpecificOutput"]["permissionDecisionReason"]

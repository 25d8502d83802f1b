"""What agents tell their hooks, recorded from the real programs, and what is understood of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki.adapters.hooks.hook_message import HookMessage
from loki.adapters.hooks.hooked_agents import AGENTS
from support.hook_events import HERE, event, events

TRACEBACK = 'a\nout\nTraceback (most recent call last):\n  File "<string>", line 1, in <module>\nValueError: 1'
COMMAND = "cat a.txt; echo out; python3 -c 'raise ValueError(1)'; exit 3"


def heard(agent: str, data: Mapping[str, Any]) -> HookMessage | None:
    return AGENTS[agent].received(data)


def codex(name: str, which: int = 0) -> dict[str, Any]:
    """An event of Codex whose transcript is the recorded one."""
    return {**event("codex", name, which), "transcript_path": str(HERE / "codex-transcript.jsonl")}


FAILING = {
    "claude-code": ("PostToolUseFailure", "Bash"),
    "codex": ("PostToolUse", "Bash"),
    "gemini": ("AfterTool", "run_shell_command"),
}


@pytest.mark.parametrize("agent", FAILING)
def test_a_failing_command(agent: str) -> None:
    name, tool = FAILING[agent]
    said = heard(agent, codex(name) if agent == "codex" else event(agent, name))
    assert said is not None
    assert (said.kind, said.tool, said.arguments["command"]) == ("after", tool, COMMAND)
    assert (said.exit_code, bool(said.ok)) == (3, False)
    assert said.output.strip() == TRACEBACK
    assert said.folder == "/home/me/project"
    assert len(said.session) == 36


@pytest.mark.parametrize(("agent", "name", "which"), [("claude-code", "PostToolUse", 0), ("codex", "PostToolUse", 1), ("gemini", "AfterTool", 1)])  # fmt: skip
def test_a_command_that_goes_well(agent: str, name: str, which: int) -> None:
    data = codex(name, which) if agent == "codex" else event(agent, name, which)
    said = heard(agent, data)
    assert said is not None
    assert said.output.strip() == "fine"
    assert said.ok or said.exit_code == 0


def test_a_file_written_and_one_that_is_not_there() -> None:
    for agent, wrote, read in (
        ("claude-code", event("claude-code", "PostToolUse", 1), event("claude-code", "PostToolUseFailure", 1)),
        ("gemini", event("gemini", "AfterTool", 2), event("gemini", "AfterTool", 3)),
    ):  # fmt: skip
        first, second = heard(agent, wrote), heard(agent, read)
        assert first is not None
        assert second is not None
        assert (first.ok, second.ok) == (True, False)
        assert "does not exist" in second.output or "not found" in second.output


def test_codex_patches_by_a_command_and_calls_no_hook_afterwards() -> None:
    said = heard("codex", event("codex", "PreToolUse", 2))
    assert said is not None
    assert (said.kind, said.tool, said.is_last) == ("before", "apply_patch", True)
    assert said.arguments["path"] == "n.txt"


def test_codex_says_by_its_transcript_how_a_command_ended() -> None:
    data = codex("PostToolUse")
    still_running = heard("codex", {**data, "tool_use_id": "call_9"})
    no_transcript = heard("codex", {**data, "transcript_path": None})
    assert still_running is not None
    assert still_running.kind == "started"
    assert no_transcript is not None
    assert (no_transcript.ok, no_transcript.exit_code) == (None, None)


ENDS = {"claude-code": "Stop", "codex": "Stop", "gemini": "AfterAgent"}


@pytest.mark.parametrize("agent", ENDS)
def test_an_end_is_heard_once(agent: str) -> None:
    data = event(agent, ENDS[agent])
    said = heard(agent, data)
    assert said is not None
    assert (said.kind, said.message) == ("ending", "All done, the tests pass now.")
    assert heard(agent, {**data, "stop_hook_active": True}) is None


def test_claude_code_of_before_says_its_last_words_in_the_transcript() -> None:
    data = event("claude-code", "Stop")
    del data["last_assistant_message"]
    data["transcript_path"] = str(HERE / "claude-code-transcript.jsonl")
    said = heard("claude-code", data)
    assert said is not None
    assert said.message == "All done, the tests pass now."


@pytest.mark.parametrize(
    ("agent", "data"),
    [
        ("claude-code", {**event("claude-code", "PostToolUseFailure"), "is_interrupt": True}),
        ("claude-code", {**event("claude-code", "PostToolUse"), "tool_response": {"stdout": "", "interrupted": True}}),
    ],
)  # fmt: skip
def test_what_nobody_knows_the_end_of_is_not_counted(agent: str, data: dict[str, Any]) -> None:
    assert heard(agent, data) is None


@pytest.mark.parametrize(
    ("agent", "data"),
    [
        ("claude-code", {**event("claude-code", "PostToolUse"), "tool_response": {"stdout": "", "backgroundTaskId": "b1"}}),
        ("gemini", {**event("gemini", "AfterTool"), "tool_name": "run_shell_command", "tool_input": {"command": "x", "is_background": True}}),
    ],
)  # fmt: skip
def test_what_goes_on_in_the_background_has_only_started(agent: str, data: dict[str, Any]) -> None:
    told = heard(agent, data)
    assert told is not None
    assert told.kind == "started"


def test_subagents_have_sessions_of_their_own() -> None:
    data = event("claude-code", "PostToolUseFailure")
    one, other = (heard("claude-code", {**data, "agent_id": name}) for name in "ab")
    assert one is not None
    assert other is not None
    assert len({one.session, other.session, data["session_id"]}) == 3


def test_an_mcp_servers_error_is_one() -> None:
    data = {**codex("PostToolUse"), "tool_name": "mcp__db__query"}
    for wrong in (True, False):
        answer = {"content": [{"type": "text", "text": "no such table"}], "isError": wrong}
        said = heard("codex", {**data, "tool_response": answer})
        assert said is not None
        assert said.ok is not wrong


@pytest.mark.parametrize("agent", AGENTS)
def test_other_events_say_nothing(agent: str) -> None:
    known = {name for name, _ in AGENTS[agent].events()}
    others = [one for one in events(agent) if one["hook_event_name"] not in known]
    assert others
    assert [heard(agent, one) for one in others] == [None] * len(others)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2)
    ),
    max_leaves=4,
)


@pytest.mark.parametrize("agent", AGENTS)
@given(data=st.data())
def test_newer_and_broken_fields_are_taken_for_none(agent: str, data: st.DataObject) -> None:
    said = dict(data.draw(st.sampled_from(events(agent))))
    for name in data.draw(
        st.lists(st.sampled_from(sorted(set(said) - {"hook_event_name"})), max_size=4)
    ):
        said[name] = data.draw(JUNK)
    said["new_field"] = data.draw(JUNK)
    heard(agent, said)

"""Claude Code's hooks; tried with 2.1.330. https://code.claude.com/docs/en/hooks"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from loki.adapters.hooks.hook_message import (
    Answer,
    Events,
    HookMessage,
    call,
    common,
    denied,
    nudge,
    refuse,
    table,
    text,
    whole,
)

__all__ = ["EVENTS", "READS", "nudge", "refuse", "stop", "stopped"]

READS = frozenset({"Glob", "Grep", "LS", "NotebookRead", "Read", "TodoWrite", "ToolSearch"})
"""Tools that change nothing outside the session: of a call that went well there is nothing to keep."""

_EXIT = re.compile(r"\AExit code (\d+)\n?")
_OF_TASK = {
    "task": re.compile("<task-id>([^<]+)</task-id>"),
    "printed": re.compile("<output-file>([^<]+)</output-file>"),
    "code": re.compile(r"<summary>[^<]*\bexit code (\d+)"),
}


def _start(data: Mapping[str, Any]) -> HookMessage | None:
    return HookMessage("start", **_session(data))


def _before(data: Mapping[str, Any]) -> HookMessage | None:
    return HookMessage("before", **_call(data))


def _passed(data: Mapping[str, Any]) -> HookMessage | None:
    answer = table(data, "tool_response")
    if answer.get("interrupted"):
        return None  # nobody knows how it would have ended
    if task := text(answer, "backgroundTaskId"):
        return HookMessage("started", task=task, **_call(data))
    output = whole(data.get("tool_response"))
    if "stdout" in answer:
        output = "\n".join(filter(None, (text(answer, "stdout"), text(answer, "stderr"))))
    return HookMessage("after", output=output, ok=True, **_call(data))


def _failed(data: Mapping[str, Any]) -> HookMessage | None:
    if data.get("is_interrupt"):
        return None  # a person's doing
    said = text(data, "error")
    code = _EXIT.match(said)
    if code is None:
        return HookMessage("after", output=said, ok=False, **_call(data))
    output = said[code.end() :]
    return HookMessage("after", output=output, ok=False, exit_code=int(code[1]), **_call(data))


def _ending(data: Mapping[str, Any]) -> HookMessage | None:
    said = {"turn": text(data, "prompt_id"), **_session(data)}
    if not data.get("stop_hook_active"):
        message = text(data, "last_assistant_message") or _last_words(data)
        return HookMessage("ending", message=message, running=_running(data), **said)
    # It goes on because of a hook already: never twice. What it has done counts for whom it works for.
    return HookMessage("ending", **said) if "above" in said else None


def _running(data: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The tasks that go on in the background, where it says which."""
    tasks = data.get("background_tasks")
    if not isinstance(tasks, list):
        return None
    return tuple(text(one, "id") for one in tasks if isinstance(one, dict))


def _prompted(data: Mapping[str, Any]) -> HookMessage | None:
    """A prompt; one that tells of the end of a task is no person's."""
    prompt = text(data, "prompt")
    if not prompt.lstrip().startswith("<task-notification>"):
        return None
    said: dict[str, Any] = {
        name: found[1] for name in _OF_TASK if (found := _OF_TASK[name].search(prompt))
    }
    code = int(said.pop("code")) if "code" in said else None
    turn = text(data, "prompt_id")
    return HookMessage("finished", exit_code=code, turn=turn, **said, **_session(data))


EVENTS: Events = {
    "SessionStart": (None, _start),
    "UserPromptSubmit": (None, _prompted),
    "PreToolUse": ("*", _before),
    "PostToolUse": ("*", _passed),
    "PostToolUseFailure": ("*", _failed),
    "Stop": (None, _ending),
    "SubagentStop": (None, _ending),
}


def _call(data: Mapping[str, Any]) -> dict[str, Any]:
    return {**call(data), **_session(data), "turn": text(data, "prompt_id")}


def _session(data: Mapping[str, Any]) -> dict[str, Any]:
    """As for all agents; a subagent has a session of its own, as several of them work at a time."""
    said = common(data)
    agent = text(data, "agent_id")
    session = said["session"]
    return {**said, "session": f"{session}.{agent}", "above": session} if agent else said


def _last_words(data: Mapping[str, Any]) -> str:
    """Of versions that do not say them: the newest message of the transcript."""
    from loki.adapters.hooks.transcript_tail import newest

    for line in newest(text(data, "transcript_path"), '"assistant"'):
        content = table(line, "message").get("content")
        said = [
            text(part, "text")
            for part in (content if isinstance(content, list) else [])
            if isinstance(part, dict) and part.get("type") == "text"
        ]
        if any(said):
            return "\n".join(said)
    return ""


def stop(to: HookMessage, said: str) -> Answer:
    """What ends its turn.

    After a failed call it takes no such word; the next call, which `stopped` is asked of, ends it.
    """
    return {"continue": False, "stopReason": said, **(nudge(to, said) or {})}


def stopped(to: HookMessage, said: str) -> Answer:
    """What ends its turn at a call that is made although it was told to stop."""
    return {"continue": False, "stopReason": said, **denied(to, said)}

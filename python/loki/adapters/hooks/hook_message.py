"""What an agent's hook was called with, whichever agent; light, as it is loaded at every tool call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["start", "before", "started", "finished", "after", "ending"]
"""A session begins; a tool is about to be called; it goes on in the background; what did has ended; it
was called; the agent is about to end."""

Answer: TypeAlias = "dict[str, Any] | None"
"""What the agent is told, as its hooks have it; None: nothing."""


class HookMessage(NamedTuple):
    """A call of a hook.

    Attributes:
        kind: what happens.
        event: the agent's own name of that.
        session: the agent's session, or "".
        above: of an agent that works for another one, the other's session.
        turn: what the agent works on since a person spoke, or "": the agent has no name for it.
        folder: where it works.
        tool, arguments, id: the call of a tool.
        output: what the tool gave.
        ok: whether it went well; None: nobody says.
        exit_code: of its command, where it is known.
        message: the agent's last words.
        task: of what goes on in the background, the agent's name of it, or "": it never tells of its end.
        printed: the file with what such a task printed, or "".
        running: tasks in the background that go on; None: the agent does not say.
        is_last: of a call that is about to be made: no hook is called after it.
    """

    kind: Kind
    event: str
    session: str = ""
    above: str = ""
    turn: str = ""
    folder: str = ""
    tool: str = ""
    arguments: Mapping[str, Any] = {}
    id: str = ""
    output: str = ""
    ok: bool | None = None
    exit_code: int | None = None
    message: str = ""
    task: str = ""
    printed: str = ""
    running: tuple[str, ...] | None = None
    is_last: bool = False


Events: TypeAlias = (
    "Mapping[str, tuple[str | None, Callable[[Mapping[str, Any]], HookMessage | None]]]"
)
"""An agent's events by name: the tools that each is limited to, or None, and what reads it; that gives None
where it is nothing for loki."""


def text(data: Mapping[str, Any], name: str) -> str:
    """A field that is text; "" where it is anything else, or not there."""
    value = data.get(name)
    return value if isinstance(value, str) else ""


def table(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A field that is an object; an empty one where it is anything else, or not there."""
    value = data.get(name)
    return value if isinstance(value, dict) else {}


def common(data: Mapping[str, Any]) -> dict[str, Any]:
    """What all agents name alike, as arguments of `HookMessage`."""
    return {
        "event": text(data, "hook_event_name"),
        "session": text(data, "session_id"),
        "folder": text(data, "cwd"),
    }


def call(data: Mapping[str, Any]) -> dict[str, Any]:
    """The call of a tool, as all agents tell it, as arguments of `HookMessage`."""
    return {
        **common(data),
        "tool": text(data, "tool_name"),
        "arguments": table(data, "tool_input"),
        "id": text(data, "tool_use_id"),
    }


def start(data: Mapping[str, Any]) -> HookMessage:
    """A session that begins, as Codex and Gemini CLI tell it."""
    return HookMessage("start", **common(data))


def whole(value: object) -> str:
    """What a tool gave, as text."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    import json

    return json.dumps(value, ensure_ascii=False, default=str)


def nudge(to: HookMessage, said: str) -> Answer:
    """What makes the model read something before it goes on; all three agents take it alike."""
    return {"hookSpecificOutput": {"hookEventName": to.event, "additionalContext": said}}


def refuse(to: HookMessage, said: str) -> Answer:
    """What keeps Claude Code and Codex from a call, or from an end."""
    return {"decision": "block", "reason": said} if to.kind == "ending" else denied(to, said)


def denied(to: HookMessage, said: str) -> dict[str, Any]:
    """What keeps Claude Code and Codex from a call."""
    return {
        "hookSpecificOutput": {
            "hookEventName": to.event,
            "permissionDecision": "deny",
            "permissionDecisionReason": said,
        }
    }

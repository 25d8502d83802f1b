"""Codex's hooks; tried with 0.169.0. https://developers.openai.com/codex/hooks"""

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
    start,
    table,
    text,
    whole,
)

__all__ = ["EVENTS", "READS", "nudge", "refuse", "stop", "stopped"]

READS = frozenset({"update_plan", "view_image"})
"""Tools that change nothing outside the session: of a call that went well there is nothing to keep."""

PATCH = "apply_patch"

_FILE = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)


def _before(data: Mapping[str, Any]) -> HookMessage | None:
    told = _call(data)
    command = text(told["arguments"], "command")
    if command.lstrip().startswith(PATCH) and told["tool"] != PATCH:
        # Codex carries such a command out by itself, and calls no hook afterwards.
        told |= {"tool": PATCH, "arguments": _patch(command)}
        return HookMessage("before", is_last=True, **told)
    return HookMessage("before", **told)


def _after(data: Mapping[str, Any]) -> HookMessage | None:
    told, answer = _call(data), data.get("tool_response")
    if isinstance(answer, dict) and isinstance(answer.get("isError"), bool):  # an MCP server's
        return HookMessage("after", output=whole(answer), ok=not answer["isError"], **told)
    if told["tool"] == PATCH:
        told["arguments"] = _patch(text(told["arguments"], "command"))
    if told["tool"] != "Bash":
        return HookMessage("after", output=whole(answer), **told)
    # Its hooks are not told how a command ended; its transcript is, before they are called.
    from loki.adapters.hooks.transcript_tail import newest

    path = text(data, "transcript_path")
    for line in newest(path, '"CommandExecution"'):
        item = table(table(line, "payload"), "item")
        code = item.get("exit_code")
        if item.get("id") == told["id"] and isinstance(code, int):
            return HookMessage("after", output=whole(answer), exit_code=code, **told)
    # It still runs; or there is no transcript, and nobody says.
    if path:
        return HookMessage("started", **told)
    return HookMessage("after", output=whole(answer), **told)


def _ending(data: Mapping[str, Any]) -> HookMessage | None:
    if data.get("stop_hook_active"):
        return None  # it goes on because of a hook already: never twice
    message = text(data, "last_assistant_message")
    return HookMessage("ending", turn=text(data, "turn_id"), message=message, **common(data))


EVENTS: Events = {
    "SessionStart": (None, start),
    "PreToolUse": ("*", _before),
    "PostToolUse": ("*", _after),
    "Stop": (None, _ending),
}


def _patch(command: str) -> dict[str, str]:
    """The arguments of a patch, with the first file that it is about."""
    found = _FILE.search(command)
    return {"path": found[1].strip(), "patch": command} if found else {"patch": command}


def _call(data: Mapping[str, Any]) -> dict[str, Any]:
    return {**call(data), "turn": text(data, "turn_id")}


def stop(_to: HookMessage, said: str) -> Answer:
    """What it takes for a stop after a call: the model reads this in place of what the tool gave.

    It may go on; `stopped` then keeps it from every further call of the turn.
    """
    return {"continue": False, "stopReason": said, "reason": said, "systemMessage": said}


def stopped(to: HookMessage, said: str) -> Answer:
    """What keeps it from a call that it makes although it was told to stop."""
    return denied(to, said)

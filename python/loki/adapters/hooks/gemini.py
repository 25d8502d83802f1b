"""Gemini CLI's hooks; tried with 0.61.0. https://geminicli.com/docs/hooks/reference"""

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
    nudge,
    start,
    table,
    text,
    whole,
)

__all__ = ["EVENTS", "READS", "nudge", "refuse", "stop", "stopped"]

READS = frozenset(
    {
        *("glob", "google_web_search", "grep_search", "list_directory", "read_file"),
        *("read_many_files", "save_memory", "search_file_content", "web_fetch", "write_todos"),
    }
)
"""Tools that change nothing in the project: of a call that went well there is nothing to keep."""

SHELL = "run_shell_command"

_EXIT = re.compile(r"^Exit Code: (\d+)$", re.MULTILINE)
_SIGNAL = re.compile(r"^Signal: (\d+)$", re.MULTILINE)


def _ending(data: Mapping[str, Any]) -> HookMessage | None:
    if data.get("stop_hook_active"):
        return None  # it goes on because of a hook already: never twice
    message, turn = text(data, "prompt_response"), text(data, "prompt")
    return HookMessage("ending", message=message, turn=turn, **common(data))


def _before(data: Mapping[str, Any]) -> HookMessage | None:
    return HookMessage("before", **call(data))


def _after(data: Mapping[str, Any]) -> HookMessage | None:
    told, answer = call(data), table(data, "tool_response")
    error = table(answer, "error")
    model, shown = whole(answer.get("llmContent")), answer.get("returnDisplay")
    if told["tool"] != SHELL:
        output = text(error, "message") or model
        return HookMessage("after", output=output, ok=not error, **told)
    if told["arguments"].get("is_background"):
        return HookMessage("started", **told)
    codes, signals = _EXIT.findall(model), _SIGNAL.findall(model)
    # It names an exit code only where that is not 0.
    code = int(codes[-1]) if codes else 128 + int(signals[-1]) if signals else None
    if code is None and not error:
        code = 0
    output = shown if isinstance(shown, str) else model
    return HookMessage("after", output=output, ok=code == 0, exit_code=code, **told)


EVENTS: Events = {
    "SessionStart": (None, start),
    "BeforeTool": ("*", _before),
    "AfterTool": ("*", _after),
    "AfterAgent": (None, _ending),
}


def refuse(_to: HookMessage, said: str) -> Answer:
    """What keeps it from a call, or from an end."""
    return {"decision": "deny", "reason": said}


def stop(_to: HookMessage, said: str) -> Answer:
    """What ends its turn."""
    return {"continue": False, "stopReason": said, "systemMessage": said}


stopped = refuse
"""The same at a later call; `stop` leaves none to be made."""

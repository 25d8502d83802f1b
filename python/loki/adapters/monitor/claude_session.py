"""The session files of Claude Code 2.1 (``~/.claude/projects/*/*.jsonl``) as recorded runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from loki.adapters.monitor.recorded_run import Ends, Made, Recorded, RecordedRun
from loki.decision.monitor.tool_call import ToolCall
from loki.decision.monitor.tool_result import tool_result

_EXIT = re.compile(r"\A(?:Error: )?Exit code (\d{1,9})(?:\n|(?!\d))")
_NO_PERSON = ("<task-notification>", "<local-command", "<command-name>", "<system-reminder>")
_NOT_RUN = ("The user doesn't want to", "[Request interrupted", "Interrupted by user")


def claude_sessions(lines: list[tuple[int, dict[str, Any]]], file: Path) -> Iterator[RecordedRun]:
    """A file's session, and those of agents that worked for it.

    Args:
        lines: of the file, with their numbers; without those that are `misread`.
        file: its path.
    """
    by_agent: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    for number, said in lines:
        if _is_heard(said):
            agent = str(said.get("agentId") or ("side" if said.get("isSidechain") else ""))
            by_agent.setdefault(agent, []).append((number, said))
    for agent, own in by_agent.items():
        events = tuple(_events(own))
        if any(isinstance(one, Made) for one in events):
            name = f"{file.stem}.{agent}" if agent else file.stem
            folder = next((s["cwd"] for _, s in own if s.get("cwd")), "")
            yield RecordedRun(name, str(file), "line", events, folder, "claude-code")


def misread(said: Mapping[str, Any]) -> str:
    """Why a line of a session cannot be read, or "": it can be, or nothing is read of it.

    Args:
        said: the line.

    Example:
        >>> misread({"type": "user", "message": 1})
        'message: found int, expected dict'
        >>> misread({"type": "summary", "message": 1})
        ''
    """
    if said.get("type") is not None and not isinstance(said["type"], str):
        return _expected("type", said["type"], "str")
    if not _is_heard(said):
        return ""
    for name in ("agentId", "cwd"):
        if not isinstance(said.get(name), (str, type(None))):
            return _expected(name, said[name], "str")
    message = said.get("message")
    if not isinstance(message, dict):
        return _expected("message", message, "dict")
    return _misread_content(message.get("content"))


def _misread_content(content: object) -> str:
    if isinstance(content, str):
        return ""
    if not isinstance(content, list):
        return _expected("message.content", content, "str or list")
    return next(filter(None, (_misread_part(n, part) for n, part in enumerate(content))), "")


_PARTS: Mapping[str, Mapping[str, tuple[type, ...]]] = {
    "tool_use": {"id": (str,), "name": (str,), "input": (dict,)},
    "tool_result": {"tool_use_id": (str,), "content": (str, list, type(None))},
    "text": {"text": (str,)},
}
"""What is read of the parts of a message; others are passed over."""


def _misread_part(number: int, part: object) -> str:
    where = f"message.content.{number}"
    if not isinstance(part, dict):
        return _expected(where, part, "dict")
    kind = part.get("type")
    if not isinstance(kind, str):
        return _expected(f"{where}.type", kind, "str")
    for name, types in _PARTS.get(kind, {}).items():
        if not isinstance(part.get(name), types):
            expected = " or ".join(one.__name__ for one in types if one is not type(None))
            return _expected(f"{where}.{name}", part.get(name), expected)
    return ""


def _expected(where: str, found: object, expected: str) -> str:
    name = "nothing" if found is None else type(found).__name__
    return f"{where}: found {name}, expected {expected}"


def _is_heard(said: Mapping[str, Any]) -> bool:
    kind = said.get("type")
    return isinstance(kind, str) and kind in {"user", "assistant"}


def _events(lines: list[tuple[int, dict[str, Any]]]) -> Iterator[Recorded]:
    calls: dict[str, tuple[int, ToolCall]] = {}
    last: Ends | None = None
    for number, said in lines:
        content = _content(said)
        if said["type"] == "assistant":
            last = _assistant(content, number, calls, last)
            continue
        results = [part for part in content if part.get("type") == "tool_result"]
        for part in results:
            place, call = calls.pop(str(part.get("tool_use_id")), (number, None))
            if call is not None and (made := _made(call, part, place)) is not None:
                yield made
        if not results and last is not None and _is_a_persons(said, content):
            yield last
            last = None
    if last is not None:
        yield last


def _assistant(
    content: list[dict[str, Any]],
    number: int,
    calls: dict[str, tuple[int, ToolCall]],
    last: Ends | None,
) -> Ends | None:
    """Note the calls of a message; what its last words are so far, None while it calls something."""
    for part in content:
        if part.get("type") == "tool_use":
            last = None
            given = part.get("input")
            arguments = given if isinstance(given, dict) else {}
            call = ToolCall(str(part.get("name")), arguments, id=str(part.get("id")))
            calls[call.id] = number, call
        elif part.get("type") == "text" and str(part.get("text", "")).strip():
            last = Ends(str(part["text"]), number)
    return last


def _content(said: Mapping[str, Any]) -> list[dict[str, Any]]:
    message = said.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []


def _is_a_persons(said: Mapping[str, Any], content: list[dict[str, Any]]) -> bool:
    if said.get("isMeta") or said.get("isCompactSummary"):
        return False
    text = next((str(one.get("text", "")) for one in content if one.get("type") == "text"), "")
    return not text.lstrip().startswith(_NO_PERSON)


def _made(call: ToolCall, part: Mapping[str, Any], place: int) -> Made | None:
    """A call with its result; None: it was not run, or goes on in the background."""
    text = tool_result(part.get("content") or "").text
    if text.startswith(_NOT_RUN) or call.arguments.get("run_in_background"):
        return None
    failed = bool(part.get("is_error"))
    code = _EXIT.match(text) if failed else None
    if code is not None:
        return Made(call, text[code.end() :], False, int(code[1]), place)
    return Made(call, text, not failed, None, place)

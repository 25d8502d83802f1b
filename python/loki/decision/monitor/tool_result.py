"""What a tool answered, as text and exit code: frameworks hand on whatever a tool's function returned.

Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

EXIT_CODES = ("exit_code", "returncode", "return_code", "exitcode", "exit_status")
"""What tools call an exit code: `subprocess.CompletedProcess`, Docker, agents' shell tools."""

OUTPUTS = ("stdout", "stderr", "output", "error")
"""Where tools that run commands put what was printed, in the order in which it is read."""

DEEPEST = 8
"""Levels of a value that are read; what lies deeper is shown as its type. Chosen, not measured."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered.

    Attributes:
        text: what it says, readable: what was printed where a command ran, else JSON.
        exit_code: of the command that it ran; None: it says none.
    """

    text: str
    exit_code: int | None = None


def tool_result(value: Any) -> ToolResult:
    """Read what a tool's function returned.

    Args:
        value: anything. Text stays as it is; of a mapping or an object that has an exit code, or of
            text that is such a mapping as JSON, the output is the text. Bytes count as what they
            are only as a whole value (a command's output); inside others only their size is told,
            they may be images.

    Example:
        >>> tool_result({"returncode": 1, "stdout": "1 failed\\n", "stderr": ""})
        ToolResult(text='1 failed\\n', exit_code=1)
        >>> tool_result({"found": 3}).text, tool_result("3 found").text
        ('{"found": 3}', '3 found')
    """
    if isinstance(value, (bytes, bytearray)):
        return ToolResult(bytes(value).decode("utf-8", "replace"))
    if isinstance(value, str):
        said = _json(value)
        return _of_command(said) or ToolResult(value)
    if (blocks := text_blocks(value)) is not None:
        return tool_result(blocks)
    plain = _plain(value)
    if isinstance(plain, str):
        return ToolResult(plain)
    return _of_command(plain) or ToolResult(json.dumps(plain, ensure_ascii=False))


def text_blocks(value: Any) -> str | None:
    """The text of content blocks, as MCP and models' services have them; None: it has no such.

    Args:
        value: anything: a mapping with ``type: text``, or a list with one in it.

    Example:
        >>> text_blocks([{"type": "text", "text": "1 failed"}, {"type": "image", "data": "…"}])
        '1 failed'
    """
    blocks = value if isinstance(value, list) else [value]
    if not all(isinstance(one, Mapping) and "type" in one for one in blocks):
        return None
    texts = [one["text"] for one in blocks if isinstance(one.get("text"), str)]
    return "\n".join(texts) if texts else None


def _of_command(said: Any) -> ToolResult | None:
    """What a command said; None: it is no answer of one."""
    if not isinstance(said, Mapping):
        return None
    codes = [said[name] for name in EXIT_CODES if name in said]
    if not codes or isinstance(codes[0], bool) or not isinstance(codes[0], int):
        return None
    printed = [said[name] for name in OUTPUTS if isinstance(said.get(name), str) and said[name]]
    text = "\n".join(one.rstrip("\n") for one in printed[:-1]) + "\n" if printed[1:] else ""
    return ToolResult(text + "".join(printed[-1:]), codes[0])


def _json(text: str) -> Any:
    """The mapping that a text is as JSON; None: it is none."""
    head = text.lstrip()[:1]
    if head != "{" or not any(f'"{name}"' in text for name in EXIT_CODES):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _plain(value: Any, depth: int = 0) -> Any:
    """A value as JSON can say it; never an error, whatever it is."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return f"<{len(value)} bytes>"
    if depth >= DEEPEST:
        return f"<{type(value).__name__}>"
    try:
        return _of_many(value, depth + 1)
    except Exception:  # a value's own methods may do anything
        return f"<{type(value).__name__}>"


def _of_many(value: Any, depth: int) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(one, depth) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one, depth) for one in value]
    if isinstance(value, (set, frozenset)):  # in an order that is the same in each process
        return sorted((_plain(one, depth) for one in value), key=str)
    if not isinstance(value, type) and (names := _names(value)):
        return {name: _plain(getattr(value, name, None), depth) for name in names}
    return str(value)


def _names(value: Any) -> list[str]:
    """The names of what an object holds: a pydantic model, a dataclass, a finished process."""
    held = getattr(type(value), "model_fields", None)
    if isinstance(held, Mapping):
        return list(held)
    if is_dataclass(value):
        return [field.name for field in fields(value) if not field.name.startswith("_")]
    if any(isinstance(getattr(value, name, None), int) for name in EXIT_CODES):
        return [name for name in (*EXIT_CODES, *OUTPUTS) if hasattr(value, name)]
    return []

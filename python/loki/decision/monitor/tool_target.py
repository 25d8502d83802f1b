"""What a call of a tool reaches: the name of a circuit breaker; whether it asks if a server is up. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from loki.decision.monitor import tool_command
from loki.decision.monitor.shell_line import Simple
from loki.decision.monitor.tool_knowledge import knowledge

LONGEST = 200_000
"""Characters of a command line that are looked at; chosen, not measured."""

_URL = re.compile(r"\bhttps?://[^\s'\"<>|;)]+")
_NAMED = re.compile(r"^(?:[\w-]+\.)*[\w-]+(?::\d+)?(?:/|$)")
_HERE = re.compile(
    r"(?i)^(?:localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[?::1?\]?|.*\.(?:localhost|local))$"
)


def breaker(tool: str, arguments: Mapping[str, Any], line: str, commands: Sequence[Simple]) -> str:
    """Name of the breaker of what a call reaches; "" where that is this machine.

    Args:
        tool: its name; arguments: what it was called with.
        line: the command line that it runs, or "".
        commands: of that line.
    """
    host = _host_of(arguments, line, commands)
    if host:
        return "" if _HERE.match(host) else f"tool/{_safe(host)}"
    if not line:
        return f"tool/{_safe(tool)}"
    program = next((c.program for c in commands if not tool_command.looks(c)), "")
    return f"tool/{_safe(program)}" if program else ""


def _host_of(arguments: Mapping[str, Any], line: str, commands: Sequence[Simple]) -> str:
    return _host_in(line or next((v for v in arguments.values() if _is_url(v)), ""), commands)


def _host_in(text: str, commands: Sequence[Simple]) -> str:
    url = _URL.search(text[:LONGEST])
    if url:
        return _host(url[0])
    words = (word for c in commands if c.program in knowledge().fetchers for word in c.arguments)
    return next((_host(f"//{word}") for word in words if _is_host(word)), "")


def asks_whether_up(line: str, commands: Sequence[Simple]) -> bool:
    """Whether it asks a server on this machine, or any server for its health."""
    here = bool(_HERE.match(_host_in(line, commands)))
    return here or knowledge().waits_at.search(line[:LONGEST]) is not None


def _is_host(word: str) -> bool:
    host = re.split(r"[:/]", word, maxsplit=1)[0]
    return bool(_NAMED.match(word)) and ("." in host or bool(_HERE.match(host)))


def _is_url(value: object) -> bool:
    return isinstance(value, str) and value[:8].startswith(("http://", "https://"))


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").casefold()
    except ValueError:
        return ""


def _safe(name: str) -> str:
    return re.sub(r"[^\w.:-]+", "-", name.encode("utf-8", "replace").decode())[:80]

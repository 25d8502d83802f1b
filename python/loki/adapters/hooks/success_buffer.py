"""Calls that went well, kept until the monitor is asked the next time: they are most, and cost little so.

The monitor has to know of them before the next one that failed, and before the end. It has something to
say to one that went well only where that came before: then it is asked at once.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from loki.base import locks

FOLDER = "state/passed"
"""Where they are, in ``.loki/``; a file for each session."""

LONGEST = 2_000
"""Characters of an argument that are kept, but of a command; chosen, not measured."""

LONGEST_COMMAND = 20_000
"""Characters of a command that is kept here; chosen, not measured."""

LARGEST = 1 << 20
"""Bytes of a session's file: then the monitor takes them; chosen, not measured."""

COMMANDS = frozenset({"command", "cmd", "script"})

PATHS = frozenset({"file_path", "path", "filename", "notebook_path"})

SHOWN = 1_000
"""Characters at either end of an output that are kept; chosen, not measured."""

AGAIN = 2
"""Times that the same call with the same answer is kept; the next time the monitor is asked. One less than
what it names. See `loki.decision.monitor.monitor_policy`."""

Call = tuple[str, Mapping[str, Any], str, str]
"""Tool, arguments, the agent's number of a call, and what it gave, both ends of it."""

_VARIES = re.compile(r"(?<!\d)\d+(?:\.\d+)? ?(?:m?s|secs?|seconds)\b|\d\d:\d\d:\d\d|0x[0-9a-f]+")
_TALKS = re.compile(r"\s*(?:echo|printf)\b[^|;&<>`$\n]*\Z")


def keep_success(folder: str, session: str, call: Call) -> bool:
    """Keep a call that went well.

    Args:
        folder: the project's.
        session: as the monitor knows it.
        call: the call; secrets are masked.

    Returns:
        Whether it is kept; else the monitor has to be told at once: also where it came before.
    """
    base = os.path.join(folder, ".loki")
    tool, arguments, id_, output = call
    if not os.path.isfile(os.path.join(base, ".gitignore")):
        return False  # nobody has prepared the folder yet
    if any(len(one) > LONGEST_COMMAND for one in _commands(arguments)):
        return False
    short = {name: _short(name, value) for name, value in arguments.items()}
    mark = _mark(tool, short, output)
    line = json.dumps([tool, short, id_, _short("output", output), mark])
    try:
        if _count(_path(folder, session), mark) >= AGAIN:
            return False
        os.makedirs(os.path.join(base, FOLDER), 0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        handle = os.open(_path(folder, session), flags, 0o600)
        try:
            locks.take(handle, timeout=None)
            now = os.fstat(handle)
            if now.st_size > LARGEST or not now.st_nlink:  # taken, and removed, meanwhile
                return False
            if not now.st_size:
                from loki.adapters.hooks.session_cleanup import remove_stale_sessions

                remove_stale_sessions(os.path.join(base, FOLDER))
            data = f"{line}\n".encode()
            return os.write(handle, data) == len(data)
        finally:
            os.close(handle)
    except OSError:
        return False


def take_successes(folder: str, session: str) -> list[Call]:
    """The calls that were kept, in order; they are gone then. Torn lines are left out."""
    try:
        handle = os.open(_path(folder, session), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return []
    from loki.base.path_containment import parent

    with os.fdopen(handle, "r+b") as file:
        try:
            locks.take(handle, timeout=None)
            data = file.read(2 * LARGEST)
            with parent(os.path.join(folder, ".loki"), _name(session)) as (above, name):
                os.unlink(name, dir_fd=above)  # under the lock: nobody keeps a call in it any more
            _remember(_path(folder, session), data)
        except OSError:
            return []
    found: list[Call] = []
    for line in data.splitlines():
        try:
            tool, arguments, id_, output, _ = json.loads(line)
        except (ValueError, TypeError, RecursionError):
            continue
        told = tool, id_, output
        if isinstance(arguments, dict) and all(isinstance(one, str) for one in told):
            found.append((tool, arguments, id_, output))
    return found


def _remember(path: str, data: bytes) -> None:
    """Keep the marks of what came again and again, so that the monitor is asked the next time, too."""
    kept = Counter(re.findall(rb'(?m)"([0-9a-f]{16})"\]$', data))
    often = set(re.findall(rb'(?m)^"([0-9a-f]{16}) ', data))  # were remembered before
    often |= {mark for mark, times in kept.items() if times >= AGAIN}
    if often:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        handle = os.open(path, flags, 0o600)
        try:
            os.write(handle, b"".join(b'"%b %b"\n' % (mark, mark) for mark in sorted(often)))
        finally:
            os.close(handle)


def both_ends(output: str) -> str:
    """What is kept of an output: a short one whole.

    Example:
        >>> both_ends("3 found"), len(both_ends("x" * 10_000))
        ('3 found', 2003)
    """
    return output if len(output) <= 2 * SHOWN else f"{output[:SHOWN]}\n…\n{output[-SHOWN:]}"


def _mark(tool: str, arguments: Mapping[str, Any], output: str) -> str:
    """The same for the same call with the same answer; "": it gave none, so there is nothing to compare.

    Of a change of a file the answer does not count, and what only prints words is all one: the monitor has
    something to say to those whatever came of them.
    """
    from hashlib import sha256

    said = _VARIES.sub("", output)
    told: list[object] = [tool, arguments, said]
    command = next(iter(_commands(arguments)), "")
    if command and _TALKS.match(command):
        told = ["talk"]
    elif not command and any(name in arguments for name in PATHS):
        told = [tool, arguments]
    elif not said.strip():
        return ""
    text = json.dumps(told, sort_keys=True)
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _commands(arguments: Mapping[str, Any]) -> list[str]:
    return [v for k, v in arguments.items() if k in COMMANDS and isinstance(v, str)]


def _count(path: str, mark: str) -> int:
    """How often a mark is kept."""
    if not mark:
        return 0
    try:
        with open(path, "rb") as file:
            return file.read(2 * LARGEST).count(mark.encode())
    except OSError:
        return 0


def _short(name: str, value: object) -> object:
    """An argument that is short enough, without secrets."""
    from loki.base.secret import mask_secrets

    if value is None or isinstance(value, (bool, int, float)):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if name not in {*COMMANDS, "output"} and len(text) > LONGEST:
        from hashlib import sha256

        text = f"{text[:LONGEST]}… {sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}"
    masked = mask_secrets(text)
    if isinstance(value, str):
        return masked
    try:
        return json.loads(masked)
    except ValueError:
        return masked


def _path(folder: str, session: str) -> str:
    return os.path.join(folder, ".loki", _name(session))


def _name(session: str) -> str:
    return f"{FOLDER}/{quote(session[:80], safe='')}.jsonl"

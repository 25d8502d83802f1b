"""Calls that went well, kept until the monitor is asked the next time: they are most, and cost little so.

The monitor has nothing to say to a call that went well; it only has to know of it before the next one
that failed, and before the end.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

FOLDER = "state/passed"
"""Where they are, in ``.loki/``; a file for each session."""

LONGEST = 2_000
"""Characters of an argument that are kept, but of a command; chosen, not measured."""

LONGEST_COMMAND = 20_000
"""Characters of a command that is kept here; chosen, not measured."""

LARGEST = 1 << 20
"""Bytes of a session's file: then the monitor takes them; chosen, not measured."""

COMMANDS = frozenset({"command", "cmd", "script"})

Call = tuple[str, Mapping[str, Any], str]
"""Tool, arguments and the agent's number of a call."""


def keep(folder: str, session: str, call: Call) -> bool:
    """Keep a call that went well.

    Args:
        folder: the project's.
        session: as the monitor knows it.
        call: the call; secrets are masked.

    Returns:
        Whether it is kept; else the monitor has to be told at once.
    """
    base = os.path.join(folder, ".loki")
    tool, arguments, id_ = call
    if not os.path.isfile(os.path.join(base, ".gitignore")):
        return False  # nobody has prepared the folder yet
    if any(
        isinstance(v, str) and len(v) > LONGEST_COMMAND
        for k, v in arguments.items()
        if k in COMMANDS
    ):
        return False
    line = json.dumps([tool, {name: _short(name, value) for name, value in arguments.items()}, id_])
    try:
        os.makedirs(os.path.join(base, FOLDER), 0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        handle = os.open(_path(folder, session), flags, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            now = os.fstat(handle)
            if now.st_size > LARGEST or not now.st_nlink:  # taken, and removed, meanwhile
                return False
            if not now.st_size:
                from loki.adapters.hooks.leftovers import sweep

                sweep(os.path.join(base, FOLDER))
            data = f"{line}\n".encode()
            return os.write(handle, data) == len(data)
        finally:
            os.close(handle)
    except OSError:
        return False


def take(folder: str, session: str) -> list[Call]:
    """The calls that were kept, in order; they are gone then. Torn lines are left out."""
    try:
        handle = os.open(_path(folder, session), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return []
    with os.fdopen(handle, "r+b") as file:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            data = file.read(2 * LARGEST)
            os.unlink(_path(folder, session))  # under the lock: nobody keeps a call in it any more
        except OSError:
            return []
    found: list[Call] = []
    for line in data.splitlines():
        try:
            tool, arguments, id_ = json.loads(line)
        except (ValueError, TypeError, RecursionError):
            continue
        if isinstance(tool, str) and isinstance(arguments, dict) and isinstance(id_, str):
            found.append((tool, arguments, id_))
    return found


def _short(name: str, value: object) -> object:
    """An argument that is short enough, without secrets."""
    from loki.base.secret import mask_secrets

    if value is None or isinstance(value, (bool, int, float)):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if name not in COMMANDS and len(text) > LONGEST:
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
    return os.path.join(folder, ".loki", FOLDER, f"{quote(session[:80], safe='')}.jsonl")

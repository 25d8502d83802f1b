"""``loki hook AGENT``, as an agent calls it: JSON on stdin, JSON or nothing on stdout, always exit code 0.

It must never get in the agent's way. Whatever goes wrong is one line on stderr; nothing takes longer
than `PATIENCE`. It runs at every tool call: no typer, no rich, and what else can be left out.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Sequence
from typing import BinaryIO

from loki.adapters.hooks.hooked_agents import AGENTS

PATIENCE = 10.0
"""Seconds after which loki says nothing, whatever it is doing. Chosen, not measured."""

LARGEST = 32 << 20
"""Bytes of an event; a larger one is not read. Chosen, not measured."""

_PIECE = 1 << 20


def is_one(arguments: Sequence[str]) -> bool:
    """Whether a command line is a call of a hook: ``hook`` and an agent's name, nothing else."""
    return len(arguments) == 2 and arguments[0] == "hook" and arguments[1] in AGENTS  # noqa: PLR2004


def run(name: str) -> None:
    """Answer one call, and end the process.

    Args:
        name: the agent's.
    """
    watch = threading.Timer(PATIENCE, _give_up)
    watch.daemon = True
    watch.start()
    said = ""
    try:
        said = _answered(name, sys.stdin.buffer)
    except Exception as error:  # whatever it is, the agent goes on
        complain(_told(error))
    if said:
        try:
            sys.stdout.write(said)
            sys.stdout.flush()
        except OSError:
            pass
    os._exit(0)  # at once: nobody waits for what else the interpreter would do


def complain(message: str) -> None:
    """One line on stderr; what it takes is imported only then."""
    from loki.adapters.hooks import hook_warnings

    hook_warnings.warn_once(message)


def _told(error: Exception) -> str:
    """What went wrong, in words where it was foreseen."""
    if isinstance(error, (json.JSONDecodeError, UnicodeDecodeError)):
        return f"found no JSON on standard input ({error}), expected an event as agents give it to hooks"
    from loki.base.error import LokiError

    foreseen = isinstance(error, (LokiError, ValueError))
    return str(error) if foreseen else f"{type(error).__name__}: {error}"


def _answered(name: str, stdin: BinaryIO) -> str:
    from loki.adapters.hooks.hook_handler import answer

    if stdin.isatty():
        title = AGENTS[name].title
        complain(
            f"{title} calls this at its tool calls; to have it do so: loki hook install {name}"
        )
        return ""
    data = _read(stdin)
    if data is None:
        complain(f"the event has more than {LARGEST >> 20} MB; it is not looked at")
        return ""
    told = answer(name, json.loads(data), os.environ)
    return "" if told is None else f"{json.dumps(told)}\n"


def _read(stdin: BinaryIO) -> bytes | None:
    """All of it, so that its writer is not cut off; None: it is too large."""
    pieces: list[bytes] = []
    size = 0
    while piece := stdin.read(_PIECE):
        size += len(piece)
        if size <= LARGEST:
            pieces.append(piece)
    return b"".join(pieces) if size <= LARGEST else None


def _give_up() -> None:
    complain(f"nothing to say after {PATIENCE:g} s; the agent goes on without it")
    os._exit(0)

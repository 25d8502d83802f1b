"""A language's own tool as judge of its syntax: runs it on a copy, reads what it says of the place."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from loki.action.changes.scratch_folder import scratch_folder
from loki.action.gates.data_parsers import Problem
from loki.action.processes import process
from loki.action.processes.command_line import find_program
from loki.recognition.failure import recognize

_CARET = re.compile(r"[ \t]*\^+[ \t~]*")


class TooSlow(Exception):
    """The tool was ended because it took too long."""


def is_there(command: Sequence[str], root: Path) -> bool:
    """Whether the program of a command can be started."""
    return find_program(command[0], root) is not None


def check(
    command: Sequence[str],
    name: str,
    content: bytes,
    *,
    seconds: float,
    cancelled: threading.Event | None = None,
) -> None:
    """Have a tool look at a text in a folder of its own; nothing of the project is run.

    Args:
        command: its words; ``{file}`` is the path of the text.
        name: of the file, with the extension that the tool goes by.
        content: the text.
        seconds: how long it may take.
        cancelled: ends it when set.

    Raises:
        Problem: the tool refuses the text.
        TooSlow: it was ended.
    """
    with scratch_folder() as folder:
        file = Path(folder, PurePosixPath(name).name.lstrip("-") or "file")
        file.write_bytes(content)
        finished = process.run(
            [word.replace("{file}", str(file)) for word in command],
            cwd=folder,
            timeout=seconds,
            environment={"NODE_OPTIONS": "", "PYTHONPATH": ""},
            cancelled=cancelled,
            merge=True,
        ).masked()
    if finished.timed_out:
        raise TooSlow(command[0])
    if finished.is_success:
        return
    output = finished.output.decode("utf-8", "replace")
    failure = recognize(output, command=" ".join(command[:2]), exit_code=finished.exit_code)
    if failure.line is None or not failure.message:
        first = next((line for line in output.split("\n") if line.strip()), "nothing")
        raise Problem(
            f"{command[0]} refuses it, and what it printed cannot be read: {first.strip()[:200]}"
        )
    column = failure.column or _column(output, content, failure.line)
    kind = f"{failure.error_type}: " if failure.error_type else "syntax error: "
    raise Problem(kind + failure.message, failure.line, column)


def _column(output: str, content: bytes, line: int) -> int | None:
    """The column that a caret under the quoted line points at."""
    source = content.decode("utf-8", "replace").split("\n")[line - 1 : line]
    printed = output.split("\n")
    for quoted, mark in itertools.pairwise(printed):
        if source and quoted.rstrip() == source[0].rstrip() and _CARET.fullmatch(mark):
            return mark.index("^") + 1
    return None

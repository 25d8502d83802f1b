"""Command lines without a shell: text to words, which program would run.

A command is a tuple of words; leading words ``NAME=value`` are its environment, as in a shell.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from typing import TYPE_CHECKING

from loki.base.error import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")

# What a shell would act on outside quotes. Brackets and braces are left alone: `test_x[1]` and
# `{briefing}` are common, and a shell passes both on where nothing matches.
_SHELL = frozenset("|&;<>()`$*?\n")


def split_command_line(command: str) -> tuple[str, ...]:
    """The words of a command line: quotes as in a shell, and nothing else that a shell does.

    Args:
        command: for example ``"pytest -q 'tests/a b.py'"``.

    Raises:
        UsageError: no words, an open quote, or something that only a shell can do.

    Example:
        >>> split_command_line("CI=1 pytest -k 'a and b'")
        ('CI=1', 'pytest', '-k', 'a and b')
    """
    if found := _needs_shell(command):
        raise UsageError(
            f"{command!r}: {found!r} needs a shell, and loki runs commands without one: "
            f"quote it, or write sh -c {shlex.quote(command)}"
        )
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise UsageError(f"{command!r}: {str(error).lower()}: expected a closed quote") from error
    if not leading_assignments(words)[1]:
        raise UsageError(f"{command!r} names no program: expected a command such as 'pytest -q'")
    return words


def _needs_shell(command: str) -> str:
    quote, escaped, start = "", False, True
    for character in command.strip():
        if escaped:
            escaped = False
        elif character == "\\" and quote != "'":
            escaped = True
        elif quote:
            if character == quote:
                quote = ""
            elif quote == '"' and character in "$`":
                return character
        elif character in "'\"":
            quote = character
        elif character in _SHELL or (start and character in "~#"):
            return character
        start = not quote and character.isspace()
    return ""


def leading_assignments(argv: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Leading ``NAME=value`` words as environment, and the words after them.

    Example:
        >>> leading_assignments(("CI=1", "make", "A=b"))
        ({'CI': '1'}, ('make', 'A=b'))
    """
    count = 0
    while count < len(argv) and _ASSIGNMENT.match(argv[count]):
        count += 1
    pairs = (word.split("=", 1) for word in argv[:count])
    return dict(pairs), tuple(argv[count:])


def find_program(
    program: str, cwd: str | os.PathLike[str] = ".", path: str | None = None
) -> str | None:
    """The file that would run, absolute, or None where there is none that may be run.

    Args:
        program: a name to look up, or a path, relative to ``cwd``.
        cwd: where it would run.
        path: where to look names up; None: the ``PATH`` of this process.
    """
    if "/" in program:
        full = os.path.join(os.path.abspath(cwd), program)
        return full if os.path.isfile(full) and os.access(full, os.X_OK) else None
    found = shutil.which(program, path=path)
    return os.path.abspath(os.path.join(cwd, found)) if found else None


def why_not_runnable(
    command: Sequence[str], cwd: str | os.PathLike[str] = ".", *, may_come: bool = True
) -> str | None:
    """Why a command cannot run, in a sentence; None where it can, or may once work has begun.

    Args:
        command: its words.
        cwd: where it would run.
        may_come: a program inside the project that does not exist yet is no reason: the work may
            create it. Not so an agent, which does the work.
    """
    environment, words = leading_assignments(command)
    if not words or not words[0]:
        return "the command names no program"
    program = words[0]
    if find_program(program, cwd, environment.get("PATH")):
        return None
    full = os.path.normpath(os.path.join(os.path.abspath(cwd), program))
    is_inside = full.startswith(os.path.abspath(cwd) + os.sep)
    if may_come and "/" in program and is_inside and not os.path.lexists(full):
        return None
    return not_runnable_message(program, cwd)


def not_runnable_message(program: str, cwd: str | os.PathLike[str]) -> str:
    """The sentence for a program that could not be started."""
    if "/" not in program:
        return f"cannot run {program!r}: there is no such program on the PATH"
    full = os.path.join(os.path.abspath(cwd), program)
    if os.path.isdir(full):
        return f"cannot run {program!r}: it is a folder"
    if not os.path.lexists(full):
        return f"cannot run {program!r}: there is no such file in {os.path.abspath(cwd)}"
    if not os.access(full, os.X_OK):
        return f"cannot run {program!r}: it is not executable (chmod +x {shlex.quote(program)})"
    return f"cannot run {program!r}: the system cannot execute it (is its #! line right?)"

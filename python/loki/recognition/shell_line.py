"""A command line as a shell reads it: which programs it runs, with which arguments; ``shell-line.yml``.

The one place that does: words are compared and nothing is run. Pure, total, and linear in the text.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path

from loki.base.yaml_text import load_file

LONGEST = 10_000
"""Characters of a line that are looked at; chosen, not measured."""

LONGEST_SCRIPT = 131_072
"""Characters of a shell's script that are looked at: Linux takes no longer argument (MAX_ARG_STRLEN)."""

DEEPEST = 3
"""Shells within shells that are looked into; chosen, not measured."""

SCRIPT = "run-script:"
"""Stands before the name of a project's own script."""

_SIGNS = "();<>|&\n"
_ASSIGNED = re.compile(r"[A-Za-z_]\w*\+?=")
_QUIET = ("/dev/null", "/dev/stderr", "/dev/stdout")


@dataclass(frozen=True, slots=True)
class Simple:
    """One command of a line.

    Attributes:
        program: its name, without folders.
        arguments: its words.
        target: the file that its output goes into, or "".
        is_hidden: the line's exit code may be another command's, as that of `pytest | tail` is tail's.
    """

    program: str
    arguments: tuple[str, ...]
    target: str = ""
    is_hidden: bool = False

    @property
    def writes(self) -> bool:
        """Whether its output goes into a file."""
        return bool(self.target)

    @property
    def first(self) -> str:
        """Its first argument that is no option; "" where there is none."""
        return next((word for word in self.arguments if not word.startswith("-")), "")


def shell_commands(line: str, deepest: int = DEEPEST) -> list[Simple]:
    """The commands of a line, in their order.

    Args:
        line: as typed; of a very long one the beginning is read.
        deepest: shells within shells that are looked into.

    Example:
        >>> [c.program for c in shell_commands("cd x && sudo uv run pytest -q > out.txt")]
        ['cd', 'pytest']
    """
    text = line[:LONGEST]
    text = _EDIT.sub(r"\1", text) if "end_of_" in text else text
    return _commands(_without_documents(text, is_whole=text == line), deepest)


def _commands(line: str, deepest: int) -> list[Simple]:
    return [
        replace(one, target=one.target or target, is_hidden=one.is_hidden or is_hidden)
        for command, target, is_hidden in _placed(line)
        for one in commands_of(command, deepest)
    ]


def commands_of(command: Sequence[str], deepest: int = DEEPEST) -> list[Simple]:
    """The commands that a command is, or starts as is plain to see: none, one, or those of a shell.

    Args:
        command: its words.
        deepest: shells within shells that are looked into.

    Example:
        >>> commands_of(["env", "A=1", "bash", "-c", "cd x && rm y"])[1]
        Simple(program='rm', arguments=('y',), target='', is_hidden=False)
    """
    rest, runs_shell = _unwrapped(command)
    if not rest:
        return []
    script = _script(rest) if runs_shell and deepest else None
    if script is not None:
        return _commands(_without_documents(script[:LONGEST_SCRIPT]), deepest - 1)
    program, arguments = _program(rest)
    return [Simple(program, tuple(arguments))]


def _placed(line: str) -> list[tuple[list[str], str, bool]]:
    """(words, the file that its output goes into, exit code is hidden) of each command."""
    hiding = {";", "||", "&", "\n"} | (set() if "pipefail" in line else {"|", "|&"})
    placed, something_follows, is_hidden = [], False, False
    for command, target, sign in reversed(list(split_commands(line))):
        is_hidden = is_hidden or (something_follows and sign in hiding)
        something_follows = something_follows or bool(command)
        placed.append((command, target, is_hidden))
    return placed[::-1]


def split_commands(line: str) -> Iterator[tuple[list[str], str, str]]:
    """(words, the file that its output goes into, sign after it) of each command of a line."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=_SIGNS)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        parts = list(lexer)
    except ValueError:  # a quote that nobody closed: as far as blanks tell
        parts = line.split()
    command: list[str] = []
    writes, sign = "", ""
    for word in parts:
        if word and set(word) <= set(_SIGNS):
            if word.startswith((">", "<")) or word.endswith(">"):
                if command and command[-1].isdigit():
                    command.pop()  # 2>
                sign = word
            elif word == ">&" or (sign and word == "&"):
                sign = "&"
            else:
                yield command, writes, word
                command, writes, sign = [], "", ""
        elif sign:
            is_file = ">" in sign and not word.isdigit() and word not in _QUIET and word != "-"
            writes, sign = word if is_file else writes, ""
        else:
            command.append(word)
    yield command, writes, ""


_WORD = re.compile(r"[\w./-]+")
_DOCUMENT = re.compile(r"(?<!<)<<-?[ \t]*(['\"]?)(\w+)(?!\w)\1[^\n]*\n")
# SWE-agent's commands that edit have their text behind them, up to a word of theirs.
_EDIT = re.compile(r"(?m)^((?:edit|insert|append)\b[^\n]*)\n(?:.*\n)*?end_of_\w+[ \t]*$")


def _without_documents(line: str, *, is_whole: bool = True) -> str:
    """A line without the here-documents in it, but those that a shell is to run."""
    kept, at = [], 0
    while (found := _DOCUMENT.search(line, at)) is not None:
        end = re.compile(rf"(?m)^[ \t]*{found[2]}[ \t\r]*$").search(line, found.end())
        if end is None and is_whole:
            break  # it is none: a shift of bits, say
        begin, rest = found.start(), line[found.end(2) + len(found[1]) : found.end()]
        head = line[line.rfind("\n", at, begin) + 1 : begin] + rest
        if end and any(_name(word) in _known().shells for word in _WORD.findall(head)):
            begin, rest = end.start(), ""
        kept.append(line[at:begin] + rest)
        at = end.end() if end else len(line)
    return "".join((*kept, line[at:]))


def _unwrapped(command: Sequence[str]) -> tuple[list[str], bool]:
    """A command without what is put before it."""
    rest = list(command)
    while rest:
        if _ASSIGNED.match(rest[0]) or rest[0] in {"{", "!", "do", "then", "else", "if", "while"}:
            rest = rest[1:]
        elif rest[0] == "command" and rest[1:2] in (["-v"], ["-V"]):
            return ["which", *rest[2:]], False
        elif _name(rest[0]) in _known().wrappers and len(rest) > 1:
            rest = _past_options(_name(rest[0]), rest[1:])
        elif rest[2:] and f"{_name(rest[0])} {rest[1]}" in _known().runners:
            rest = _past_options(f"{_name(rest[0])} {rest[1]}", rest[2:])
        elif f"{_name(rest[0])} {''.join(rest[1:2])}" in _known().scripts and (
            script := _without_options(rest[2:])
        ):
            # A script's name is none of a program: `npm run test` is not the shell's `test`.
            return [f"{SCRIPT}{script[0]}", *script[1:]], False
        elif inner := _inside(rest):
            rest = inner
        else:
            break
    return rest, bool(rest) and _name(rest[0]) in _known().shells


def _past_options(wrapper: str, rest: list[str]) -> list[str]:
    """What a wrapper or runner is given to run: the words behind its options."""
    while rest and re.fullmatch(r"-.*|[\d.]+[smhd]?", rest[0]):
        rest = rest[2 if f"{wrapper} {rest[0]}" in _known().wrapper_values else 1 :]
    return rest


def _inside(command: Sequence[str]) -> list[str]:
    """The command that is run in a container; [] where that is not said."""
    program, rest = _joined(_name(command[0]), command[1:])
    rest = _without_options(rest)
    if " ".join((program, *rest[:1])) not in _known().containers:
        return []
    options = rest[1 : len(rest) - len(_without_options(rest[1:]))]
    if {"-d", "--detach"} & set(options):  # it goes on by itself
        return []
    inner = _without_options(rest[1:])[1:]  # without the container's name
    if "--" in inner:
        after = _without_options(inner)
        return after if len(after) < len(inner) else inner
    return [] if inner[:1] and inner[0].startswith("-") else inner


def _joined(program: str, rest: Sequence[str]) -> tuple[str, list[str]]:
    """A program and its words; one whose first word names another program is that."""
    is_joined = any(one.startswith(f"{program} ") for one in _known().joined)
    plain = _without_options(rest) if is_joined else []
    if plain and f"{program} {plain[0]}" in _known().joined:
        return f"{program}-{plain[0]}", _without_options(plain[1:])
    return program, list(rest)


def _without_options(rest: Sequence[str]) -> list[str]:
    """Words without the options at their beginning, some of which have a word of their own."""
    at = 0
    while at < len(rest) and rest[at].startswith("-"):
        if rest[at] == "--":
            return list(rest[at + 1 :])
        at += 2 if rest[at] in _known().container_values else 1
    return list(rest[at:])


def _script(command: Sequence[str]) -> str | None:
    """What a shell is given to run: the word after its ``-c``."""
    for option, script in pairwise(command[1:]):
        if re.fullmatch(r"-[a-z]*c[a-z]*", option):
            return script
    return None


def _program(command: Sequence[str]) -> tuple[str, list[str]]:
    """(program, arguments): behind an interpreter's ``-m`` it is the module."""
    name, arguments = _name(command[0]), list(command[1:])
    if name.rstrip("0123456789.") in _known().interpreters:
        if "-m" in arguments[:-1]:
            at = arguments.index("-m")
            return arguments[at + 1], arguments[at + 2 :]
        if arguments and _name(arguments[0]) == "manage.py":
            return "manage.py", arguments[1:]
    return _joined(name, arguments)


def _name(word: str) -> str:
    return posixpath.basename(word) or word


# --- Words that are read past: ``shell-line.yml`` -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Known:
    """What the file says; it says itself what each field means."""

    wrappers: tuple[str, ...]
    wrapper_values: tuple[str, ...]
    runners: tuple[str, ...]
    scripts: tuple[str, ...]
    joined: tuple[str, ...]
    containers: tuple[str, ...]
    container_values: tuple[str, ...]
    shells: tuple[str, ...]
    interpreters: tuple[str, ...]


@cache
def _known() -> _Known:
    said = load_file(Path(__file__).with_name("shell-line.yml"))
    return _Known(**{field: tuple(words) for field, words in said.items()})

"""The commands that repair what a tool's check complains of, as tool files tell them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from loki.base import codec
from loki.recognition import builtin
from loki.recognition.site import launchers


@dataclass(frozen=True, slots=True)
class FixCommand:
    """A command that repairs what a tool's check complains of.

    Attributes:
        tool: the tool's name.
        when: leading words of the check that it answers.
        command: the words to run; the check's other words follow, unless ``{file}`` is in them: it
            is the failing file.
        drop: words of the check that do not follow, because they only have it look.
        otherwise: commands to run instead where this one does not help, as of another version.
        alone: words that follow where the check's own are not known.
    """

    tool: str
    when: tuple[str, ...]
    command: tuple[str, ...]
    drop: frozenset[str] = frozenset()
    otherwise: tuple[tuple[str, ...], ...] = ()
    alone: tuple[str, ...] = ("{file}",)

    def for_check(self, rest: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """The commands for a check, of which ``rest`` stands behind `when`."""
        kept = [word for word in rest if word not in self.drop]
        for command in (self.command, *self.otherwise):
            yield command if "{file}" in command else (*command, *kept)


@cache
def fix_commands() -> Mapping[tuple[str, ...], FixCommand]:
    """Leading words of a check to the command that repairs what it complains of.

    Look up the longest prefix of a check's words that is a key.

    Example:
        >>> fix_commands()["ruff", "check"].command
        ('ruff', 'check', '--fix')
    """
    found = {}
    for tool in builtin.tools():
        for entry in tool.get("fix_commands", ()):
            for when in entry["when"]:
                words = tuple(when.split())
                fix = {**entry, "tool": tool["tool"], "when": words}
                found[words] = codec.parse(FixCommand, fix)
    return MappingProxyType(found)


def program_name(program: str) -> str:
    """A program's name without its folder and its version.

    Example:
        >>> program_name("/usr/bin/clang-format-14"), program_name(".venv/bin/python3.11")
        ('clang-format', 'python')
    """
    name = program.replace("\\", "/").rpartition("/")[2].removesuffix(".exe")
    return re.sub(r"-?\d+(?:\.\d+)*$", "", name) or name


@cache
def wrappers() -> frozenset[tuple[str, ...]]:
    """Words that run a tool whose name follows, as the commands of tools show: ``python -m``."""
    return launchers() | frozenset(
        words[:start]
        for tool in builtin.tools()
        for words in (tuple(command.split()) for command in tool.get("commands", ()))
        for start in range(1, len(words))
        if " ".join(words[start:]) in tool["commands"]
    )


def _starts(words: tuple[str, ...]) -> Iterator[int]:
    """Where a tool's name may stand: behind variables that are set, and behind a wrapper."""
    first = next((at for at, word in enumerate(words) if not _SETS.match(word)), len(words))
    if first < len(words):
        yield first
    known = wrappers()
    for start in range(first + 1, len(words)):
        wrapper = (program_name(words[first]), *words[first + 1 : start])
        if wrapper in known:
            yield start


def _beside(own: str, name: str, program: str) -> str:
    """The program to run: the check's own where it is the same, else one beside it, as it is named."""
    if program == name:
        return own
    folder, slash, _ = own.rpartition("/")
    return f"{folder}{slash}{program}" if slash and "/" not in program else program


_SETS = re.compile(r"[A-Za-z_]\w*=")


def fix_for(command: Sequence[str]) -> tuple[str, ...] | None:
    """The first command that repairs what a check complains of; None where none is known.

    Args:
        command: the check's words; see `fixes_for`.

    Example:
        >>> fix_for(["ruff", "check", "src"])
        ('ruff', 'check', '--fix', 'src')
        >>> fix_for(["black", "--check", "."])
        ('black', '.')
    """
    return next(iter(fixes_for(command)), None)


def fixes_for(command: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The commands that repair what a check complains of, best first, run as the check itself is run.

    Args:
        command: the check's words, as people write them: with variables set before them, a wrapper
            round the tool, a path to it, a version in its name. Its own options and files go to the
            fix command, unless that names the failing file (`{file}`, for the caller to fill in).

    Example:
        >>> fixes_for(["CI=1", "uv", "run", "ruff", "check", "src"])
        (('CI=1', 'uv', 'run', 'ruff', 'check', '--fix', 'src'),)
        >>> fixes_for([".venv/bin/python3.11", "-m", "black", "--check", "."])
        (('.venv/bin/python3.11', '-m', 'black', '.'),)
        >>> fixes_for(["rm", "black"])
        ()
    """
    words, known = tuple(command), fix_commands()
    for start in _starts(words):
        own, rest = words[start], words[start + 1 :]
        tool = (program_name(own), *rest)
        for count in range(len(tool), 0, -1):
            if fix := known.get(tool[:count]):
                return tuple(
                    (*words[:start], _beside(own, tool[0], found[0]), *found[1:])
                    for found in fix.for_check(tool[count:])
                )
    return ()


def fixes_of(tool: str) -> tuple[tuple[str, ...], ...]:
    """The commands that repair what a tool complains of, where its own command is not known.

    Example:
        >>> fixes_of("clippy")
        (('cargo', 'clippy', '--fix', '--allow-dirty', '--allow-staged'),)
    """
    found = (
        fix.command if "{file}" in fix.command else (*fix.command, *fix.alone)
        for fix in fix_commands().values()
        if fix.tool == tool
    )
    return tuple(dict.fromkeys(found))

"""Which program a command starts in the end: behind launchers, and inside the project's scripts.

What launches, and how a script gets arguments, is told by the tools' files; no tool is named here.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loki.action.processes.command_line import leading_assignments
from loki.recognition.site import launchers, plain_words, script_name, script_runners

MANIFEST = "package.json"
"""Where scripts stand, in JavaScript's world."""

MAX_DEPTH = 5
"""Scripts that run scripts are followed so far; chosen, not measured."""

_ENDS_COMMAND = frozenset({"&&", ";"})
_SHELL = frozenset("|&<>()$`*")


@dataclass(frozen=True, slots=True)
class Invocation:
    """What a command starts.

    Attributes:
        words: the whole command.
        program: the words of what it starts in the end, its own arguments included.
        start: where in ``words`` these begin; None where they stand in a script.
        separators: what has to stand before arguments that are to reach the program.
    """

    words: tuple[str, ...]
    program: tuple[str, ...]
    start: int | None
    separators: tuple[str, ...] = ()

    @classmethod
    def of(cls, words: Sequence[str], root: Path) -> Invocation:
        """What a command of a project starts.

        Args:
            words: the command's.
            root: the project's folder, in which it runs; its manifest is read.

        Example:
            >>> Invocation.of(["CI=1", "npx", "--yes", "jest", "-i"], Path("/")).program
            ('jest', '-i')
        """
        whole = tuple(words)
        program, start, separators = _follow(whole, _scripts(root), 0)
        return cls(whole, program, start, separators)

    def begins_with(self, leading: Sequence[Sequence[str]]) -> tuple[str, ...] | None:
        """The program's own words for the longest of several leads that it begins with, or None."""
        named = plain_words(self.program)
        fitting = [tuple(lead) for lead in leading if named[: len(lead)] == tuple(lead)]
        best = max(fitting, key=len, default=None)
        return None if best is None else self.program[: len(best)]

    def with_appended(self, more: Sequence[str]) -> tuple[str, ...]:
        """The command with more arguments for the program at its end."""
        return (*self.words, *self.separators, *more)

    def without(self, options: Container[str]) -> tuple[str, ...]:
        """The command without some of the program's words; as it is, where they stand in a script."""
        if self.start is None:
            return self.words
        kept = (word for word in self.words[self.start :] if word not in options)
        return (*self.words[: self.start], *kept)

    def with_inserted(self, lead: Sequence[str], more: Sequence[str]) -> tuple[str, ...] | None:
        """The command with more words before the program's own; None where a script has some in the way."""
        if self.start is None:
            given = _given(self.words)
            own = self.program[len(lead) : len(self.program) - len(given)]
            if not all(word.startswith("-") for word in own):
                return None
            at = len(self.words) - len(given)
            return (*self.words[:at], *self.separators, *more, *self.words[at:])
        at = self.start + len(lead)
        return (*self.words[:at], *more, *self.words[at:])


_Followed = tuple[tuple[str, ...], "int | None", tuple[str, ...]]


def _follow(words: tuple[str, ...], scripts: Mapping[str, str], depth: int) -> _Followed:
    """(the program's words, where they begin or None, separators)."""
    start = len(words) - len(leading_assignments(words)[1])
    rest = words[start:]
    if depth < MAX_DEPTH and (found := _script(rest, scripts)) is not None:
        text, separator = found
        inner = _last_command(text)
        if inner is not None:
            program, _, separators = _follow(inner, scripts, depth + 1)
            return (*program, *_given(rest)), None, (*separator, *separators)
        return rest, start, ()
    if lead := _leading(rest, launchers()):
        behind = start + lead
        while behind < len(words) and words[behind].startswith("-"):
            behind += 1
        if behind < len(words):
            program, inner_start, separators = _follow(words[behind:], scripts, depth)
            at = None if inner_start is None else behind + inner_start
            return program, at, separators
    return rest, start, ()


def _script(
    words: tuple[str, ...], scripts: Mapping[str, str]
) -> tuple[str, tuple[str, ...]] | None:
    """(the text of the script that a command runs, what must stand before further arguments)."""
    for runner in script_runners():
        name = script_name(words, runner)
        if name in scripts:
            needed = runner.separator and runner.separator not in words
            return scripts[name], (runner.separator,) if needed else ()
    return None


def _given(words: tuple[str, ...]) -> tuple[str, ...]:
    """Arguments that a command passes on to its script, as far as they stand behind ``--``."""
    return words[words.index("--") + 1 :] if "--" in words else ()


def _leading(words: tuple[str, ...], known: frozenset[tuple[str, ...]]) -> int:
    """How many words of a command are the longest lead that is known."""
    return next((n for n in range(len(words), 0, -1) if words[:n] in known), 0)


def _last_command(script: str) -> tuple[str, ...] | None:
    """The command at the end of a script, which gets the arguments; None where that is not plain.

    Example:
        >>> _last_command("tsc && NODE_ENV=test jest -i")
        ('NODE_ENV=test', 'jest', '-i')
        >>> _last_command("jest | tee log") is None
        True
    """
    lexer = shlex.shlex(script, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        tokens = list(lexer)
    except ValueError:
        return None
    ends = [index for index, token in enumerate(tokens) if token in _ENDS_COMMAND]
    last = tuple(tokens[ends[-1] + 1 :] if ends else tokens)
    plain = not any(token and set(token) <= _SHELL for token in last)
    return last if leading_assignments(last)[1] and plain and "||" not in tokens else None


def _scripts(root: Path) -> dict[str, str]:
    """The scripts of the project's manifest; none where there is none, or it is no JSON."""
    try:
        found = json.loads((root / MANIFEST).read_bytes())["scripts"]
        return {str(name): text for name, text in found.items() if isinstance(text, str)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}

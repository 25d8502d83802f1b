"""Commands that no undo reaches: loki restores a project's files, and nothing else.

Which they are is data, in ``irreversible.yml``. Words are compared, no pattern is searched for: what
an agent proposes is hostile. It is a net, not a wall: a program may do anything, so that commands run
only where the configuration or a person allows them.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from itertools import pairwise
from pathlib import Path

from loki.base import codec
from loki.base.yaml_text import load_file

FILE = Path(__file__).with_suffix(".yml")

DEEPEST = 4
"""Shells within shells that are looked into; chosen, not measured."""

LONGEST = 10_000
"""Words of a command that are looked at; chosen, not measured."""


@dataclass(frozen=True, slots=True)
class Operation:
    """Something that cannot be taken back; the file says what each field means."""

    id: str
    why: str
    programs: tuple[str, ...]
    words: tuple[str, ...] = ()
    any: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    outside: bool = False

    def is_(self, program: str, arguments: Sequence[str], root: str) -> bool:
        """Whether a command is this."""
        if not any_of(self.programs, (program, posixpath.basename(program))):
            return False
        if self.unless and any_of(self.unless, arguments):
            return False
        if self.any and not any_of(self.any, arguments):
            return False
        if self.text and not _says(arguments, self.text):
            return False
        if self.outside and not any(_leads_out(word, root) for word in arguments):
            return False
        rest = iter(arguments)
        return all(any(fnmatchcase(word, wanted) for word in rest) for wanted in self.words)


def any_of(globs: Iterable[str], words: Sequence[str]) -> bool:
    """Whether one of the words is what one of the globs describes."""
    return any(fnmatchcase(word, glob) for glob in globs for word in words)


def irreversible(command: Sequence[str], root: str = "") -> Operation | None:
    """What a command does that cannot be taken back; None: nothing that is known of.

    Args:
        command: its words.
        root: the project's folder, absolute; "" where it is not known.

    Example:
        >>> irreversible(["git", "push", "--force"]).id
        'force-push'
        >>> irreversible(["sudo", "sh", "-c", "cd x && npm publish"]).id
        'publish'
        >>> irreversible(["npm", "publish", "--dry-run"]) is irreversible(["rm", "-rf", "build"])
        True
    """
    for program, arguments in _programs(list(command)[:LONGEST], DEEPEST):
        for operation in _file().operations:
            if operation.is_(program, arguments, root):
                return operation
    return None


@dataclass(frozen=True, slots=True)
class _File:
    operations: tuple[Operation, ...]
    wrappers: tuple[str, ...]
    runners: tuple[tuple[str, ...], ...]
    shells: tuple[str, ...]
    interpreters: tuple[str, ...]


@cache
def _file() -> _File:
    return codec.parse(_File, load_file(FILE))


def _programs(words: list[str], depth: int) -> Iterator[tuple[str, list[str]]]:
    """(program, arguments) of each command that a command is, or starts as is plain to see."""
    file, words = _file(), _unwrapped(words)
    if not words:
        return
    program, arguments = words[0], words[1:]
    yield program, arguments
    name = posixpath.basename(program)
    if depth <= 0 or not arguments:
        return
    if name in file.shells:
        for script in _scripts(arguments):
            for inner in _commands(script):
                yield from _programs(inner, depth - 1)
    elif any_of(file.interpreters, (name,)) and "-m" in arguments:
        yield from _programs(arguments[arguments.index("-m") + 1 :], depth - 1)
    elif (name, arguments[0]) in file.runners:
        yield from _programs([w for w in arguments[1:] if w != "--"], depth - 1)


def _unwrapped(words: list[str]) -> list[str]:
    """A command without what is put before it: ``sudo -E A=1 nice -n 5 rm x`` is ``rm x``."""
    while words:
        is_wrapper = posixpath.basename(words[0]) in _file().wrappers
        if not is_wrapper and "=" not in words[0].split("/", 1)[0]:
            break
        words = words[1:]
        while is_wrapper and words and re.fullmatch(r"-.*|\d+[smhd]?", words[0]):
            words = words[1:]
    return words


def _scripts(arguments: Sequence[str]) -> Iterator[str]:
    """What a shell is given to run: the word after its ``-c``."""
    for option, script in pairwise(arguments):
        if re.fullmatch(r"-[a-z]*c[a-z]*", option):
            yield script
            return


def _commands(script: str) -> Iterator[list[str]]:
    """The commands of a shell's script, as far as words tell."""
    lexer = shlex.shlex(script, posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace, lexer.whitespace_split = " \t\r", True
    command: list[str] = []
    try:
        for word in lexer:
            if set(word) <= set("();<>|&\n"):
                yield command
                command = []
            else:
                command.append(word)
    except ValueError:  # a quote that nobody closed: no shell would run it
        return
    yield command


def _says(arguments: Sequence[str], texts: Sequence[str]) -> bool:
    said = " ".join(" ".join(arguments).split()).casefold()
    return any(text in said for text in texts)


def _leads_out(word: str, root: str) -> bool:
    if word.startswith(("~", "$")):
        return True
    if word.startswith("-"):
        return False
    base = root or "/project"
    path = posixpath.normpath(posixpath.join(base, word))
    return not path.startswith(f"{base.rstrip('/')}/")

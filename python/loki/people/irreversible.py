"""Commands that no undo reaches: loki restores a project's files, and nothing else.

Which they are is data, in ``irreversible.yml``. Words are compared, no pattern is searched for: what
an agent proposes is hostile. It is a net, not a wall: a program may do anything, so that commands run
only where the configuration or a person allows them.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from loki.base import codec
from loki.base.yaml_text import load_file
from loki.recognition.shell_line import commands_of

FILE = Path(__file__).with_suffix(".yml")

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
        if not any_of(self.programs, (program,)):
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
    return next(
        (
            operation
            for one in commands_of(command[:LONGEST])
            for operation in _operations()
            if operation.is_(one.program, one.arguments, root)
        ),
        None,
    )


@dataclass(frozen=True, slots=True)
class _File:
    operations: tuple[Operation, ...]


@cache
def _operations() -> tuple[Operation, ...]:
    return codec.parse(_File, load_file(FILE)).operations


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

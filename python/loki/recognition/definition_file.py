"""Definitions that people write in YAML: read with positions, checked, turned into JSON.

Tool files and pattern files are hostile input: size, depth and aliases are limited (`source`), and
whatever is wrong is a `ConfigError` that says where, what was found and what was expected. All that
is wrong with the shape is collected, so that a person can mend it in one go. The shapes stand in
`schema`; this module knows no key.

The build runs ``python -m loki.recognition.builtin`` over the same code, so nothing here needs the
compiled core.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import yaml

from loki.base.error import ConfigError
from loki.recognition.definition_source import MAX_BYTES, Source

MOST_PROBLEMS = 100
"""Reading stops there: nobody reads on."""

_KINDS = {
    "null": "nothing",
    "bool": "{}, which YAML reads as true or false",
    "int": "a number {}",
    "float": "a number {}",
    "timestamp": "{}, which YAML reads as a date",
}
_TEXTS = {"str", "merge", "value"}  # plain << and = are text where no key is meant
_SHOWN = 60


class Document:
    """A definition, checked.

    Attributes:
        name: the file's name, as errors show it.
        value: plain data; without meaning where there are problems.
        problems: all that is wrong, in the order of the text, at most `MOST_PROBLEMS`.
        regexes: JSON pointer to the text of a regex, for each value that must be one.
    """

    def __init__(self, name: str) -> None:
        """Args: name: of the file."""
        self.name = name
        self.value: Any = None
        self.problems: list[ConfigError] = []
        self.regexes: dict[str, str] = {}
        self.source: Source | None = None
        self.nodes: dict[str, yaml.Node] = {}

    def error(self, where: str, reason: str, offset: int | None = None) -> ConfigError:
        """An error at a JSON pointer, or at the nearest place above it that is known.

        Args:
            where: the pointer.
            reason: what was found, what was expected.
            offset: a character of the text there, where it is that one.
        """
        pointer = where
        while pointer not in self.nodes and "/" in pointer:
            pointer = pointer.rpartition("/")[0]
        node = self.nodes.get(pointer)
        if node is None or self.source is None:
            return ConfigError(reason, file=self.name, line=1, column=1)
        index = node.start_mark.index
        if offset is not None and pointer == where:
            index = self.source.index_in(node, offset)
        return self.source.error(index, reason)

    def note(self, problem: ConfigError) -> None:
        """Remember a problem; one that several aliases share is one."""
        if all(str(problem) != str(known) for known in self.problems):
            self.problems.append(problem)
        if len(self.problems) >= MOST_PROBLEMS:
            raise _EnoughError


class _EnoughError(Exception):
    """`MOST_PROBLEMS` are noted."""


class Cursor:
    """A node of a document that is being checked, with where it is."""

    def __init__(self, document: Document, node: yaml.Node, pointer: str) -> None:
        self.document, self.node, self.pointer = document, node, pointer
        document.nodes.setdefault(pointer, node)

    def error(self, reason: str, node: yaml.Node | None = None) -> ConfigError:
        """An error at this node, or at another one of the document."""
        assert self.document.source is not None
        return self.document.source.error((node or self.node).start_mark.index, reason)

    def gather(self, check: Check) -> Any:
        """What a check makes of this node; None, and the problem noted, where it is wrong."""
        try:
            return check(self)
        except ConfigError as problem:
            self.document.note(problem)
            return None

    def found(self) -> str:
        """What stands here, in words."""
        if isinstance(self.node, yaml.MappingNode):
            return "a mapping"
        if isinstance(self.node, yaml.SequenceNode):
            return "a list"
        value = str(self.node.value)
        kind = _KINDS.get(_kind(self.node))
        shown = value if len(value) <= _SHOWN else value[:_SHOWN] + "…"
        return kind.format(shown) if kind else repr(shown)

    def wrong(self, expected: str) -> ConfigError:
        """The error for a value of another kind than expected."""
        return self.error(f"found {self.found()}, expected {expected}")

    def text(self) -> str:
        """Text, which may be empty."""
        if not isinstance(self.node, yaml.ScalarNode):
            raise self.wrong("text")
        if _kind(self.node) not in _TEXTS:
            raise self.wrong("text" if self.found() == "nothing" else "text: put it in quotes")
        return str(self.node.value)

    def scalar(self, kinds: tuple[str, ...], expected: str) -> str:
        """The text of a scalar of one of the YAML kinds."""
        if not isinstance(self.node, yaml.ScalarNode) or _kind(self.node) not in kinds:
            raise self.wrong(expected)
        return str(self.node.value)

    def items(self, expected: str) -> list[Cursor]:
        """The entries of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.wrong(expected)
        return [
            Cursor(self.document, node, f"{self.pointer}/{index}")
            for index, node in enumerate(self.node.value)
        ]

    def entries(self, expected: str) -> dict[str, tuple[yaml.Node, Cursor]]:
        """Key to (key's node, value), of a mapping with text keys, each once."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.wrong(expected)
        result: dict[str, tuple[yaml.Node, Cursor]] = {}
        for key, value in self.node.value:
            refused = self._refused_key(key, result)
            if refused:
                self.document.note(refused)
                continue
            name = str(key.value)
            pointer = f"{self.pointer}/{name.replace('~', '~0').replace('/', '~1')}"
            result[name] = (key, Cursor(self.document, value, pointer))
        return result

    def _refused_key(self, key: yaml.Node, known: Iterable[str]) -> ConfigError | None:
        if not isinstance(key, yaml.ScalarNode):
            what = "a list" if isinstance(key, yaml.SequenceNode) else "a mapping"
            return self.error(f"found {what} as a key, expected text", key)
        if _kind(key) == "merge":
            return self.error("found the merge key '<<', expected each key written out", key)
        if key.value in known:
            shown = str(key.value)[:_SHOWN]
            return self.error(f"found key {shown!r} a second time, expected each key once", key)
        return None


Check = Callable[[Cursor], Any]
"""Checks a node and gives its plain value; raises ConfigError."""


def _kind(node: yaml.Node) -> str:
    return str(node.tag).removeprefix("tag:yaml.org,2002:")


def closest(word: str, names: Iterable[str]) -> str:
    """The name that a word is a slip of; empty where it is none's.

    Example:
        >>> closest("signls", ["signals", "strategy"])
        'signals'
    """
    return next(iter(difflib.get_close_matches(word[:_SHOWN], list(names), n=1)), "")


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """A question that ends an error: what may have been meant."""
    meant = closest(word, names)
    return f"; did you mean {meant!r}?" if meant else ""


def examine(text: str | bytes, name: str, check: Check) -> Document:
    """The document in a YAML text, with all that is wrong with it.

    Args:
        text: the YAML, at most 4 MiB; bytes must be UTF-8 (or say otherwise by a byte order mark).
        name: what errors call the file.
        check: what the document must look like.
    """
    document = Document(name)
    try:
        document.source = Source(text, name)
        root = Cursor(document, document.source.compose(), "")
        document.value = root.gather(check)
    except ConfigError as problem:
        document.problems.append(problem)
    except _EnoughError:
        pass
    document.problems.sort(key=lambda problem: (problem.line, problem.column))
    return document


def read(text: str | bytes, name: str, check: Check) -> Document:
    """The same, for who can use only what is right.

    Raises:
        ConfigError: the first problem, with line and column, what was found, what was expected.
    """
    document = examine(text, name, check)
    if document.problems:
        raise document.problems[0]
    return document


def content(path: str | Path) -> bytes:
    """The bytes of a definition file; of one that is too large only as many as show that.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"found {error.strerror or error}, expected a file", file=str(path)
        ) from None

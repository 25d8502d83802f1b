"""Definitions that people write in YAML: read with positions, checked, turned into JSON.

Tool files and pattern files are hostile input: size, depth and aliases are limited, and whatever is
wrong is one `ConfigError` that says where, what was found and what was expected. The shapes stand
in `schema`; this module reads documents and knows no key.

The build runs ``python -m loki.recognition.builtin`` over the same code, so nothing here needs the
compiled core.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import yaml

from loki.base.error import ConfigError

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 24
MAX_NODES = 200_000

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_KINDS = {"null": "nothing", "bool": "true or false", "int": "a number", "float": "a number"}
_SHOWN = 60


@dataclass
class Document:
    """A checked definition.

    Attributes:
        name: the file's name, as errors show it.
        value: plain data.
        places: JSON pointer to (line, column), both from 1.
    """

    name: str
    value: Any = None
    places: dict[str, tuple[int, int]] = field(default_factory=dict)

    def error(self, where: str, reason: str) -> ConfigError:
        """An error at a JSON pointer, or at the nearest place above it that is known."""
        pointer = where
        while pointer not in self.places and "/" in pointer:
            pointer = pointer.rpartition("/")[0]
        line, column = self.places.get(pointer, (1, 1))
        return ConfigError(reason, file=self.name, line=line, column=column)


class Cursor:
    """A node of a document that is being checked, with where it is."""

    def __init__(
        self, document: Document, node: yaml.Node, pointer: str, budget: list[int]
    ) -> None:
        self.document, self.node, self.pointer, self._budget = document, node, pointer, budget
        document.places.setdefault(pointer, _place(node))
        budget[0] -= 1
        if budget[0] < 0:
            raise self.error(f"found more than {MAX_NODES} values, expected fewer")

    def error(self, reason: str, node: yaml.Node | None = None) -> ConfigError:
        """An error at this node, or at another one of the document."""
        line, column = _place(node or self.node)
        return ConfigError(reason, file=self.document.name, line=line, column=column)

    def found(self) -> str:
        """What stands here, in words."""
        if isinstance(self.node, yaml.MappingNode):
            return "a mapping"
        if isinstance(self.node, yaml.SequenceNode):
            return "a list"
        value = str(self.node.value)
        kind = _KINDS.get(self.node.tag.rpartition(":")[2])
        if kind == "nothing":
            return kind
        shown = value if len(value) <= _SHOWN else value[:_SHOWN] + "…"
        return f"{kind} {shown}" if kind else repr(shown)

    def wrong(self, expected: str) -> ConfigError:
        """The error for a value of another kind than expected."""
        return self.error(f"found {self.found()}, expected {expected}")

    def scalar(self, kinds: tuple[str, ...], expected: str) -> str:
        """The text of a scalar of one of the YAML kinds."""
        if not isinstance(self.node, yaml.ScalarNode):
            raise self.wrong(expected)
        if self.node.tag.rpartition(":")[2] not in kinds:
            raise self.wrong(expected)
        return str(self.node.value)

    def items(self, expected: str) -> list[Cursor]:
        """The entries of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.wrong(expected)
        return [
            Cursor(self.document, node, f"{self.pointer}/{index}", self._budget)
            for index, node in enumerate(self.node.value)
        ]

    def entries(self, expected: str) -> dict[str, tuple[yaml.Node, Cursor]]:
        """Key to (key's node, value), of a mapping with text keys, each once."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.wrong(expected)
        result: dict[str, tuple[yaml.Node, Cursor]] = {}
        for key, value in self.node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self.error("found a key that is no text, expected text", key)
            name = str(key.value)
            if name in result:
                raise self.error(f"found key {name!r} a second time, expected each key once", key)
            pointer = f"{self.pointer}/{name.replace('~', '~0').replace('/', '~1')}"
            result[name] = (key, Cursor(self.document, value, pointer, self._budget))
        return result


Check = Callable[[Cursor], Any]
"""Checks a node and gives its plain value; raises ConfigError."""


def _place(node: yaml.Node | yaml.Event) -> tuple[int, int]:
    mark = node.start_mark
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)


def read(text: str | bytes, name: str, check: Check) -> Document:
    """The checked document in a YAML text.

    Args:
        text: the YAML, at most 4 MiB; bytes must be UTF-8 (or say otherwise by a byte order mark).
        name: what errors call the file.
        check: what the document must look like.

    Raises:
        ConfigError: with line and column, what was found and what was expected.
    """
    size = len(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise ConfigError(f"found {size} bytes, expected at most {MAX_BYTES}", file=name)
    document = Document(name)
    try:
        _check_depth(text, name)
        node = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise _syntax_error(error, name) from None
    except (UnicodeError, ValueError) as error:
        raise ConfigError(
            f"found text that is no UTF-8 ({error}), expected YAML", file=name
        ) from None
    if node is None:
        raise ConfigError("found nothing, expected a mapping", file=name, line=1, column=1)
    document.value = check(Cursor(document, node, "", [MAX_NODES]))
    return document


def _check_depth(text: str | bytes, name: str) -> None:
    """Composing recurses; events do not."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            depth += 1
            if depth > MAX_DEPTH:
                line, column = _place(event)
                raise ConfigError(
                    f"found more than {MAX_DEPTH} levels, expected fewer",
                    file=name,
                    line=line,
                    column=column,
                )
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            depth -= 1


def _syntax_error(error: yaml.YAMLError, name: str) -> ConfigError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    return ConfigError(
        f"found {problem}, expected YAML",
        file=name,
        line=mark.line + 1 if mark else 1,
        column=mark.column + 1 if mark else 1,
    )

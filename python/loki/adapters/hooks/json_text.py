"""JSON text that people wrote: where each value stands in it, so that one may be added or taken out.

Comments and commas too many are read where the program that the file belongs to reads them. Nothing
here writes a value anew that was there: text is put in, or cut out, and the rest stays as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from loki.base.error import ConfigError

DEEPEST = 200
"""Most levels of values in values; chosen, not measured."""

_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENTS = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SCALAR = re.compile(r"-?[\w.+-]+")


@dataclass(frozen=True, slots=True)
class Node:
    """A value, and where it stands.

    Attributes:
        start, end: of its text, in characters.
        value: what it says.
        keys: of an object, in order.
        starts: of an object's member, where its key begins; of an array's item, its own start.
        items: values of the members, or items.
    """

    start: int
    end: int
    value: Any
    keys: tuple[str, ...] = ()
    starts: tuple[int, ...] = ()
    items: tuple[Node, ...] = field(default=())

    def member(self, key: str) -> int | None:
        """Which member has a key; of several the last, as readers take it; None: none has."""
        found = [n for n, own in enumerate(self.keys) if own == key]
        return found[-1] if found else None


def read(text: str, *, comments: bool = False) -> Node:
    """The value that a text says.

    Args:
        text: the text.
        comments: whether comments, and a comma behind the last value, are read.

    Raises:
        ConfigError: it is no JSON; without the file's name.

    Example:
        >>> node = read('{"a": [1, 2]}')
        >>> node.value, node.items[0].items[1].start
        ({'a': [1, 2]}, 10)
    """
    reader = _Reader(text, comments)
    node = reader.value(reader.skip(0), 0)
    rest = reader.skip(node.end)
    if rest < len(text):
        raise reader.error(rest, "nothing more")
    return node


class _Reader:
    def __init__(self, text: str, comments: bool) -> None:
        self.text, self.comments = text, comments
        self.space = _COMMENTS if comments else _SPACE

    def skip(self, at: int) -> int:
        found = self.space.match(self.text, at)
        return found.end() if found else at

    def error(self, at: int, expected: str) -> ConfigError:
        before = self.text[:at]
        found = repr(self.text[at : at + 12]) if at < len(self.text) else "the end of the file"
        return ConfigError(
            f"found {found}, expected {expected}",
            line=before.count("\n") + 1,
            column=at - (before.rfind("\n") + 1) + 1,
        )

    def value(self, at: int, depth: int) -> Node:
        if depth > DEEPEST:
            raise self.error(at, f"at most {DEEPEST} levels of values in values")
        mark = self.text[at : at + 1]
        if mark in {"{", "["}:
            return self.container(at, mark == "{", depth)
        if mark == '"':
            said, end = self.string(at)
            return Node(at, end, said)
        found = _SCALAR.match(self.text, at)
        try:
            if found is None:
                raise ValueError
            return Node(at, found.end(), json.loads(found[0]))
        except ValueError:
            raise self.error(at, "a JSON value") from None

    def string(self, at: int) -> tuple[str, int]:
        found = _STRING.match(self.text, at)
        try:
            if found is None:
                raise ValueError
            return str(json.loads(found[0])), found.end()
        except ValueError:
            raise self.error(at, "a JSON string") from None

    def container(self, at: int, is_object: bool, depth: int) -> Node:
        close = "}" if is_object else "]"
        keys: list[str] = []
        starts: list[int] = []
        items: list[Node] = []
        position = self.skip(at + 1)
        while self.text[position : position + 1] != close:
            starts.append(position)
            if is_object:
                if self.text[position : position + 1] != '"':
                    raise self.error(position, 'a key in "…", or }')
                key, position = self.string(position)
                keys.append(key)
                position = self.skip(position)
                if self.text[position : position + 1] != ":":
                    raise self.error(position, "a colon behind the key")
                position = self.skip(position + 1)
            node = self.value(position, depth + 1)
            items.append(node)
            position = self.skip(node.end)
            if self.text[position : position + 1] == ",":
                comma, position = position, self.skip(position + 1)
                if self.text[position : position + 1] == close and not self.comments:
                    raise self.error(comma, f"no comma before {close}")
            elif self.text[position : position + 1] != close:
                raise self.error(position, f"a comma, or {close}")
        said: Any = [node.value for node in items]
        if is_object:
            said = dict(zip(keys, said, strict=True))
        return Node(at, position + 1, said, tuple(keys), tuple(starts), tuple(items))


# --- putting in and cutting out -------------------------------------------------------------------


def add(text: str, container: Node, value: Any, key: str | None = None) -> str:
    """A text with one more value, the last of an object or array.

    It is laid out as what is there. Into an empty container it goes on one line, behind a space:
    by that `cut` knows afterwards that the container had been there.

    Args:
        text: the text.
        container: the object or array, as `read` gave it.
        value: what is added.
        key: its key, in an object.

    Example:
        >>> add('{"a": 1}', read('{"a": 1}'), [2], "b")
        '{"a": 1, "b": [2]}'
    """
    name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    if not container.items:
        at = container.start + 1
        return f"{text[:at]} {name}{json.dumps(value, ensure_ascii=False)}{text[at:]}"
    at, indent = container.items[-1].end, _indent(text, container.starts[0], container.start)
    if indent is None:
        return f"{text[:at]}, {name}{json.dumps(value, ensure_ascii=False)}{text[at:]}"
    unit = _unit(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    said = f"{newline}{indent}".join(lines)
    return f"{text[:at]},{newline}{indent}{name}{said}{text[at:]}"


def cut(text: str, container: Node, which: int) -> str:
    """A text without one value of an object or array; the inverse of `add`, where it is the last.

    Example:
        >>> cut('{"a": 1, "b": [2]}', read('{"a": 1, "b": [2]}'), 1)
        '{"a": 1}'
    """
    start, end = container.starts[which], container.items[which].end
    if which > 0:
        return text[: container.items[which - 1].end] + text[end:]
    if len(container.items) > 1:
        return text[:start] + text[container.starts[1] :]
    return text[: container.start + 1] + text[end:]


def was_empty(text: str, container: Node) -> bool:
    """Whether the only value of a container is one that `add` put into an empty one."""
    if len(container.items) != 1:
        return False
    start, node = container.start + 1, container.items[0]
    compact = json.dumps(node.value, ensure_ascii=False)
    if container.keys:
        compact = f"{json.dumps(container.keys[0], ensure_ascii=False)}: {compact}"
    return text[start : node.end] == f" {compact}"


def _indent(text: str, start: int, opening: int) -> str | None:
    """The white space before what begins its own line; None: it does not."""
    line = text.rfind("\n", 0, start) + 1
    before = text[line:start]
    return before if line > opening and not before.strip(" \t") else None


def _unit(text: str) -> int | str:
    """What one level is indented by."""
    found = re.search(r"[{\[]\s*\n([ \t]+)\S", text)
    if found is None:
        return 2
    return "\t" if found[1].startswith("\t") else min(len(found[1]), 8)


def nodes(container: Node) -> Sequence[Node]:
    """Items of an array; nothing where it is none."""
    return container.items if isinstance(container.value, list) else ()

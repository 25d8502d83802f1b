"""The text of a definition: decoded, held to its limits, composed into nodes; positions inside it.

A text may be hostile: whatever is wrong with it as YAML is one `ConfigError` in plain words, at the
place where a person would look. What keys and values mean is not known here.

Nothing here needs the compiled core, and nothing takes more than linear time: the limits are
checked on the stream of events, before nodes are made.
"""

from __future__ import annotations

import bisect
import codecs
import functools
import re
from typing import Any

import yaml

from loki.base.error import ConfigError
from loki.recognition.yaml_error import plain_yaml_error

MAX_BYTES = 4 * 1024 * 1024
"""Of one file. Chosen, not measured: the built-in set has 40 KB."""
MAX_DEPTH = 24
"""Lists and mappings in each other; definitions need 8."""
MAX_NODES = 100_000
"""Keys and values, aliases written out. Chosen for a second of work at most."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_UNPRINTABLE = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_ENCODINGS = ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_OPENING = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_CLOSING = (yaml.MappingEndEvent, yaml.SequenceEndEvent)


class Source:
    """A definition's text.

    Attributes:
        name: what errors call it.
        text: as read: no byte order mark, line ends as they are.
    """

    def __init__(self, content: str | bytes, name: str) -> None:
        """Args: content: YAML; bytes are UTF-8, or UTF-16 with a byte order mark. name: of the file.

        Raises:
            ConfigError: it is too large, or holds what is no text.
        """
        self.name, self.text = name, ""
        if len(content) > MAX_BYTES:
            unit = "bytes" if isinstance(content, bytes) else "characters"
            raise self.error(0, f"found more than {MAX_BYTES} {unit}, expected at most so many")
        self.text = content if isinstance(content, str) else self._decoded(content)
        self.text = self.text.removeprefix("\ufeff")
        odd = _UNPRINTABLE.search(self.text)
        if odd:
            code = f"U+{ord(odd[0]):04X}"
            raise self.error(odd.start(), f"found the character {code}, expected printable text")

    def _decoded(self, content: bytes) -> str:
        encoding = next((name for mark, name in _ENCODINGS if content.startswith(mark)), "utf-8")
        try:
            return content.decode(encoding)
        except UnicodeDecodeError as error:
            self.text = content[: error.start].decode(encoding, "ignore").removeprefix("\ufeff")
            byte, name = content[error.start], encoding.upper()
            raise self.error(
                len(self.text),
                f"found the byte 0x{byte:02x}, which is no {name}, expected UTF-8 text",
            ) from None

    def place(self, index: int) -> tuple[int, int]:
        """Line and column, both from 1, of a character."""
        line = bisect.bisect_right(self._lines, index)
        return line, index - self._lines[line - 1] + 1

    @functools.cached_property
    def _lines(self) -> list[int]:
        return [0, *(found.end() for found in _BREAK.finditer(self.text))]

    def error(self, index: int, reason: str) -> ConfigError:
        """An error at a character."""
        line, column = self.place(index)
        return ConfigError(reason, file=self.name, line=line, column=column)

    def compose(self) -> yaml.Node:
        """The root of the one document in the text.

        Raises:
            ConfigError: it is no YAML, goes beyond a limit, or asks for what definitions have not.
        """
        try:
            _Census(self).take()
            node = yaml.compose(self.text, Loader=_Loader)
        except yaml.MarkedYAMLError as error:
            index, reason = plain_yaml_error(error, self.text, self.place)
            raise self.error(index, reason) from None
        except yaml.YAMLError:
            raise self.error(0, "found text that is no YAML, expected YAML") from None
        if node is None:
            raise self.error(0, "found nothing, expected a mapping")
        return node

    def index_in(self, node: yaml.Node, offset: int) -> int:
        """Where a character of a scalar's value stands in the text.

        Quotes, escapes, folded lines and block scalars are seen through. Where that cannot be told,
        the value's own begin.
        """
        begin = int(node.start_mark.index)
        if not isinstance(node, yaml.ScalarNode) or not 0 <= offset < len(node.value):
            return begin
        end, style = int(node.end_mark.index), node.style
        if style in {"|", ">"}:
            header = _BREAK.search(self.text, begin, end)
            begin = header.end() if header else end
        elif style:
            begin, end = begin + 1, end - 1
        visible = [
            (found.start(), char)
            for found in _TOKENS[style or ""].finditer(self.text, begin, end)
            if (char := _decoded(found[0], style)) not in _BLANK
        ]
        wanted = [i for i, char in enumerate(node.value) if char not in _BLANK]
        spelt = "".join(char for _, char in visible[: len(wanted)])
        if spelt != "".join(node.value[i] for i in wanted):
            return int(node.start_mark.index)
        number = bisect.bisect_left(wanted, offset)
        if number < len(wanted) and wanted[number] == offset:
            return visible[number][0]
        # Blanks may be folded: one is said to stand right behind what stands before it.
        return visible[number - 1][0] + offset - wanted[number - 1] if number else begin


_BLANK = " \t\r\n\x85\u2028\u2029"
_VISIBLE = f"[^{_BLANK}]"
_HEX = r"x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}"
_TOKENS = {
    "": re.compile(_VISIBLE),
    "|": re.compile(_VISIBLE),
    ">": re.compile(_VISIBLE),
    "'": re.compile(rf"''|{_VISIBLE}"),
    '"': re.compile(rf"\\(?:{_HEX}|[\s\S])|{_VISIBLE}"),
}
_ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
    "v": "\v", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029", "\n": "\n", "\r": "\r",
}  # fmt: skip


def _decoded(token: str, style: str | None) -> str:
    """The character that a token of a scalar stands for."""
    if style == "'":
        return token[0]
    if style != '"' or token[0] != "\\":
        return token
    if len(token) > 2:  # noqa: PLR2004
        return chr(int(token[2:], 16))  # noqa: FURB166 - "0x" is no part of \\U0001F600
    return _ESCAPES.get(token[1], token[1])


class _Census:
    """Counts what a text holds as its events pass by, and stops at the first that is too much."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._sizes: dict[str, int] = {}
        self._open: list[tuple[str | None, int]] = []
        self._nodes = self._documents = 0

    def take(self) -> None:
        for event in yaml.parse(self._source.text, Loader=_Loader):
            if isinstance(event, yaml.NodeEvent):
                self._node(event)
            elif isinstance(event, _CLOSING):
                anchor, before = self._open.pop()
                self._keep(anchor, self._nodes - before)
            elif isinstance(event, yaml.DocumentStartEvent):
                self._documents += 1
                if self._documents > 1:
                    raise self._refused(event, "found a second document, expected one")

    def _node(self, event: Any) -> None:
        if isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif event.tag is not None:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")[:60]
            raise self._refused(event, f"found the tag {tag}, expected a plain value without tags")
        else:
            self._nodes += 1
        if self._nodes > MAX_NODES:
            raise self._refused(
                event, f"found more than {MAX_NODES} keys and values, expected at most so many"
            )
        if isinstance(event, _OPENING):
            self._open.append((event.anchor, self._nodes - 1))
            if len(self._open) > MAX_DEPTH:
                raise self._refused(
                    event, f"found more than {MAX_DEPTH} levels, expected at most so many"
                )
        elif isinstance(event, yaml.ScalarEvent):
            self._keep(event.anchor, 1)

    def _alias(self, event: Any) -> None:
        """An alias counts as what it stands for: a few lines of them can stand for billions."""
        if any(anchor == event.anchor for anchor, _ in self._open):
            raise self._refused(
                event,
                f"found the alias *{event.anchor} inside what it stands for, expected a value",
            )
        if event.anchor not in self._sizes:
            raise self._refused(
                event,
                f"found the alias *{event.anchor}, expected the anchor &{event.anchor} above it",
            )
        self._nodes += self._sizes[event.anchor]

    def _keep(self, anchor: str | None, size: int) -> None:
        if anchor is not None:
            self._sizes[anchor] = size

    def _refused(self, event: Any, reason: str) -> ConfigError:
        return self._source.error(event.start_mark.index, reason)

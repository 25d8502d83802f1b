"""Definitions that people write in YAML: read with positions, checked, turned into JSON.

Tool files and pattern files are hostile input: size, depth and aliases are limited, on the stream of
events, before nodes are made; nothing takes more than linear time. Whatever is wrong is a `ConfigError` that
says where, what was found and what was expected. The parser says what it was doing ("while scanning a simple
key … could not find expected ':'"), so `_SAYINGS` has its messages, which are those of libyaml's scanner and
parser (https://github.com/yaml/libyaml, scanner.c, parser.c), in plain words. All that is wrong with the
shape is collected, so that a person can mend it in one go. The shapes stand in `definition_schema`; this
module knows no key.

The build runs ``python -m loki.recognition.builtin`` over the same code, so nothing here needs the
compiled core.
"""

from __future__ import annotations

import bisect
import codecs
import difflib
import functools
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import yaml

from loki.base.error import ConfigError

# --- What is wrong with a text as YAML, in plain words ----------------------------------------------

Place = Callable[[int], "tuple[int, int]"]

_SHOWN_OF_TOKEN = 24

# What the message holds; what is said to be found ("" for what stands there); what is expected;
# whether to point at the beginning of what was being read.
_SAYINGS: tuple[tuple[str, str, str, bool], ...] = (
    ("could not find expected ':'", "", "'key: value'", True),
    (
        "mapping values are not allowed",
        "a ':' that ends no key",
        "text with ': ' in quotes, or a key indented like its neighbours",
        False,
    ),
    ("unexpected ':'", "a ':' that ends no key", "quotes round text that holds ':'", False),
    ("block sequence entries are not allowed", "", "an entry '- ' on a line of its own", False),
    ("mapping keys are not allowed", "", "a key indented like its neighbours", False),
    ("did not find expected key", "", "a key indented like its neighbours", False),
    ("did not find expected '-'", "", "'- ' indented like the entries above", False),
    ("',' or ']'", "", "',' or ']' in the list that begins at {context}", False),
    ("',' or '}'", "", "',' or '}}' in the mapping that begins at {context}", False),
    ("expected node content", "", "a value", False),
    ("unexpected end of stream", "a quote that is not closed", "the same quote at its end", True),
    ("unexpected document indicator", "a quote that is not closed", "the same quote at its end", True),
    (
        "unknown escape character",
        "",
        "an escape of YAML (in single quotes a backslash stands for itself)",
        True,
    ),
    ("hexdecimal number", "", "an escape of YAML with all its digits", True),
    ("Unicode character code", "", "the code of a character", True),
    ("document start", "", "nothing after the end of the document", False),
    ("undefined tag handle", "a tag", "a plain value without tags", False),
    ("URI", "a tag", "a plain value without tags", False),
    ("expected '!'", "a tag", "a plain value without tags", False),
    ("alphabetic or numeric", "", "a name after '&' or '*', or quotes round the text", True),
    ("incompatible YAML", "", "YAML 1.1 or 1.2", False),
    ("expected '>'", "a tag", "a plain value without tags", False),
    ("second occurrence", "", "each anchor once", False),
    ("non-alphabetical", "a directive", "YAML without directives", True),
    ("digit or '.'", "a directive", "YAML without directives", True),
    ("version number", "a directive", "YAML without directives", True),
    ("directive", "a directive", "YAML without directives", True),
    ("a tab character", "a tab", "spaces", False),
    ("indentation indicator", "", "an indentation from 1 to 9", False),
    ("comment or line break", "", "a new line", False),
    ("whitespace or line break", "", "a blank", False),
)  # fmt: skip


def plain_yaml_error(error: Any, text: str, place: Place) -> tuple[int, str]:
    """Where a person should look, and what stands there and what was expected.

    Args:
        error: a `yaml.MarkedYAMLError` with marks into the text.
        text: all of it.
        place: index to line and column.
    """
    problem = error.problem or ""
    mark = error.problem_mark or error.context_mark
    context = error.context_mark or mark
    index = min(mark.index, len(text)) if mark else 0
    if "cannot start any token" in problem:
        return index, _cannot_start(text[index : index + 1])
    for said, found, expected, at_context in _SAYINGS:
        if said in problem:
            if at_context and context:
                index = _culprit(text, context.index, index, said)
            line, column = place(context.index) if context else (1, 1)
            begun = f"line {line}, column {column}"
            return index, (
                f"found {found or _shown(text, index)}, expected {expected.format(context=begun)}"
            )
    return index, f"found {_shown(text, index)}, expected YAML"


def _culprit(text: str, begin: int, end: int, said: str) -> int:
    """Of a bad escape the backslash, else the beginning of what was being read."""
    if "escape" in said or "hexdecimal" in said or "Unicode" in said:
        return max(text.rfind("\\", begin, end + 1), begin)
    return begin


def _cannot_start(char: str) -> str:
    if char == "\t":
        return "found a tab, expected spaces"
    return f"found {char!r} before text, expected quotes round text that begins with it"


def _shown(text: str, index: int) -> str:
    """What stands at an index: a word, or what one cannot see."""
    rest = text[index : index + 200]
    if not rest.strip():
        return "the end of the file" if not text[index:].strip() else "a blank"
    if rest[0] == "\t":
        return "a tab"
    if rest[0] in " \r\n":
        return "a blank" if rest[0] == " " else "the end of the line"
    word = rest.splitlines()[0].strip()
    return repr(word if len(word) <= _SHOWN_OF_TOKEN else word[:_SHOWN_OF_TOKEN] + "…")


# --- The text of a definition, and positions inside it ----------------------------------------------

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
OPENING = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
CLOSING = (yaml.MappingEndEvent, yaml.SequenceEndEvent)


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
            elif isinstance(event, CLOSING):
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
        if isinstance(event, OPENING):
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


# --- Documents that are checked ---------------------------------------------------------------------

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

"""YAML that people write, read into pydantic models; what is wrong is said with line and column.

Such files are hostile input: size, depth and aliases are limited on the stream of events, before nodes
are made. Models are the schema: what they refuse is said at the node that it is about, in one wording.
"""

from __future__ import annotations

import bisect
import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError

from loki.base.error import ConfigError
from loki.base.text_format import closest, did_you_mean
from loki.base.validation import complaint, known_keys
from loki.base.yaml_text import load_file

MAX_BYTES = 4 * 1024 * 1024
"""Of one file. Chosen, not measured: the built-in set of patterns has 40 KB."""
MAX_DEPTH = 24
"""Lists and mappings in each other; loki's own files need 8."""
MAX_NODES = 100_000
"""Keys and values, aliases written out. Chosen for a second of work at most."""
MOST_PROBLEMS = 100
"""That are said of one file: nobody reads on."""

_SHOWN = 60
_ENCODINGS = ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_UNPRINTABLE = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_OPENING = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_CLOSING = (yaml.MappingEndEvent, yaml.SequenceEndEvent)
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_TAG = "tag:yaml.org,2002:"
_BUILT = ("int", "float", "bool", "null")
_PLAIN = {f"{_TAG}{name}" for name in (*_BUILT, "str", "seq", "map", "timestamp", "merge", "value")}

# What the parser's message holds, and what is expected there, in the words of who writes a file. The
# messages are libyaml's (https://github.com/yaml/libyaml, scanner.c, parser.c).
_WORDS = (
    ("could not find expected ':'", "'key: value'"),
    ("mapping values are not allowed", "text with ': ' in quotes, or a key indented like its neighbours"),
    ("did not find expected key", "a key indented like its neighbours"),
    ("did not find expected '-'", "'- ' indented like the entries above"),
    ("block sequence entries are not allowed", "an entry '- ' on a line of its own"),
    ("unexpected end of stream", "the quote that ends this text"),
    ("unknown escape character", "an escape of YAML (in single quotes a backslash is none)"),
    ("',' or ']'", "',' or ']' in the list that begins in line {line}"),
    ("',' or '}'", "',' or '}}' in the mapping that begins in line {line}"),
    ("expected node content", "a value"),
    ("any token", "quotes round text that begins with it"),
    ("undefined alias", "an anchor of that name above it"),
    ("another document", "one document"),
    ("a tag", "a plain value without tags"),
    ("directive", "YAML 1.1 or 1.2 without directives"),
    ("incompatible", "YAML 1.1 or 1.2 without directives"),
    ("unexpected ':'", "quotes round text that holds ':'"),
    ("second occurrence", "each anchor once"),
)  # fmt: skip

Keys = Sequence["str | int"]
"""The way from the top of a document to a value: keys and, in lists, indexes."""

_M = TypeVar("_M", bound=BaseModel)


class Strict(BaseModel):
    """What a file holds: the keys that are known and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def unexpected(expected: str) -> PydanticCustomError:
    """An error for validators to raise: what was expected; what was found is shown as it stands."""
    return PydanticCustomError("unexpected", "{expected}", {"expected": expected})


def refused(reason: str, *keys: str | int) -> PydanticCustomError:
    """An error for validators to raise.

    Args:
        reason: what was found, what was expected.
        keys: the way from the value that is validated to what it is about.
    """
    return PydanticCustomError("refused", "{reason}", {"reason": reason, "keys": keys})


class Document:
    """A YAML text of one document.

    Attributes:
        name: what errors call it.
        text: as read: no byte order mark, line ends as they are.
        root: its node.
    """

    def __init__(self, content: str | bytes, name: str) -> None:
        """Args: content: YAML; bytes are UTF-8, or UTF-16 with a byte order mark. name: of the file.

        Raises:
            ConfigError: it is no YAML, or goes beyond a limit.
        """
        self.name, self.text = name, ""
        if len(content) > MAX_BYTES:
            unit = "bytes" if isinstance(content, bytes) else "characters"
            raise self._error(0, f"found more than {MAX_BYTES} {unit}, expected at most so many")
        text = content if isinstance(content, str) else self._decoded(content)
        self.text = text.removeprefix("\ufeff")
        odd = _UNPRINTABLE.search(self.text)
        if odd:
            code = f"U+{ord(odd[0]):04X}"
            raise self._error(odd.start(), f"found the character {code}, expected printable text")
        self.root = self._composed()

    def _decoded(self, content: bytes) -> str:
        encoding = next((name for mark, name in _ENCODINGS if content.startswith(mark)), "utf-8")
        try:
            return content.decode(encoding)
        except UnicodeDecodeError as error:
            self.text = content[: error.start].decode(encoding, "ignore").removeprefix("\ufeff")
            byte, name = content[error.start], encoding.upper()
            reason = f"found the byte 0x{byte:02x}, which is no {name}, expected UTF-8 text"
            raise self._error(len(self.text), reason) from None

    # --- Places ---------------------------------------------------------------------------------

    @cached_property
    def _lines(self) -> list[int]:
        return [0, *(found.end() for found in _BREAK.finditer(self.text))]

    def _error(self, index: int, reason: str) -> ConfigError:
        line = bisect.bisect_right(self._lines, index)
        column = index - self._lines[line - 1] + 1
        return ConfigError(reason, file=self.name, line=line, column=column)

    def error(self, keys: Keys, reason: str, *, key: bool = False) -> ConfigError:
        """An error at a value, or at the nearest one above it that is there.

        Args:
            keys: the way to it.
            reason: what was found, what was expected.
            key: at the value's key instead.
        """
        return self._error(node_at(self.root, keys, key=key).start_mark.index, reason)

    # --- From text to nodes ---------------------------------------------------------------------

    def _composed(self) -> yaml.Node:
        try:
            self._limit_events()
            node = yaml.compose(self.text, Loader=_Loader)
        except yaml.MarkedYAMLError as error:
            raise self._no_yaml(error) from None
        except yaml.YAMLError:
            raise self._error(0, "found text that is no YAML, expected YAML") from None
        if node is None:
            raise self._error(0, "found nothing, expected a mapping")
        self._limit_aliases(node)
        return node

    def _limit_events(self) -> None:
        depth = nodes = 0
        for event in yaml.parse(self.text, Loader=_Loader):
            nodes += isinstance(event, yaml.NodeEvent)
            depth += isinstance(event, _OPENING) - isinstance(event, _CLOSING)
            self._limit(event, depth, nodes)

    def _limit_aliases(self, root: yaml.Node) -> None:
        """An alias counts as what it stands for: a few lines of them can stand for billions."""
        nodes, left = 0, [(root, 1)]
        while left:
            node, depth = left.pop()
            nodes += 1
            self._limit(node, depth, nodes)
            if isinstance(node, yaml.MappingNode):
                left += [(inner, depth + 1) for pair in node.value for inner in pair]
            elif isinstance(node, yaml.SequenceNode):
                left += [(inner, depth + 1) for inner in node.value]

    def _limit(self, at: Any, depth: int, nodes: int) -> None:
        is_inside = depth <= MAX_DEPTH + isinstance(at, yaml.ScalarNode)
        if is_inside and nodes <= MAX_NODES:
            return
        much = f"{MAX_NODES} keys and values" if is_inside else f"{MAX_DEPTH} levels"
        reason = f"found more than {much}, expected at most so many"
        raise self._error(at.start_mark.index, reason)

    def _no_yaml(self, error: yaml.MarkedYAMLError) -> ConfigError:
        """What the parser says, where a person should look, in plain words."""
        context, message = error.context or "", f"{error.context}: {error.problem}"
        # Of what is cut off or misspelt the begin tells more than the end.
        is_word = context.startswith("while scanning a") and "a tab" not in message
        mark = (error.context_mark if is_word else None) or error.problem_mark
        index = min(mark.index, len(self.text)) if mark else 0
        line = error.context_mark.line + 1 if error.context_mark else 1
        words = (words.format(line=line) for said, words in _WORDS if said in message)
        found = self._shown(index)
        expected = "spaces" if found == "a tab" else next(words, "YAML")
        return self._error(index, f"found {found}, expected {expected}")

    def _shown(self, index: int) -> str:
        """What stands at an index: a word, or what one cannot see."""
        rest = self.text[index : index + _SHOWN]
        if not rest.strip():
            return "a blank" if self.text[index:].strip() else "the end of the file"
        if rest[0].isspace():
            return "a tab" if rest[0] == "\t" else "a blank"
        return repr(rest.splitlines()[0].strip())

    # --- From nodes to data ---------------------------------------------------------------------

    @cached_property
    def data(self) -> Any:
        """What the text says, as YAML's core schema reads it; keys are text, and dates.

        Raises:
            ConfigError: a tag, a key twice, a key that is no text, or a merge key.
        """
        return self._plain(self.root)

    def _plain(self, node: yaml.Node) -> Any:
        if node.tag not in _PLAIN:
            tag = node.tag.replace(_TAG, "!!")[:_SHOWN]
            reason = f"found the tag {tag}, expected a plain value without tags"
            raise self._error(node.start_mark.index, reason)
        if isinstance(node, yaml.SequenceNode):
            return [self._plain(item) for item in node.value]
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node)
        if node.tag.removeprefix(_TAG) in _BUILT:
            with suppress(ValueError, LookupError):  # many digits; a tag that does not fit its text
                return yaml.constructor.SafeConstructor().construct_object(node)
        return node.value

    def _mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._error(
                    key.start_mark.index, f"found {_shown(key)} as a key, expected text"
                )
            if key.tag == f"{_TAG}merge":
                reason = "found the merge key '<<', expected each key written out"
                raise self._error(key.start_mark.index, reason)
            if key.value in found:
                shown = str(key.value)[:_SHOWN]
                reason = f"found key {shown!r} a second time, expected each key once"
                raise self._error(key.start_mark.index, reason)
            found[key.value] = self._plain(value)
        return found

    # --- From data to models --------------------------------------------------------------------

    def read(self, model: type[_M]) -> _M:
        """The model that the text describes.

        Raises:
            ConfigError: the first thing that is wrong.
        """
        found, problems = self.examine(model)
        if found is None:
            raise problems[0]
        return found

    def examine(self, model: type[_M]) -> tuple[_M | None, list[ConfigError]]:
        """The same, or None and all that is wrong, in the order of the text."""
        try:
            return model.model_validate(self.data, context={}), []
        except ConfigError as error:
            return None, [error]
        except ValidationError as error:
            # What several aliases share is wrong once.
            said = {str(one): one for one in self._problems(error, model)}
            return None, sorted(said.values(), key=lambda one: (one.line, one.column))

    def _problems(self, error: ValidationError, model: type[BaseModel]) -> Iterator[ConfigError]:
        all_ = error.errors(include_url=False)[:MOST_PROBLEMS]
        meant = set()  # a key that was misspelt is not missing, too
        for problem in all_:
            if problem["type"] == "extra_forbidden":
                *way, name = problem["loc"]
                names = known_keys(model, way)
                meant.add((*way, closest(str(name), names)))
                known = f"expected one of {', '.join(names)}" if names else "expected no such key"
                shown = str(name)[:_SHOWN]
                reason = f"found unknown key {shown!r}, {known}{did_you_mean(shown, names)}"
                yield self.error(problem["loc"], reason, key=True)
        for problem in all_:
            if problem["type"] != "extra_forbidden" and problem["loc"] not in meant:
                yield self._problem(problem)

    def _problem(self, problem: Mapping[str, Any]) -> ConfigError:
        keys = (*problem["loc"], *problem.get("ctx", {}).get("keys", ()))
        if problem["type"] == "missing":
            return self.error(keys, f"found no key {keys[-1]!r}, expected one")
        is_key = keys[-1:] == ("[key]",)
        keys = keys[:-1] if is_key else keys
        node = node_at(self.root, keys, key=is_key)
        return self._error(node.start_mark.index, _complaint(problem, node))


def node_at(node: yaml.Node, keys: Keys, *, key: bool = False) -> yaml.Node:
    """The node of a value or, on demand, of its key; the nearest one above where there is none.

    What stands nowhere in the way is passed over: pydantic adds the names of alternatives.
    """
    for count, name in enumerate(keys, 1):
        if isinstance(node, yaml.MappingNode):
            is_last = key and count == len(keys)
            pairs = (pair[0 if is_last else 1] for pair in node.value if pair[0].value == str(name))
            node = next(pairs, node)
        elif (
            isinstance(node, yaml.SequenceNode) and isinstance(name, int) and name < len(node.value)
        ):
            node = node.value[name]
    return node


def _complaint(problem: Mapping[str, Any], node: yaml.Node) -> str:
    said = complaint(problem, _shown(node))
    is_word = isinstance(node, yaml.ScalarNode) and not node.tag.endswith(":null")
    return f"{said}: put it in quotes" if problem["type"] == "string_type" and is_word else said


def _shown(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        kind = "mapping" if isinstance(node, yaml.MappingNode) else "list"
        return f"a {kind}" if node.value else f"an empty {kind}"
    if node.tag.endswith(":null"):
        return "nothing"
    value = str(node.value)
    shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
    return repr(shown) if node.tag.endswith(":str") else shown


# --- Whole files --------------------------------------------------------------------------------------


def read(content: str | bytes, name: str, model: type[_M]) -> _M:
    """The model that a YAML text describes.

    Args:
        content: the text; bytes are UTF-8.
        name: what errors call the file.
        model: what it must look like.

    Raises:
        ConfigError: the first thing that is wrong, with line and column, what was found and what was
            expected.

    Example:
        >>> class Point(BaseModel, extra="forbid"):
        ...     x: int
        >>> read("x: 1", "point.yml", Point)
        Point(x=1)
        >>> read("x: one", "point.yml", Point)
        Traceback (most recent call last):
        loki.base.error.ConfigError: point.yml:1:4: found 'one', expected a whole number
    """
    return Document(content, name).read(model)


def read_beside(module: str, name: str, model: type[_M]) -> _M:
    """The model that a file of loki's own describes.

    Args:
        module: ``__file__`` of the module that it stands beside.
        name: of the file.
        model: what it looks like.
    """
    return model.model_validate(load_file(Path(module).with_name(name)))


def content(path: str | Path) -> bytes:
    """The bytes of a file; of one that is too large only as many as show that.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        reason = f"found {error.strerror or error}, expected a file"
        raise ConfigError(reason, file=str(path)) from None

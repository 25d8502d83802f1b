"""Parsers that are here anyway: Python, JSON with and without comments, TOML, YAML."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Callable, Mapping

import yaml

from loki.base.toml import mistake, tomllib

# --- JSON with comments and trailing commas -----------------------------------------------------------

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"?|//[^\n]*|/\*[\s\S]*?(?:\*/|\Z)|[^\s"/]|/')
_VISIBLE = re.compile(r"[^\n]")


def plain_json(text: str) -> str:
    """The same text as strict JSON: comments and trailing commas become blanks.

    Lines and columns stay, so that an error of the parser points at the right place.

    Example:
        >>> plain_json('{"a": [1, 2,], // two')
        '{"a": [1, 2 ],       '
    """
    blanks: list[tuple[int, int]] = []
    comma = None
    for match in _TOKEN.finditer(text):
        sign = match[0]
        if sign.startswith(("//", "/*")):
            blanks.append(match.span())
            continue
        if sign in {"]", "}"} and comma is not None:
            blanks.append((comma, comma + 1))
        comma = match.start() if sign == "," else None
    parts, end = [], 0
    for start, stop in sorted(blanks):
        parts += [text[end:start], _VISIBLE.sub(" ", text[start:stop])]
        end = stop
    return "".join((*parts, text[end:]))


# --- The parsers --------------------------------------------------------------------------------------

MAX_DEPTH = 100
"""Levels of nesting in YAML; chosen, not measured. Real files have fewer than twenty."""


class Problem(Exception):
    """A text is not what its name says: the message, line and column (from 1; None: not known)."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.line, self.column = line, column


def parse_python(text: str) -> None:
    """Raise a `Problem` where a text is no Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        raise Problem(f"SyntaxError: {error.msg}", error.lineno, error.offset) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise Problem(f"cannot be parsed: {error or type(error).__name__}") from error


def parse_json(text: str) -> None:
    """Raise a `Problem` where a text is no JSON."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise Problem(f"invalid JSON: {error.msg}", error.lineno, error.colno) from error
    except (RecursionError, ValueError) as error:  # nested too deeply, a number too long
        raise Problem(f"invalid JSON: {error}") from error


def parse_jsonc(text: str) -> None:
    """Raise a `Problem` where a text is no JSON, apart from comments and trailing commas."""
    if text.strip():  # tools take an empty file for an empty mapping
        parse_json(plain_json(text))


def parse_toml(text: str) -> None:
    """Raise a `Problem` where a text is no TOML."""
    try:
        tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        said, line, column = mistake(error)
        raise Problem(f"invalid TOML: {said}", line or None, column or None) from error


def parse_yaml(text: str) -> None:
    """Raise a `Problem` where a text is no YAML."""
    try:
        # Events only: aliases are not expanded and tags are not built. The scanner's time grows with
        # the square of the depth, so a hostile depth is refused before it costs anything.
        depth = 0
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
                depth += 1
            elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
                depth -= 1
            if depth > MAX_DEPTH:
                raise Problem(f"invalid YAML: nested deeper than {MAX_DEPTH} levels")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
        raise Problem(f"invalid YAML: {error.problem}", line, column) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise Problem(f"invalid YAML: {error}") from error


PARSERS: Mapping[str, Callable[[str], None]] = {
    "python": parse_python,
    "json": parse_json,
    "jsonc": parse_jsonc,
    "toml": parse_toml,
    "yaml": parse_yaml,
}

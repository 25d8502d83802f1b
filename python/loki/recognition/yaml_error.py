"""What is wrong with a text as YAML, said for the person who wrote it.

The parser says what it was doing ("while scanning a simple key … could not find expected ':'"); a
person wants to know what stands there and what should. `_SAYINGS` has the parser's messages, which
are those of libyaml's scanner and parser (https://github.com/yaml/libyaml, scanner.c, parser.c).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Place = Callable[[int], "tuple[int, int]"]

_SHOWN = 24

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
    return repr(word if len(word) <= _SHOWN else word[:_SHOWN] + "…")

"""What RE2 refuses in a regex: in plain words, and at which character.

Syntax: https://github.com/google/re2/wiki/Syntax
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loki import _core

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MOST_REFUSALS = 100
"""Nobody reads on."""

_LONGEST = 4096
"""Characters of a regex in which the place of an error is looked for; chosen, not measured."""
_MOST_TRIES = 200

# What RE2's message begins with; what is said to be found; what is expected.
_SAYINGS: tuple[tuple[str, str, str], ...] = (
    ("missing ]", "a '[' that is not closed", "a ']' behind it, or '\\[' for the character itself"),
    ("missing )", "a '(' that is not closed", "a ')' behind it, or '\\(' for the character itself"),
    ("unexpected )", "a ')' that closes nothing", "'\\)' for the character itself"),
    ("trailing", "a backslash at the end", "two for the character itself"),
    ("no argument", "'{}' with nothing before it to repeat", "'\\{}' for the character itself"),
    ("bad repetition", "'{}', two repetitions in a row", "one"),
    ("invalid repetition size", "the repetition '{}'", "1000 at most, also one in another"),
    ("invalid named capture", "the group '{}'", "'(?P<name>…)', a name of letters, digits and _"),
    ("invalid character class", "'{}'", "a range that goes upwards, or a class that RE2 knows"),
    ("invalid escape", "the escape '{}'", "one that RE2 knows"),
    ("invalid perl", "the group '{}'", "one that RE2 knows, like '(?:…)' or '(?P<name>…)'"),
    ("too large together", "regexes that are too large together", "smaller or fewer ones"),
    ("pattern too large", "a regex that is too large", "a smaller one"),
)
_LOOK = {"(?=": "look-ahead", "(?!": "look-ahead", "(?<=": "look-behind", "(?<!": "look-behind"}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a regex cannot be used.

    Attributes:
        reason: what was found, what was expected.
        at: the character of the regex where that stands; None where it is not known.
    """

    reason: str
    at: int | None


def refusal(expression: str) -> Refusal | None:
    """Why RE2 refuses a regex; None where it does not.

    Example:
        >>> refusal("error(?= in)")
        Refusal(reason="found the look-ahead '(?=', expected a regex without look-around", at=5)
    """
    error = _core.regex_error(expression)
    return None if error is None else _refusal(expression, *error)


def refusals(expressions: Mapping[str, str]) -> Iterator[tuple[str, Refusal]]:
    """Of many regexes those that are refused, at most `MOST_REFUSALS`, each with its name."""
    names, texts = list(expressions), list(expressions.values())
    for index, said, fragment in _core.regex_errors(texts, MOST_REFUSALS):
        yield names[index], _refusal(texts[index], said, fragment)


def _refusal(expression: str, said: str, fragment: str) -> Refusal:
    at = _position(expression, said, fragment)
    return Refusal(_reason(expression, said, fragment, at), at)


def _reason(expression: str, said: str, fragment: str, at: int | None) -> str:
    here = expression[at : at + 4] if at is not None else fragment
    for head, name in _LOOK.items():
        if said.startswith("invalid perl") and here.startswith(head):
            return f"found the {name} '{head}', expected a regex without look-around"
    named = re.match(r"\(\?P=\w*\)?", expression[at or 0 :])
    if said.startswith("invalid perl") and named:
        fragment = named[0]
    if named or (said.startswith("invalid escape") and re.fullmatch(r"\\[1-9]", fragment)):
        return f"found the back-reference '{fragment}', expected a regex without back-references"
    for begin, found, expected in _SAYINGS:
        if said.startswith(begin):
            texts = (found.replace("{}", fragment), expected.replace("{}", fragment))
            return "found {}, expected {}".format(*texts)
    return f"found a regex that RE2 refuses ({said}), expected one that it takes"


def _position(expression: str, said: str, fragment: str) -> int | None:
    """RE2 says what is wrong, not where. It reads from left to right and stops at the first error,
    so the text as far as the culprit has the same error, and as far as any other place has not."""
    if len(expression) > _LONGEST:
        return None
    if said.startswith(("trailing", "missing ]")):
        return len(expression) - max(len(fragment), 1)
    if said.startswith("missing )"):
        return _unclosed(expression)
    is_whole = said.startswith("unexpected )")
    wanted = ")" if is_whole else fragment
    if not wanted:
        return None
    # What follows "(?P" tells whether that is a group.
    more = 2 if wanted.startswith("(?") else 0
    for begin in _occurrences(expression, wanted):
        error = _core.regex_error(expression[: begin + len(wanted) + more])
        if error and (error[0].startswith("unexpected )") if is_whole else error[1] == fragment):
            return begin
    return None


def _unclosed(expression: str) -> int | None:
    """The last '(' that nothing closes: taken as a plain character it needs one ')' less."""

    def is_open(text: str) -> bool:
        error = _core.regex_error(text)
        return error is not None and error[0].startswith("missing )")

    lacking = next((n for n in range(1, 20) if not is_open(expression + ")" * n)), 0)
    if not lacking:
        return None
    closing = ")" * (lacking - 1)
    for begin in reversed(_occurrences(expression, "(")):
        if not is_open(f"{expression[:begin]}\\{expression[begin:]}{closing}"):
            return begin
    return None


def _occurrences(expression: str, wanted: str) -> list[int]:
    found = re.finditer(f"(?={re.escape(wanted)})", expression)
    return [one.start() for one, _ in zip(found, range(_MOST_TRIES), strict=False)]

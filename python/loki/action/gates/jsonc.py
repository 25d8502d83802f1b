"""JSON with comments and trailing commas, as tsconfig.json and editors' settings are written."""

from __future__ import annotations

import re

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"?|//[^\n]*|/\*[\s\S]*?(?:\*/|\Z)|[^\s"/]|/')
_VISIBLE = re.compile(r"[^\n]")


def plain(text: str) -> str:
    """The same text as strict JSON: comments and trailing commas become blanks.

    Lines and columns stay, so that an error of the parser points at the right place.

    Example:
        >>> plain('{"a": [1, 2,], // two')
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

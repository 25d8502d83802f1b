"""The words by which a file may import others, found at a glance: more than it imports, never less.

Parsing every file of a project takes too long for a question that most of them have nothing to do with.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

RELATIVE = "."
"""Stands for an import that names nothing but folders: ``from . import x``, ``import '..'``."""

_WORD = re.compile(rb"[\w\x80-\xff]+")
_QUOTED = re.compile(rb"""['"`]([^'"`\s]{1,300})['"`]""")
_FROM_DOTS = re.compile(rb"\bfrom\s*\.")
_MAX_LINES = 500
"""Of one import's brackets; chosen, not measured."""


def words_of(content: bytes, language: str) -> frozenset[str]:
    """The words by which a file may import, `RELATIVE` among them where it may name none.

    Args:
        content: of the file.
        language: python or javascript.

    Example:
        >>> sorted(words_of(b"from shop import (\\n  cart,  # (all)\\n  till)\\n", "python"))
        ['cart', 'from', 'import', 'shop', 'till']
    """
    found = _python(content) if language == "python" else _javascript(content)
    return frozenset(word.decode("utf-8", "replace") for word in found)


def word_for(path: str) -> str:
    """The word that an import of a file holds, unless it is relative or goes by another name.

    Example:
        >>> word_for("src/cart.test.ts"), word_for("src/cart/index.ts"), word_for("cart/__init__.py")
        ('cart', 'cart', 'cart')
    """
    folder, name = posixpath.split(path)
    stem = name.partition(".")[0]
    return posixpath.basename(folder) if stem in {"__init__", "index"} else stem


def _python(content: bytes) -> Iterator[bytes]:
    position = content.find(b"import")
    while position >= 0:
        statement, end = _statement(content, position)
        yield from _WORD.findall(statement)
        if _FROM_DOTS.search(statement):
            yield RELATIVE.encode()
        position = content.find(b"import", end)


def _statement(content: bytes, position: int) -> tuple[bytes, int]:
    """(The lines of the statement round a position, without comments in brackets; its end)."""
    start = content.rfind(b"\n", 0, position) + 1
    while start > 1 and content[start - 2 : start - 1] == b"\\":  # the line before goes on here
        start = content.rfind(b"\n", 0, start - 1) + 1
    lines, is_open, here = [], False, start
    for _ in range(_MAX_LINES):
        end = content.find(b"\n", here)
        line = content[here:] if end < 0 else content[here:end]
        here = len(content) if end < 0 else end + 1
        code = line.partition(b"#")[0]
        lines.append(code)
        is_open = (is_open or b"(" in code) and b")" not in code.rpartition(b"(")[2]
        if here >= len(content) or not (is_open or code.rstrip().endswith(b"\\")):
            break
    return b"\n".join(lines), max(here, position + 1)


def _javascript(content: bytes) -> Iterator[bytes]:
    for quoted in _QUOTED.findall(content):
        parts = [part for part in quoted.split(b"/") if part not in {b".", b"..", b""}]
        if not parts and quoted.startswith(b"."):
            yield RELATIVE.encode()
        yield from (part.partition(b".")[0] for part in parts)

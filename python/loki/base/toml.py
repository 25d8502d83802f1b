"""TOML: the parser, which stands in Python's own library from 3.11 on, and where in a text something stands.

The parser keeps no places; of a mistake it says one in its words.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["mistake", "place_of", "tomllib"]

_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|.*)\)$")
_KEY = re.compile(r"\"([^\"]*)\"|'([^']*)'|[^.\s\"']+")


def mistake(error: Exception) -> tuple[str, int, int]:
    """What the parser says of a text that is no TOML, the line and the column; 0, 0: not known."""
    at = _AT.search(str(error))
    line, column = (int(at[1]), int(at[2])) if at and at[1] else (0, 0)
    return _AT.sub("", str(error)), line, column


def place_of(text: str, keys: Sequence[str]) -> tuple[int, int]:
    """Line and column of a key, or of the nearest one above it; 0, 0 where there is none.

    Example:
        >>> place_of("a = 1\\n[b]\\nc = 2\\n", ["b", "c"]), place_of("[b]\\n", ["b", "d"])
        ((3, 1), (1, 2))
    """
    best, place, table = 0, (0, 0), list[str]()
    for number, content in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[+([^]]*)", content)
        said = header or re.match(r"([^=#]+)=", content)
        if said is None:
            continue
        parts = list(_KEY.finditer(content, said.start(1), said.end(1)))
        names = [part[1] or part[2] or part[0] for part in parts]
        path = names if header else [*table, *names]
        table = names if header else table
        if path == keys[: len(path)] and len(path) > best:
            best, place = len(path), (number, parts[-1].start() + 1)
    return place

"""JSON objects in a text that anybody wrote, in time linear in its length."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

MOST = 20
"""Objects of a text that are looked at, the last ones; chosen, not measured."""

LONGEST = 20_000
"""Characters of one; chosen, not measured."""

_START = re.compile(r"^[ \t]{0,20}\{", re.MULTILINE)


def objects(text: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """The last objects of a text, each of which begins a line: start, end and what it says.

    Example:
        >>> [said for _, _, said in objects('So:\\n```json\\n{"a": 1}\\n```')]
        [{'a': 1}]
    """
    decoder = json.JSONDecoder()
    starts = [match.end() - 1 for match in _START.finditer(text)][-MOST:]
    done = 0
    for start in starts:
        if start < done:
            continue
        try:
            said, length = decoder.raw_decode(text[start : start + LONGEST])
        except (ValueError, RecursionError):
            continue
        done = start + length
        yield start, done, said


def told(said: Mapping[str, Any], name: str) -> str:
    """What an object says under a name in any spelling, as text; a list as lines.

    Example:
        >>> told({"Root Cause": ["a", "b"]}, "root_cause")
        'a\\nb'
    """
    for key, value in said.items():
        if _name(key) == name:
            values = value if isinstance(value, list) else [value]
            return "\n".join(_text(one) for one in values[:100])
    return ""


def named(said: Mapping[str, Any]) -> set[str]:
    """The names that an object says something under, in one spelling."""
    return {_name(key) for key in said}


def _name(key: str) -> str:
    return re.sub(r"[^a-z]", "_", key.strip().casefold()[:40])


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)

"""Any value as text: however deep it is, whatever its own methods do. Pure and total."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from itertools import islice
from typing import Any

MOST_PARTS = 5_000
"""Parts of a value that JSON cannot say which are looked at. Chosen, not measured."""

DEEPEST = 50
"""Levels of a value that are told as JSON. Chosen, not measured."""

_MANY = (dict, list, tuple)
_JOINED = (list, tuple, set, frozenset)


def any_text(value: object) -> str:
    """A value as text, the same for the same value.

    Example:
        >>> any_text({"b": [1], "a": None})
        '{"a": null, "b": [1]}'
    """
    try:
        if _is_deep(value):  # the same text however much of the stack is taken
            return _flat(value)
        return json.dumps(value, sort_keys=True, default=repr)
    except Exception:  # too deep, a circle, keys of several types; its own methods may do anything
        return _flat(value)


def any_repr(value: object) -> str:
    """What Python shows of a value, where it can.

    Example:
        >>> any_repr([1, "x"])
        "[1, 'x']"
    """
    try:
        return repr(value)
    except Exception:  # as there
        return _flat(value)


def _is_deep(value: object) -> bool:
    level: list[Any] = [value] if isinstance(value, _MANY) else []
    for _ in range(DEEPEST):
        many = (one.values() if isinstance(one, dict) else one for one in level)
        parts = (part for held in many for part in held)
        level = list(islice((part for part in parts if isinstance(part, _MANY)), MOST_PARTS))
        if not level:
            break
    return bool(level)


def _flat(value: object) -> str:
    """Its parts in a row, their depth before each; a circle ends where enough was seen."""
    parts: list[str] = []
    waiting: list[tuple[int, Any]] = [(0, value)]
    while waiting and len(parts) < MOST_PARTS:
        depth, one = waiting.pop()
        parts.append(f"{depth}:{_leaf(one)}")
        held = _held(one)[: MOST_PARTS - len(parts)]
        waiting += [(depth + 1, part) for part in reversed(held)]
        del waiting[:-MOST_PARTS]  # these would not be looked at any more
    return " ".join(parts)


def _held(one: object) -> list[object]:
    """The parts of a value, of a mapping in an order that is the same for the same one."""
    try:
        if isinstance(one, Mapping):
            pairs = sorted(((_leaf(name), held) for name, held in one.items()), key=lambda p: p[0])
            return [part for pair in pairs for part in pair]
        return list(one) if isinstance(one, _JOINED) else []
    except Exception:  # as there
        return []


def _leaf(one: object) -> str:
    if isinstance(one, (Mapping, *_JOINED)):
        return type(one).__name__
    if isinstance(one, int) and not isinstance(one, bool):
        return hex(one)  # a decimal one may have too many digits
    try:
        return repr(one)
    except Exception:  # as there
        return type(one).__name__


def short(text: str, most: int) -> str:
    """A text that is not longer, or both ends of it and a hash, so that it differs from others still.

    Args:
        text: any text.
        most: characters of the longest that stays as it is, 60 or more.

    Example:
        >>> short("x" * 9, 60), len(short("x" * 999, 60))
        ('xxxxxxxxx', 60)
    """
    if len(text) <= most:
        return text
    name = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    begin = (most - 18) // 2
    return f"{text[:begin]}…{name}…{text[len(text) - (most - 18 - begin) :]}"

"""Ways in which a person or another program breaks a file that loki wrote. Pure, by a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

DEEP = 3_000
"""Levels that no reader written by recursion survives."""

STRANGE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 10**30, -(10**400), 1.5, float("nan"), float("inf"), "", "x", "\ud800",
    "a\0b", "../../x", "/etc/passwd", "\u202e", "\x1b[2J", [], [1], [None], [[]], ["\ud800"], {}, {"x": 1},
    {"": None}, [{}], "2026-99-99T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+23:59", "1e999", "-5",
    [1.5, "a"], {"id": []}, 2**63,
)  # fmt: skip

Damage = Callable[[random.Random, bytes], bytes]


def damaged(chance: random.Random, name: str, data: bytes) -> bytes | None:
    """A file's content after something happened to it.

    Args:
        chance: where randomness comes from.
        name: the file's path: its end says what is in it.
        data: what it holds.

    Returns:
        Other content; None: a folder stands in its place.
    """
    if chance.random() < 0.02:
        return None
    structured = {".json": [_tree] * 6, ".jsonl": [_lines] * 6}
    end = name[name.rfind(".") :] if "." in name else ".json"
    ways = [*structured.get(end, [_lines, _tree]), _torn, _bytes, _spliced, _whole]
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        data = chance.choice(ways)(chance, data)
    return data


def _tree(chance: random.Random, data: bytes) -> bytes:
    """One value somewhere in a document is another, or is gone."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return _bytes(chance, data)
    return _written(_changed(chance, value))


def _lines(chance: random.Random, data: bytes) -> bytes:
    """One line of a log is damaged, twice there, gone, or somewhere else."""
    lines = data.split(b"\n")
    at = chance.randrange(len(lines))
    match chance.randrange(8):
        case 0:
            del lines[at]
        case 1:
            lines.insert(chance.randrange(len(lines) + 1), lines[at])
        case 2:
            chance.shuffle(lines)
        case 3:
            lines.insert(at, _written(chance.choice(STRANGE)))
        case _:
            lines[at] = _tree(chance, lines[at]).replace(b"\n", b" ") if lines[at] else b"{"
    return b"\n".join(lines)


def _changed(chance: random.Random, value: Any) -> Any:
    # Deep inside as often as at the top: a walk of random length towards a leaf.
    if isinstance(value, (dict, list)) and value and chance.random() < 0.85:
        key = (
            chance.choice(list(value)) if isinstance(value, dict) else chance.randrange(len(value))
        )
        changed: Any = dict(value) if isinstance(value, dict) else list(value)
        roll = chance.random()
        if roll < 0.12:
            del changed[key]
        elif roll < 0.17 and isinstance(changed, dict):
            changed[chance.choice(("x", "", "\ud800", f"{key} "))] = changed.pop(key)
        elif roll < 0.2 and isinstance(changed, list):
            changed *= chance.choice((2, 50))
        else:
            changed[key] = _changed(chance, value[key])
        return changed
    if chance.random() < 0.25:
        return _other_type(chance, value)
    return chance.choice(STRANGE)


def _other_type(chance: random.Random, value: Any) -> Any:
    ways: list[Callable[[Any], Any]] = [
        str, lambda v: [v], lambda v: {"value": v}, lambda v: {str(v)[:40]: v}, json.dumps,
        lambda v: list(v) if isinstance(v, (str, dict)) else [v, v], lambda v: f"{v}\n{v}",
    ]  # fmt: skip
    return chance.choice(ways)(value)


def _written(value: Any) -> bytes:
    return json.dumps(value).encode()


def _torn(chance: random.Random, data: bytes) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _bytes(chance: random.Random, data: bytes) -> bytes:
    found = bytearray(data)
    for _ in range(chance.choice((1, 3, 10))):
        at = chance.randrange(len(found) + 1)
        found[at : at + chance.choice((0, 1, 1, 4))] = chance.choice(
            (
                b"\xff",
                b"\x00",
                b"\n",
                b'"',
                b"{",
                b"[",
                b"}",
                b"\xed\xa0\x80",
                b"\\ud800",
                b"---\n",
                b"9" * 20,
            )
        )
    return bytes(found)


def _spliced(chance: random.Random, data: bytes) -> bytes:
    """Two writers at a time: the end of one lies over the beginning of the other."""
    cut, other = chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)
    return data[:cut] + data[other:]


def _whole(chance: random.Random, data: bytes) -> bytes:
    deep = chance.choice((b"[", b'{"a":', b'{"tasks":['))
    return chance.choice(
        (
            b"", b"\0" * len(data), deep * DEEP, b"[" * DEEP + b"]" * DEEP, b"null", b"[]", b"{}", b"NaN", b"1e999",
            b'"\\ud800"', b"9" * 5_000, b"\xef\xbb\xbf" + data, data.decode("utf-8", "replace").encode("utf-16"),
            b"<<<<<<< HEAD\n" + data + b"=======\n" + data + b">>>>>>> other\n", b'{"x": %b}' % (data or b"1"), b"[%b]" % data,
        )
    )  # fmt: skip

"""JSON whose fields are something else than they should be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

WRONG: list[Any] = [
    None,
    1,
    "x",
    [],
    {},
    [1],
    True,
    1e999,
    float("nan"),
    [[]],
    {"type": 1},
    "\ud800\0/",
]


def changed(value: Any) -> Iterator[Any]:
    """A value with each field of it, at each level, by each of what is wrong there."""
    yield from WRONG
    if isinstance(value, dict):
        for name, held in value.items():
            yield {other: one for other, one in value.items() if other != name}
            for wrong in changed(held):
                yield {**value, name: wrong}
    elif isinstance(value, list):
        for index, held in enumerate(value):
            for wrong in changed(held):
                yield [*value[:index], wrong, *value[index + 1 :]]

"""A call of a stack; and how calls and matches, of which a failure has several, are kept as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loki.recognition.pattern import Match


@dataclass(frozen=True, slots=True)
class Frame:
    """One call of a stack.

    Attributes:
        path: relative to the project's root where it is inside.
        line: from 1, or None.
        function: its name, or None.
        in_project: it is the project's own, not a library's.
    """

    path: str
    line: int | None
    function: str | None
    in_project: bool


def as_json(value: Any) -> Any:
    """Frames and matches as objects, tuples as lists, as JSON has them."""
    if isinstance(value, (Frame, Match)):
        return {e.name: as_json(getattr(value, e.name)) for e in dataclasses.fields(value)}
    return [as_json(entry) for entry in value] if isinstance(value, (tuple, list)) else value


def match_of(value: Mapping[str, Any]) -> Match:
    """The match that `as_json` made an object of."""
    spans = tuple((int(begin), int(end)) for begin, end in value.get("spans", ()))
    return Match(**{**value, "signals": tuple(value.get("signals", ())), "spans": spans})

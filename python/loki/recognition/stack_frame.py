"""A call of a stack; and how calls and matches, of which a failure has several, are kept as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
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


_TEXT, _WHOLE, _NUMBER = (str, type(None)), (int, type(None)), (int, float)
_FORMS: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("tool", "tool_kind", "language", "error_type", "error_code", "path"), _TEXT),
    **dict.fromkeys(("extension", "function"), _TEXT),
    **dict.fromkeys(("message", "excerpt", "normalized", "fingerprint", "signature"), (str,)),
    **dict.fromkeys(("pattern", "kind", "band", "strategy"), (str,)),
    **dict.fromkeys(("line", "column", "output_line", "exit_code"), _WHOLE),
    **dict.fromkeys(("confidence", "coverage"), _NUMBER),
    **dict.fromkeys(("in_project",), (bool,)),
    **dict.fromkeys(("recognizer_version",), (int,)),
}
_LARGEST = 2**53  # what others that read JSON can hold (RFC 8259, 6)


def must_fit(known: Mapping[str, Any], frames: Iterable[Frame], matches: Iterable[Match]) -> None:
    """Refuse fields of a failure, its frames and its matches that are of another form.

    Raises:
        TypeError: a field is.
    """
    texts: list[Any] = list(known.get("tests", ()))
    for one in (known, *map(_fields, frames), *map(_fields, matches)):
        for name, value in one.items():
            form = _FORMS.get(name)
            if form is None:
                continue
            if not isinstance(value, form) or (type(value) is int and abs(value) > _LARGEST):
                raise TypeError(f"{name} is of another form")
            if isinstance(value, str):
                texts.append(value)
        texts.extend(one.get("signals", ()))
    for text in texts:
        if not isinstance(text, str) or (not text.isascii() and _is_broken(text)):
            raise TypeError("a text is none")


def _fields(one: Frame | Match) -> dict[str, Any]:
    return {entry.name: getattr(one, entry.name) for entry in dataclasses.fields(one)}


def _is_broken(text: str) -> bool:
    """Whether it holds half a character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def match_of(value: Mapping[str, Any]) -> Match:
    """The match that `loki.base.codec.write` made an object of."""
    spans = tuple((int(begin), int(end)) for begin, end in value.get("spans", ()))
    return Match(**{**value, "signals": tuple(value.get("signals", ())), "spans": spans})

"""What documents of ``.loki/`` must look like: the one validator that whoever reads them goes through.

A person or another program may have changed any file. A field of another form than expected spoils
only itself: it is left out, or has its plain value, with a sentence. What is no document at all is
set aside with one. A file stays as it is while it is only read; before it is written anew, it is kept
under `ASIDE`, as it was (`loki.stores.file_store`). Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from loki.base import codec
from loki.base.codec import shown

T = TypeVar("T")

ASIDE = "set-aside"
"""Where damaged files are kept, in ``.loki/``, before something is written in their place."""

DAMAGES = "damaged"
"""The field of a damaged document, while it is read, that says what is wrong with it."""

MAX_SHOWN = 3
"""Flaws of a file that are told; chosen, not measured."""


_FORMS: dict[str, type] = {}


def kept_as(pattern: str) -> Callable[[type[T]], type[T]]:
    """Says what a document looks like: a decorator of the dataclass that is its form (`loki.base.codec`).

    Args:
        pattern: a regex of the document's whole name, relative to ``.loki/``.
    """

    def say(cls: type[T]) -> type[T]:
        _FORMS[pattern] = cls
        return cls

    return say


def has_form(name: str) -> bool:
    """Whether a document's form is said (`kept_as`); what its reader says alone, that sets aside itself."""
    return _form(name) is not None


def _form(name: str) -> type | None:
    return next((form for pattern, form in _FORMS.items() if re.fullmatch(pattern, name)), None)


def validated_document(name: str, text: str) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """What a document says, in the form that it must have, and what is wrong with it.

    Args:
        name: the document's, relative to ``.loki/``.
        text: what it holds.

    Returns:
        Its object, None where it holds none; and sentences about what does not fit in it.

    Example:
        >>> validated_document("tasks/a/task.json", '{"title": 5}')[1]
        ('title: found 5, expected text',)
    """
    try:
        data = parsed_json(text)
    except ValueError as error:
        return None, (f"it is no JSON: {error}",)
    if not isinstance(data, dict):
        return None, (f"found {shown(data)}, expected an object",)
    form = _form(name)
    if form is None:
        return data, ()
    value, flaws = codec.read(form, data)
    return None if value is None else codec.write(value), flaws[:MAX_SHOWN]


def read(cls: type[T], text: str) -> tuple[T | None, tuple[str, ...]]:
    """The same of a document whose form is a dataclass (`loki.base.codec`)."""
    try:
        data = parsed_json(text)
    except ValueError as error:
        return None, (f"it is no JSON: {error}",)
    value, flaws = codec.read(cls, data)
    return value, flaws[:MAX_SHOWN]


def parsed_json(text: str | bytes) -> Any:
    """JSON, by the quicker parser where that can read it.

    Raises:
        ValueError: it is none, or nests too deeply.
    """
    from pydantic_core import from_json

    try:
        return from_json(text, cache_strings="keys", allow_inf_nan=False)
    except ValueError:
        try:
            return json.loads(text)  # also half a surrogate pair, which our own writer escapes
        except RecursionError as error:
            raise ValueError("nested too deeply") from error

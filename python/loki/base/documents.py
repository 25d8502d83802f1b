"""Documents of ``.loki/``: what each must look like, and reading them with what is wrong told once.

A person or another program may have changed any file. A field of another form than expected spoils
only itself: it is left out, or has its plain value, with a sentence. What is no document at all is
set aside with one. A file stays as it is while it is only read; before it is written anew, it is kept
as it was (`loki.stores.file_store`). Pure.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

from loki.base import codec

T = TypeVar("T")

logger = logging.getLogger("loki")


class Store(Protocol):
    """What is read here of a store (`loki.memory.store`)."""

    def read(self, document: str) -> str | None:
        """What a document holds; None where there is none."""


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


def form_of(name: str) -> type | None:
    """A document's form (`kept_as`); None: what its reader says alone, that sets aside itself."""
    return next((form for pattern, form in _FORMS.items() if re.fullmatch(pattern, name)), None)


def read_document(cls: type[T], text: str) -> tuple[T | None, tuple[str, ...]]:
    """What a document says, in the form that it must have, and what is wrong with it.

    Args:
        cls: its form, a dataclass (`loki.base.codec`).
        text: what it holds.

    Returns:
        None where it holds no such thing; and sentences about what does not fit in it.
    """
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


_told: WeakKeyDictionary[Store, set[tuple[str, tuple[str, ...]]]] = WeakKeyDictionary()
"""By store, which documents were said to be damaged how: they are read again and again."""


def load_as(cls: type[T], store: Store, document: str) -> T | None:
    """A document whose form is a dataclass (`loki.base.codec`); None where there is none.

    What does not fit in it is told, once, and has a plain value.
    """
    return read_as(cls, store, document, store.read(document))


def read_as(cls: type[T], store: Store, document: str, text: str | None) -> T | None:
    """The same of the text that a document of a store holds."""
    if text is None:
        return None
    value, flaws = read_document(cls, text)
    told = _told.setdefault(store, set())
    if flaws and (document, flaws) not in told:
        told.add((document, flaws))
        logger.warning("%s is damaged: %s", document, "; ".join(flaws))
    return value


# --- Logs: how their records are read, and how they stay bounded --------------------------------------


class Masked(str):
    """A document in which secrets are masked already; masking it again would find nothing."""

    __slots__ = ()


def readable(
    log: str, records: Iterable[Mapping[str, Any]], read: Callable[[Any], T]
) -> Iterator[T]:
    """What the records of a log say, one by one; one that cannot be read is told and skipped.

    Args:
        log: its name.
        records: oldest first.
        read: makes something of a record, or raises ValueError.
    """
    for record in records:
        try:
            yield read(record)
        except ValueError as error:
            logger.warning("%s: skipped a record: %s", log, error)


def trimmed(text: str | None, records: int, characters: int) -> str | None:
    """A log without its oldest records, where it is too long; None where there is none.

    Args:
        text: the log, a record a line; its last line is empty, or torn, and stays.
        records: how many it may have.
        characters: how long it may be.

    Example:
        >>> trimmed('{"n": 1}\\n{"n": 2}\\n{"n": 3}\\n', 2, 1000)
        '{"n": 2}\\n{"n": 3}\\n'
    """
    if text is None:
        return None
    lines = text.split("\n")
    first, room = len(lines) - 1, characters
    while first > 0 and len(lines) - first <= records and len(lines[first - 1]) < room:
        first -= 1
        room -= len(lines[first]) + 1
    return Masked("\n".join(lines[first:]))

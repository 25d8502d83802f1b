"""Where memory is kept: the contract that every store keeps, and what happens when one fails.

A person or another program may have changed any file. A field of another form than expected spoils
only itself: it is left out, or has its plain value, with a sentence. What is no document at all is
set aside with one. A file stays as it is while it is only read; before it is written anew, it is kept
under `ASIDE`, as it was (`loki.stores.file_store`). Pure.

A store holds two things, both named by the path they have in a workspace's folder: *logs*, to which
records are appended, and *documents*, which are replaced whole.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

from loki.base import codec
from loki.base.error import StoreError
from loki.base.secret import mask_secrets, masked

# --- What documents of ``.loki/`` must look like ------------------------------------------------------

T = TypeVar("T")

ASIDE = "set-aside"
"""Where damaged files are kept, in ``.loki/``, before something is written in their place."""

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


# --- The contract, and what happens when a store fails ------------------------------------------------

Record = Mapping[str, Any]
Rewrite = Callable[[str | None], str | None]
logger = logging.getLogger("loki")


class Masked(str):
    """A document in which secrets are masked already; masking it again would find nothing."""

    __slots__ = ()


class Store(Protocol):
    """What keeps memory; each verb raises `loki.StoreError` where the medium fails.

    What ``append``, ``write`` or ``update`` returned from is there whatever becomes of the process,
    and durable: a crash of the machine right after does not lose it. Where a caller says that it
    need not be (``durable=False``, for what can be told again), such a crash may lose the record,
    or the document.
    """

    def append(self, log: str, record: Record, *, durable: bool = True) -> None:
        """Add a JSON-able record to the end of a log."""

    def records(self, log: str) -> list[dict[str, Any]]:
        """A log's records, oldest first; none where there is no such log."""

    def scan(self, log: str) -> Iterator[dict[str, Any]]:
        """The same, one by one: a log may be larger than memory."""

    def write(self, document: str, text: str) -> None:
        """Replace a document: readers see the old one or the new one."""

    def read(self, document: str) -> str | None:
        """A document's text, or None where there is none."""

    def update(self, document: str, change: Rewrite, *, durable: bool = True) -> None:
        """Replace a document by what ``change`` makes of it; nobody's update comes in between.

        Args:
            document: its name.
            change: from the text, None where there is none, to the new one, None where there is to
                be none. May be called again; what it raises is passed on and nothing changes. It
                must not update anything itself.
            durable: as above.
        """

    def lock(self, name: str) -> AbstractContextManager[None]:
        """Hold a lock over several documents: one holder at a time among all that share the store.

        Args:
            name: of the lock; who changes these documents otherwise does not ask for it.

        Raises:
            StoreError: somebody else held it for a minute, or there can be none here.
        """

    def set_aside(self, document: str) -> None:
        """Keep what a document holds under another name, as it is, and tell that; a reader found it damaged.

        To be called before something is written in its place, also while ``update`` changes it.
        """

    def keys(self, prefix: str) -> list[str]:
        """Sorted names of logs and documents that begin with ``prefix``."""

    def written_at(self, name: str) -> float | None:
        """When a log or document was last written, by whomever: seconds since the epoch.

        None where there is none, or nobody knows.
        """


class ForgivingStore:
    """What the loop writes to: masks secrets, and goes on in memory where the store behind it fails.

    Args:
        behind: the store to use while it works.
        warn: called once with a sentence for the user; the default logs it.

    What could not be written is kept for this process only and tried again with each later write.
    """

    def __init__(self, behind: Store, warn: Callable[[str], None] | None = None) -> None:
        self._behind = behind
        self._warn = warn or logger.warning
        self._warned = False
        self._records: dict[str, list[dict[str, Any]]] = {}
        self._documents: dict[str, str] = {}
        self._lock = threading.RLock()  # what waits is written by one thread at a time

    def append(self, log: str, record: Record, *, durable: bool = True) -> None:
        """Add a record; never raises `loki.StoreError`."""
        with self._lock:
            self._records.setdefault(log, []).append(masked(record))
            if self._append_waiting(log, durable=durable):
                self._catch_up()

    def records(self, log: str) -> list[dict[str, Any]]:
        """Records, those that could not be written included."""
        return list(self.scan(log))

    def scan(self, log: str) -> Iterator[dict[str, Any]]:
        """The same, one by one."""
        try:
            yield from self._behind.scan(log)
        except StoreError as error:
            self._complain(error)
        yield from self._records.get(log, [])

    def write(self, document: str, text: str) -> None:
        """Replace a document; never raises `loki.StoreError`."""
        text = _masked_document(document, text)
        try:
            self._behind.write(document, text)
        except StoreError as error:
            self._complain(error)
            self._documents[document] = text
        else:
            self._documents.pop(document, None)
            self._catch_up()

    def read(self, document: str) -> str | None:
        """A document's text, or None."""
        if document in self._documents:
            return self._documents[document]
        try:
            return self._behind.read(document)
        except StoreError as error:
            self._complain(error)
            return None

    def update(self, document: str, change: Rewrite, *, durable: bool = True) -> None:
        """Rewrite a document; never raises `loki.StoreError`."""

        def rewrite(text: str | None) -> str | None:
            # What could not be written before is newer than what is there.
            changed = change(self._documents.get(document, text))
            return None if changed is None else _masked_document(document, changed)

        try:
            self._behind.update(document, rewrite, durable=durable)
        except StoreError as error:
            self._complain(error)
            changed = rewrite(self.read(document))
            self._documents.pop(document, None)
            if changed is not None:
                self._documents[document] = changed
        else:
            self._documents.pop(document, None)
            self._catch_up()

    def lock(self, name: str) -> AbstractContextManager[None]:
        """The store behind's lock: there is none in memory, for no other process would see it."""
        return self._behind.lock(name)

    def set_aside(self, document: str) -> None:
        """Keep what a damaged document holds; never raises `loki.StoreError`."""
        try:
            self._behind.set_aside(document)
        except StoreError as error:
            self._complain(error)

    def keys(self, prefix: str) -> list[str]:
        """Names that begin with ``prefix``, in memory or behind."""
        found = {name for name in (*self._records, *self._documents) if name.startswith(prefix)}
        try:
            found.update(self._behind.keys(prefix))
        except StoreError as error:
            self._complain(error)
        return sorted(found)

    def written_at(self, name: str) -> float | None:
        """When it was last written; None also for what is in memory only."""
        if name in self._documents or name in self._records:
            return None
        try:
            return self._behind.written_at(name)
        except StoreError as error:
            self._complain(error)
            return None

    def _append_waiting(self, log: str, *, durable: bool = True) -> bool:
        """Write a log's waiting records, oldest first; whether none is left."""
        waiting = self._records[log]
        while waiting:
            try:
                self._behind.append(log, waiting[0], durable=durable)
            except StoreError as error:
                self._complain(error)
                return False
            waiting.pop(0)
        del self._records[log]
        return True

    def _catch_up(self) -> None:
        """The store behind works again: write what it missed."""
        with self._lock:
            if not all(self._append_waiting(log) for log in list(self._records)):
                return
            for document, text in list(self._documents.items()):
                try:
                    self._behind.write(document, text)
                except StoreError:
                    return
                del self._documents[document]

    def _complain(self, error: StoreError) -> None:
        if not self._warned:
            self._warned = True
            self._warn(f"Could not persist: {error}. Going on; this run is kept in memory only.")


def _masked_document(document: str, text: str) -> str:
    if isinstance(text, Masked):
        return text
    if not document.endswith(".json"):
        return mask_secrets(text)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):  # damaged, and handed back as it was
        return mask_secrets(text)
    clean = masked(data)
    return text if clean == data else json.dumps(clean, indent=1, ensure_ascii=False) + "\n"


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

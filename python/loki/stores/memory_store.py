"""Memory that ends with its process: for tests, and for what would write too often for a disk."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from loki.base.error import StoreError
from loki.memory import store
from loki.memory.store import Record, Rewrite


class MemoryStore:
    """A `loki.memory.store.Store` of one process: what `Workspace` keeps in files, without files.

    Attributes:
        logs, documents: what it holds, by name.
        patience: seconds to wait for a lock.

    Example:
        >>> store = MemoryStore()
        >>> store.append("failures.jsonl", {"tool": "pytest"})
        >>> store.records("failures.jsonl")
        [{'tool': 'pytest'}]
    """

    def __init__(self) -> None:
        self.logs: dict[str, list[dict[str, Any]]] = {}
        self.documents: dict[str, str] = {}
        self.patience = 60.0
        self._lock = threading.RLock()
        self._locks: dict[str, threading.Lock] = {}

    def append(self, log: str, record: Record, *, durable: bool = True) -> None:
        """Add a record, in the form that it would have been read back in."""
        del durable  # nothing here is
        kept = json.loads(json.dumps(record))
        with self._lock:
            self.logs.setdefault(log, []).append(kept)

    def records(self, log: str) -> list[dict[str, Any]]:
        """A log's records, oldest first."""
        return list(self.scan(log))

    def scan(self, log: str) -> Iterator[dict[str, Any]]:
        """The same, one by one."""
        yield from self.logs.get(log, [])

    def write(self, document: str, text: str) -> None:
        """Replace a document."""
        with self._lock:
            self.documents[document] = text

    def read(self, document: str) -> str | None:
        """A document's text, or None."""
        return self.documents.get(document)

    def update(self, document: str, change: Rewrite, *, durable: bool = True) -> None:
        """Rewrite a document, or remove it."""
        del durable
        with self._lock:
            text = change(self.documents.get(document))
            if text is None:
                self.documents.pop(document, None)
            else:
                self.documents[document] = text

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold a lock over several documents, among this process's threads."""
        with self._lock:
            lock = self._locks.setdefault(name, threading.Lock())
        if not lock.acquire(timeout=self.patience):
            raise StoreError(f"{name}: somebody else has held its lock for {self.patience:g} s")
        try:
            yield
        finally:
            lock.release()

    def set_aside(self, document: str) -> None:
        """Keep a copy of a damaged document."""
        with self._lock:
            if document in self.documents:
                self.documents[f"{store.ASIDE}/{document}"] = self.documents[document]

    def keys(self, prefix: str) -> list[str]:
        """Names that begin with ``prefix``."""
        with self._lock:
            return sorted(n for n in (*self.logs, *self.documents) if n.startswith(prefix))

    def written_at(self, name: str) -> float | None:
        """Nobody knows."""
        del name
        return None

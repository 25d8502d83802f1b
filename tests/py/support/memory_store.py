"""A store that keeps everything in memory, for what would write too often to be fast on a disk."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from loki.memory.store import Record, Rewrite


class MemoryStore:
    """A `loki.memory.store.Store` of one process."""

    def __init__(self) -> None:
        self.logs: dict[str, list[dict[str, Any]]] = {}
        self.documents: dict[str, str] = {}
        self._lock = threading.RLock()

    def append(self, log: str, record: Record, *, durable: bool = True) -> None:
        del durable  # nothing here is
        with self._lock:
            self.logs.setdefault(log, []).append(dict(record))

    def records(self, log: str) -> list[dict[str, Any]]:
        return list(self.scan(log))

    def scan(self, log: str) -> Iterator[dict[str, Any]]:
        yield from self.logs.get(log, [])

    def put(self, document: str, text: str) -> None:
        with self._lock:
            self.documents[document] = text

    def get(self, document: str) -> str | None:
        return self.documents.get(document)

    def update(self, document: str, change: Rewrite, *, durable: bool = True) -> None:
        del durable
        with self._lock:
            text = change(self.documents.get(document))
            if text is None:
                self.documents.pop(document, None)
            else:
                self.documents[document] = text

    def set_aside(self, document: str) -> None:
        with self._lock:
            self.documents[f"set-aside/{document}"] = self.documents[document]

    def written_at(self, name: str) -> float | None:
        del name
        return None

    def names(self, prefix: str) -> list[str]:
        with self._lock:
            return sorted(n for n in (*self.logs, *self.documents) if n.startswith(prefix))

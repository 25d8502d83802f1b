"""Where the journal keeps its records, and the bytes that they speak of by hash.

In a folder that is `loki.action.changes.disk_journal_storage`; here is what it has to do, and the same in
memory, for
a project whose ``.loki`` cannot be written.
"""

from __future__ import annotations

import hashlib
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from loki.action.changes.journal_record import Record, Stage


class JournalStorage(Protocol):
    """Where records and contents are kept. Methods raise `StoreError` where that fails."""

    def lock(self) -> AbstractContextManager[None]:
        """Keeps other lokis out; held around everything that follows."""

    def put(self, contents: Iterable[bytes]) -> list[str]:
        """Keep contents; their hashes, in order. On disk when this returns."""

    def get(self, name: str) -> bytes | None:
        """The content of a hash; None where it is missing or damaged."""

    def has(self, name: str, size: int) -> bool:
        """Whether a content of this hash and size is kept."""

    def save(self, record: Record, contents: Mapping[str, bytes] | None = None) -> None:
        """Keep a record, or what it has become, and contents by hash. On disk when this returns."""

    def reach(self, number: int, stage: Stage) -> None:
        """Keep the stage that a record has reached; on disk with the next record, or `settle`."""

    def finish(self) -> None:
        """Have all on disk that is kept."""

    def load(self) -> tuple[list[Record], list[str]]:
        """The records, by number, and a sentence about each that is damaged."""

    def next_number(self) -> int:
        """The number for a new record."""

    def tidy(self) -> None:
        """Remove what a crash left half-written."""

    def touch(self, number: int) -> None:
        """Say that the work of a running record is going on."""

    def touched(self, number: int) -> float:
        """When that was last said, as seconds since 1970."""


@dataclass
class MemoryJournalStorage:
    """Keeps everything until the process ends."""

    contents: dict[str, bytes] = field(default_factory=dict)
    records: dict[int, Record] = field(default_factory=dict)

    def lock(self) -> AbstractContextManager[None]:
        """Nobody else can reach it."""
        return nullcontext()

    def put(self, contents: Iterable[bytes]) -> list[str]:
        """Keep contents."""
        names = []
        for data in contents:
            names.append(hashlib.sha256(data).hexdigest())
            self.contents[names[-1]] = data
        return names

    def get(self, name: str) -> bytes | None:
        """The content of a hash."""
        return self.contents.get(name)

    def has(self, name: str, size: int) -> bool:
        """Whether it is kept."""
        return name in self.contents and len(self.contents[name]) == size

    def save(self, record: Record, contents: Mapping[str, bytes] | None = None) -> None:
        """Keep a record and contents."""
        self.contents.update(contents or {})
        self.records[record.number] = record

    def reach(self, number: int, stage: Stage) -> None:
        """Keep a stage."""
        self.records[number] = replace(self.records[number], stage=stage)

    def finish(self) -> None:
        """There is no disk."""

    def load(self) -> tuple[list[Record], list[str]]:
        """The records; none is ever damaged."""
        return [self.records[number] for number in sorted(self.records)], []

    def next_number(self) -> int:
        """The number for a new record."""
        return max(self.records, default=0) + 1

    def tidy(self) -> None:
        """Nothing is ever half-written."""

    def touch(self, number: int) -> None:
        """Nobody will ask."""

    def touched(self, number: int) -> float:  # noqa: ARG002 - a Shelf
        """Never: what is in memory does not outlive a crash."""
        return 0.0

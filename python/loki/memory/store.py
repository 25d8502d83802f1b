"""Where memory is kept: the contract that every store keeps. Pure.

A store holds two things, both named by the path they have in a workspace's folder: *logs*, to which
records are appended, and *documents*, which are replaced whole (`loki.base.documents` reads them).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

ASIDE = "set-aside"
"""Where damaged files are kept, in ``.loki/``, before something is written in their place."""


Record = Mapping[str, Any]
Rewrite = Callable[[str | None], str | None]


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


# --- Logs: how their records are read, and how they stay bounded --------------------------------------

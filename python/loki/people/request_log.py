"""The log of what waits for a person: ``logs/requests.jsonl``, to which lines are only added.

Who was told of a request, its number, what was answered, by whom, and whether what follows is done. The
first line about a thing counts, whoever wrote it: so processes agree without waiting for each other, and
one that is killed leaves a line or none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from loki.base.secret import masked
from loki.base.time import isoformat
from loki.memory import store as documents
from loki.memory.document_validation import kept_as

if TYPE_CHECKING:
    from loki.base.time import Clock
    from loki.memory.store import Store

LOG = "logs/requests.jsonl"
OLDER_LOG, OLDER_NUMBERS = "logs/human-reviews.jsonl", "state/waiting.json"
"""Where decisions, and numbers, were kept before; read, and never written."""


@kept_as(r"state/waiting\.json")
@dataclass
class _OlderNumbers:
    given: dict[str, tuple[int, str]] = field(default_factory=dict)
    left: frozenset[str] = frozenset()


class RequestLog:
    """The log of a project.

    Args:
        store: where it is kept.
        clock: the time.

    Example:
        >>> from loki.stores.memory_store import MemoryStore
        >>> from loki.testing import ManualClock
        >>> log = RequestLog(MemoryStore(), ManualClock())
        >>> log.add("told", "review-1")
        >>> log.ids("told")
        {'review-1'}
        >>> log.number({"8d1f": "blocked a", "77aa": "blocked b"})
        {'8d1f': (1, 'blocked a'), '77aa': (2, 'blocked b')}
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def add(self, event: str, id_: str, *, durable: bool = True, **said: Any) -> None:
        """Add a line.

        Args:
            event: told, numbered, left, decided, done or answered.
            id_: of the request.
            durable: it outlives a crash of the machine.
            said: what else the line says.

        Raises:
            StoreError: it could not be kept.
        """
        at = isoformat(self._clock.now())
        line = masked({"event": event, "id": id_, "at": at, **said})
        self._store.append(LOG, line, durable=durable)

    def all(self, event: str) -> Iterator[Mapping[str, Any]]:
        """The lines of an event, the oldest first."""
        for log in (OLDER_LOG, LOG):
            for record in self._store.scan(log):
                if record.get("event") == event:
                    yield record

    def ids(self, event: str) -> set[str]:
        """What there is a line of an event about."""
        return {str(record.get("id")) for record in self.all(event)}

    def number(self, wanted: Mapping[str, str]) -> dict[str, tuple[int, str]]:
        """The numbers that were given, and to what, by keys; whatever has none yet gets one.

        Args:
            wanted: what is to have a number, by keys of its own.
        """
        given = self.numbers()
        while missing := [key for key in wanted if key not in given]:
            first = max((number for number, _ in given.values()), default=0) + 1
            for number, key in enumerate(missing, first):
                # A machine that goes down loses what was shown, not what is asked.
                self.add("numbered", wanted[key], durable=False, key=key, number=number)
            given = self.numbers()
        return given

    def numbers(self) -> dict[str, tuple[int, str]]:
        """The same, of those that have one: a number is given once, and to one thing."""
        given = self._older.given
        taken = {number for number, _ in given.values()}
        for record in self.all("numbered"):
            key, number = str(record.get("key")), record.get("number")
            if type(number) is int and key not in given and number not in taken:
                given[key] = (number, str(record.get("id")))
                taken.add(number)
        return given

    def left(self) -> frozenset[str]:
        """Keys of what a person wants left as it is."""
        return self._older.left | {str(one.get("key")) for one in self.all("left")}

    @property
    def _older(self) -> _OlderNumbers:
        return documents.load_as(_OlderNumbers, self._store, OLDER_NUMBERS) or _OlderNumbers()

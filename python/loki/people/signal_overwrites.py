"""What stood in a signal's file when it was last looked at: another program may write over it.

Others write ``HUMAN_REVIEW_NEEDED`` as one file (``cat >``, or replace and rename) and do not look
whether one is open. What any process of loki has seen there, or given, is kept here, so that what was
written over can wait behind.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from loki.base import codec
from loki.base.secret import mask_secrets
from loki.memory.document_validation import kept_as
from loki.memory.store import Masked, read_as
from loki.people.signal import parse
from loki.people.signal_kind import MAX_SIZE

if TYPE_CHECKING:
    from loki.memory.store import Store

DOCUMENT = "state/signals-seen.json"

MOST_DONE = 200
"""Ids of a file's signals that were acted on and are still known; chosen: a look takes milliseconds."""


class SeenFile(NamedTuple):
    """A text that stood in a file, or is just being written there.

    Attributes:
        id: of its signal; digest: of the text; text: what it said, without secrets.
        stood: whether anybody has seen it there.
    """

    id: str
    digest: str
    text: str
    stood: bool = True


@dataclass
class _File:
    """What is known of a file: what stood there, the newest last, and ids of what was acted on."""

    seen: list[SeenFile] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    def add(self, one: SeenFile, instead: str = "") -> None:
        gone = {one.digest, instead}
        self.seen = [other for other in self.seen if other.digest not in gone]
        if one.id not in self.done:
            self.seen.append(one)


@kept_as(r"state/signals-seen\.json")
@dataclass
class _Table:
    files: dict[str, _File] = field(default_factory=dict)


class SignalOverwrites:
    """What stood in files of signals, and was not acted on.

    Args:
        store: where signals are kept.

    Example:
        >>> from loki.testing import MemoryStore
        >>> store = MemoryStore()
        >>> known = SignalOverwrites(store)
        >>> store.put("signals/HUMAN_REVIEW_NEEDED", "May I?")
        >>> known.look("signals/HUMAN_REVIEW_NEEDED")
        []
        >>> store.put("signals/HUMAN_REVIEW_NEEDED", "And now?")
        >>> [one.text for one in known.look("signals/HUMAN_REVIEW_NEEDED")]
        ['May I?']
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def look(self, file: str) -> list[SeenFile]:
        """Look what stands in a file; what stood there before, and another program wrote over.

        Each is told again until it is `kept`: whoever keeps it may be killed before.

        Raises:
            StoreError: that cannot be remembered.
        """
        now, known = self._store.get(file), self._known(file)
        if not known.seen and now is None:  # as nearly always
            return []
        if known.seen and known.seen[-1].stood and now and known.seen[-1].digest == _digest(now):
            return known.seen[:-1]
        found: list[SeenFile] = []

        def change(known: _File) -> None:
            now = self._store.get(file)  # whoever removes it does so under the same lock
            if now is None:  # whoever has taken away what stood there knows of it
                known.seen = [*known.seen[:-1], *(one for one in known.seen[-1:] if not one.stood)]
                found[:] = [one for one in known.seen if one.stood]
                return
            known.add(_seen(file, now))
            found[:] = [one for one in known.seen if one.digest != _digest(now)]

        self._change(file, change)
        return found

    def expect(self, file: str, text: str, instead: str = "") -> None:
        """Something is about to be written here.

        Args:
            file: where.
            text: what it will hold.
            instead: what it holds now, if that says the same.
        """
        one = _seen(file, text, stood=bool(instead))
        self._change(file, lambda known: known.add(one, _digest(instead)))

    def remember(self, file: str, one: SeenFile) -> None:
        """What was written over is kept elsewhere."""

        def change(known: _File) -> None:
            known.seen = [other for other in known.seen if other.digest != one.digest]

        self._change(file, change)

    def done(self, file: str, id_: str) -> None:
        """A signal was acted on: nobody is to bring it back."""

        def change(known: _File) -> None:
            known.seen = [one for one in known.seen if one.id != id_]
            known.done = [*(one for one in known.done if one != id_), id_][-MOST_DONE:]

        self._change(file, change)

    def is_done(self, file: str, id_: str) -> bool:
        """Whether a signal was acted on."""
        return id_ in self._known(file).done

    def _known(self, file: str) -> _File:
        return self._table(self._store.get(DOCUMENT)).get(file) or _File()

    def _change(self, file: str, change: Callable[[_File], None]) -> None:
        def rewrite(text: str | None) -> str:
            table = self._table(text)
            change(table.setdefault(file, _File()))
            return Masked(json.dumps(codec.write(_Table(table)), ensure_ascii=False) + "\n")

        # A machine that goes down loses what was seen, not what is asked: that stands in the files.
        self._store.update(DOCUMENT, rewrite, durable=False)

    def _table(self, text: str | None) -> dict[str, _File]:
        """What is known of each file."""
        found = read_as(_Table, self._store, DOCUMENT, text)
        return found.files if found else {}


def _seen(file: str, text: str, *, stood: bool = True) -> SeenFile:
    (signal,) = parse(file, text)
    return SeenFile(signal.id, _digest(text), mask_secrets(text[:MAX_SIZE]), stood)


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

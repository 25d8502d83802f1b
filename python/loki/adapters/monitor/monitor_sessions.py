"""Where the state of a monitored session is: in memory, or in a file that processes share."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from hashlib import sha256
from typing import Protocol, TypeVar
from urllib.parse import quote

from loki.base.secret import masked
from loki.decision.monitor.monitor_state import MonitorRules, MonitorState
from loki.memory.store import Masked, Store

FOLDER = "state/sessions/"

MOST_SESSIONS = 100
"""Sessions that are kept, those written last. Chosen, not measured."""

LONGEST_NAME = 100
"""Characters of a session's file name. Chosen, not measured."""

LARGEST = 256 * 1024
"""Characters of a session's file: of a larger one the oldest sightings are dropped. Chosen."""

T = TypeVar("T")
Change = Callable[[MonitorState], tuple[MonitorState, T]]

logger = logging.getLogger("loki")


class Session(Protocol):
    """The state of an agent's session."""

    def change(self, change: Change[T]) -> T:
        """Make one change; nobody's comes in between."""

    def read(self) -> MonitorState:
        """As it is now."""


class LocalSession:
    """A session of this process alone."""

    def __init__(self) -> None:
        self._state = MonitorState()
        self._lock = threading.Lock()

    def change(self, change: Change[T]) -> T:
        """Make one change; nobody's comes in between."""
        with self._lock:
            self._state, answer = change(self._state)
            return answer

    def read(self) -> MonitorState:
        """As it is now."""
        return self._state


class SharedSession:
    """A session that processes share through a file of the workspace.

    Args:
        store: the workspace's.
        name: of the session, any text.
        rules: what counts.
    """

    def __init__(self, store: Store, name: str, rules: MonitorRules) -> None:
        self._store, self._rules = store, rules
        self.document = document_of(name)
        self._lock = threading.Lock()
        self._known: tuple[str, MonitorState] = ("", MonitorState())

    def change(self, change: Change[T]) -> T:
        """Make one change; nobody's comes in between."""
        answers: list[T] = []
        is_new = False

        def rewrite(text: str | None) -> str:
            nonlocal is_new
            is_new = text is None
            before = self._parsed(text, damaged=self._store.set_aside)
            after, answer = change(before)
            answers[:] = [answer]
            if after is before and text is not None:
                return Masked(text)
            new = dumped(after)
            self._known = new, after
            return new

        with self._lock:
            # What a crash of the machine loses of it is seen again; the disk need not be waited for.
            self._store.update(self.document, rewrite, durable=False)
        if is_new:
            self._sweep()
        return answers[0]

    def read(self) -> MonitorState:
        """As it is now."""
        return self._parsed(self._store.get(self.document))

    def _parsed(
        self, text: str | None, damaged: Callable[[str], None] = lambda _: None
    ) -> MonitorState:
        if text is None:
            return MonitorState()
        known, state = self._known
        if text == known:
            return state
        try:
            return MonitorState.from_dict(json.loads(text), self._rules.signs)
        except (ValueError, TypeError, RecursionError) as error:
            logger.warning("%s is damaged (%s): begun anew", self.document, error)
            damaged(self.document)
            return MonitorState()

    def _sweep(self) -> None:
        """Remove the sessions that were not written for the longest time."""
        names = self._store.names(FOLDER)
        if len(names) <= MOST_SESSIONS:
            return
        by_age = sorted(names, key=lambda name: self._store.written_at(name) or 0.0)
        for name in by_age[:-MOST_SESSIONS]:
            if name != self.document:
                self._store.update(name, lambda _old: None, durable=False)


def document_of(session: str) -> str:
    """The file of a session, relative to ``.loki/``.

    Example:
        >>> document_of("0f3a-77"), document_of("../../x")
        ('state/sessions/0f3a-77.json', 'state/sessions/%2E.%2F..%2Fx.json')
    """
    name = quote(session, safe="", errors="backslashreplace") or "%00"
    if name.startswith("."):
        name = f"%2E{name[1:]}"
    if len(name) > LONGEST_NAME:
        name = f"{name[: LONGEST_NAME - 17]}-{sha256(name.encode()).hexdigest()[:16]}"
    return f"{FOLDER}{name}.json"


def dumped(state: MonitorState) -> Masked:
    """A state as text of a bounded size, secrets masked; without its oldest sightings where it is long."""
    data = state.head()
    lines = [sighting.line for sighting in state.seen.sightings]
    left = LARGEST - len(json.dumps(data)) - sum(len(line) + 2 for line in lines)
    for index, line in enumerate(lines):
        if left >= 0:
            lines = lines[index:]
            break
        left += len(line) + 2
        name = state.seen.sightings[index].failure.fingerprint
        if name in data["looks"]:
            left += len(json.dumps({name: data["looks"].pop(name)}))
    else:
        lines = []
    rest = json.dumps(masked(data))
    return Masked(f'{rest[:-1]}, "sightings": [\n{_joined(lines)}\n]}}\n')


def _joined(lines: list[str]) -> str:
    return ",\n".join(lines)

"""Brings a long file of breakers up to what its log says, a moment after the first outcome that it lacks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from loki.base.error import StoreError
from loki.decision.breakers_file import SharedFile

SECONDS = 1.0
"""How long after an outcome a long file says it, at the latest. Chosen: about as soon as people look."""

REST = 50
"""Times as long as it takes to write a long file it is left alone, so that this takes 2 % of the time."""


class BreakersCompaction:
    """At most one such moment ahead; all but `forget` needs the lock that is given.

    Args:
        file: the file.
        lock: what threads of this process queue at.
        complain: is told that the disk fails.
    """

    def __init__(
        self, file: SharedFile, lock: threading.Lock, complain: Callable[[StoreError], None]
    ) -> None:
        self._file, self._lock, self._complain = file, lock, complain
        self._timer: threading.Timer | None = None
        self._took = 0.0  # seconds

    def later(self) -> None:
        """Soon, whatever comes."""
        if self._timer is None:
            self._timer = threading.Timer(max(SECONDS, self._took * REST), self._due)
            self._timer.daemon = True
            self._timer.start()

    def at_end(self) -> None:
        """Now, if it is due: the process ends."""
        if self._timer is not None:
            self._timer.cancel()
            self._fold(0.0)

    def _due(self) -> None:
        with self._lock:
            self._timer = None
            if not self._fold(SECONDS):  # another process did, and there is more since
                self.later()

    def _fold(self, age: float) -> bool:
        if not self._file.has_folder():
            return True
        try:
            with suppress(ValueError), self._file.lock():  # who uses it next sets it aside
                began = time.monotonic()
                is_done = self._file.fold(unless_younger=age)
                self._took = time.monotonic() - began
                return is_done
        except StoreError as problem:
            self._complain(problem)
        return True

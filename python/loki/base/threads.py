"""Work beside other work: threads that end with it, and events that cancel it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LOOK = 0.05
"""Seconds between two looks at the other event, for who waits. Chosen, not measured."""


class LinkedEvent(threading.Event):
    """Set by itself, or by its parent; setting it leaves the parent alone.

    Args:
        parent: the other event.

    Example:
        >>> run = threading.Event()
        >>> call = LinkedEvent(run)
        >>> call.set(); call.is_set(), run.is_set()
        (True, False)
        >>> other = LinkedEvent(run)
        >>> run.set(); other.is_set()
        True
    """

    def __init__(self, parent: threading.Event) -> None:
        super().__init__()
        self._parent = parent

    def is_set(self) -> bool:
        """Whether one of the two is set."""
        return super().is_set() or self._parent.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Return once one of the two is set, or after ``timeout`` seconds; whether one is."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self.is_set():
            rest = LOOK if end is None else min(LOOK, end - time.monotonic())
            if rest <= 0:
                break
            super().wait(rest)
        return self.is_set()


@contextmanager
def in_background(
    work: Callable[[threading.Event], object], name: str, *, daemon: bool = True
) -> Iterator[None]:
    """Inside, this runs in a thread of its own; at the end it is told so, and waited for.

    Args:
        work: ends soon after the event that it is given is set.
        name: of the thread.
        daemon: the process may end without it.
    """
    over = threading.Event()
    thread = threading.Thread(target=work, args=(over,), name=name, daemon=daemon)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()

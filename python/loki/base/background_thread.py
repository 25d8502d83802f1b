"""Work that goes on beside other work, as long as that lasts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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

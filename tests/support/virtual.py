"""An event loop whose time is a `ManualClock`: it jumps to whatever is awaited next, nothing sleeps."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

from loki.testing import ManualClock

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "everybody waits for something that nobody will do"
            self._clock.advance(max(0.0, timeout))
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, clock: ManualClock) -> None:
        super().__init__(_Selector(clock))
        self._now = clock.monotonic

    def time(self) -> float:
        return self._now()


def run(clock: ManualClock, work: Coroutine[Any, Any, T]) -> T:
    """Run it to its end; an `AssertionError` where it would hang."""
    loop = _Loop(clock)
    try:
        return loop.run_until_complete(asyncio.wait_for(work, None))
    finally:
        loop.close()

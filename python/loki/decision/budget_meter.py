"""What was spent of a budget, for threads that share it."""

from __future__ import annotations

import threading
from dataclasses import replace

from loki.base.time import Clock
from loki.decision.budget import Budget, Usage


class Meter:
    """Counts against a budget; safe to use from many threads.

    Args:
        budget: the limits; ``attempts`` are calls.
        clock: where time comes from; it is counted from the first call on.

    Example:
        >>> from loki.testing import ManualClock
        >>> meter = Meter(Budget(tokens=1000), ManualClock())
        >>> meter.charge(tokens=850)
        {'tokens': '850 of 1,000 tokens are spent'}
        >>> meter.charge(tokens=150), meter.spent()
        ({}, 'the budget of 1,000 tokens is spent (1,000 used)')
    """

    def __init__(self, budget: Budget, clock: Clock) -> None:
        self.budget = budget
        self._clock = clock
        self._lock = threading.Lock()
        self._usage = Usage()
        self._began: float | None = None
        self._warned: set[str] = set()

    def begin(self) -> None:
        """Time counts from now on, if it does not already."""
        with self._lock:
            if self._began is None:
                self._began = self._clock.monotonic()

    def charge(self, *, calls: int = 0, tokens: int = 0, cost: float = 0.0) -> dict[str, str]:
        """Count what was spent.

        Args:
            calls: calls that went out; tokens: theirs; cost: US dollars.

        Returns:
            What to warn of, by the limit's name, once for each: 80 % or more of it is spent.
        """
        with self._lock:
            used = self._usage
            self._usage = Usage(
                used.attempts + calls, tokens=used.tokens + tokens, cost=used.cost + cost
            )
            nearly = self.budget.nearly_spent(self._now())
            news = {name: text for name, text in nearly.items() if name not in self._warned}
            self._warned |= news.keys()
            return news

    def spent(self) -> str | None:
        """Why nothing more may be asked; None: something may."""
        with self._lock:
            return self.budget.spent(self._now())

    @property
    def left(self) -> float | None:
        """Seconds that are left, negative where they are spent; None: there is no such limit."""
        if self.budget.seconds is None:
            return None
        with self._lock:
            return self.budget.seconds - self._now().seconds

    @property
    def usage(self) -> Usage:
        """What was spent so far."""
        with self._lock:
            return self._now()

    def _now(self) -> Usage:
        elapsed = 0.0 if self._began is None else self._clock.monotonic() - self._began
        return replace(self._usage, seconds=max(0.0, elapsed))

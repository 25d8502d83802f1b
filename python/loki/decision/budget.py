"""How much a run may take: attempts, wall time, tokens and money; pure.

Unlike a task's retries, which count failures of its work, a budget counts everything that was spent:
attempts that infrastructure failed, too.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace

from loki.base.time import Clock

_TRIFLE = 1e-6

WARN_AT = 0.8
"""Share of a limit from which on a run warns, as the specification has it."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run has spent.

    Attributes:
        attempts: attempts made, whatever became of them.
        seconds: wall time.
        tokens: tokens, as far as agents tell.
        cost: money in US dollars, as far as agents tell.
    """

    attempts: int = 0
    seconds: float = 0.0
    tokens: int = 0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a run; None: there is none.

    Attributes:
        attempts, seconds, tokens, cost: as in `Usage`; a run ends before the next attempt once it
            has spent as much.

    Raises:
        ValueError: a limit is no number above 0.

    Example:
        >>> Budget(tokens=1000).spent(Usage(tokens=1200))
        'the budget of 1,000 tokens is spent (1,200 used)'
        >>> Budget(tokens=1000).spent(Usage(tokens=999)) is None
        True
    """

    attempts: int | None = None
    seconds: float | None = None
    tokens: int | None = None
    cost: float | None = None

    def __post_init__(self) -> None:
        """Refuse what is no limit."""
        for name in ("attempts", "seconds", "tokens", "cost"):
            limit = getattr(self, name)
            if limit is not None and not (math.isfinite(limit) and limit > 0):
                raise ValueError(f"budget of {name} is {limit!r}: expected a number above 0")

    def spent(self, usage: Usage) -> str | None:
        """Why a run must end, in a sentence's words; None: it may go on."""
        for name, limit, used in self._limits(usage):
            if used >= limit:
                return f"the budget of {_amount(name, limit)} is spent ({_number(name, used)} used)"
        return None

    def nearly_spent(self, usage: Usage) -> dict[str, str]:
        """What to warn of, by the limit's name: 80 % or more of it is spent."""
        return {
            name: f"{_number(name, used)} of {_amount(name, limit)} are spent"
            for name, limit, used in self._limits(usage)
            if used >= WARN_AT * limit
        }

    def rest(self, usage: Usage) -> Budget:
        """What is left of it, no limit below a trifle; attempts are not told.

        Example:
            >>> Budget(tokens=1000, cost=2.0).rest(Usage(tokens=400)).tokens
            600
        """
        return Budget(
            seconds=None if self.seconds is None else max(_TRIFLE, self.seconds - usage.seconds),
            tokens=None if self.tokens is None else max(1, self.tokens - usage.tokens),
            cost=None if self.cost is None else max(_TRIFLE, self.cost - usage.cost),
        )

    def _limits(self, usage: Usage) -> Iterator[tuple[str, float, float]]:
        for name in ("attempts", "seconds", "tokens", "cost"):
            limit = getattr(self, name)
            if limit is not None:
                yield name, limit, getattr(usage, name)


UNLIMITED = Budget()
"""No limits."""


def _amount(name: str, value: float) -> str:
    unit = {"seconds": " s", "cost": ""}.get(name, f" {name}")
    return f"{_number(name, value)}{unit}"


def _number(name: str, value: float) -> str:
    if name == "cost":
        return f"${value:,.2f}"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


# --- What was spent, for threads that share it --------------------------------------------------------


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

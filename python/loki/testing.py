"""For tests of code that uses loki.

A clock that obeys, an agent and a model that say what they are told, what forbids calls to models,
and the contracts that models and agents are tested by.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta, timezone

from loki.agents.contract import AgentContract, LLMContract
from loki.agents.scripted import ScriptedAgent, ScriptedLLM
from loki.base.time import Duration
from loki.base.time import seconds as to_seconds

__all__ = [
    "AgentContract",
    "LLMContract",
    "ManualClock",
    "ScriptedAgent",
    "ScriptedLLM",
    "no_model_calls",
]


@contextmanager
def no_model_calls() -> Iterator[None]:
    """Inside, no model is called over the wire: a call fails with a `loki.LLMError` instead.

    Holds for the whole process. In a ``conftest.py``, for all tests:

        @pytest.fixture(autouse=True)
        def no_calls():
            with loki.testing.no_model_calls():
                yield

    Example:
        >>> from loki.agents.model_call import allow_calls
        >>> with no_model_calls():
        ...     allow_calls(False)
        False
    """
    from loki.agents.model_call import allow_calls

    before = allow_calls(False)
    try:
        yield
    finally:
        allow_calls(before)


class ManualClock:
    """A clock that moves only when it is told to, or waited on; a `loki.base.time.Clock`.

    Safe to use from many threads.

    Attributes:
        waits: seconds of each wait, in order.

    Example:
        >>> clock = ManualClock()
        >>> clock.advance("1h30m")
        >>> clock.monotonic()
        5400.0
    """

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=timezone.utc)) -> None:
        """Args: start: the first time of day; in UTC where it has no zone."""
        self.waits: list[float] = []
        self._start = start if start.tzinfo else start.replace(tzinfo=timezone.utc)
        self._elapsed = 0.0
        self._alarms: list[tuple[float, Callable[[], None]]] = []
        self._lock = threading.Lock()

    def now(self) -> datetime:
        """The time of day, in UTC."""
        with self._lock:
            return self._start.astimezone(timezone.utc) + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        """Seconds since the start."""
        with self._lock:
            return self._elapsed

    def advance(self, duration: Duration) -> None:
        """Let time pass."""
        self._move(to_seconds(duration))

    def wait(self, seconds: float, cancelled: threading.Event) -> None:
        """Return at once; time has passed, unless ``cancelled`` was set already."""
        with self._lock:
            self.waits.append(seconds)
        if not cancelled.is_set():
            self._move(max(0.0, seconds))

    def alarm(self, seconds: float, ring: Callable[[], None]) -> Callable[[], None]:
        """Call ``ring`` once that much time has passed, from where it is moved."""
        with self._lock:
            entry = (self._elapsed + seconds, ring)
            self._alarms.append(entry)

        def cancel() -> None:
            with self._lock, suppress(ValueError):
                self._alarms.remove(entry)

        return cancel

    def _move(self, seconds: float) -> None:
        with self._lock:
            self._elapsed += seconds
            due = [entry for entry in self._alarms if entry[0] <= self._elapsed]
            self._alarms = [entry for entry in self._alarms if entry not in due]
        for _, ring in due:
            ring()

"""How much of the queue may be worked on now: the recovery controller over a project's breakers.

`loki.decision.recovery` decides; this feeds it with what the breakers' file says, which all processes
at work in the project share. So each of them comes to the same answer by itself, and what they have
claimed together counts against it.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from loki.decision.recovery import (
    START_PERCENT,
    STEP_PERCENT,
    STEP_SECONDS,
    Changed,
    Event,
    Failed,
    Recovery,
    Tick,
    next_change,
    step,
)

if TYPE_CHECKING:
    from loki.base.time import Clock
    from loki.decision.breaker import BreakerSnapshot
    from loki.jobs.queue.queued_task import QueuedTask

GROWTH = STEP_SECONDS * ((100 - START_PERCENT) / STEP_PERCENT)
"""Seconds from CLOSED to full capacity."""


class Looked(Protocol):
    """Breakers that can be looked at: `loki.Breakers`."""

    def snapshot(self) -> Mapping[str, BreakerSnapshot]:
        """All breakers as they are now."""


class Capacity:
    """What a queue may hand out now; a `loki.jobs.queue.queue_lists.Capacity`.

    While nothing is broken, each worker says for itself how much it takes. Else so many claims may be
    out over all of them as `Recovery` says of ``parallel``.

    Args:
        breakers: the project's.
        clock: the time.
        parallel: slots over all workers that a recovery is reckoned from.
    """

    def __init__(self, breakers: Looked, clock: Clock, parallel: int) -> None:
        self._breakers, self._clock = breakers, clock
        self._state = Recovery(parallel)
        self._known: dict[str, BreakerSnapshot] = {}
        self._held: dict[str, datetime | None] = {}
        self._lock = threading.Lock()

    def look(self) -> Recovery:
        """Take in how the breakers are now; how it stands then."""
        with self._lock:
            now = self._clock.monotonic()
            for name, found in sorted(self._breakers.snapshot().items()):
                self._see(name, found, now)
            self._step(Tick(), now)
            return self._state

    def _see(self, name: str, found: BreakerSnapshot, now: float) -> None:
        known = self._known.get(name)
        self._known[name] = found
        if known is None and found.state == "CLOSED":
            self._began_to_grow(found, now)
        elif known is None or _has_changed(known, found):
            if known is not None and known.state == found.state == "CLOSED":
                self._step(Changed(name, "OPEN", 0.0), now)  # opened and closed since the last look
            self._step(Changed(name, found.state, _wait(found)), now)
        elif found.state == "CLOSED" and found.failure_count > known.failure_count:
            self._step(Failed(name), now)

    def _began_to_grow(self, found: BreakerSnapshot, now: float) -> None:
        """Another process saw it close: capacity grows since then."""
        if found.last_state_change is None:
            return
        age = (self._clock.now() - found.last_state_change).total_seconds()
        if 0 <= age < GROWTH:
            self._step(Changed(found.name, "OPEN", 0.0), now - age)
            self._step(Changed(found.name, "CLOSED"), now - age)

    def _step(self, event: Event, now: float) -> None:
        self._state, _ = step(self._state, event, now)

    @property
    def is_full(self) -> bool:
        """Whether nothing is broken, nor was a short time ago."""
        return not self._state.broken and self._state.capacity == self._state.full

    @property
    def slots(self) -> int:
        """Claims that may be out at a time, over all workers."""
        return sys.maxsize if self.is_full else self._state.capacity

    def admits(self, task: QueuedTask) -> bool:
        """Whether a task may be claimed now."""
        if task.background and self._state.is_restricted:
            return False
        if task.id in self._held:
            until = self._held[task.id]
            if self._state.broken and (until is None or until > self._clock.now()):
                return False
            del self._held[task.id]  # its time has come, or somebody closed the breaker
        return self._state.admits(urgent=task.urgent, circuit=None)

    @property
    def stops_background(self) -> bool:
        """Whether work in the background is to stop."""
        return self._state.is_restricted

    def hold(self, task: str, until: datetime | None) -> None:
        """Do not take a task before a time, or before no breaker is open; None: before that alone."""
        self._held[task] = until

    @property
    def seconds(self) -> float | None:
        """Seconds until time alone lets more out; None: it does not."""
        moments = [t for t in (next_change(self._state),) if t is not None and math.isfinite(t)]
        left = [moment - self._clock.monotonic() for moment in moments]
        now = self._clock.now()
        left += [(until - now).total_seconds() for until in self._held.values() if until]
        return max(0.0, min(left)) if left else None


def _has_changed(known: BreakerSnapshot, found: BreakerSnapshot) -> bool:
    """Whether a breaker changed its state between two looks, be it the same again."""
    if known.state != found.state:
        return True
    # What is closed and was opened between was also closed again. A reset of what is closed is one.
    return found.generation - known.generation >= (2 if found.state == "CLOSED" else 1)


def _wait(found: BreakerSnapshot) -> float:
    return math.inf if found.retry_after is None else found.retry_after

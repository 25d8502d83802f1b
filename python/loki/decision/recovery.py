"""How much may go out in parallel while a circuit is broken, and afterwards: a pure machine.

`step` is the machine: (state, event, now) → new state. Now is monotonic seconds; nothing
here reads a clock, starts a thread or writes a file. `loki.decision.limiter` drives it.

The slots of ``full`` (of five, in brackets), and who gets one:

========== ============================================== ================= =======================
stage      while                                          slots             who
========== ============================================== ================= =======================
open       a watched circuit is OPEN                      2 of 5 (2)        urgent work
due        … and its cooldown is over                     2 of 5 (2)        and whoever may ask it
half open  one is HALF_OPEN                               1                 its probe
stale      one has been due or HALF_OPEN for 600 s        2 of 5 (2)        anybody
growing    all are CLOSED, for less than 120 s            50 %, 75 % (3, 4) anybody
full       otherwise                                      all (5)           anybody
========== ============================================== ================= =======================

Of several circuits the most severe counts: the fewest slots. A failure while growing takes it back
to 50 %, and the 60 s begin anew. Two stages keep the machine from wedging. A circuit turns HALF_OPEN
only when somebody asks it, so when its cooldown is over somebody must be let out to ask, urgent or
not. And if the work for a circuit ends before it is closed, nobody will ever close it: others wait
for it no longer than a probe's lease.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeAlias

from loki.base.time import isoformat
from loki.decision.breaker import CircuitState

FULL = 5
"""Agents in parallel when all is well. Source: the parallelism of the resilience documents."""

DROP_PERCENT = 40
"""Share that is left while a circuit is open, rounded down, at least 1. Source: 2 of 5."""

START_PERCENT = 50
"""Share that growth starts with, rounded up. Source: the resilience documents, like the two below."""

STEP_PERCENT = 25
"""Points that growth adds per step."""

STEP_SECONDS = 60.0
"""Seconds per step."""

COOLDOWN_SECONDS = 300.0
"""How long a circuit stays OPEN where nobody says."""

LEASE_SECONDS = 600.0
"""How long others wait for a circuit that may be asked. Source: a probe's lease."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A circuit changed its state.

    Attributes:
        name: the circuit.
        state: its new state.
        retry_in: seconds until it may be asked again, where it is OPEN; infinite where only a
            person opens the way again.
    """

    name: str
    state: CircuitState
    retry_in: float = COOLDOWN_SECONDS


@dataclass(frozen=True, slots=True)
class Failed:
    """A call through a watched circuit failed, whatever that did to the circuit."""

    name: str


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


Event: TypeAlias = Changed | Failed | Tick


@dataclass(frozen=True, slots=True)
class Broken:
    """A circuit that is not CLOSED.

    Attributes:
        ask_from: monotonic seconds from which it may be asked; while it is OPEN, in the future.
        is_half_open: it is being probed.
    """

    ask_from: float
    is_half_open: bool = False


@dataclass(frozen=True, slots=True)
class Recovery:
    """Where the machine stands; begin with ``Recovery(full)`` and go on with `step`.

    Attributes:
        full: slots when all is well, 1 or more.
        broken: the circuits that are not CLOSED, by name.
        growing_since: when growth began; None where it does not grow.
        now: the moment of the last step.

    Raises:
        ValueError: ``full`` is below 1.

    Example:
        >>> state = step(Recovery(), Changed("api/claude", "OPEN"), now=0.0)
        >>> state.capacity, state.is_restricted
        (2, True)
        >>> state = step(state, Changed("api/claude", "CLOSED"), now=310.0)
        >>> state.capacity, next_change(state)
        (3, 370.0)
    """

    full: int = FULL
    broken: Mapping[str, Broken] = field(default_factory=dict)
    growing_since: float | None = None
    now: float = -math.inf

    def __post_init__(self) -> None:
        if self.full < 1:
            raise ValueError(f"found a capacity of {self.full}, expected 1 or more")

    @property
    def capacity(self) -> int:
        """How many slots may be out."""
        if self._half_open:
            return 1
        if self.broken:
            return max(1, self.full * DROP_PERCENT // 100)
        if self.growing_since is None:
            return self.full
        steps = sum(moment <= self.now for moment in _growth(self.growing_since))
        percent = START_PERCENT + STEP_PERCENT * steps
        return -(-self.full * percent // 100)  # rounded up

    @property
    def is_restricted(self) -> bool:
        """Whether background work pauses and work that is not urgent waits."""
        return bool(self._fresh)

    def admits(self, *, urgent: bool, circuit: str | None) -> bool:
        """Whether work may have a slot, if one is free.

        Args:
            urgent: it cannot wait until the circuits are closed.
            circuit: the one that it will ask; None where that is not known.
        """
        if self._half_open:
            return circuit is None or circuit in self._half_open
        due = [name for name, broken in self._fresh.items() if broken.ask_from <= self.now]
        may_ask = bool(due) and (circuit is None or circuit in due)
        return urgent or may_ask or not self.is_restricted

    @property
    def _fresh(self) -> dict[str, Broken]:
        """The circuits that others wait for."""
        return {
            name: circuit
            for name, circuit in self.broken.items()
            if self.now < circuit.ask_from + LEASE_SECONDS
        }

    @property
    def _half_open(self) -> list[str]:
        return [name for name, circuit in self._fresh.items() if circuit.is_half_open]


def step(state: Recovery, event: Event, now: float) -> Recovery:
    """What an event makes of a state.

    Args:
        state: as the last step left it.
        event: what happened.
        now: when, in monotonic seconds; before the last step's it counts as that.
    """
    now = max(now, state.now)
    since = state.growing_since
    if since is not None and _growth(since)[-1] <= now:
        since = None  # before the event: a failure after growth is none on the way
    return _with_event(replace(state, growing_since=since, now=now), event)


def next_change(state: Recovery) -> float | None:
    """The next moment at which time alone changes something; None: never."""
    moments = [
        moment
        for circuit in state.broken.values()
        for moment in (circuit.ask_from, circuit.ask_from + LEASE_SECONDS)
        if math.isfinite(moment)
    ]
    if state.growing_since is not None:
        moments += _growth(state.growing_since)
    return min((moment for moment in moments if moment > state.now), default=None)


def recovery_line(name: str, moment: datetime) -> str:
    """The line of ``.loki/logs/circuit-recovery.log`` that says so.

    Example:
        >>> from datetime import timezone
        >>> recovery_line("api/claude", datetime(2026, 4, 4, 10, 15, 30, tzinfo=timezone.utc))
        '2026-04-04T10:15:30.000Z Circuit recovered: api/claude'
    """
    return f"{isoformat(moment)} Circuit recovered: {' '.join(name.split())}"


def _with_event(state: Recovery, event: Event) -> Recovery:
    now = state.now
    if isinstance(event, Failed):
        # Only growth watches for failures: before and after, the circuit itself counts them.
        return state if state.growing_since is None else replace(state, growing_since=now)
    if isinstance(event, Tick):
        return state
    others = {name: circuit for name, circuit in state.broken.items() if name != event.name}
    if event.state != "CLOSED":
        is_open = event.state == "OPEN"
        circuit = Broken(now + event.retry_in if is_open else now, is_half_open=not is_open)
        return replace(state, broken={**others, event.name: circuit}, growing_since=None)
    if event.name not in state.broken:
        return state
    return replace(state, broken=others, growing_since=None if others else now)


def _growth(since: float) -> list[float]:
    """The moments at which the share grows, the last of which makes it full."""
    steps = -(-(100 - START_PERCENT) // STEP_PERCENT)
    return [since + STEP_SECONDS * step for step in range(1, steps + 1)]

"""Slots for work in parallel, as many as `loki.decision.recovery` says, for threads and asyncio.

One lock guards the machine, the count of slots that are out and the line of those who wait; nobody
is called and nothing is awaited under it. Who waits sleeps until he is granted a slot or until time
alone changes something, so nobody polls.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loki.base.error import UsageError
from loki.base.threads import LOOK, LinkedEvent
from loki.base.time import Clock, SystemClock
from loki.decision.breaker import Breaker, BreakerSnapshot, Transition
from loki.decision.recovery import FULL, Changed, Event, Recovery, Tick, next_change, step

if TYPE_CHECKING:
    from loki.decision.breakers import Breakers


@dataclass(eq=False, slots=True)
class _Ticket:
    """A place in the line."""

    urgent: bool
    circuit: str | None
    wake: Callable[[], object]
    is_granted: bool = False


class Limiter:
    """Hands out slots for work in parallel, fewer while a circuit is broken.

    First come, first served, among those whose work may go out: work that is not urgent waits while
    a circuit is OPEN, without losing its place. A slot that is out is never taken back. Threads and
    tasks of any event loop may share one limiter.

    Args:
        full: slots when all is well, 1 or more.
        clock: where time comes from; the machine's where nothing is said.

    Raises:
        ValueError: ``full`` is below 1.

    Example:
        >>> limiter = Limiter(5)
        >>> with limiter.slot(urgent=True):
        ...     limiter.in_use
        1
    """

    def __init__(self, full: int = FULL, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._state = Recovery(full)
        self._in_use = 0
        self._line: dict[_Ticket, None] = {}

    def slot(
        self,
        *,
        urgent: bool = False,
        circuit: str | None = None,
        cancelled: threading.Event | None = None,
    ) -> Slot:
        """A slot, to be held inside ``with`` or ``async with``; entering waits for a free one.

        Args:
            urgent: the work cannot wait until the circuits are closed.
            circuit: the circuit that the work will ask, where that is known: while one is being
                probed, work that names another waits.
            cancelled: once it is set, entering waits no longer, and there is no slot.
        """
        return Slot(self, urgent, circuit, cancelled)

    def report(self, event: Event) -> None:
        """Tell what happened to a circuit: `recovery.Changed` or `recovery.Failed`."""
        with self._lock:
            self._step(event)
            self._grant()

    def watch(self, breakers: Breakers) -> None:
        """Follow breakers: how they are now, and all their changes.

        Failures while capacity grows are told by whoever makes the calls: `report` of `Failed`.
        """
        breakers.listen(lambda change: self._hear(change, breakers[change.name]))
        for found in breakers.snapshot().values():
            self._see(found)

    def watch_one(self, breaker: Breaker) -> None:
        """Follow a single breaker likewise."""
        breaker.listen(lambda change: self._hear(change, breaker))
        self._see(breaker.snapshot())

    def _hear(self, change: Transition, breaker: Breaker) -> None:
        found = breaker.snapshot()
        wait = found.retry_after if found.state == "OPEN" else 0.0
        self.report(Changed(change.name, change.after, math.inf if wait is None else wait))

    def _see(self, found: BreakerSnapshot) -> None:
        wait = math.inf if found.retry_after is None else found.retry_after
        self.report(Changed(found.name, found.state, wait))

    def tick(self) -> None:
        """Let the time that has passed count; whoever asks or waits for a slot does so anyway."""
        self.report(Tick())

    @property
    def capacity(self) -> int:
        """How many slots may be out now."""
        self.tick()
        return self._state.capacity

    @property
    def in_use(self) -> int:
        """How many slots are out; after capacity fell, it may be more than that."""
        return self._in_use

    @property
    def waiting(self) -> int:
        """How many wait for a slot."""
        return len(self._line)

    # --- Under the lock ---------------------------------------------------------------------------

    def _step(self, event: Event) -> None:
        before = next_change(self._state)
        self._state = step(self._state, event, self._clock.monotonic())
        if next_change(self._state) != before:
            for ticket in self._line:  # they sleep until the wrong moment
                ticket.wake()

    def _grant(self) -> None:
        granted = []
        for ticket in self._line:
            if self._in_use >= self._state.capacity:
                break
            if self._state.admits(urgent=ticket.urgent, circuit=ticket.circuit):
                self._in_use += 1
                ticket.is_granted = True
                granted.append(ticket)
        for ticket in granted:
            del self._line[ticket]
            ticket.wake()

    # --- For slots --------------------------------------------------------------------------------

    def _join(self, ticket: _Ticket) -> None:
        with self._lock:
            self._step(Tick())
            self._line[ticket] = None
            self._grant()

    def _leave(self, ticket: _Ticket) -> None:
        """Give the slot back, or leave the line: right at every moment of a ticket's life."""
        with self._lock:
            self._line.pop(ticket, None)
            if ticket.is_granted:
                ticket.is_granted = False
                self._in_use -= 1
            self._step(Tick())
            self._grant()

    def _delay(self, ticket: _Ticket) -> float | None:
        """Seconds to sleep unless woken; None: no end. Who asks is ready to be woken by then."""
        with self._lock:
            if ticket.is_granted:
                return 0.0
            moment = next_change(self._state)
            return None if moment is None else max(0.0, moment - self._clock.monotonic())


class Slot:
    """A slot of a `Limiter`: waits on entering, gives back on leaving, whatever happened inside."""

    def __init__(
        self,
        limiter: Limiter,
        urgent: bool,
        circuit: str | None,
        cancelled: threading.Event | None = None,
    ) -> None:
        """Use `Limiter.slot`."""
        self._cancelled = cancelled or threading.Event()
        self._look = None if cancelled is None else LOOK
        self._limiter = limiter
        self._urgent = urgent
        self._circuit = circuit
        self._ticket: _Ticket | None = None

    def __enter__(self) -> None:
        awake = LinkedEvent(self._cancelled) if self._look else threading.Event()
        ticket = self._new_ticket(awake.set)
        limiter = self._limiter
        try:
            limiter._join(ticket)
            while not (ticket.is_granted or self._cancelled.is_set()):
                awake.clear()
                delay = limiter._delay(ticket)
                if delay is None:
                    awake.wait()
                else:
                    limiter._clock.wait(delay, awake)
                limiter.tick()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        ticket, self._ticket = self._ticket, None
        if ticket is not None:
            self._limiter._leave(ticket)

    async def __aenter__(self) -> None:
        loop = asyncio.get_running_loop()
        sleep: asyncio.Future[None] = loop.create_future()

        def end_sleep() -> None:
            if not sleep.done():
                sleep.set_result(None)

        def wake() -> None:
            with suppress(RuntimeError):  # the loop is closed, and nobody waits in it any more
                loop.call_soon_threadsafe(end_sleep)

        ticket = self._new_ticket(wake)
        limiter = self._limiter
        try:
            limiter._join(ticket)
            while not (ticket.is_granted or self._cancelled.is_set()):
                sleep = loop.create_future()
                times = [time for time in (limiter._delay(ticket), self._look) if time is not None]
                await asyncio.wait((sleep,), timeout=min(times, default=None))
                limiter.tick()
        except BaseException:
            self.__exit__()
            raise

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()

    def _new_ticket(self, wake: Callable[[], object]) -> _Ticket:
        if self._ticket is not None:
            raise UsageError("a slot is entered a second time: expected one slot for each work")
        self._ticket = _Ticket(self._urgent, self._circuit, wake)
        return self._ticket

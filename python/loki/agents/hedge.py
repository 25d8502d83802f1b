"""Asks the next model, too, where the first takes long; the first answer wins.

A hedge: Dean and Barroso, "The Tail at Scale", Communications of the ACM 56(2), 2013. It is off unless
somebody asks for it, for both calls cost. Only the first call of a question is hedged, and only where
another member's breaker gives leave; a hedge is no retry and takes nothing from the retry budget.
"""

from __future__ import annotations

import asyncio
import inspect
import queue
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from loki.action.loop.agent_call import run_coroutine
from loki.agents.call_record import CallRecord
from loki.agents.endpoint import Permit
from loki.agents.fallback_chain import ChainRun
from loki.base.cancellation import LinkedEvent
from loki.decision.fallback_policy import Event

A = TypeVar("A")


def is_due(run: ChainRun[Any], visit: CallRecord) -> bool:
    """Whether a call is one that is hedged."""
    chain = run.chain
    has_other = chain.member + 1 < chain.members
    is_first = not (visit.attempts or chain.work)
    return run.ways.hedge is not None and has_other and is_first and visit.member.kind == "llm"


class Race:
    """Up to two calls for one question; who answers first wins.

    Args:
        run: the question.
        visit: who is asked first.
    """

    def __init__(self, run: ChainRun[Any], visit: CallRecord) -> None:
        self.run = run
        self.visits = [visit]
        self._stops = [LinkedEvent(run.cancelled)]
        self._events: list[Event | None] = [None]
        self._is_over = False
        self._won: Event | None = None
        self._lock = threading.Lock()

    def second(self) -> Permit | None:
        """Leave for the other call; None: nobody else is asked."""
        visit = self.run.open(self.run.chain.member + 1)
        permit = self.run.admit(visit)
        with self._lock:
            if isinstance(permit, Event) or self._is_over:
                return None
            self.visits.append(visit)
            self._stops.append(LinkedEvent(self.run.cancelled))
            self._events.append(None)
        return permit

    def question(self, index: int) -> Any:
        """What one of the two is asked: the same, to be cancelled by itself."""
        return replace(self.run.question, cancelled=self._stops[index])

    def came(self, index: int, permit: Permit, answer: Any, error: BaseException | None) -> None:
        """One of the two is done: it wins, has failed, or is too late."""
        run, visit = self.run, self.visits[index]
        with self._lock:
            is_late = self._is_over
            if is_late:
                run.too_late(visit, permit, answer, error)
            elif error is not None:
                self._events[index] = run.failed(visit, permit, error)
            else:
                self._won = run.answered(visit, permit, answer)
                self._finish()
        if index > 0 or is_late:
            run.close(visit)

    @property
    def event(self) -> Event | None:
        """What the chain is told; None: somebody may still answer."""
        with self._lock:
            if self._won is not None:
                return self._won
            return None if None in self._events else self._events[0]

    def give_up(self) -> None:
        """Nobody waits any more: what still comes is too late."""
        with self._lock:
            self._finish()

    def _finish(self) -> None:
        self._is_over = True
        for stop in self._stops:
            stop.set()
        if self._events[0] is None and self.run.answer_of is not self.visits[0]:
            self.run.detach()  # it keeps its record itself, when it is done


def race(run: ChainRun[A], visit: CallRecord, permit: Permit) -> Event:
    """The outcome of a hedged call; who loses is told to end, and not waited for."""
    found, news = Race(run, visit), queue.SimpleQueue[str | BaseException]()

    def work(index: int, leave: Permit) -> None:
        told: str | BaseException = "done"
        try:
            _call(found, index, leave)
        except BaseException as problem:  # a record that cannot be kept, for instance
            told = problem
        news.put(told)

    def start(index: int, leave: Permit) -> None:
        threading.Thread(target=work, args=(index, leave), name="loki-call", daemon=True).start()

    disarm = run.ways.clock.alarm(run.ways.hedge or 0.0, lambda: news.put("late"))
    start(0, permit)
    try:
        while True:
            told = news.get()
            if isinstance(told, BaseException):
                raise told
            if told == "late" and (other := found.second()) is not None:
                start(1, other)
            event = found.event
            if event is not None:
                return event
    except BaseException:
        found.give_up()
        raise
    finally:
        disarm()


def _call(found: Race, index: int, leave: Permit) -> None:
    """Make one of the two calls."""
    answer, error = None, None
    found.run.go(found.visits[index])
    try:
        answer = found.visits[index].member.call(found.question(index))
        if inspect.isawaitable(answer):
            answer = run_coroutine(answer)
    except BaseException as problem:
        error = problem
    found.came(index, leave, answer, error)


async def arace(
    run: ChainRun[A],
    visit: CallRecord,
    permit: Permit,
    answer_of: Callable[[CallRecord, Any], Awaitable[Any]],
) -> Event:
    """The same in an event loop; who loses is cancelled, and has ended when this returns."""
    loop, late = asyncio.get_running_loop(), asyncio.Event()
    found = Race(run, visit)

    async def work(index: int, leave: Permit) -> None:
        answer, error = None, None
        run.go(found.visits[index])
        try:
            answer = await answer_of(found.visits[index], found.question(index))
        except BaseException as problem:
            error = problem
        await asyncio.shield(asyncio.to_thread(found.came, index, leave, answer, error))

    def ring() -> None:
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(late.set)

    disarm = run.ways.clock.alarm(run.ways.hedge or 0.0, ring)
    calls = [asyncio.ensure_future(work(0, permit))]
    timer = asyncio.ensure_future(late.wait())
    try:
        while (event := found.event) is None:
            await asyncio.wait({*calls, timer} - {t for t in (*calls, timer) if t.done()},
                               return_when=asyncio.FIRST_COMPLETED)  # fmt: skip
            for call in calls:
                if call.done():
                    call.result()  # raises where its outcome could not be told or kept
            if late.is_set() and len(calls) == 1 and found.event is None:
                other = await asyncio.to_thread(found.second)
                late.clear()
                if other is not None:
                    calls.append(asyncio.ensure_future(work(1, other)))
        return event
    finally:
        disarm()
        timer.cancel()
        found.give_up()
        for call in calls:
            call.cancel()
        await asyncio.gather(timer, *calls, return_exceptions=True)

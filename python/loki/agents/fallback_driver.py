"""Does what a `loki.agents.fallback_chain.ChainRun` says: calls and waits, in a thread or in an event loop.

A hedge: Dean and Barroso, "The Tail at Scale", Communications of the ACM 56(2), 2013. It is off unless
somebody asks for it, for both calls cost. Only the first call of a question is hedged, and only where
another member's breaker gives leave; a hedge is no retry and takes nothing from the retry budget.

`drive` and `adrive` are thin, and neither calls the other. Waits end at once where the question is
cancelled.
"""

from __future__ import annotations

import asyncio
import inspect
import queue
import random
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from loki.action.loop.agent_call import run_coroutine
from loki.agents.fallback_chain import CallRecord, ChainRun, Permit
from loki.base.threads import LinkedEvent
from loki.base.time import Clock
from loki.decision import fallback_policy
from loki.decision.fallback_policy import Event

# --- A hedge: the next model is asked, too; the first answer wins -------------------------------------

A = TypeVar("A")


def is_hedge_due(run: ChainRun[Any], visit: CallRecord) -> bool:
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
            _hedged_call(found, index, leave)
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


def _hedged_call(found: Race, index: int, leave: Permit) -> None:
    """Make one of the two calls."""
    answer, error = None, None
    found.run.go(found.visits[index])
    try:
        answer = _answer(found.visits[index], found.question(index))
    except BaseException as problem:
        error = problem
    found.came(index, leave, answer, error)


async def arace(run: ChainRun[A], visit: CallRecord, permit: Permit) -> Event:
    """The same in an event loop; who loses is cancelled, and has ended when this returns."""
    loop, late = asyncio.get_running_loop(), asyncio.Event()
    found = Race(run, visit)

    async def work(index: int, leave: Permit) -> None:
        answer, error = None, None
        run.go(found.visits[index])
        try:
            answer = await _answer_async(found.visits[index], found.question(index))
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


# --- Calls and waits, in a thread or in an event loop -------------------------------------------------

T = TypeVar("T")

SPREAD = 0.25
"""Share of a pause by which those who wait come back one after another. Chosen, not measured."""


def drive(run: ChainRun[A]) -> A:
    """Ask until somebody answers or nobody can.

    Args:
        run: the question; async members are awaited in a thread of their own.

    Raises:
        BreakerOpen: nobody can be asked before a time.
        AgentError: nobody answered, the budget is spent, or the run was stopped.
    """
    effect = run.step(fallback_policy.Begin())
    while effect is not None:
        if isinstance(effect, fallback_policy.Call):
            event = _call(run, effect)
        elif isinstance(effect, (fallback_policy.Wait, fallback_policy.Pause)):
            event = _wait(run, effect)
        else:
            event = run.reduce()
        effect = run.step(event)
    return run.result()


def _call(run: ChainRun[A], effect: fallback_policy.Call) -> Event:
    visit = run.visit(effect.member)
    permit = run.admit(visit)
    slot = run.ways.slot(visit.member, run.cancelled)
    if isinstance(permit, Event):
        return permit
    if slot is None:
        return _ask(run, visit, permit)
    is_probe = getattr(permit, "is_probe", False)
    if not is_probe:
        permit.ignore()  # the wait for a slot may be long, and the breaker another one after it
    with slot:
        if is_probe and (stopped := run.stop()) is not None:
            permit.ignore()
            return stopped
        leave: Permit | Event = permit if is_probe else run.admit(visit)
        return leave if isinstance(leave, Event) else _ask(run, visit, leave)


def _ask(run: ChainRun[A], visit: CallRecord, permit: Permit) -> Event:
    if is_hedge_due(run, visit):
        return race(run, visit, permit)
    run.go(visit)
    try:
        answer = _answer(visit, run.question)
    except BaseException as error:
        event = run.failed(visit, permit, error)
        if not isinstance(error, Exception):
            run.step(event)
            raise
        return event
    return run.answered(visit, permit, answer)


def _answer(visit: CallRecord, question: Any) -> Any:
    """What a member answers; one that is async is awaited in a thread of its own."""
    answer = visit.member.call(question)
    return run_coroutine(answer) if inspect.isawaitable(answer) else answer


def _wait(run: ChainRun[A], effect: fallback_policy.Wait | fallback_policy.Pause) -> Event:
    if not run.hold(effect):
        return fallback_policy.Denied()
    run.ways.clock.wait(_seconds(effect), run.cancelled)
    return run.held(effect)


def _seconds(effect: fallback_policy.Wait | fallback_policy.Pause) -> float:
    """How long to wait; many may wait for the same member, and come back one after another."""
    is_pause = isinstance(effect, fallback_policy.Pause)
    return spread(effect.seconds) if is_pause else effect.seconds


def spread(seconds: float) -> float:
    """A little longer, by another amount for each who waits: not all come at once."""
    return seconds + random.uniform(0.01, 0.01 + SPREAD * min(seconds, 1.0))  # noqa: S311


async def adrive(run: ChainRun[A]) -> A:
    """The same without blocking the event loop; cancelling it ends a call or a wait at once."""
    effect = await _off(run.step, fallback_policy.Begin())
    while effect is not None:
        if isinstance(effect, fallback_policy.Call):
            event = await _call_async(run, effect)
        elif isinstance(effect, (fallback_policy.Wait, fallback_policy.Pause)):
            event = await _wait_async(run, effect)
        else:
            event = run.reduce()
        effect = await _off(run.step, event)
    return run.result()


async def _call_async(run: ChainRun[A], effect: fallback_policy.Call) -> Event:
    visit = run.visit(effect.member)
    permit: Permit | Event = await _off(run.admit, visit)
    slot = run.ways.slot(visit.member, run.cancelled)
    if isinstance(permit, Event):
        return permit
    if slot is None:
        return await _ask_async(run, visit, permit)
    is_probe = getattr(permit, "is_probe", False)
    if not is_probe:
        permit.ignore()
    async with slot:
        if is_probe and (stopped := run.stop()) is not None:
            await _off(permit.ignore)
            return stopped
        leave: Permit | Event = permit if is_probe else await _off(run.admit, visit)
        return leave if isinstance(leave, Event) else await _ask_async(run, visit, leave)


async def _ask_async(run: ChainRun[A], visit: CallRecord, permit: Permit) -> Event:
    if is_hedge_due(run, visit):
        return await arace(run, visit, permit)
    run.go(visit)
    try:
        answer = await _answer_async(visit, run.question)
    except BaseException as error:
        event = await _off(run.failed, visit, permit, error)
        if not isinstance(error, Exception):
            await _off(run.step, event)
            raise
        return event
    return await _off(run.answered, visit, permit, answer)


async def _answer_async(visit: CallRecord, question: Any) -> Any:
    """What a member answers; one that is not async works in a thread."""
    call = visit.member.acall or visit.member.call
    if inspect.iscoroutinefunction(call):
        return await call(question)
    stop = LinkedEvent(question.cancelled)
    try:
        answer = await asyncio.to_thread(call, replace(question, cancelled=stop))
        return await answer if inspect.isawaitable(answer) else answer
    except asyncio.CancelledError:
        stop.set()
        raise


async def _wait_async(
    run: ChainRun[A], effect: fallback_policy.Wait | fallback_policy.Pause
) -> Event:
    if not run.hold(effect):
        return fallback_policy.Denied()
    try:
        await asleep(run.ways.clock, _seconds(effect), LinkedEvent(run.cancelled))
    except asyncio.CancelledError:
        await _off(run.step, fallback_policy.Cancelled())
        raise
    return run.held(effect)


async def asleep(clock: Clock, seconds: float, stop: threading.Event) -> None:
    """Wait by a clock in an event loop.

    Args:
        clock: what tells when it is over.
        seconds: 0 or more.
        stop: ends it, and is set where it is cancelled.
    """
    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def wait() -> None:
        clock.wait(seconds, stop)
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(over.set)

    # A daemon, not a thread of the loop's pool: one that nobody waits for must not delay an exit.
    threading.Thread(target=wait, name="loki-wait", daemon=True).start()
    try:
        await over.wait()
    except asyncio.CancelledError:
        stop.set()  # the thread ends, too
        raise


async def _off(work: Callable[..., T], *args: Any) -> T:
    """What may touch the disk, off the event loop; a cancellation does not tear it apart."""
    return await asyncio.shield(asyncio.to_thread(work, *args))

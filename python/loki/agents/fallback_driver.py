"""Does what a `loki.agents.fallback_chain.ChainRun` says: calls and waits, in a thread or in an event loop.

`drive` and `adrive` are thin, and neither calls the other. Waits end at once where the question is
cancelled.
"""

from __future__ import annotations

import asyncio
import inspect
import random
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from loki.action.loop.agent_call import run_coroutine
from loki.agents import hedge
from loki.agents.call_record import CallRecord
from loki.agents.endpoint import Permit
from loki.agents.fallback_chain import ChainRun
from loki.base.cancellation import LinkedEvent
from loki.base.time import Clock
from loki.decision import fallback_policy
from loki.decision.fallback_policy import Event

A = TypeVar("A")
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
        elif isinstance(effect, fallback_policy.Wait):
            event = _wait(run, effect)
        elif isinstance(effect, fallback_policy.Pause):
            event = _pause(run, effect)
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
    if hedge.is_due(run, visit):
        return hedge.race(run, visit, permit)
    run.go(visit)
    try:
        answer = visit.member.call(run.question)
        if inspect.isawaitable(answer):
            answer = run_coroutine(answer)
    except BaseException as error:
        event = run.failed(visit, permit, error)
        if not isinstance(error, Exception):
            run.step(event)
            raise
        return event
    return run.answered(visit, permit, answer)


def _wait(run: ChainRun[A], effect: fallback_policy.Wait) -> Event:
    if not run.retry(effect):
        return fallback_policy.Denied()
    run.ways.clock.wait(effect.seconds, run.cancelled)
    return fallback_policy.Cancelled() if run.cancelled.is_set() else fallback_policy.Waited()


def _pause(run: ChainRun[A], effect: fallback_policy.Pause) -> Event:
    run.pause(effect.seconds)
    run.ways.clock.wait(spread(effect.seconds), run.cancelled)
    return fallback_policy.Cancelled() if run.cancelled.is_set() else fallback_policy.Resumed()


def spread(seconds: float) -> float:
    """A little longer, by another amount for each who waits: not all come at once."""
    return seconds + random.uniform(0.01, 0.01 + SPREAD * min(seconds, 1.0))  # noqa: S311


async def adrive(run: ChainRun[A]) -> A:
    """The same without blocking the event loop; cancelling it ends a call or a wait at once."""
    effect = await _off(run.step, fallback_policy.Begin())
    while effect is not None:
        if isinstance(effect, fallback_policy.Call):
            event = await _call_async(run, effect)
        elif isinstance(effect, fallback_policy.Wait):
            event = await _wait_async(run, effect)
        elif isinstance(effect, fallback_policy.Pause):
            event = await _pause_async(run, effect)
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
    if hedge.is_due(run, visit):
        return await hedge.arace(run, visit, permit, _answer)
    run.go(visit)
    try:
        answer = await _answer(visit, run.question)
    except BaseException as error:
        event = await _off(run.failed, visit, permit, error)
        if not isinstance(error, Exception):
            await _off(run.step, event)
            raise
        return event
    return await _off(run.answered, visit, permit, answer)


async def _answer(visit: CallRecord, question: Any) -> Any:
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


async def _wait_async(run: ChainRun[A], effect: fallback_policy.Wait) -> Event:
    if not run.retry(effect):
        return fallback_policy.Denied()
    await _sleep(run, effect.seconds)
    return fallback_policy.Cancelled() if run.cancelled.is_set() else fallback_policy.Waited()


async def _pause_async(run: ChainRun[A], effect: fallback_policy.Pause) -> Event:
    run.pause(effect.seconds)
    await _sleep(run, spread(effect.seconds))
    return fallback_policy.Cancelled() if run.cancelled.is_set() else fallback_policy.Resumed()


async def _sleep(run: ChainRun[A], seconds: float) -> None:
    """Wait by the clock; a cancellation ends it at once."""
    try:
        await asleep(run.ways.clock, seconds, LinkedEvent(run.cancelled))
    except asyncio.CancelledError:
        await _off(run.step, fallback_policy.Cancelled())
        raise


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

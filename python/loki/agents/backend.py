"""How code that is written once, async, waits: blocking its thread, or in an event loop.

A coroutine that takes all its waits from `BLOCKING` never waits for a loop, so that `run_through` runs it
in the caller's own thread, like a function: with its signals, its context variables and whatever else is
the thread's.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, Protocol, TypeAlias, TypeVar

from loki.action.loop.agent_call import result_of
from loki.base.threads import LinkedEvent
from loki.base.time import Clock
from loki.decision.limiter import Slot

T = TypeVar("T")
Function: TypeAlias = Callable[[Any], Any]


class Backend(Protocol):
    """What a coroutine waits for."""

    async def run(self, work: Callable[..., T], *args: Any) -> T:
        """Do what may touch the disk; nothing tears it apart."""

    async def ask(self, question: Any, call: Function, acall: Function | None = None) -> Any:
        """What somebody else's function answers, which may be async.

        Args:
            question: has an event ``cancelled``.
            call: the function; acall: what is called in an event loop in its place.
        """

    async def sleep(self, clock: Clock, seconds: float, cancelled: threading.Event) -> None:
        """Wait by a clock, 0 seconds or more, or until that is cancelled."""

    def hold(self, slot: Slot) -> AbstractAsyncContextManager[None]:
        """Inside, a slot is held."""


class _Blocking:
    async def run(self, work: Callable[..., T], *args: Any) -> T:
        return work(*args)

    async def ask(self, question: Any, call: Function, acall: Function | None = None) -> Any:  # noqa: ARG002
        return result_of(call(question))

    async def sleep(self, clock: Clock, seconds: float, cancelled: threading.Event) -> None:
        clock.wait(seconds, cancelled)

    @asynccontextmanager
    async def hold(self, slot: Slot) -> AsyncIterator[None]:
        with slot:
            yield


class _EventLoop:
    """Cancelling a task ends its call, or its wait, at once."""

    async def run(self, work: Callable[..., T], *args: Any) -> T:
        return await asyncio.shield(asyncio.to_thread(work, *args))

    async def ask(self, question: Any, call: Function, acall: Function | None = None) -> Any:
        call = acall or call
        if inspect.iscoroutinefunction(call):
            return await call(question)
        stop = LinkedEvent(question.cancelled)
        try:
            answer = await asyncio.to_thread(call, replace(question, cancelled=stop))
            return await answer if inspect.isawaitable(answer) else answer
        except asyncio.CancelledError:
            stop.set()
            raise

    async def sleep(self, clock: Clock, seconds: float, cancelled: threading.Event) -> None:
        loop, over, stop = asyncio.get_running_loop(), asyncio.Event(), LinkedEvent(cancelled)

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

    def hold(self, slot: Slot) -> AbstractAsyncContextManager[None]:
        return slot


BLOCKING: Backend = _Blocking()
EVENT_LOOP: Backend = _EventLoop()


def run_through(work: Coroutine[Any, Any, T]) -> T:
    """The outcome of a coroutine that waits by `BLOCKING` alone, in this thread.

    Raises:
        RuntimeError: it waits for an event loop: a bug.

    Example:
        >>> async def double(number):
        ...     return await BLOCKING.run(lambda: 2 * number)
        >>> run_through(double(21))
        42
    """
    try:
        work.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    work.close()
    raise RuntimeError(f"{work} waits for an event loop")

"""Clients that are kept between calls, so that not every call opens a connection of its own.

An asynchronous client belongs to the event loop it was used in: there is one for each. Calls of those who
have no loop go through one in a thread of its own.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Generic, Protocol, TypeVar

from loki.action.loop.agent_call import run_coroutine

_T = TypeVar("_T")


class Client(Protocol):
    """What is kept: it has connections that can be closed."""

    def close(self) -> Awaitable[None]:
        """Close them."""


C = TypeVar("C", bound=Client)


class PersistentClient(Generic[C]):
    """A client for each event loop that asks; closed with the loop, or with its owner.

    Args:
        make: makes one.
        closes: its connections are its own: a caller's are the caller's to close.
    """

    def __init__(self, make: Callable[[], C], *, closes: bool = True) -> None:
        self._make, self._closes = make, closes
        self._lock = threading.Lock()
        self._of: dict[asyncio.AbstractEventLoop, tuple[C, AsyncGenerator[C, None]]] = {}
        # Held by the finalizer: what is garbage together with its owner is not closed any more.
        weakref.finalize(self, _close_all, self._of).atexit = False

    async def client(self) -> C:
        """The running loop's."""
        loop = asyncio.get_running_loop()
        with self._lock:
            for one in [one for one in self._of if one.is_closed()]:
                del self._of[one]
            kept = self._of.get(loop)
        if kept is None:
            # A loop ends its asynchronous generators before it is closed: nothing else hears of that.
            holder = _held(self._make(), closes=self._closes)
            kept = await holder.__anext__(), holder
            with self._lock:
                self._of[loop] = kept
        return kept[0]


async def _held(client: C, *, closes: bool) -> AsyncGenerator[C, None]:
    try:
        yield client
    finally:
        with suppress(RuntimeError):  # a loop that is ending may have closed the connections
            if closes:
                await client.close()


def _close_all(
    kept: Mapping[asyncio.AbstractEventLoop, tuple[object, AsyncGenerator[Any, None]]],
) -> None:
    for loop, (_, holder) in kept.items():
        with suppress(RuntimeError):  # closed, and its clients with it
            loop.call_soon_threadsafe(_close, loop, holder)


def _close(loop: asyncio.AbstractEventLoop, holder: AsyncGenerator[Any, None]) -> None:
    closing = loop.create_task(holder.aclose())
    _closings.add(closing)
    closing.add_done_callback(_closings.discard)


_closings: set[asyncio.Task[None]] = set()  # a loop holds its tasks weakly


class _Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="loki-models", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    def is_here(self) -> bool:
        """Whether this is its thread."""
        return threading.current_thread() is self._thread

    def stop(self) -> None:
        """End it with what it keeps open."""
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(1)


class _Shared:
    """The loop of this process, begun when it is needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: _Loop | None = None

    def loop(self) -> _Loop:
        """That loop."""
        with self._lock:
            if self._loop is None:
                self._loop = _Loop()
                atexit.register(self._loop.stop)
            return self._loop

    def in_child(self) -> None:
        """A process was forked: its thread is not here, and what it keeps open is the parent's."""
        if self._loop is not None:
            atexit.unregister(self._loop.stop)
            _inherited.append(self._loop)
        self.__init__()  # type: ignore[misc]


_inherited: list[object] = []  # closing them would reach into what the parent shares
_shared = _Shared()
os.register_at_fork(after_in_child=_shared.in_child)


def run(work: Coroutine[Any, Any, _T]) -> _T:
    """The outcome of a coroutine; a running event loop is blocked by it.

    Example:
        >>> async def answer():
        ...     return 42
        >>> run(answer())
        42
    """
    shared = _shared.loop()
    if shared.is_here():  # a model is asked while a piece of another's answer is told
        return run_coroutine(work)  # type: ignore[no-any-return]
    future = asyncio.run_coroutine_threadsafe(_outcome(work), shared.loop)
    try:
        value, error = future.result()
    except BaseException:  # Ctrl-C: what runs there hears nothing of it
        future.cancel()
        raise
    if error is not None:
        raise error
    return value  # type: ignore[return-value]


async def _outcome(work: Coroutine[Any, Any, _T]) -> tuple[_T | None, BaseException | None]:
    """What came of it; an exception as a value: some end the loop that they come through."""
    try:
        return await work, None
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        return None, error

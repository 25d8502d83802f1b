"""One call of a model through a breaker, with waits between retries: for clients that others own.

What is an outage is retried, and the breaker counts it; every other exception passes untouched, and so
does the client's own once the retries are spent.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias, TypeVar, cast

from loki.agents.client_outage import outage
from loki.agents.endpoint import CallUsage, ChainOptions, Endpoint
from loki.agents.fallback_chain import ChainRun
from loki.agents.fallback_driver import adrive, drive
from loki.base.error import AgentError, BreakerOpen, LLMError

T = TypeVar("T")
Judge: TypeAlias = Callable[[Exception], Exception]


@dataclass(frozen=True)
class Question:
    """What a chain needs to know of a call.

    Attributes:
        task: what it is for, or "".
        cancelled: nobody sets it: cancelling the call itself ends it.
        retries: of the call; None: as many as the chain has.
    """

    task: str = ""
    cancelled: threading.Event = field(default_factory=threading.Event)
    retries: int | None = None


@dataclass(frozen=True)
class Answered:
    """What a function gave, whatever that is: None is an answer, too."""

    value: Any


class NoOutage(Exception):
    """An exception that nobody asks again for."""

    ends_chain = True

    def __init__(self, original: Exception) -> None:
        super().__init__(str(original))
        self.original = original


def judged(error: Exception, name: str, ways: ChainOptions) -> Exception:
    """An outage, or what nobody asks again for.

    Args:
        error: what was raised.
        name: of the breaker.
        ways: how is asked.
    """
    return outage(error, name, ways.clock.now()) or NoOutage(error)


@dataclass(frozen=True)
class Way:
    """How one call is made.

    Attributes:
        retries: after outages; None: as many as all have.
        judged: tells an outage from what nobody asks again for.
        is_whole: what is called passes breakers of its own, as members of it do, but asks them once.
    """

    retries: int | None = None
    judged: Callable[[Exception, str, ChainOptions], Exception] = judged
    is_whole: bool = False

    def run(
        self,
        ways: ChainOptions,
        name: str,
        task: str,
        ask: Callable[[Question], Any],
        wait: float | None,
    ) -> ChainRun[Answered]:
        """One question on its way.

        Args:
            ways, name, task, wait: as `call` takes them.
            ask: asks once; what it raises is judged.
        """
        provider, _, model = name.removeprefix("api/").partition("/")
        member: Endpoint[Answered] = Endpoint(
            ask,
            lambda _: CallUsage(),
            provider,
            model,
            None if self.is_whole else name,
            asks_again=not self.is_whole,
        )
        question = Question(task, retries=self.retries)
        return ChainRun([member], question, ways, task, ways.wait if wait is None else wait)


class Heard:
    """What the calls for one answer raise: judged for the chain, kept for the caller."""

    def __init__(self) -> None:
        self._raised: list[Exception] = []

    def asking(self, function: Callable[[], Any], judged: Judge) -> Callable[[Question], Answered]:
        """How a chain asks by a function.

        Args:
            function: asks once.
            judged: tells an outage from what nobody asks again for.
        """

        def ask(_question: Question) -> Answered:
            try:
                return Answered(function())
            except Exception as error:
                self._raised.append(error)
                raise judged(error) from error

        return ask

    def aasking(self, function: Callable[[], Awaitable[Any]], judged: Judge) -> Callable[..., Any]:
        """The same of one whose answer is awaited."""

        async def ask(_question: Question) -> Answered:
            try:
                return Answered(await function())
            except Exception as error:
                self._raised.append(error)
                raise judged(error) from error

        return ask

    def answer(self, run: ChainRun[Answered]) -> Any:
        """What comes of a chain.

        Raises:
            Exception: what the caller is to see; see `seen`.
        """
        try:
            return drive(run).value
        except (NoOutage, AgentError, BreakerOpen) as error:
            final = seen(error, self._raised)
        raise final  # out here, so that the caller's own exception gets no context of ours

    async def aanswer(self, run: ChainRun[Answered]) -> Any:
        """The same without blocking the event loop."""
        try:
            return (await adrive(run)).value
        except (NoOutage, AgentError, BreakerOpen) as error:
            final = seen(error, self._raised)
        raise final


def call(
    ways: ChainOptions,
    name: str,
    task: str,
    function: Callable[[], T],
    wait: float | None = None,
    **how: Any,
) -> T:
    """Call a function; see `loki.Monitor.call`, and `Way` for ``how``."""
    way, heard = Way(**how), Heard()
    if not name:
        return function()
    ask = heard.asking(function, lambda error: way.judged(error, name, ways))
    return cast(T, heard.answer(way.run(ways, name, task, ask, wait)))


async def acall(
    ways: ChainOptions,
    name: str,
    task: str,
    function: Callable[[], Awaitable[T]],
    wait: float | None = None,
    **how: Any,
) -> T:
    """Await a function's answer; see `loki.Monitor.acall`, and `Way` for ``how``."""
    way, heard = Way(**how), Heard()
    if not name:
        return await function()
    ask = heard.aasking(function, lambda error: way.judged(error, name, ways))
    return cast(T, await heard.aanswer(way.run(ways, name, task, ask, wait)))


async def astream(
    ways: ChainOptions,
    name: str,
    task: str,
    function: Callable[[], AsyncIterator[T]],
    is_silent: Callable[[T], bool],
    wait: float | None = None,
) -> AsyncIterator[T]:
    """The events of a stream; see `loki.Monitor.astream`."""
    begin = partial(begun, function, is_silent)
    events, stream = await acall(ways, name, task, begin, wait)
    for event in events:
        yield event
    async for event in stream:
        yield event


async def begun(
    function: Callable[[], AsyncIterator[T]], is_silent: Callable[[T], bool]
) -> tuple[list[T], AsyncIterator[T]]:
    """The events of a stream until it has said something, and the stream.

    Args:
        function: begins it.
        is_silent: whether an event says nothing yet.
    """
    events, stream = [], function()
    async for event in stream:
        events.append(event)
        if not is_silent(event):
            break
    return events, stream


def seen(error: Exception, heard: list[Exception]) -> Exception:
    """The exception that the caller is to see."""
    if isinstance(error, NoOutage):
        return error.original
    if isinstance(error, BreakerOpen):
        error.__cause__ = heard[-1] if heard else None
        return error
    is_ours = isinstance(error, LLMError) and error.kind in {"budget", "cancelled"}
    return error if is_ours or not heard else heard[-1]

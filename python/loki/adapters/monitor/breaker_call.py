"""One call of a model through a breaker, with waits between retries: for clients that others own.

What is an outage is retried, and the breaker counts it; every other exception passes untouched, and so
does the client's own once the retries are spent.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from loki.agents.agent_report import Report, shows_outage
from loki.agents.backend import BLOCKING, EVENT_LOOP, Backend, run_through
from loki.agents.fallback_chain import ChainOptions, ChainRun, Endpoint, spread
from loki.agents.model_call import outage
from loki.agents.preset import preset
from loki.base.error import AgentError, BreakerOpen, LLMError
from loki.execution.resolve import ways

if TYPE_CHECKING:
    from loki.decision.breakers import SharedPermit
    from loki.workspace import Workspace


T = TypeVar("T")
Judge: TypeAlias = "Callable[[Exception, str, ChainOptions], Exception]"
"""Given what was raised, the breaker's name, and how is asked: an outage, or what nobody asks again for."""


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
    """An outage, or what nobody asks again for; as a `Judge`."""
    return outage(error, name, ways.clock.now()) or NoOutage(error)


@dataclass(frozen=True)
class Way:
    """How the calls for one answer are made.

    Attributes:
        ways: how is asked.
        names: of the breakers of those who are asked, in their order; "" alone: what is called passes its
            own.
        task: what it is for, or "".
        wait: seconds to wait, all pauses together; None: as ``ways`` say.
        retries: after outages; None: as many as all have.
        judged: tells an outage from what nobody asks again for.
        is_whole: what is called passes breakers of its own, as members of it do, but asks them once.
    """

    ways: ChainOptions
    names: tuple[str, ...]
    task: str = ""
    wait: float | None = None
    retries: int | None = None
    judged: Judge = judged
    is_whole: bool = False

    def call(self, *functions: Callable[[], T]) -> T:
        """What the first function gives that brings an answer; each asks once.

        Raises:
            Exception: see `seen`.
        """
        if self.names == ("",):
            return functions[0]()
        return cast(T, _unwrapped(run_through(self._outcome(functions, BLOCKING))))

    async def acall(self, *functions: Callable[[], Awaitable[T]]) -> T:
        """The same of functions whose answers are awaited."""
        if self.names == ("",):
            return await functions[0]()
        return cast(T, _unwrapped(await self._outcome(functions, EVENT_LOOP)))

    async def _outcome(
        self, functions: Sequence[Callable[[], Any]], backend: Backend
    ) -> Answered | Exception:
        """The answer, or the exception that the caller is to see.

        As a value: a coroutine cannot raise whatever a function can, a `StopIteration` for instance.
        """
        raised: list[Exception] = []
        asked = zip(self.names, functions, strict=True)
        members = [self._member(name, function, raised) for name, function in asked]
        question = Question(self.task, retries=self.retries)
        wait = self.ways.wait if self.wait is None else self.wait
        run: ChainRun[Answered] = ChainRun(members, question, self.ways, self.task, wait, backend)
        try:
            return await run.ask()
        except (NoOutage, AgentError, BreakerOpen) as error:
            return seen(error, raised)

    def _member(self, name: str, function: Callable[[], Any], raised: list[Exception]) -> Endpoint:
        """Who is asked by a function; what it raises is judged for the chain, and kept for the caller."""

        @contextmanager
        def judging() -> Iterator[None]:
            try:
                yield
            except Exception as error:
                raised.append(error)
                raise self.judged(error, name, self.ways) from error

        def ask(_question: Question) -> Answered:
            with judging():
                return Answered(function())

        async def aask(_question: Question) -> Answered:
            with judging():
                return Answered(await function())

        provider, _, model = name.removeprefix("api/").partition("/")
        breaker = None if self.is_whole else name
        again = not self.is_whole
        return Endpoint(ask, provider, model, breaker, acall=aask, asks_again=again)


def _unwrapped(outcome: Answered | Exception) -> Any:
    """The answer of an outcome; raised where it is an exception, which gets no context of ours."""
    if isinstance(outcome, Exception):
        raise outcome
    return outcome.value


async def astream(
    way: Way, function: Callable[[], AsyncIterator[T]], is_silent: Callable[[T], bool]
) -> AsyncIterator[T]:
    """The events of a stream; see `loki.Monitor.astream`."""
    events, stream = await way.acall(partial(begun, function, is_silent))
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


# --- The breaker of a service that a program asks by itself -------------------------------------------


class ReportedCalls:
    """Calls of a program to its service, one after the other.

    Args:
        workspace: whose breakers count.
        program: as `loki.agents.preset.preset` knows it.
    """

    def __init__(self, workspace: Workspace, program: str) -> None:
        self._preset = preset(program)
        self._ways = workspace.once(ways)
        self._breaker = self._ways.breakers[self._preset.breaker]
        self._permit: SharedPermit | None = None

    def begin(self) -> None:
        """Before the program is asked.

        Raises:
            BreakerOpen: its service is known to be down.
        """
        self.end()
        self._permit = self._breaker.guard()

    async def abegin(self, wait: float | None = None) -> None:
        """The same, once the service may be asked.

        Args:
            wait: seconds to wait for that, all pauses together; None: as the workspace says.

        Raises:
            BreakerOpen: it may not be asked in that time.
        """
        until = self._ways.clock.monotonic() + (self._ways.wait if wait is None else wait)
        while True:
            try:
                await asyncio.to_thread(self.begin)
                return
            except BreakerOpen as refusal:
                seconds = refusal.retry_after
                if seconds is None or seconds > until - self._ways.clock.monotonic():
                    raise
            await EVENT_LOOP.sleep(self._ways.clock, spread(seconds), threading.Event())

    def passed(self) -> None:
        """An answer came."""
        self._tell(None)

    def failed(self, error: str, kind: str = "", status: int | None = None) -> None:
        """A call failed; the program may make another.

        Args:
            error: what was said; kind: what the program calls it, or "".
            status: the HTTP status, where it tells.
        """
        self._tell(Report(error=error, kind=kind, status=status))

    def end(self) -> None:
        """No answer came: that says nothing of the service."""
        if self._permit is not None:
            self._permit.ignore()
            self._permit = None

    def _tell(self, failed: Report | None) -> None:
        permit, self._permit = self._permit or self._breaker.try_acquire(), None
        if permit is None:
            return
        if failed is None:
            permit.success()
        elif shows_outage(self._preset, failed):
            permit.failure(failed.error)
        else:
            permit.ignore()


# --- A framework's own fallback model -----------------------------------------------------------------

# Who is to be asked next is the framework's to say, and it says so at once: a member is asked once, and not
# at all while its breaker is open. Only where none answers the whole is asked again, after a wait.

_NAME = "the fallback model"
"""Of the whole, in messages."""


class FallbackCalls:
    """One call of such a model; make one for each.

    Args:
        ways: how is asked.
        task: what it is for, or "".
        wait: seconds that the whole waits, all pauses together; None: as ``ways`` say.
    """

    def __init__(self, ways: ChainOptions, task: str = "", wait: float | None = None) -> None:
        self._ways, self._task = ways, task
        # Members have counted what their calls took.
        without = replace(ways, meter=None)
        self._whole = Way(without, (_NAME,), task, wait, judged=self._judged, is_whole=True)
        # What came of members since the whole was asked, and what they raised for that.
        self._said: list[tuple[Exception, Exception]] = []

    def member(self, name: str, function: Callable[[], T]) -> T:
        """Ask one member once.

        Args:
            name: of its breaker.
            function: makes one call.

        Raises:
            BreakerOpen: its breaker lets nothing out; nothing was called.
            Exception: whatever the function raised.
        """
        try:
            return self._once(name).call(function)
        except Exception as error:
            raised = self._noted(error)
        raise raised  # out here, so that the caller's own exception gets no context of ours

    async def amember(self, name: str, function: Callable[[], Awaitable[T]]) -> T:
        """The same without blocking the event loop."""
        try:
            return await self._once(name).acall(function)
        except Exception as error:
            raised = self._noted(error)
        raise raised

    def _once(self, name: str) -> Way:
        return Way(self._ways, (name,), self._task, 0.0, retries=0)

    def whole(self, function: Callable[[], T]) -> T:
        """Ask the whole, and again after a wait where outages and open breakers left it without an answer.

        Args:
            function: asks the framework's model, which asks its members through `member`.

        Raises:
            BreakerOpen: no member may be asked before a time.
            Exception: whatever the function raised.
        """
        return self._whole.call(partial(self._anew, function))

    async def awhole(self, function: Callable[[], Awaitable[T]]) -> T:
        """The same without blocking the event loop."""
        return await self._whole.acall(partial(self._anew, function))

    def _anew(self, function: Callable[[], T]) -> T:
        self._said.clear()
        return function()

    def _noted(self, error: Exception) -> Exception:
        """What a member is to raise: what its client did, where that was called at all."""
        raised, cause = error, error.__cause__
        if isinstance(error, BreakerOpen) and isinstance(cause, Exception):
            raised = cause
        self._said.append((error, raised))
        return raised

    def _judged(self, error: Exception, _name: str, _ways: ChainOptions) -> Exception:
        """An outage, a refusal, or what nobody asks again for: by what came of all members."""
        now = self._ways.clock.now()
        closed = [one for one, _ in self._said if isinstance(one, BreakerOpen)]
        others = [one for one, _ in self._said if not isinstance(one, BreakerOpen)]
        down = [one for one in (outage(other, "", now) for other in others) if one is not None]
        is_last = bool(others) and self._said[-1] == (error, others[-1])
        if is_last and not outage(error, "", now):
            return NoOutage(error)  # nobody was asked after it: a bug, or its owner wants it so
        if not down:
            return min(closed, key=_wait) if closed else NoOutage(error)
        waits = [*(one.retry_after for one in down), *(one.retry_after for one in closed)]
        known = [one for one in waits if one is not None]
        soonest = min(known) if all(one.retry_after is not None for one in down) else None
        return LLMError(str(down[0]), down[0].kind, retry_after=soonest)


def _wait(error: BreakerOpen) -> float:
    return float("inf") if error.retry_after is None else error.retry_after

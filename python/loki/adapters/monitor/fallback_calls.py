"""A framework's own fallback model: each of its members passes a breaker of its own, and the whole waits.

Who is to be asked next is the framework's to say, and it says so at once: a member is asked once, and not at
all while its breaker is open. Only where none answers the whole is asked again, after a wait.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from loki.adapters.monitor.breaker_call import NoOutage, acall, call
from loki.agents.client_outage import outage
from loki.agents.endpoint import ChainOptions
from loki.base.error import BreakerOpen, LLMError

T = TypeVar("T")

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
        self._ways, self._task, self._wait = ways, task, wait
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
            return call(self._ways, name, self._task, function, 0.0, retries=0)
        except Exception as error:
            raised = self._noted(error)
        raise raised  # out here, so that the caller's own exception gets no context of ours

    async def amember(self, name: str, function: Callable[[], Awaitable[T]]) -> T:
        """The same without blocking the event loop."""
        try:
            return await acall(self._ways, name, self._task, function, 0.0, retries=0)
        except Exception as error:
            raised = self._noted(error)
        raise raised

    def whole(self, function: Callable[[], T]) -> T:
        """Ask the whole, and again after a wait where outages and open breakers left it without an answer.

        Args:
            function: asks the framework's model, which asks its members through `member`.

        Raises:
            BreakerOpen: no member may be asked before a time.
            Exception: whatever the function raised.
        """

        def ask() -> T:
            self._said.clear()
            return function()

        # Members have counted what their calls took.
        ways = replace(self._ways, meter=None)
        return call(ways, _NAME, self._task, ask, self._wait, judged=self._judged, is_whole=True)

    async def awhole(self, function: Callable[[], Awaitable[T]]) -> T:
        """The same without blocking the event loop."""

        async def ask() -> T:
            self._said.clear()
            return await function()

        ways = replace(self._ways, meter=None)
        how = {"judged": self._judged, "is_whole": True}
        return await acall(ways, _NAME, self._task, ask, self._wait, **how)

    def _noted(self, error: Exception) -> Exception:
        """What a member is to raise: what its client did, where that was called at all."""
        cause = error.__cause__
        is_asked = isinstance(error, BreakerOpen) and isinstance(cause, Exception)
        raised = cause if is_asked and isinstance(cause, Exception) else error
        self._said.append((error, raised))
        return raised

    def _judged(self, error: Exception, _name: str, ways: ChainOptions) -> Exception:
        """An outage, a refusal, or what nobody asks again for: by what came of all members."""
        closed = [one for one, _ in self._said if isinstance(one, BreakerOpen)]
        others = [one for one, _ in self._said if not isinstance(one, BreakerOpen)]
        down = [one for one in (outage(e, "", ways.clock.now()) for e in others) if one is not None]
        if (
            others
            and self._said[-1] == (error, others[-1])
            and not outage(error, "", ways.clock.now())
        ):
            return NoOutage(error)  # nobody was asked after it: a bug, or its owner wants it so
        if not down:
            return min(closed, key=_wait) if closed else NoOutage(error)
        waits = [one.retry_after for one in down] + [one.retry_after for one in closed]
        known = [one for one in waits if one is not None]
        soonest = min(known) if all(one.retry_after is not None for one in down) else None
        return LLMError(str(down[0]), down[0].kind, retry_after=soonest)


def _wait(error: BreakerOpen) -> float:
    return float("inf") if error.retry_after is None else error.retry_after

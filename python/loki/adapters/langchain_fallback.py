"""LangChain: how a request of an agent is asked, where its model may be one that falls back by itself.

Each member of ``model.with_fallbacks([...])`` passes a breaker of its own and is asked once: what fails, or
may not be asked, is left for the next one at once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from warnings import warn

from loki.action.loop.agent_call import is_resilient
from loki.adapters.langchain_resilient import ResilientChatModel, names_of
from loki.adapters.resilient_calls import ResilientCalls
from loki.base.error import BreakerOpen

try:
    from langchain_core.runnables.fallbacks import RunnableWithFallbacks
except ImportError as error:
    raise ImportError("needs LangChain: pip install 'loki-core[langchain]'") from error

if TYPE_CHECKING:
    from langchain.agents.middleware import ModelRequest
    from langchain_core.language_models import BaseChatModel

    from loki.adapters.monitor.fallback_calls import FallbackCalls
    from loki.adapters.monitor.monitor import Monitor

T = TypeVar("T")


def ask(monitor: Monitor, handler: Callable[[ModelRequest], T], request: ModelRequest) -> T:
    """Ask an agent's model through its breaker, or through those of its members.

    Args:
        monitor: whose breakers are passed.
        handler: asks.
        request: what.
    """
    if not isinstance(request.model, RunnableWithFallbacks):
        return monitor.call(_breaker(request.model), handler, request)
    calls = monitor.fallback_calls()
    return calls.whole(partial(handler, _given(request, calls)))


async def aask(
    monitor: Monitor, handler: Callable[[ModelRequest], Awaitable[T]], request: ModelRequest
) -> T:
    """The same without blocking the event loop."""
    if not isinstance(request.model, RunnableWithFallbacks):
        return await monitor.acall(_breaker(request.model), handler, request)
    calls = monitor.fallback_calls()
    return await calls.awhole(partial(handler, _given(request, calls)))


class _MemberCalls(ResilientCalls):
    """Asks one model once, through its breaker."""

    def __init__(self, calls: FallbackCalls, breaker: str) -> None:  # no chain: not the base's
        self._calls, self._breaker = calls, breaker

    def ask(self, calls: Sequence[Callable[[], T]]) -> T:
        return self._calls.member(self._breaker, calls[0])

    async def aask(self, calls: Sequence[Callable[[], Awaitable[T]]]) -> T:
        return await self._calls.amember(self._breaker, calls[0])


def _given(request: ModelRequest, calls: FallbackCalls) -> ModelRequest:
    members: Any = _member(request.model, calls)
    return request.override(model=members)


def _member(model: Any, calls: FallbackCalls) -> Any:
    """What is asked in a model's place; of one that falls back a copy with such members."""
    if isinstance(model, RunnableWithFallbacks):
        first, *others = (_member(one, calls) for one in model.runnables)
        handled = (*model.exceptions_to_handle, BreakerOpen)  # one that may not be asked: the next
        found = {"runnable": first, "fallbacks": others, "exceptions_to_handle": handled}
        return model.model_copy(update=found)
    if breaker := _breaker(model):
        return ResilientChatModel(models=[model], calls=_MemberCalls(calls, breaker))
    return model


def _breaker(model: BaseChatModel) -> str:
    """The name of a chat model's circuit breaker, as loki names those of its own; "": it passes its own."""
    if is_resilient(model):
        return ""
    if getattr(model, "max_retries", 0) != 0:
        name = type(model).__name__
        warn(
            f"{name} asks again by itself: create it with max_retries=0, loki does it", stacklevel=2
        )
    return "api/{}/{}".format(*names_of(model))

"""LangChain: several chat models as one that stands in for itself.

    model = ResilientChatModel.of(ChatAnthropic(..., max_retries=0), ChatOpenAI(..., max_retries=0))

Needs the extra ``langchain``. Create chat models with ``max_retries=0``: loki is the one who asks again.

Where an agent's model is ``model.with_fallbacks([...])``, each member passes a breaker of its own and is
asked once: what fails, or may not be asked, is left for the next one at once.
"""

# ruff: noqa: ARG002 - what is called back is told by the whole

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from warnings import warn

from loki.action.loop.agent_call import is_resilient
from loki.adapters.resilient_calls import ResilientCalls
from loki.base.error import BreakerOpen

try:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
    from langchain_core.runnables import Runnable, RunnableBinding
    from langchain_core.runnables.fallbacks import RunnableWithFallbacks
except ImportError as error:
    raise ImportError("needs LangChain: pip install 'loki-core[langchain]'") from error

if TYPE_CHECKING:
    from langchain.agents.middleware import ModelRequest

    from loki.adapters.monitor.breaker_call import FallbackCalls
    from loki.adapters.monitor.monitor import Monitor

T = TypeVar("T")


class ResilientChatModel(BaseChatModel):
    """Chat models as one, each behind a circuit breaker of its own, as `loki.ResilientLLM`.

    Attributes:
        models: the preferred one first; with tools bound to them, where that was done.
        calls: asks them.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> ResilientChatModel.of(FakeListChatModel(responses=["Hello"])).invoke("Hi").content
        'Hello'
    """

    models: list[Runnable[Any, Any]]
    calls: Any

    @classmethod
    def of(cls, *models: BaseChatModel, **how: Any) -> ResilientChatModel:
        """One of several.

        Args:
            models: the preferred one first.
            how: as `loki.ResilientLLM` takes it: ``breakers``, ``backoff``, ``retries``, …

        Raises:
            UsageError: one is named twice.
        """
        calls = ResilientCalls([names_of(one) for one in models], **how)
        return cls(models=list(models), calls=calls)

    @property
    def is_resilient(self) -> bool:
        """Nobody else needs to ask again."""
        return True

    @property
    def _llm_type(self) -> str:
        return "loki-resilient"

    def _get_ls_params(self, stop: list[str] | None = None, **more: Any) -> Any:
        first: Any = getattr(self.models[0], "bound", self.models[0])
        return first._get_ls_params(stop, **more)

    def bind_tools(self, tools: Sequence[Any], **more: Any) -> ResilientChatModel:
        """The same, with tools, each of the models in its own form."""
        models: list[Any] = self.models
        bound = [one.bind_tools(tools, **more) for one in models]
        return self.model_copy(update={"models": bound})

    def _asks(self, method: str, messages: Any, stop: Any, more: dict[str, Any]) -> list[Any]:
        """How each model is asked: what comes of it is told by the whole, once."""
        how = {"config": {"callbacks": []}, **({"stop": stop} if stop else {}), **more}
        asks = []
        for one in self.models:
            # What binds a model and tools would call back by itself.
            model, tools = (
                (one.bound, one.kwargs) if isinstance(one, RunnableBinding) else (one, {})
            )
            asks.append(partial(getattr(model, method), messages, **tools, **how))
        return asks

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **more: Any
    ) -> ChatResult:
        answer = self.calls.ask(self._asks("invoke", messages, stop, more))
        return ChatResult(generations=[ChatGeneration(message=answer)])

    async def _agenerate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **more: Any
    ) -> ChatResult:
        answer = await self.calls.aask(self._asks("ainvoke", messages, stop, more))
        return ChatResult(generations=[ChatGeneration(message=answer)])

    def _stream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **more: Any
    ) -> Iterator[ChatGenerationChunk]:
        for message in self.calls.stream(self._asks("stream", messages, stop, more)):
            yield ChatGenerationChunk(message=message)

    async def _astream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **more: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        async for message in self.calls.astream(self._asks("astream", messages, stop, more)):
            yield ChatGenerationChunk(message=message)


def names_of(model: BaseChatModel) -> tuple[str, str]:
    """A chat model's provider and name."""
    known = model._get_ls_params()
    name = known.get("ls_model_name") or type(model).__name__
    return known.get("ls_provider") or "unknown", name


# --- Requests of an agent, whose model may fall back by itself ----------------------------------------


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
    return calls.whole(partial(handler, _given_request(request, calls)))


async def aask(
    monitor: Monitor, handler: Callable[[ModelRequest], Awaitable[T]], request: ModelRequest
) -> T:
    """The same without blocking the event loop."""
    if not isinstance(request.model, RunnableWithFallbacks):
        return await monitor.acall(_breaker(request.model), handler, request)
    calls = monitor.fallback_calls()
    return await calls.awhole(partial(handler, _given_request(request, calls)))


class _MemberCalls(ResilientCalls):
    """Asks one model once, through its breaker."""

    def __init__(self, calls: FallbackCalls, breaker: str) -> None:  # no chain: not the base's
        self._calls, self._breaker = calls, breaker

    def ask(self, calls: Sequence[Callable[[], T]]) -> T:
        return self._calls.member(self._breaker, calls[0])

    async def aask(self, calls: Sequence[Callable[[], Awaitable[T]]]) -> T:
        return await self._calls.amember(self._breaker, calls[0])


def _given_request(request: ModelRequest, calls: FallbackCalls) -> ModelRequest:
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

"""pydantic-ai: several models as one that stands in for itself.

    agent = Agent(ResilientModel("anthropic:claude-opus-5-5", "openai:gpt-5.5"))

Needs the extra ``pydantic-ai``. Where an agent's model is pydantic-ai's own ``FallbackModel``, each member
passes a breaker of its own and is asked once: what fails, or may not be asked, is left for the next one at
once.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from copy import copy
from functools import partial
from typing import Any

try:
    from pydantic_ai import ModelSettings
    from pydantic_ai.exceptions import ModelAPIError
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model, StreamedResponse, infer_model
    from pydantic_ai.models.fallback import FallbackModel
    from pydantic_ai.models.wrapper import WrapperModel
except ImportError as error:
    raise ImportError("needs pydantic-ai: pip install 'loki-core[pydantic-ai]'") from error

from loki.action.loop.agent_call import is_resilient
from loki.adapters.monitor.breaker_call import FallbackCalls
from loki.adapters.monitor.monitor import Monitor
from loki.adapters.resilient_calls import ResilientCalls
from loki.base.error import BreakerOpen

# --- What is asked in a model's place, through breakers -----------------------------------------------


def asked_model(model: Model, monitor: Monitor) -> Model:
    """What stands for a model whose calls go through loki.

    Args:
        model: the owner's; one that passes breakers and waits by itself stays as it is.
        monitor: whose breakers are passed.
    """
    if is_resilient(model):
        return model
    if _has_members(model):
        return AskedFallback(model, monitor)
    return AskedModel(model, monitor.acall)


class AskedModel(WrapperModel):
    """A model whose calls go through a breaker; the client's own retries are off.

    Args:
        wrapped: the model.
        ask: asks through the breaker of that name: as `loki.Monitor.acall`.
    """

    def __init__(self, wrapped: Model, ask: Callable[..., Awaitable[Any]]) -> None:
        super().__init__(wrapped)
        self._ask, self._breaker = ask, f"api/{wrapped.system}/{wrapped.model_name}"

    async def request(
        self, messages: Any, model_settings: Any, model_request_parameters: Any
    ) -> ModelResponse:
        """Ask, and again after an outage."""
        asked = messages, once(self.wrapped, model_settings), model_request_parameters
        answer: ModelResponse = await self._ask(self._breaker, self.wrapped.request, *asked)
        return answer

    @asynccontextmanager
    async def request_stream(
        self, messages: Any, model_settings: Any, *more: Any
    ) -> AsyncGenerator[StreamedResponse]:
        """Ask for a stream, and again after an outage; what breaks in mid-stream is not asked again."""
        async with AsyncExitStack() as stack:

            async def begin() -> StreamedResponse:
                asked = messages, once(self.wrapped, model_settings), *more
                return await stack.enter_async_context(self.wrapped.request_stream(*asked))

            yield await self._ask(self._breaker, begin)


def once(model: Model, settings: ModelSettings | None) -> ModelSettings | None:
    """Settings without the client's own retries, where the model has such a setting."""
    if "max_retries" in model.unsupported_settings:
        return settings
    return ModelSettings(**{**(settings or {}), "max_retries": 0})


class NotAsked(BreakerOpen, ModelAPIError):
    """A member was not asked: its breaker is open. `FallbackModel` asks the next one for such an error."""

    def __init__(self, refusal: BreakerOpen, model: str) -> None:
        ModelAPIError.__init__(self, model, str(refusal))
        name, *more = refusal.__reduce__()[1]
        BreakerOpen.__init__(self, str(name), *more)  # type: ignore[arg-type]


class AskedFallback(WrapperModel):
    """A model with members, each behind a breaker of its own; where none answers the whole waits."""

    def __init__(self, wrapped: Model, monitor: Monitor) -> None:
        super().__init__(wrapped)  # itself, not a copy: its owner opens and closes its clients
        self._monitor = monitor

    async def request(self, *asked: Any) -> ModelResponse:
        """Ask, and again after an outage of all."""
        calls = self._monitor.fallback_calls()
        return await calls.awhole(partial(_with_members(self.wrapped, calls).request, *asked))

    @asynccontextmanager
    async def request_stream(self, *asked: Any) -> AsyncGenerator[StreamedResponse]:
        """Ask for a stream, and again after an outage of all; one that breaks in mid-stream has ended."""
        calls = self._monitor.fallback_calls()
        async with AsyncExitStack() as stack:
            model = _with_members(self.wrapped, calls)

            async def begin() -> StreamedResponse:
                return await stack.enter_async_context(model.request_stream(*asked))

            yield await calls.awhole(begin)


def _has_members(model: Model) -> bool:
    while isinstance(model, WrapperModel):
        model = model.wrapped
    return isinstance(model, FallbackModel)


def _with_members(model: Any, calls: FallbackCalls) -> Any:
    """A copy whose members, however deep, are asked once."""
    if is_resilient(model):
        return model
    if not _has_members(model):
        return AskedModel(model, partial(_once, calls, model.model_name))
    made = copy(model)
    if isinstance(model, WrapperModel):
        made.wrapped = _with_members(model.wrapped, calls)
    else:
        made.models = [_with_members(one, calls) for one in model.models]
        # Whatever its owner goes on to the next one for: one that may not be asked is passed over.
        made._exception_handlers = [*model._exception_handlers, _is_refusal]
    return made


def _is_refusal(error: Exception) -> bool:
    return isinstance(error, BreakerOpen)


async def _once(
    calls: FallbackCalls, model: str, breaker: str, function: Callable[..., Any], *args: Any
) -> Any:
    try:
        return await calls.amember(breaker, partial(function, *args))
    except BreakerOpen as error:
        raise NotAsked(error, model) from error


# --- Several models as one ----------------------------------------------------------------------------


class ResilientModel(FallbackModel):
    """Models of pydantic-ai's as one, each behind a circuit breaker of its own, as `loki.ResilientLLM`.

    Args:
        models: or their names, the preferred one first.
        how: as `loki.ResilientLLM` takes it: ``breakers``, ``backoff``, ``retries``, …

    Raises:
        UsageError: one is named twice.

    Example:
        >>> import asyncio
        >>> from pydantic_ai import Agent
        >>> agent = Agent(ResilientModel("test"))
        >>> asyncio.run(agent.run("Hello")).output
        'success (no tool calls)'
    """

    is_resilient = True

    def __init__(self, *models: Model | str, **how: Any) -> None:
        super().__init__(*(infer_model(one) for one in models))
        names = [(one.system, one.model_name) for one in self.models]
        self._calls = ResilientCalls(names, **how)

    async def request(self, messages: Any, model_settings: Any, parameters: Any) -> ModelResponse:
        """Ask one of them."""

        async def ask(model: Model) -> ModelResponse:
            asked = model.prepare_messages(messages, parameters)
            return await model.request(asked, once(model, model_settings), parameters)

        return await self._calls.aask([partial(ask, model) for model in self.models])

    @asynccontextmanager
    async def request_stream(
        self, messages: Any, model_settings: Any, parameters: Any, *more: Any
    ) -> AsyncGenerator[StreamedResponse]:
        """Ask one of them for a stream; what breaks in mid-stream is not asked again."""
        async with AsyncExitStack() as stack:

            async def begin(model: Model) -> StreamedResponse:
                asked = model.prepare_messages(messages, parameters)
                settings = once(model, model_settings)
                opened = model.request_stream(asked, settings, parameters, *more)
                return await stack.enter_async_context(opened)

            yield await self._calls.aask([partial(begin, model) for model in self.models])

"""pydantic-ai: several models as one that stands in for itself.

    agent = Agent(ResilientModel("anthropic:claude-opus-5-5", "openai:gpt-5.5"))

Needs the extra ``pydantic-ai``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

try:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model, StreamedResponse, infer_model
    from pydantic_ai.models.fallback import FallbackModel
except ImportError as error:
    raise ImportError("needs pydantic-ai: pip install 'loki-core[pydantic-ai]'") from error

from loki.adapters.pydantic_ai_fallback import once
from loki.adapters.resilient_calls import ResilientCalls


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

"""pydantic-ai: a model whose calls go through loki, as `loki.adapters.pydantic_ai` gives it to runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from pydantic_ai import ModelSettings
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel


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

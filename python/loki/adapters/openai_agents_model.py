"""OpenAI Agents SDK: models that are asked through loki.

Each request carries the signs, waits for outages to end, and is where a stuck agent stops: every call
of a tool has its result then. A last message with a claim that no check has borne out is answered,
once, in place of the user. Under test: ``tests/py/adapters/test_openai_agents_model.py``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

from agents import ItemHelpers, Model, ModelProvider, ModelResponse, Usage
from loki.adapters.conversation import Conversations
from loki.monitoring.monitor import Monitor

_BEGINNINGS = {"response.created", "response.in_progress"}
"""Events of a stream that say nothing yet: until another comes it can be asked for again."""


class AskedModel(Model):
    """A model whose calls go through a monitor.

    Args:
        model: the model.
        monitor: what decides.
        kept: what is to be stopped.
    """

    def __init__(self, model: Model, monitor: Monitor, kept: Conversations) -> None:
        self._asked, self._monitor, self._kept = model, monitor, kept
        name = getattr(model, "model", None) or type(model).__name__
        self._breaker = f"api/{name}" if "/" in str(name) else f"api/openai/{name}"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._asked, name)

    async def close(self) -> None:
        """As the model."""
        await self._asked.close()

    async def _cleanup_on_run_end(self, owner: object) -> None:
        await self._asked._cleanup_on_run_end(owner)

    async def get_response(
        self,
        system_instructions: str | None,
        input: Any,  # noqa: A002 - the base's name
        *args: Any,
        **more: Any,
    ) -> ModelResponse:
        """As the model, in the end."""
        told = await self._begin(system_instructions, input)
        ask = self._asked.get_response
        response: ModelResponse = await self._monitor.acall(
            self._breaker, ask, told, input, *args, **more
        )
        refused = await self._refused(response, input, more)
        if refused is None:
            return response
        input, more = refused  # noqa: A001
        again = await self._monitor.acall(self._breaker, ask, told, input, *args, **more)
        usage = Usage()
        usage.add(response.usage)
        usage.add(again.usage)
        return replace(again, usage=usage)

    async def stream_response(
        self,
        system_instructions: str | None,
        input: Any,  # noqa: A002
        *args: Any,
        **more: Any,
    ) -> AsyncIterator[Any]:
        """As the model; of an answer that is refused all is seen but its end, and its tokens."""
        told, refused = await self._begin(system_instructions, input), None
        async for event in self._stream(told, input, *args, **more):
            if event.type == "response.completed":
                said = ModelResponse(event.response.output, Usage(), event.response.id)
                refused = await self._refused(said, input, more)
            if refused is None:
                yield event
        if refused is not None:
            input, more = refused  # noqa: A001
            async for event in self._stream(told, input, *args, **more):
                yield event

    async def _stream(self, *args: Any, **more: Any) -> AsyncIterator[Any]:
        async def begin() -> tuple[list[Any], Any]:
            events, stream = [], self._asked.stream_response(*args, **more)
            async for event in stream:
                events.append(event)
                if event.type not in _BEGINNINGS:
                    break
            return events, stream

        events, stream = await self._monitor.acall(self._breaker, begin)
        for event in events:
            yield event
        async for event in stream:
            yield event

    async def _begin(self, instructions: str | None, input: Any) -> str | None:  # noqa: A002
        items = [] if isinstance(input, str) else input
        self._kept.raise_held(str(item.get("call_id", "")) for item in items)
        signs = await self._monitor.ainstructions()
        return "\n\n".join(filter(None, (instructions, signs))) or None

    async def _refused(
        self,
        response: ModelResponse,
        input: Any,  # noqa: A002
        more: dict[str, Any],
    ) -> tuple[Any, dict[str, Any]] | None:
        """What to ask next, where an answer is the last one and claims what no check has shown."""
        if any(item.type not in {"message", "reasoning"} for item in response.output):
            return None
        messages = [item for item in response.output if item.type == "message"]
        texts = [getattr(part, "text", "") for item in messages for part in item.content]
        refusal = await self._monitor.aending("".join(texts))
        if refusal.kind != "refuse":
            return None
        said: list[Any] = [{"role": "user", "content": refusal.text}]
        if more.get("conversation_id"):
            return said, more
        if more.get("previous_response_id"):
            return said, {**more, "previous_response_id": response.response_id}
        before = ItemHelpers.input_to_new_input_list(input)
        return [*before, *response.to_input_items(), *said], more


class AskedProvider(ModelProvider):
    """A provider whose models go through a monitor.

    Args:
        provider: the provider.
        asked: what makes such a model of one.
    """

    def __init__(self, provider: ModelProvider, asked: Callable[[Model], Model]) -> None:
        self._provider, self._asked = provider, asked

    def get_model(self, model_name: str | None) -> Model:
        """As the provider, asked through the monitor."""
        return self._asked(self._provider.get_model(model_name))

    async def aclose(self) -> None:
        """As the provider."""
        await self._provider.aclose()

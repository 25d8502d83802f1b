"""OpenAI Agents SDK: models that are asked through loki.

Each request carries the signs, waits for outages to end, and is where a stuck agent stops: every call
of a tool has its result then. A last message with a claim that no check has borne out is answered,
once, in place of the user. Under test: ``tests/py/adapters/test_openai_agents_model.py``.
"""
# ruff: noqa: A002 - the SDK's names

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from agents import ItemHelpers, Model, ModelProvider, ModelResponse, Usage
from loki.adapters.conversation import Watch


def _says_nothing(event: Any) -> bool:
    return event.type in {"response.created", "response.in_progress"}


class AskedModel:
    """A model whose calls go through a monitor; all else is the model's own."""

    def __init__(self, model: Model, watch: Watch) -> None:
        self._asked, self._watch = model, watch
        name = getattr(model, "model", None) or type(model).__name__
        self._breaker = f"api/{name}" if "/" in str(name) else f"api/openai/{name}"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._asked, name)

    async def get_response(
        self, system_instructions: str | None, input: Any, *args: Any, **more: Any
    ) -> ModelResponse:
        """As the model, in the end."""
        told = await self._told(system_instructions, input)
        ask, get = self._watch.monitor.acall, self._asked.get_response
        first: ModelResponse = await ask(self._breaker, get, told, input, *args, **more)
        refused = await self._refused(first.output, first.response_id, input, more)
        if refused is None:
            return first
        last: ModelResponse = await ask(self._breaker, get, told, refused[0], *args, **refused[1])
        first.usage.add(last.usage)
        return replace(last, usage=first.usage)

    async def stream_response(
        self, system_instructions: str | None, input: Any, *args: Any, **more: Any
    ) -> AsyncIterator[Any]:
        """As the model; of an answer that is refused all is seen but its end, and its tokens."""
        told, refused = await self._told(system_instructions, input), None
        async for event in self._stream(told, input, *args, **more):
            if event.type == "response.completed":
                said = event.response
                refused = await self._refused(said.output, said.id, input, more)
            if refused is None:
                yield event
        if refused is not None:
            async for event in self._stream(told, refused[0], *args, **refused[1]):
                yield event

    def _stream(self, *args: Any, **more: Any) -> AsyncIterator[Any]:
        begin = partial(self._asked.stream_response, *args, **more)
        return self._watch.monitor.astream(self._breaker, begin, _says_nothing)

    async def _told(self, instructions: str | None, input: Any) -> str | None:
        items = [] if isinstance(input, str) else input
        return await self._watch.told(instructions, (str(one.get("call_id")) for one in items))

    async def _refused(
        self, output: Sequence[Any], id: str | None, input: Any, more: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]] | None:
        """What to ask next, where an answer is the last one and claims what no check has shown."""
        if any(item.type not in {"message", "reasoning"} for item in output):
            return None
        text = "".join(ItemHelpers.extract_text(item) or "" for item in output)
        refusal = await self._watch.monitor.aending(text)
        if not refusal:
            return None
        said: list[Any] = [{"role": "user", "content": refusal.text}]
        if more.get("conversation_id"):  # the service keeps what was said
            return said, more
        if more.get("previous_response_id"):
            return said, {**more, "previous_response_id": id}
        answer = ModelResponse(list(output), Usage(), id).to_input_items()
        return [*ItemHelpers.input_to_new_input_list(input), *answer, *said], more


Model.register(AskedModel)  # no child: it would inherit what the model does otherwise


class AskedProvider(ModelProvider):
    """A provider whose models go through a monitor.

    Args:
        provider: the provider.
        asked: what makes such a model of one.
    """

    def __init__(self, provider: ModelProvider, asked: Callable[[Model], Any]) -> None:
        self._provider, self._asked = provider, asked

    def get_model(self, model_name: str | None) -> Model:
        """As the provider, asked through the monitor."""
        model: Model = self._asked(self._provider.get_model(model_name))
        return model

    async def aclose(self) -> None:
        """As the provider."""
        await self._provider.aclose()

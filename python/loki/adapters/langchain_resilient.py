"""LangChain: several chat models as one that stands in for itself.

    model = ResilientChatModel.of(ChatAnthropic(..., max_retries=0), ChatOpenAI(..., max_retries=0))

Needs the extra ``langchain``. Create chat models with ``max_retries=0``: loki is the one who asks again.
"""

# ruff: noqa: ARG002 - what is called back is told by the whole
from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from typing import Any

try:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
    from langchain_core.runnables import Runnable, RunnableBinding
except ImportError as error:
    raise ImportError("needs LangChain: pip install 'loki-core[langchain]'") from error

from loki.adapters.resilient_calls import ResilientCalls


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

    def _parts(self) -> list[tuple[Any, dict[str, Any]]]:
        """Each model, and its tools: what binds both would call back by itself."""
        return [
            (one.bound, dict(one.kwargs)) if isinstance(one, RunnableBinding) else (one, {})
            for one in self.models
        ]

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **more: Any
    ) -> ChatResult:
        said = _given(stop, more)
        asks = [partial(one.invoke, messages, **tools, **said) for one, tools in self._parts()]
        return ChatResult(generations=[ChatGeneration(message=self.calls.ask(asks))])

    async def _agenerate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **more: Any
    ) -> ChatResult:
        said = _given(stop, more)
        asks = [partial(one.ainvoke, messages, **tools, **said) for one, tools in self._parts()]
        return ChatResult(generations=[ChatGeneration(message=await self.calls.aask(asks))])

    def _stream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **more: Any
    ) -> Iterator[ChatGenerationChunk]:
        said = _given(stop, more)
        asks = [partial(one.stream, messages, **tools, **said) for one, tools in self._parts()]
        for message in self.calls.stream(asks):
            yield ChatGenerationChunk(message=message)

    async def _astream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **more: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        said = _given(stop, more)
        asks = [partial(one.astream, messages, **tools, **said) for one, tools in self._parts()]
        async for message in self.calls.astream(asks):
            yield ChatGenerationChunk(message=message)


def _given(stop: Any, more: dict[str, Any]) -> dict[str, Any]:
    """How each is asked: what comes of it is told by the whole, once."""
    return {
        "config": {"callbacks": []},
        **({"stop": stop} if stop else {}),
        **more,
    }


def names_of(model: BaseChatModel) -> tuple[str, str]:
    """A chat model's provider and name."""
    known = model._get_ls_params()
    name = known.get("ls_model_name") or type(model).__name__
    return known.get("ls_provider") or "unknown", name

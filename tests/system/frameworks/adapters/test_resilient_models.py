"""Several models of a framework as one: the next one answers where the first cannot, and loki alone asks again."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import agents as sdk
import pytest
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

import loki
from loki.adapters.langchain_resilient import ResilientChatModel
from loki.adapters.openai_agents_resilient import ResilientModel as SDKModel
from loki.adapters.pydantic_ai_resilient import ResilientModel
from loki.testing import ManualClock
from support.llm_service import LLMService, Said, failed

# ruff: noqa: SIM117 - two services, and what is asked of them
sdk.set_tracing_disabled(disabled=True)


class PydanticAI:
    def __init__(self, first: LLMService, second: LLMService, **how: Any) -> None:
        anthropic = AnthropicProvider(api_key="k", base_url=first.url)
        openai = OpenAIProvider(api_key="k", base_url=f"{second.url}/v1")
        models = (
            AnthropicModel("large", provider=anthropic),
            OpenAIChatModel("small", provider=openai),
        )
        self.agent = Agent(ResilientModel(*models, **how))
        self.agent.tool_plain(add)

    def answer(self, *, is_streamed: bool = False) -> str:
        async def ask() -> str:
            async with self.agent:
                if not is_streamed:
                    return str((await self.agent.run("Hello")).output)
                async with self.agent.run_stream("Hello") as run:
                    return str(await run.get_output())

        return asyncio.run(ask())


class LangChain:
    def __init__(self, first: LLMService, second: LLMService, **how: Any) -> None:
        here: dict[str, Any] = {"model": "large", "base_url": first.url, "api_key": "k"}
        there: dict[str, Any] = {"model": "small", "base_url": f"{second.url}/v1", "api_key": "k"}
        models = ChatAnthropic(max_retries=0, **here), ChatOpenAI(max_retries=0, **there)
        self.model = ResilientChatModel.of(*models, **how)
        self.agent: Any = create_agent(self.model, tools=[tool(add)])

    def answer(self, *, is_streamed: bool = False) -> str:
        said = {"messages": [("user", "Hello")]}
        if not is_streamed:
            return str(self.agent.invoke(said)["messages"][-1].text)

        async def ask() -> str:
            pieces = [one async for one, _ in self.agent.astream(said, stream_mode="messages")]
            return "".join(str(one.text) for one in pieces if one.type == "AIMessageChunk")

        return asyncio.run(ask())


class OpenAIAgents:
    def __init__(self, first: LLMService, second: LLMService, **how: Any) -> None:
        where = [
            AsyncOpenAI(api_key="k", base_url=f"{s.url}/v1", max_retries=0) for s in (first, second)
        ]
        named = zip(("large", "small"), where, strict=True)
        self.clients = where
        self.model = SDKModel(*(OpenAIChatCompletionsModel(*one) for one in named), **how)
        self.agent = sdk.Agent("a", model=self.model, tools=[sdk.function_tool(add)])

    def answer(self, *, is_streamed: bool = False) -> str:
        async def ask() -> str:
            try:
                if not is_streamed:
                    return str((await sdk.Runner.run(self.agent, "Hello")).final_output)
                run = sdk.Runner.run_streamed(self.agent, "Hello")
                async for _ in run.stream_events():
                    pass
                return str(run.final_output)
            finally:
                for client in self.clients:
                    await client.close()

        return asyncio.run(ask())


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


Make = Callable[..., Any]
EACH = pytest.mark.parametrize("make", [PydanticAI, LangChain, OpenAIAgents])
WAYS = pytest.mark.parametrize("is_streamed", [False, True])


@EACH
@WAYS
def test_the_next_one_answers_where_the_first_may_not(make: Make, *, is_streamed: bool) -> None:
    """A key that is refused is no reason to wait, and none to give up."""
    with LLMService([failed(401, "authentication_error")]) as first:
        with LLMService([Said("Hi")]) as second:
            model = make(first, second, clock=ManualClock())
            assert model.answer(is_streamed=is_streamed) == "Hi"
        assert (len(first.received), len(second.received)) == (1, 1)
    gc.collect()


@EACH
@WAYS
def test_an_outage_is_waited_out_and_then_left(make: Make, *, is_streamed: bool) -> None:
    """The first is asked as often as may be, by loki alone; then the other one."""
    clock = ManualClock()
    with LLMService(lambda _: failed(503, "overloaded_error")) as first:
        with LLMService(lambda _: Said("Hi")) as second:
            model = make(first, second, clock=clock, retries=1)
            began = clock.monotonic()
            assert model.answer(is_streamed=is_streamed) == "Hi"
            assert clock.monotonic() - began >= 4, "asked again after a wait"
        assert (len(first.received), len(second.received)) == (2, 1)
    gc.collect()


@EACH
def test_where_none_answers_the_last_ones_own_error_comes_out(make: Make) -> None:
    with LLMService([failed(400, "invalid_request_error", "no such field")]) as first:
        with LLMService([failed(404, "not_found_error", "no such model")]) as second:
            model = make(first, second, clock=ManualClock())
            with pytest.raises(Exception, match="no such model") as caught:
                model.answer()
        assert not isinstance(caught.value, loki.LokiError), "the framework's, which its users know"
        assert (len(first.received), len(second.received)) == (1, 1)
    gc.collect()


@EACH
def test_tools_and_breakers_of_a_project(make: Make) -> None:
    """Each model gets the tools in its own form, and passes the breaker that is named after it."""
    seen: list[str] = []

    class Breakers:
        def __getitem__(self, name: str) -> loki.Breaker:
            seen.append(name)
            return loki.Breaker(name=name)

    with LLMService(lambda _: failed(403, "permission_error")) as first:
        with LLMService([Said(tool="add", arguments={"a": 2, "b": 2}), Said("Four")]) as second:
            model = make(first, second, breakers=Breakers(), clock=ManualClock())
            assert model.answer() == "Four"
    assert {name.rpartition("/")[2] for name in seen} == {"large", "small"}
    assert second.received[-1].body["messages"][-1]["content"] in (
        "4",
        [{"type": "text", "text": "4"}],
    )
    gc.collect()


def test_one_named_twice_is_refused() -> None:
    with pytest.raises(loki.UsageError, match="each of them once"):
        ResilientModel("test", "test")

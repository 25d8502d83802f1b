"""Calls of models from pydantic-ai's agents: loki is the only one who asks again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, ModelHTTPError
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

import loki
from loki.adapters.pydantic_ai import LokiCapability
from loki.testing import ManualClock
from support.framework_agents import monitor
from support.llm_service import LLMService, Said, broken, failed


def anthropic(service: LLMService) -> Model:
    return AnthropicModel("claude", provider=AnthropicProvider(api_key="k", base_url=service.url))


def openai(service: LLMService) -> Model:
    return OpenAIChatModel(
        "gpt", provider=OpenAIProvider(api_key="k", base_url=service.url + "/v1")
    )


def responses(service: LLMService) -> Model:
    return OpenAIResponsesModel(
        "gpt", provider=OpenAIProvider(api_key="k", base_url=service.url + "/v1")
    )


def asked(agent: Agent[None, str], *, is_streamed: bool = False, **more: Any) -> Any:
    """What an agent answers; its client is closed afterwards."""

    async def ask() -> Any:
        async with agent:
            if not is_streamed:
                return (await agent.run("Hello", **more)).output
            async with agent.run_stream("Hello", **more) as run:
                return await run.get_output()

    return asyncio.run(ask())


Make = Callable[[LLMService], Model]
EACH = pytest.mark.parametrize("make", [anthropic, openai, responses])
DOWN = failed(529, "overloaded_error")


@EACH
@pytest.mark.parametrize("is_streamed", [False, True])
def test_an_outage_is_waited_out_and_each_try_is_one_call(
    tmp_path: Path, make: Make, is_streamed: bool
) -> None:
    clock = ManualClock()
    with LLMService([DOWN, failed(429, "rate_limit_error"), Said("Hi")]) as service:
        agent = Agent(make(service), capabilities=[LokiCapability(monitor(tmp_path, clock))])
        before = clock.monotonic()
        assert asked(agent, is_streamed=is_streamed) == "Hi"
        assert len(service.received) == 3
        assert clock.monotonic() - before > 10


@EACH
def test_without_loki_the_client_asks_again_by_itself(make: Make) -> None:
    """Else the test above would show nothing."""
    at_once = failed(529, "overloaded_error", headers={"retry-after-ms": "1"})
    with LLMService(lambda _: at_once) as service:
        with pytest.raises(ModelHTTPError):
            asked(Agent(make(service)))
        assert len(service.received) == 3


def test_what_the_service_asks_to_wait_is_waited(tmp_path: Path) -> None:
    clock = ManualClock()
    busy = failed(429, "rate_limit_error", headers={"retry-after": "37"})
    with LLMService([busy, Said("Hi")]) as service:
        agent = Agent(anthropic(service), capabilities=[LokiCapability(monitor(tmp_path, clock))])
        before = clock.monotonic()
        asked(agent)
    assert 37 <= clock.monotonic() - before < 60


@EACH
def test_a_service_that_stays_down_is_left_alone(tmp_path: Path, make: Make) -> None:
    watched = monitor(tmp_path)
    with LLMService(lambda _: DOWN) as service:
        agent = Agent(make(service), capabilities=[LokiCapability(watched, wait=0)])
        for _ in range(2):
            with pytest.raises(loki.BreakerOpen, match="overloaded_error"):
                asked(agent)
        assert len(service.received) == 3
    name = "api/anthropic/claude" if make is anthropic else "api/openai/gpt"
    assert watched.workspace.breakers()[name].snapshot().state == "OPEN"


@EACH
@pytest.mark.parametrize(("status", "type_"), [(400, "invalid_request_error"), (401, "auth")])
def test_what_asking_again_cannot_mend_passes(
    tmp_path: Path, make: Make, status: int, type_: str
) -> None:
    with LLMService(lambda _: failed(status, type_)) as service:
        agent = Agent(make(service), capabilities=[LokiCapability(monitor(tmp_path))])
        with pytest.raises(ModelHTTPError) as error:
            asked(agent)
        assert error.value.status_code == status
        assert len(service.received) == 1


def test_a_connection_that_is_refused_is_an_outage(tmp_path: Path) -> None:
    with LLMService() as service:
        pass
    agent = Agent(openai(service), capabilities=[LokiCapability(monitor(tmp_path))])
    with pytest.raises(loki.BreakerOpen, match="connection"):
        asked(agent)


def test_a_stream_that_breaks_in_the_middle_is_not_begun_again(tmp_path: Path) -> None:
    """What came of it has been given on already."""
    said = "a text that is long enough for some pieces of it to come"
    with LLMService([broken("drops", 2, said), Said("Hi")]) as service:
        agent = Agent(openai(service), capabilities=[LokiCapability(monitor(tmp_path))])
        with pytest.raises((ModelAPIError, OSError)):
            asked(agent, is_streamed=True)
        assert len(service.received) == 1


def test_settings_of_the_agent_stay(tmp_path: Path) -> None:
    heard: list[Any] = []

    def model(_: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        heard.append(info.model_settings)
        return ModelResponse([TextPart("Hi")])

    made = FunctionModel(model, settings={"temperature": 0.1})
    agent = Agent(made, capabilities=[LokiCapability(monitor(tmp_path))])
    asked(agent, model_settings={"max_tokens": 9, "max_retries": 5})
    assert heard == [{"temperature": 0.1, "max_tokens": 9, "max_retries": 0}]

"""Models asked through loki in runs of the OpenAI Agents SDK: outages, claims, who asks again."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import openai
import pytest
from agents import (
    Agent,
    ModelRetrySettings,
    ModelSettings,
    MultiProvider,
    OpenAIChatCompletionsModel,
    OpenAIProvider,
    OpenAIResponsesModel,
    RunConfig,
    function_tool,
    retry_policies,
    set_tracing_disabled,
)

import loki
from loki.adapters.openai_agents import LokiRunner
from loki.adapters.openai_agents_resilient import ResilientModel
from loki.testing import ManualClock
from support.framework_agents import PASSED, ZERO, monitor
from support.llm_service import LLMService, Reply, Said, broken, failed

set_tracing_disabled(True)

DOWN = failed(503, "server_error", "overloaded")
EAGER = ModelSettings(
    retry=ModelRetrySettings(max_retries=4, policy=retry_policies.http_status([503, 429, 500]))
)


@function_tool
def write_file(path: str, content: str) -> str:
    """Write a file."""
    return "wrote it"


def run(
    service: LLMService, runner: LokiRunner, *, api: str = "responses", streamed: bool = False,
    tools: Any = (write_file,), **options: Any,
) -> Any:  # fmt: skip
    async def go() -> Any:
        client = openai.AsyncOpenAI(base_url=f"{service.url}/v1", api_key="sk-test", max_retries=5)
        kind: Any = OpenAIResponsesModel if api == "responses" else OpenAIChatCompletionsModel
        fixer = Agent("fixer", tools=list(tools), model=kind("gpt-5", client))
        async with client:
            if not streamed:
                return await runner.run(fixer, "Fix it", **options)
            result = runner.run_streamed(fixer, "Fix it", **options)
            async for _ in result.stream_events():
                pass
            return result

    return asyncio.run(go())


@pytest.mark.parametrize("api", ["responses", "chat"])
@pytest.mark.parametrize("streamed", [False, True])
def test_loki_alone_asks_again(api: str, streamed: bool, tmp_path: Path) -> None:
    """Client and SDK are told to try again five and four times: nobody does but loki."""
    clock = ManualClock()
    config = RunConfig(model_settings=EAGER)
    with LLMService([DOWN, failed(429, "rate_limit", "slow"), Said("Done.")]) as service:
        result = run(
            service, LokiRunner(monitor(tmp_path, clock)),
            api=api, streamed=streamed, run_config=config,
        )  # fmt: skip
        assert result.final_output == "Done."
        assert len(service.received) == 3
    assert clock.monotonic() >= 2 * 4  # two waits, of about five and ten seconds


@pytest.mark.parametrize("streamed", [False, True])
def test_three_outages_open_the_breaker_and_nothing_goes_out(
    streamed: bool, tmp_path: Path
) -> None:
    with LLMService(lambda _: DOWN) as service:
        runner = LokiRunner(monitor(tmp_path), wait=0)
        with pytest.raises((openai.APIStatusError, loki.BreakerOpen)):
            run(service, runner, streamed=streamed)
        assert len(service.received) == 3
        with pytest.raises(loki.BreakerOpen, match="api/openai/gpt-5"):
            run(service, runner, streamed=streamed)
        assert len(service.received) == 3


@pytest.mark.parametrize("streamed", [False, True])
def test_a_resilient_model_is_left_to_itself(streamed: bool, tmp_path: Path) -> None:
    """It waits and asks again by itself: whoever did so, too, would multiply its calls."""
    watched = monitor(tmp_path)

    async def go(service: LLMService) -> None:
        client = openai.AsyncOpenAI(base_url=f"{service.url}/v1", api_key="sk-test", max_retries=0)
        one = OpenAIResponsesModel("gpt-5", client)
        model = ResilientModel(one, retries=1, wait=0, clock=ManualClock())
        fixer, runner = Agent("fixer", model=model), LokiRunner(watched)
        async with client:
            if not streamed:
                await runner.run(fixer, "Fix it")
            async for _ in runner.run_streamed(fixer, "Fix it").stream_events():
                pass

    with LLMService(lambda _: DOWN) as service:
        with pytest.raises(openai.APIStatusError):
            asyncio.run(go(service))
        assert len(service.received) == 2
    assert watched.workspace.breakers()["api/openai/gpt-5"].snapshot().counts.failures == 0


def test_what_is_no_outage_passes_untouched(tmp_path: Path) -> None:
    with LLMService(lambda _: failed(401, "invalid_request_error", "wrong key")) as service:
        with pytest.raises(openai.AuthenticationError):
            run(service, LokiRunner(monitor(tmp_path)))
        assert len(service.received) == 1


def test_a_stream_that_has_said_something_is_not_asked_for_again(tmp_path: Path) -> None:
    with LLMService([broken("drops", after=2), Said("Done.")]) as service:
        with pytest.raises(openai.APIConnectionError):
            run(service, LokiRunner(monitor(tmp_path)), streamed=True)
        assert len(service.received) == 1


def test_a_model_by_its_name_is_asked_through_loki(tmp_path: Path) -> None:
    async def go(service: LLMService) -> Any:
        client = openai.AsyncOpenAI(base_url=f"{service.url}/v1", api_key="sk-test")
        provider = MultiProvider(openai_client=client)
        async with client:
            runner = LokiRunner(monitor(tmp_path))
            config = RunConfig(model_provider=provider)
            return await runner.run(Agent("fixer", model="gpt-5"), "Fix it", run_config=config)

    with LLMService([DOWN, Said("Done.")]) as service:
        assert asyncio.run(go(service)).final_output == "Done."
        assert len(service.received) == 2


def claims(*, tool: str = "write_file") -> list[Reply]:
    arguments = {"path": "stats.py", "content": "return 0"}
    return [
        Said(arguments=arguments, tool=tool, number=1),
        Said("All tests pass now.", number=2),
        Said("I did not run them: not verified.", number=3),
    ]


@pytest.mark.parametrize("api", ["responses", "chat"])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_claim_without_a_check_is_refused_once(api: str, streamed: bool, tmp_path: Path) -> None:
    with LLMService(claims()) as service:
        result = run(service, LokiRunner(monitor(tmp_path)), api=api, streamed=streamed)
        assert result.final_output == "I did not run them: not verified."
        assert len(service.received) == 3
        assert "but no tests were run: run the project's tests" in service.received[2].text
        assert "All tests pass now." in service.received[2].text
    if not streamed:
        assert result.context_wrapper.usage.requests == 3


def test_a_claim_that_a_check_bore_out_stands(tmp_path: Path) -> None:
    @function_tool
    def run_tests() -> str:
        return PASSED

    edit, claim, _ = claims()
    check = Said(arguments={}, tool="run_tests", number=4)
    with LLMService([edit, check, claim]) as service:
        result = run(service, LokiRunner(monitor(tmp_path)), tools=(write_file, run_tests))
        assert result.final_output == "All tests pass now."
        assert len(service.received) == 3


def test_a_conversation_that_the_service_keeps_is_sent_only_what_is_new(tmp_path: Path) -> None:
    with LLMService(claims()) as service:
        run(service, LokiRunner(monitor(tmp_path)), auto_previous_response_id=True)
        last = service.received[2].body
        assert [item.get("role") for item in last["input"]] == ["user"]
        assert last["previous_response_id"] == "resp_2"


def test_a_stuck_agent_sends_no_further_request(tmp_path: Path) -> None:
    @function_tool
    def run_tests() -> str:
        return ZERO

    def reply(_: Any) -> Reply:
        number = len(service.received)
        if number % 2:
            arguments = {"path": "stats.py", "content": "return 0"}
            return Said(arguments=arguments, tool="write_file", number=number)
        return Said(arguments={}, tool="run_tests", number=number)

    with LLMService(reply) as service:
        with pytest.raises(loki.AgentStuck):
            run(service, LokiRunner(monitor(tmp_path)), tools=(write_file, run_tests), max_turns=30)
        assert len(service.received) == 12
        instructions = json.dumps(service.received[-1].body["instructions"])
        assert instructions.count("ZeroDivisionError") == 1


def test_a_provider_is_closed_with_its_runs_owner(tmp_path: Path) -> None:
    closed: list[bool] = []

    class Provider(OpenAIProvider):
        async def aclose(self) -> None:
            closed.append(True)

    provider = (
        LokiRunner(monitor(tmp_path))
        .config(RunConfig(model_provider=Provider(api_key="k")))
        .model_provider
    )
    asyncio.run(provider.aclose())
    assert closed == [True]

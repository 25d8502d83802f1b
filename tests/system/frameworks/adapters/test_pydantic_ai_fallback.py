"""pydantic-ai's own FallbackModel in an agent with loki: each member passes a breaker of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, ModelHTTPError
from pydantic_ai.exceptions import FallbackExceptionGroup, ModelAPIError
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

import loki
from loki.adapters.pydantic_ai import LokiCapability
from loki.adapters.pydantic_ai_resilient import NotAsked, ResilientModel
from loki.testing import ManualClock
from support.framework_agents import monitor
from support.llm_service import LLMService, Reply, Said, failed

DOWN = failed(529, "overloaded_error")
WAYS = pytest.mark.parametrize("is_streamed", [False, True])


class Two:
    """Two services, and a model of each that falls back from the first to the second."""

    def __init__(self, stack: ExitStack, first: Any, second: Any) -> None:
        self.first = stack.enter_context(LLMService(first))
        self.second = stack.enter_context(LLMService(second))
        anthropic = AnthropicProvider(api_key="k", base_url=self.first.url)
        openai = OpenAIProvider(api_key="k", base_url=f"{self.second.url}/v1")
        self.models: tuple[Model, Model] = (
            AnthropicModel("large", provider=anthropic),
            OpenAIChatModel("small", provider=openai),
        )

    def agent(self, watched: loki.Monitor, model: Model | None = None, **how: Any) -> Agent[None]:
        model = model or FallbackModel(*self.models)
        return Agent(model, capabilities=[LokiCapability(watched, **how)])

    @property
    def calls(self) -> tuple[int, int]:
        return len(self.first.received), len(self.second.received)


Make = Callable[[Any, Any], Two]


@pytest.fixture
def two() -> Iterator[Make]:
    with ExitStack() as stack:
        yield lambda first, second: Two(stack, first, second)


def asked(agent: Agent[None], times: int = 1, *, is_streamed: bool = False) -> Any:
    """What an agent answers in the end; its clients are closed once, after all."""

    async def ask() -> Any:
        async with agent:
            for _ in range(times - 1):
                await agent.run("Hello")
            if not is_streamed:
                return (await agent.run("Hello")).output
            async with agent.run_stream("Hello") as run:
                return await run.get_output()

    return asyncio.run(ask())


def states(watched: loki.Monitor) -> dict[str, str]:
    names = "api/anthropic/large", "api/openai/small"
    return {name: watched.workspace.breakers()[name].snapshot().state for name in names}


def hi(_: Any) -> Reply:
    return Said("Hi")


def down(_: Any) -> Reply:
    return DOWN


@WAYS
def test_the_next_one_is_asked_at_once_and_one_that_stays_down_no_more(
    tmp_path: Path, two: Make, *, is_streamed: bool
) -> None:
    """No wait, as long as somebody answers; after three failures the first is left alone."""
    clock = ManualClock()
    watched, both = monitor(tmp_path, clock), two(down, hi)
    began = clock.monotonic()
    assert asked(both.agent(watched), 6, is_streamed=is_streamed) == "Hi"
    assert clock.monotonic() == began
    assert both.calls == (3, 6)
    assert states(watched) == {"api/anthropic/large": "OPEN", "api/openai/small": "CLOSED"}


@WAYS
def test_where_none_answers_the_whole_waits_and_asks_anew(
    tmp_path: Path, two: Make, *, is_streamed: bool
) -> None:
    clock = ManualClock()
    both = two([DOWN, DOWN, Said("Hi")], [failed(503, "server_error")] * 2)
    began = clock.monotonic()
    assert asked(both.agent(monitor(tmp_path, clock)), is_streamed=is_streamed) == "Hi"
    assert both.calls == (3, 2)
    assert clock.monotonic() - began >= 8, "about five and about ten seconds"


def test_open_breakers_of_all_are_waited_out_within_the_callers_time(
    tmp_path: Path, two: Make
) -> None:
    clock = ManualClock()
    watched, both = monitor(tmp_path, clock), two([DOWN] * 3 + [Said("Hi")], down)
    began = clock.monotonic()
    assert asked(both.agent(watched, wait="5m")) == "Hi"
    assert clock.monotonic() - began < 300
    assert both.calls[0] == 4


def test_whoever_does_not_wait_hears_of_open_breakers(tmp_path: Path, two: Make) -> None:
    watched, both = monitor(tmp_path), two(down, down)
    for _ in range(2):
        with pytest.raises(loki.BreakerOpen, match="overloaded_error"):
            asked(both.agent(watched, wait=0))
    assert both.calls == (3, 3)
    assert set(states(watched).values()) == {"OPEN"}


def test_what_asking_again_cannot_mend_comes_out_as_the_frameworks_own(
    tmp_path: Path, two: Make
) -> None:
    watched = monitor(tmp_path)
    both = two([failed(401, "authentication_error")], [failed(404, "not_found_error")])
    with pytest.raises(FallbackExceptionGroup) as group:
        asked(both.agent(watched))
    assert [getattr(one, "status_code", 0) for one in group.value.exceptions] == [401, 404]
    assert both.calls == (1, 1)
    assert set(states(watched).values()) == {"CLOSED"}


def test_a_key_that_is_refused_does_not_end_the_wait_for_the_other_one(
    tmp_path: Path, two: Make
) -> None:
    clock = ManualClock()
    refused = failed(401, "authentication_error")
    both = two(lambda _: refused, [DOWN, DOWN, Said("Hi")])
    assert asked(both.agent(monitor(tmp_path, clock))) == "Hi"
    assert both.calls == (3, 3)


def test_owners_own_rule_of_falling_back_holds_and_an_open_breaker_is_passed_over(
    tmp_path: Path, two: Make
) -> None:
    """The rule sees what the client raised; it need not know of breakers."""
    seen: list[Exception] = []

    def on_overload(error: Exception) -> bool:
        seen.append(error)
        return isinstance(error, ModelHTTPError) and error.status_code == 529

    both = two(down, hi)
    model = FallbackModel(*both.models, fallback_on=on_overload)
    assert asked(both.agent(monitor(tmp_path), model), 5) == "Hi"
    assert both.calls == (3, 5)
    assert [type(one) for one in seen[:3]] == [type(seen[0])] * 3
    assert isinstance(seen[0], ModelHTTPError)
    assert isinstance(seen[3], NotAsked)


def test_an_error_that_is_not_to_fall_back_is_waited_out_as_of_one_model(
    tmp_path: Path, two: Make
) -> None:
    both = two([DOWN, Said("Hi")], hi)
    model = FallbackModel(*both.models, fallback_on=lambda _: False)
    clock = ManualClock()
    assert asked(both.agent(monitor(tmp_path, clock), model)) == "Hi"
    assert both.calls == (2, 0)


def test_members_are_found_however_deep_and_the_owners_models_stay(
    tmp_path: Path, two: Make
) -> None:
    both = two(down, hi)
    inner = FallbackModel(*both.models)
    model = WrapperModel(FallbackModel(WrapperModel(inner), both.models[1]))
    watched = monitor(tmp_path)
    assert asked(both.agent(watched, model), 5) == "Hi"
    assert both.calls == (3, 5)
    assert inner.models == list(both.models)
    assert len(inner._exception_handlers) == 1


def test_a_resilient_model_is_left_to_itself(tmp_path: Path, two: Make) -> None:
    """It waits and asks again by itself: whoever did so, too, would multiply its calls."""
    both = two(down, down)
    model = ResilientModel(*both.models, retries=1, clock=ManualClock())
    watched = monitor(tmp_path)
    with pytest.raises(ModelAPIError):
        asked(both.agent(watched, model))
    assert both.calls == (2, 2)
    assert set(states(watched).values()) == {"CLOSED"}, "its own breakers have counted"


def test_a_resilient_member_is_left_to_itself(tmp_path: Path, two: Make) -> None:
    both = two(down, down)
    resilient = ResilientModel(both.models[0], retries=1, wait=0, clock=ManualClock())
    model = FallbackModel(resilient, both.models[1])
    with pytest.raises(loki.BreakerOpen):
        asked(both.agent(monitor(tmp_path), model, wait=0))
    assert both.calls == (3, 3), "its own breaker, and the one of the other"


def test_a_bug_in_a_members_code_passes_at_once(tmp_path: Path, two: Make) -> None:
    class Broken(WrapperModel):
        async def request(self, *_: Any) -> Any:
            raise KeyError("no such tool")

    both = two(down, hi)
    model = FallbackModel(both.models[0], Broken(both.models[1]))
    with pytest.raises(KeyError):
        asked(both.agent(monitor(tmp_path), model))
    assert both.calls == (1, 0)


def test_what_is_not_asked_is_an_error_of_both() -> None:
    refusal = loki.BreakerOpen("api/x/y", 3.0, 1.0, "529")
    error = NotAsked(refusal, "y")
    assert isinstance(error, ModelAPIError)
    assert isinstance(error, loki.BreakerOpen)
    assert (error.name, error.retry_after, error.model_name) == ("api/x/y", 3.0, "y")
    assert str(error) == str(refusal)

"""LangChain's own ways of falling back, in an agent with loki: each model passes a breaker of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from anthropic import OverloadedError
from langchain.agents import create_agent
from langchain.agents.middleware import ModelFallbackMiddleware
from langchain_anthropic import ChatAnthropic
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

import loki
from loki.adapters.langchain import LokiMiddleware
from loki.adapters.langchain_resilient import ResilientChatModel
from loki.testing import ManualClock
from support.framework_agents import monitor
from support.langchain_calls import by_ainvoke, by_invoke, by_tokens
from support.llm_service import LLMService, Reply, Said, failed

DOWN = failed(529, "overloaded_error")
WAYS = pytest.mark.parametrize("way", [by_invoke, by_ainvoke, by_tokens])
Way = Callable[[Any], str]


class Two:
    """Two services, and a chat model of each."""

    def __init__(self, stack: ExitStack, first: Any, second: Any) -> None:
        self.first = stack.enter_context(LLMService(first))
        self.second = stack.enter_context(LLMService(second))
        here: dict[str, Any] = {"api_key": "k", "model": "large", "base_url": self.first.url}
        there: dict[str, Any] = {
            "api_key": "k",
            "model": "small",
            "base_url": f"{self.second.url}/v1",
        }
        self.large = ChatAnthropic(max_retries=0, **here)
        self.small = ChatOpenAI(max_retries=0, **there)

    @property
    def calls(self) -> tuple[int, int]:
        return len(self.first.received), len(self.second.received)


Make = Callable[[Any, Any], Two]


@pytest.fixture
def two() -> Iterator[Make]:
    with ExitStack() as stack:
        yield lambda first, second: Two(stack, first, second)


def hi(_: Any) -> Reply:
    return Said("Hi")


def down(_: Any) -> Reply:
    return DOWN


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def agent(model: Any, watched: loki.Monitor, *before: Any, **how: Any) -> Any:
    return create_agent(
        model, tools=[tool(add)], middleware=[*before, LokiMiddleware(watched, **how)]
    )


def states(watched: loki.Monitor) -> dict[str, str]:
    names = "api/anthropic/large", "api/openai/small"
    return {name: watched.workspace.breakers()[name].snapshot().state for name in names}


@WAYS
def test_the_next_one_is_asked_at_once_and_one_that_stays_down_no_more(
    tmp_path: Path, two: Make, way: Way
) -> None:
    clock = ManualClock()
    watched, both = monitor(tmp_path, clock), two(down, hi)
    made = agent(both.large.with_fallbacks([both.small]), watched)
    began = clock.monotonic()
    assert [way(made) for _ in range(6)] == ["Hi"] * 6
    assert clock.monotonic() == began
    assert both.calls == (3, 6)
    assert states(watched) == {"api/anthropic/large": "OPEN", "api/openai/small": "CLOSED"}


@WAYS
def test_where_none_answers_the_whole_waits_and_asks_anew(
    tmp_path: Path, two: Make, way: Way
) -> None:
    """Also where the one that LangChain tells of cannot be mended by asking again."""
    clock = ManualClock()
    refused = failed(401, "authentication_error")
    both = two(lambda _: refused, [DOWN, DOWN, Said("Hi")])
    began = clock.monotonic()
    made = agent(both.large.with_fallbacks([both.small]), monitor(tmp_path, clock))
    assert way(made) == "Hi"
    assert both.calls == (3, 3)
    assert clock.monotonic() - began >= 8, "about five and about ten seconds"


def test_whoever_does_not_wait_hears_of_open_breakers(tmp_path: Path, two: Make) -> None:
    watched, both = monitor(tmp_path), two(down, down)
    made = agent(both.large.with_fallbacks([both.small]), watched, wait=0)
    for _ in range(2):
        with pytest.raises(loki.BreakerOpen, match="overloaded_error"):
            by_invoke(made)
    assert both.calls == (3, 3)
    assert set(states(watched).values()) == {"OPEN"}


def test_owners_own_rule_of_falling_back_holds_and_an_open_breaker_is_passed_over(
    tmp_path: Path, two: Make
) -> None:
    both = two(down, hi)
    handled = (OverloadedError,)
    model = both.large.with_fallbacks([both.small], exceptions_to_handle=handled)
    made = agent(model, monitor(tmp_path))
    assert [by_invoke(made) for _ in range(5)] == ["Hi"] * 5
    assert both.calls == (3, 5)
    assert model.exceptions_to_handle == handled


def test_tools_reach_members_in_their_own_form(tmp_path: Path, two: Make) -> None:
    both = two(down, [Said(tool="add", arguments={"a": 2, "b": 2}), Said("Four")])
    made = agent(both.large.with_fallbacks([both.small]), monitor(tmp_path))
    assert by_invoke(made) == "Four"
    assert both.second.received[-1].body["messages"][-1]["content"] == "4"
    assert both.first.received[0].body["tools"][0]["name"] == "add"


@WAYS
def test_a_resilient_model_is_left_to_itself(tmp_path: Path, two: Make, way: Way) -> None:
    """It waits and asks again by itself: whoever did so, too, would multiply its calls."""
    both, watched = two(down, down), monitor(tmp_path)
    model = ResilientChatModel.of(both.large, both.small, retries=1, wait=0, clock=ManualClock())
    with pytest.raises(Exception, match="529"):
        way(agent(model, watched))
    assert both.calls == (2, 2)
    assert set(states(watched).values()) == {"CLOSED"}, "its own breakers have counted"


def test_a_resilient_member_is_left_to_itself(tmp_path: Path, two: Make) -> None:
    both = two(down, hi)
    first = ResilientChatModel.of(both.large, retries=1, wait=0, clock=ManualClock())
    assert by_invoke(agent(first.with_fallbacks([both.small]), monitor(tmp_path))) == "Hi"
    assert both.calls == (2, 1)


def test_models_of_the_fallback_middleware_pass_breakers_of_their_own(
    tmp_path: Path, two: Make
) -> None:
    """Before loki, it hands over one model after the other; each is waited for as long as is said."""
    both, watched = two(down, hi), monitor(tmp_path)
    made = agent(both.large, watched, ModelFallbackMiddleware(both.small), wait=0)
    assert [by_invoke(made) for _ in range(3)] == ["Hi"] * 3
    assert both.calls == (3, 3)
    assert states(watched) == {"api/anthropic/large": "OPEN", "api/openai/small": "CLOSED"}

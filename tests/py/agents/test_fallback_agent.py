"""Agents in a row: programs and functions, each behind its own breaker."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.action.loop.agent_call import AnyAgent, as_event, as_failure_of
from loki.action.loop.loop_events import AgentFailed, Malformed, Refused
from loki.agents.fallback_agent import FallbackAgent
from loki.agents.fallback_chain import ChainOptions, LocalBreakers
from loki.agents.model_agent import ModelAgent
from loki.agents.resilient_llm import ResilientLLM
from loki.decision.backoff import Backoff
from loki.testing import ManualClock, ScriptedAgent
from support.llm import Kept, ScriptedLLM

DOWN = loki.AgentError("connection reset by the model's service", tokens=10, cost=0.01)
GOOD = loki.Proposal(loki.Change.write({"a.py": "x = 1"}), "wrote it", tokens=100, cost=0.5)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def calls() -> Kept:
    return Kept()


def chain(clock: ManualClock, calls: Kept, *agents: AnyAgent) -> FallbackAgent:
    backoff = Backoff("5s", cap="5m", jitter=0)
    return FallbackAgent(agents, ChainOptions(LocalBreakers(clock), clock, backoff, calls=calls))


def brief(tmp_path: Path, **more: Any) -> loki.Briefing:
    return loki.Briefing("Write a.py", "t-1", 1, tmp_path, **more)


def test_the_next_agent_stands_in(tmp_path: Path, clock: ManualClock, calls: Kept) -> None:
    first, second = ScriptedAgent([DOWN] * 3, "first"), ScriptedAgent([GOOD] * 2, "second")
    agent = chain(clock, calls, first, second)
    found = agent.propose(brief(tmp_path))
    assert (found.agent, found.tokens) == ("second", 130)
    assert found.cost == pytest.approx(0.53)
    assert clock.waits == [5, 10]
    assert agent.propose(brief(tmp_path)).agent == "second"
    assert len(first.briefings) == 3
    assert [(c.call, c.provider, c.outcome, c.attempts) for c in calls.all] == [
        ("agent", "first", "error", 3),
        ("agent", "second", "ok", 1),
        ("agent", "first", "refused", 0),
        ("agent", "second", "ok", 1),
    ]


def test_async_agents(tmp_path: Path, clock: ManualClock, calls: Kept) -> None:
    async def first(_: loki.Briefing) -> Any:
        await asyncio.sleep(0)
        raise loki.AgentError("your credit is used up", retryable=False)

    async def second(_: loki.Briefing) -> Any:
        await asyncio.sleep(0)
        return {"a.py": "x = 1"}

    agent = chain(clock, calls, first, second)
    assert agent.propose(brief(tmp_path)).agent == "second"

    async def inside() -> Any:
        return agent.propose(brief(tmp_path))

    assert asyncio.run(inside()).agent == "second", "and inside of an event loop"


def test_an_answer_that_is_none_is_one(tmp_path: Path, clock: ManualClock, calls: Kept) -> None:
    """The loop says what is wrong with it; the next one would not be asked for what is no outage."""
    agent = chain(clock, calls, lambda _: None, ScriptedAgent([GOOD], "second"))
    assert isinstance(as_event(agent.propose(brief(tmp_path)), agent.name), Malformed)
    assert [call.outcome for call in calls.all] == ["ok"]


def test_one_that_retries_by_itself_is_left_to_it(
    tmp_path: Path, clock: ManualClock, calls: Kept
) -> None:
    class Own:
        name, is_resilient = "own", True
        asked = 0

        def propose(self, _: loki.Briefing) -> Any:
            self.asked += 1
            raise DOWN

    own = Own()
    agent = chain(clock, calls, own, ScriptedAgent([GOOD], "second"))
    assert agent.propose(brief(tmp_path)).agent == "second"
    assert (own.asked, clock.waits) == (1, [])
    assert [call.provider for call in calls.all] == ["second"], "it keeps its own records"


def test_where_no_call_went_out_nothing_failed(
    tmp_path: Path, clock: ManualClock, calls: Kept
) -> None:
    """Models whose breakers are open are refused: that is a pause, and no attempt."""
    ways = ChainOptions(LocalBreakers(clock), clock, calls=calls)
    models = [ScriptedLLM(name, [], clock) for name in "ab"]
    agents = [ModelAgent(ResilientLLM(model, ways=ways)) for model in models]
    for model in models:
        ways.breakers[model.breaker].open()
    with pytest.raises(loki.BreakerOpen) as refused:
        FallbackAgent(agents, ways).propose(brief(tmp_path))
    assert isinstance(as_failure_of(refused.value), Refused)
    assert not any(model.asked for model in models)


def test_an_answer_that_is_none_is_the_loops_to_judge(
    tmp_path: Path, clock: ManualClock, calls: Kept
) -> None:
    answer = chain(clock, calls, lambda _: 42).propose(brief(tmp_path))
    assert isinstance(as_event(answer, "x"), Malformed)


def test_none_answers(tmp_path: Path, clock: ManualClock, calls: Kept) -> None:
    bad = loki.AgentError("no such model", retryable=False)
    agent = chain(clock, calls, ScriptedAgent([bad], "a"), ScriptedAgent([bad], "b"))
    with pytest.raises(loki.AgentError, match="a: no such model; b: no such model") as raised:
        agent.propose(brief(tmp_path))
    assert raised.value.gave_up


def test_a_spent_budget_is_spent_for_all(tmp_path: Path, clock: ManualClock, calls: Kept) -> None:
    class Model:
        name, is_resilient = "model", True

        def propose(self, _: loki.Briefing) -> Any:
            raise loki.LLMError("the budget of $1.00 is spent", "budget")

    other = ScriptedAgent([GOOD], "other")
    with pytest.raises(loki.LLMError, match="the budget of") as raised:
        chain(clock, calls, Model(), other).propose(brief(tmp_path))
    assert raised.value.kind == "budget"
    assert not other.briefings


def test_who_answered_reflects(tmp_path: Path, clock: ManualClock, calls: Kept) -> None:
    class Thinker(ScriptedAgent):
        def reflect(self, _: loki.ReflectionRequest) -> str:
            return f"{self.name} was wrong"

    agent = chain(clock, calls, ScriptedAgent([DOWN] * 3, "a"), Thinker([GOOD], "b"))
    agent.propose(brief(tmp_path))
    assert agent.reflect is not None
    assert agent.reflect(loki.ReflectionRequest("why?", "t-1", 1, tmp_path)) == "b was wrong"
    assert chain(clock, calls, ScriptedAgent([])).reflect is None


def test_it_says_what_it_is() -> None:
    agent = FallbackAgent([ScriptedAgent([], "a"), loki.CommandAgent("true")])
    kept = agent.to_dict()
    assert kept["name"] == "a, true"
    assert [one["name"] for one in kept["agents"]] == ["a", "true"]


@pytest.mark.parametrize("agents", [[], [ScriptedAgent([]), ScriptedAgent([])]])
def test_agents_that_make_no_chain(agents: list[ScriptedAgent]) -> None:
    with pytest.raises(loki.UsageError, match="expected one or more, each with a circuit breaker"):
        FallbackAgent(agents)


def test_what_it_took_reaches_the_loop() -> None:
    from loki.action.loop.agent_call import as_failure_of
    from loki.base.error import AllRefused

    refused = AllRefused("api/x", 300.0, 1.0, "down", calls=3, tokens=70, cost=0.2)
    event = as_failure_of(refused)
    assert isinstance(event, AgentFailed)
    assert (event.tokens, event.cost, event.gave_up) == (70, 0.2, True)
    assert event.refused is not None
    assert event.refused.retry_after == 300

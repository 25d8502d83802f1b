"""Random faults, random pauses: what a chain promises whatever its services do."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import loki
from loki.action.agent_protocol import Answer, Request
from loki.agents.resilient_llm import ResilientLLM
from loki.base.error import LLMError
from loki.base.tokens import TokenUsage
from loki.decision.backoff import Backoff
from loki.decision.price import Price
from loki.testing import ManualClock
from support.llm import AsyncLLM, Kept, ScriptedLLM, request

KINDS = ("overloaded", "server", "connection", "rate_limit", "timeout", "malformed", "quota",
         "authentication", "too_long", "bad_request")  # fmt: skip
PRICES = {"m0": Price(1, 5), "m1": Price(2, 10), "m2": Price(0.1, 1)}


@dataclass(frozen=True)
class Fault:
    kind: Any
    retry_after: float | None
    tokens: int


FAULTS = st.builds(
    Fault, st.sampled_from(KINDS), st.none() | st.floats(0, 1000), st.integers(0, 10_000)
)
LINES = st.lists(st.none() | FAULTS, max_size=25)
PAUSES = st.lists(st.sampled_from([0.0, 1.0, 10.0, 60.0, 300.0, 1000.0]), min_size=1, max_size=12)


def line(fault: Fault | None) -> Any:
    if fault is None:
        return Answer("done", usage=TokenUsage(100, 10))
    return LLMError(
        f"it is {fault.kind}",
        fault.kind,
        retry_after=fault.retry_after,
        usage=TokenUsage(fault.tokens, 0),
    )


class Watched(ScriptedLLM):
    """Says what its breaker is at each call."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.breakers: Any = None
        self.states: list[str] = []

    def complete(self, asked: Request) -> Answer:
        self.states.append(self.breakers[self.breaker].snapshot().state)
        return super().complete(asked)


@given(
    st.lists(LINES, min_size=1, max_size=3),
    PAUSES,
    st.booleans(),
    st.booleans(),
    st.integers(0, 5),
    st.sampled_from([0.0, 0.2, 1.0]),
    st.integers(1, 4),
)
def test_whatever_services_do(
    scripts: list[list[Fault | None]],
    pauses: list[float],
    is_async: bool,
    less: bool,
    retries: int,
    share: float,
    saved: int,
) -> None:
    clock, calls = ManualClock(), Kept()
    models = [Watched(f"m{i}", map(line, script), clock) for i, script in enumerate(scripts)]
    llm = ResilientLLM(
        *([AsyncLLM(m) for m in models] if is_async else models),
        clock=clock,
        backoff=Backoff("5s", cap="5m"),
        retries=retries,
        prices=PRICES,
        calls=calls,
    )
    spent, money, answered = 0, 0.0, 0
    for model in models:
        model.breakers = llm.ways.breakers
        budget = loki.RetryBudget(share, 0, saved, clock)
        llm.ways.retry_budgets[model.breaker] = budget
    for pause in pauses:
        clock.advance(pause)
        asked = request(simpler=request if less else None)
        with suppress(loki.AgentError, loki.BreakerOpen):
            try:
                found = asyncio.run(llm.acomplete(asked)) if is_async else llm.complete(asked)
                spent, money = spent + found.usage.total, money + (found.cost or 0)
                answered += 1
            except (loki.AgentError, loki.BreakerOpen) as error:
                spent += getattr(error, "tokens", 0) or 0
                money += getattr(error, "cost", 0) or 0
                raise

    for model in models:
        assert "OPEN" not in model.states, "no call goes out on an open breaker"
        own = [call for call in calls.all if call.model == model.model]
        visits = [call for call in own if call.attempts]
        total = sum(call.attempts for call in own)
        assert total == len(model.asked), "every call is on record, once"
        assert total <= len(visits) + saved + share * len(visits), "retries keep to their budget"
        assert all(call.attempts <= 1 + retries for call in own)
    assert sum(call.outcome == "ok" for call in calls.all) == answered
    assert sum(call.usage.total for call in calls.all) == spent
    assert abs(sum(call.cost or 0 for call in calls.all) - money) < 1e-6
    assert all(wait <= 300 for wait in clock.waits)

"""The loop and an agent that waits and retries by itself: nothing is done twice."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.action.agent_protocol import Answer
from loki.agents.resilient_llm import ResilientLLM
from loki.base.error import LLMError
from loki.base.tokens import TokenUsage
from loki.decision.backoff import Backoff
from loki.memory.call_log import Calls
from loki.testing import ManualClock
from support.llm import ScriptedLLM, error
from support.project import RIGHT, make_project

GREP = "grep 'a + b' calc.py"
FIX = Answer(RIGHT, usage=TokenUsage(100, 10), cost=0.01)


class Writer:
    """An agent made of a model: what it answers is the file."""

    name, is_resilient = "writer", True

    def __init__(self, llm: ResilientLLM, is_async: bool) -> None:
        self.llm = llm
        self.works: list[str] = []
        self.propose = self._apropose if is_async else self._propose

    def request(self, briefing: loki.Briefing) -> loki.Request:
        self.works.append(briefing.work)
        less = briefing.simpler
        return loki.Request(
            (loki.Message("user", briefing.text),),
            cancelled=briefing.cancelled,
            task=briefing.task_id,
            left=briefing.left,
            simpler=(lambda: self.request(less())) if less else None,
        )

    def proposal(self, answer: Answer) -> loki.Proposal:
        change = loki.Change.write({"calc.py": answer.text})
        return loki.Proposal(change, "mended", tokens=answer.usage.total, cost=answer.cost)

    def _propose(self, briefing: loki.Briefing) -> loki.Proposal:
        return self.proposal(self.llm.complete(self.request(briefing)))

    async def _apropose(self, briefing: loki.Briefing) -> loki.Proposal:
        return self.proposal(await self.llm.acomplete(self.request(briefing)))


class World:
    def __init__(self, tmp_path: Path, mode: str) -> None:
        self.mode, self.clock = mode, ManualClock()
        self.project = make_project(tmp_path / "calc")
        self.writer: Writer | None = None

    def workspace(self) -> loki.Workspace:
        return loki.Workspace(self.project, clock=self.clock)

    def run(self, *models: ScriptedLLM, patience: float = 300, **task: Any) -> loki.Outcome:
        workspace = self.workspace()
        llm = ResilientLLM(
            *models,
            breakers=workspace.breakers(),
            clock=self.clock,
            backoff=Backoff("5s", cap="5m", jitter=0),
            calls=Calls(workspace.store),
            wait=patience,
        )
        agent = self.writer = Writer(llm, self.mode == "async")
        with workspace.task("make add add", **{"checks": [GREP], **task}) as entered:
            if self.mode == "async":
                return asyncio.run(entered.arun(agent))
            return entered.run(agent)

    def model(self, name: str, *lines: Any) -> ScriptedLLM:
        return ScriptedLLM(name, lines, self.clock)

    @property
    def attempts(self) -> list[tuple[str, bool, int | None]]:
        workspace = self.workspace()
        (task,) = workspace.tasks()
        return [
            (one.result, one.infrastructure, one.tokens)
            for one in workspace.history(task).attempts()
        ]


@pytest.fixture(params=["sync", "async"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(tmp_path, request.param)


def test_retries_are_the_chains_alone(world: World) -> None:
    a = world.model("a", error(), error(), FIX)
    assert world.run(a).status == "success"
    assert (a.asked, world.clock.waits) == ([0, 5, 15], [5, 10])
    assert world.attempts == [("success", False, 110)], "one attempt, however often it was asked"


def test_the_fallback_keeps_the_loop_going(world: World) -> None:
    a, b = world.model("a", *[error()] * 3), world.model("b", FIX)
    assert world.run(a, b).status == "success"
    records = [(call.model, call.outcome, call.attempts) for call in Calls(world.workspace().store)]
    assert records == [("a", "error", 3), ("b", "ok", 1)]
    states = {name: s.state for name, s in world.workspace().breakers().snapshot().items()}
    assert states == {"api/example/a": "OPEN"}, "and no breaker of the agent's own"


def test_all_open_pauses_and_a_later_run_goes_on(world: World) -> None:
    """Of who is not to wait; otherwise the call itself waits for the model."""
    a = world.model("a", *[error(usage=TokenUsage(50))] * 3, FIX)
    paused = world.run(a, patience=0)
    assert (paused.status, paused.exit_code, paused.breaker) == ("paused", 6, "api/example/a")
    assert world.clock.waits == [5, 10], "the loop does not wait on top"
    assert world.attempts == [("failed", True, 150)]
    again = world.run(a, patience=0)
    assert (again.status, len(a.asked)) == ("paused", 3)
    assert len(world.attempts) == 1, "nobody was asked"
    world.clock.advance("5m")
    assert world.run(a).status == "success"


def test_it_waits_until_the_model_lets_calls_out(world: World) -> None:
    a = world.model("a", *[error()] * 3, Answer("wrong"), FIX)
    assert world.run(a).status == "success"
    assert a.asked[3] - a.asked[2] >= 5, "the pause of its breaker"
    assert len(a.asked) == 5


def test_a_chain_that_gave_up_escalates(world: World) -> None:
    calm = world.model("a", *[error("connection")] * 99)
    workspace = world.workspace()
    llm = ResilientLLM(calm, clock=world.clock, backoff=Backoff(0), retries=1)
    with workspace.task("make add add", checks=[GREP]) as task:
        outcome = task.run(Writer(llm, False))
    assert (outcome.status, outcome.trigger) == ("escalated", "infrastructure")
    assert len(calm.asked) == 2, "it is not asked again on top"


def test_a_wrong_key_needs_a_person(world: World) -> None:
    key = LLMError("invalid x-api-key", "authentication", status=401)
    a, b = world.model("a", key), world.model("b", key)
    outcome = world.run(a, b)
    assert (outcome.status, outcome.exit_code) == ("escalated", 3)
    assert (len(a.asked), len(b.asked), world.clock.waits) == (1, 1, [])


def test_less_work_is_asked_for_and_seen(world: World) -> None:
    a = world.model("a", error("too_long"), error("too_long"), FIX)
    assert world.run(a).status == "success"
    assert world.writer is not None
    assert world.writer.works == ["full", "simpler", "minimal"]
    texts = [request.messages[0].text for request in a.requests]
    assert ["# Less than usual" in text for text in texts] == [False, True, False]
    assert "# As little as possible" in texts[2]
    assert all("make add add" in text for text in texts)


def test_where_even_the_least_fails_a_person_is_asked(world: World) -> None:
    a = world.model("a", *[error("too_long")] * 9)
    assert world.run(a).status == "escalated"
    assert len(a.asked) == 3


@pytest.mark.parametrize("task", [{"max_tokens": 250}, {"max_cost": 0.02}], ids=["tokens", "money"])
def test_a_budget_that_failed_calls_spend_ends_the_run(world: World, task: dict[str, Any]) -> None:
    took = error("connection", usage=TokenUsage(100), cost=0.01)
    a = world.model("a", *[took] * 9)
    outcome = world.run(a, **task)
    assert (outcome.status, outcome.trigger, outcome.exit_code) == ("failed", "budget", 5)
    assert len(a.asked) <= 3


def test_a_time_budget_ends_it_before_a_wait_that_is_too_long(world: World) -> None:
    a = world.model("a", *[error(retry_after=100.0)] * 9)
    outcome = world.run(a, max_time="60s")
    assert (outcome.status, a.asked, world.clock.waits) == ("paused", [0], [])
    assert outcome.retry_at is not None
    assert (outcome.retry_at - world.clock.now()).total_seconds() == 100

"""A long run: many tasks through an outage, a rate limit and a recovery of the preferred model.

Real clients of two providers, two real services on this machine that keep their log, a real loop in a
real project; only time is made. What is asserted is read from the services' logs and from the disk.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.action.agent_protocol import Answer
from loki.agents.anthropic_llm import AnthropicLLM
from loki.agents.openai_llm import OpenAILLM
from loki.decision.breaker import Transition
from loki.memory.call_log import Call, Calls
from loki.testing import ManualClock
from support.llm_service import LLMService, Received, Reply, Said, failed

FIRST, SECOND = "claude-sonnet-5-5", "gpt-5"
TASKS, EVERY = 30, 48.0
"""Tasks, and the seconds between their beginnings."""

OUTAGE, GONE, LIMIT, WELL = 120.0, 300.0, 600.0, 1000.0
"""Seconds at which the preferred service answers 503, is not there at all, limits the rate, is well."""

SHARE, SAVED = 0.2, 6.0
"""The retry budget of each model: a share of its requests, and what is saved up at first."""


def closed_port(stack: ExitStack) -> int:
    """Nobody listens there, and nobody else is given it."""
    kept = stack.enter_context(socket.socket())
    kept.bind(("127.0.0.1", 0))
    return int(kept.getsockname()[1])


class World:
    """The services, their log by the run's own time, and the models."""

    def __init__(self, project: Path, stack: ExitStack) -> None:
        self.project, self.clock = project, ManualClock()
        self.log: list[tuple[str, float, str]] = []
        """(model, seconds, what it said) of every call that reached a service, or found none."""
        self.limited = False
        self.first = stack.enter_context(LLMService(self.answer_first))
        self.second = stack.enter_context(LLMService(self.answer_second))
        self.gone = f"http://127.0.0.1:{closed_port(stack)}"
        self.workspace = self.new_workspace()
        self.changes: list[Transition] = []
        for name in (f"api/anthropic/{FIRST}", f"api/openai/{SECOND}"):
            self.workspace.ways.breakers[name].listen(self.changes.append)
            self.workspace.ways.retry_budgets[name] = loki.RetryBudget(SHARE, 0, SAVED, self.clock)

    def new_workspace(self) -> loki.Workspace:
        return loki.Workspace(self.project, clock=self.clock)

    # --- the services -----------------------------------------------------------------------------

    def answer_first(self, request: Received) -> Reply:
        now = self.clock.monotonic()
        if OUTAGE <= now < GONE:
            return self.say(FIRST, failed(503, "api_error", "no healthy upstream"))
        if LIMIT <= now < WELL:
            hint = {"retry-after": "30"}
            return self.say(FIRST, failed(429, "rate_limit_error", "slow down", headers=hint))
        return self.say(FIRST, self.work(request))

    def answer_second(self, request: Received) -> Reply:
        if self.clock.monotonic() > 400 and not self.limited:
            self.limited = True
            hint = {"retry-after-ms": "7000"}
            return self.say(SECOND, failed(429, "rate_limit_error", "slow down", headers=hint))
        return self.say(SECOND, self.work(request))

    def say(self, model: str, reply: Reply) -> Reply:
        said = "ok" if isinstance(reply, Said) else str(getattr(reply, "status", "?"))
        self.log.append((model, self.clock.monotonic(), said))
        return reply

    def work(self, request: Received) -> Said:
        """What a model does: every seventh task is got wrong at first."""
        number = int(re.search(r"write down (\d+)", request.text)[1])  # type: ignore[index]
        is_wrong = number % 7 == 3 and "What failed last" in request.text
        is_second = "Attempt 2" in request.text
        text = "nothing yet\n" if is_wrong and not is_second else f"done {number}\n"
        edit = {"path": f"{number}.txt", "action": "write", "content": text}
        return Said(
            arguments={"description": f"wrote {text.strip()}", "edits": [edit]},
            input=1000,
            output=100,
        )

    # --- the run ----------------------------------------------------------------------------------

    def models(self) -> list[Any]:
        first = AnthropicLLM(FIRST, api_key="k", base_url=self.first.url, clock=self.clock,
                             breaker=f"api/anthropic/{FIRST}")  # fmt: skip
        second = OpenAILLM(SECOND, api_key="k", base_url=f"{self.second.url}/v1", clock=self.clock,
                           breaker=f"api/openai/{SECOND}")  # fmt: skip
        return [Vanishing(first, self), second]

    def run(self, number: int, mode: str) -> loki.Outcome:
        check = f"grep -q 'done {number}' {number}.txt"
        with self.workspace.task(f"write down {number}", checks=[check], wait=True) as task:
            if mode == "async":
                return asyncio.run(task.arun(self.models()))
            return task.run(self.models())

    # --- what became of it ------------------------------------------------------------------------

    @property
    def calls(self) -> list[Call]:
        return list(Calls(self.new_workspace().store))

    def asked(self, model: str) -> list[float]:
        return [seconds for name, seconds, _ in self.log if name == model]

    def open_times(self, name: str) -> Iterator[tuple[float, float]]:
        """When a breaker was open: (from, to)."""
        began = None
        for change in self.changes:
            if change.name == name:
                at = (change.at - ManualClock().now()).total_seconds()
                if began is not None:
                    yield began, at
                began = at if change.after == "OPEN" else None
        if began is not None:
            yield began, float("inf")


class Vanishing:
    """A model whose service is not there for a time: its calls find a port where nobody listens."""

    def __init__(self, behind: AnthropicLLM, world: World) -> None:
        self.provider, self.model, self.breaker = behind.provider, behind.model, behind.breaker
        self._behind, self._world = behind, world

    def _look(self) -> None:
        now = self._world.clock.monotonic()
        is_gone = GONE <= now < LIMIT
        self._behind.base_url = self._world.gone if is_gone else self._world.first.url
        if is_gone:
            self._world.log.append((FIRST, now, "gone"))

    def complete(self, request: loki.Request) -> Answer:
        self._look()
        return self._behind.complete(request)

    async def acomplete(self, request: loki.Request) -> Answer:
        self._look()
        return await self._behind.acomplete(request)


@pytest.fixture(params=["sync", "async"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    project = tmp_path / "p"
    project.mkdir()
    with ExitStack() as stack:
        yield World(project, stack)


def test_many_tasks_through_an_outage(world: World, mode: str) -> None:
    outcomes = {}
    for number in range(TASKS):
        due = number * EVERY
        world.clock.advance(max(0.0, due - world.clock.monotonic()))
        outcomes[number] = world.run(number, mode)

    every_task_is_accounted_for(world, outcomes)
    the_fallback_made_progress(world)
    no_call_went_out_on_an_open_breaker(world)
    work_came_back(world)
    retries_kept_to_their_budget(world)
    every_call_is_on_record_once(world)


def every_task_is_accounted_for(world: World, outcomes: dict[int, loki.Outcome]) -> None:
    assert Counter(outcome.status for outcome in outcomes.values()) == {"success": TASKS}
    for number in range(TASKS):
        assert (world.project / f"{number}.txt").read_text() == f"done {number}\n"
    workspace = world.new_workspace()
    assert len(workspace.tasks()) == TASKS
    attempts = [a for task in workspace.tasks() for a in workspace.history(task).attempts()]
    results = Counter((a.result, a.infrastructure) for a in attempts)
    wrong = sum(number % 7 == 3 for number in range(TASKS))
    assert results == {("success", False): TASKS, ("failed", False): wrong}, (
        "no outage is a failure"
    )


def the_fallback_made_progress(world: World) -> None:
    done = [at for name, at, said in world.log if name == SECOND and said == "ok"]
    assert len([at for at in done if OUTAGE <= at < WELL]) > 15
    assert not [at for at in done if at < OUTAGE], "and only where it was needed"


def no_call_went_out_on_an_open_breaker(world: World) -> None:
    for name, model in ((f"api/anthropic/{FIRST}", FIRST), (f"api/openai/{SECOND}", SECOND)):
        spans = list(world.open_times(name))
        assert bool(spans) is (model == FIRST)
        for began, ended in spans:
            inside = [at for at in world.asked(model) if began + 0.001 < at < ended]
            assert not inside, f"{model} was called at {inside} while open from {began} to {ended}"
    lost = [at for name, at, said in world.log if name == FIRST and said != "ok"]
    # Three to trip it, then probes 5, 10, 20, … and at last 120 s after the one before: no hurry, as
    # the other one answers.
    assert len(lost) <= 3 + 5 + (WELL - OUTAGE) // 120


def work_came_back(world: World) -> None:
    last = [name for name, _, _ in world.log[-5:]]
    assert set(last) == {FIRST}
    circuit = world.workspace.ways.breakers[f"api/anthropic/{FIRST}"].snapshot()
    assert circuit.state == "CLOSED"
    log = (world.project / ".loki/logs/circuit-recovery.log").read_text()
    assert log.rstrip().endswith(f"Circuit recovered: api/anthropic/{FIRST}")
    assert len(log.splitlines()) == 1


def retries_kept_to_their_budget(world: World) -> None:
    for model in (FIRST, SECOND):
        asked = [call for call in world.calls if call.model == model and call.attempts]
        total = sum(call.attempts for call in asked)
        assert total == len(world.asked(model))
        assert total <= len(asked) + SAVED + SHARE * len(asked)
    hinted = [at for name, at, said in world.log if name == SECOND]
    (limited,) = [at for name, at, said in world.log if name == SECOND and said == "429"]
    again = hinted[hinted.index(limited) + 1]
    assert again - limited == 7, "as long as the service asked, to the millisecond"


def every_call_is_on_record_once(world: World) -> None:
    calls = world.calls
    assert sum(call.attempts for call in calls) == len(world.log)
    assert all((call.attempts == 0) == (call.outcome == "refused") for call in calls)
    answered = [said for _, _, said in world.log].count("ok")
    assert sum(call.outcome == "ok" for call in calls) == answered
    assert sum(call.usage.total for call in calls) == answered * 1100
    workspace = world.new_workspace()
    attempts = [a for task in workspace.tasks() for a in workspace.history(task).attempts()]
    cost = sum(call.cost or 0 for call in calls)
    assert cost > 0
    assert sum(a.cost or 0 for a in attempts) == pytest.approx(cost)
    assert sum(a.tokens or 0 for a in attempts) == answered * 1100
    rows = (world.project / ".loki/logs/calls.jsonl").read_text().splitlines()
    assert {json.loads(row)["task"] for row in rows} == set(workspace.tasks())

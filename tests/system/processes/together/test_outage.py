"""The loop and its agent's circuit breaker: scripted agents that fail like an outage, injected time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.testing import ManualClock, ScriptedAgent
from support.project import QUICK, RIGHT, make_project


class AuthenticationError(Exception):
    """As clients of LLM services raise it."""


TITLE = "make add add"
GREP = "grep 'a + b' calc.py"  # quick; what it says names no failure in particular
DOWN = loki.AgentError("connection reset by the model's service")

Run = Callable[..., loki.Outcome]


def run_sync(project: Path, clock: ManualClock, agent: Any, **task: Any) -> loki.Outcome:
    with loki.Workspace(project, clock=clock).task(TITLE, **{"checks": [GREP], **task}) as entered:
        return entered.run(agent)


def run_async(project: Path, clock: ManualClock, agent: Any, **task: Any) -> loki.Outcome:
    """The same with the async driver and an async agent."""

    async def propose(briefing: loki.Briefing) -> Any:
        await asyncio.sleep(0)
        return agent.propose(briefing)

    propose.__name__ = agent.name

    async def main() -> loki.Outcome:
        workspace = loki.Workspace(project, clock=clock)
        with workspace.task(TITLE, **{"checks": [GREP], **task}) as entered:
            return await entered.arun(propose)

    return asyncio.run(main())


@pytest.fixture(params=[run_sync, run_async])
def run(request: pytest.FixtureRequest) -> Run:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "calc")


def records(project: Path) -> list[tuple[int, str, bool]]:
    workspace = loki.Workspace(project)
    return [
        (attempt.attempt, attempt.result, attempt.infrastructure)
        for task in workspace.tasks()
        for attempt in workspace.history(task).attempts()
    ]


def circuit(project: Path, clock: ManualClock, name: str = "agent/scripted") -> str:
    return loki.Workspace(project, clock=clock).breakers()[name].snapshot().state


def trip(project: Path, clock: ManualClock, name: str = "agent/scripted") -> None:
    breaker = loki.Workspace(project, clock=clock).breakers()[name]
    for _ in range(3):
        breaker.guard().failure("529 overloaded")


def test_an_outage_pauses_the_task_and_a_later_run_goes_on(project: Path, run: Run) -> None:
    clock = ManualClock()
    agent = ScriptedAgent([DOWN, DOWN, DOWN, {"calc.py": RIGHT}])
    outcome = run(project, clock, agent, max_attempts=1)
    assert (outcome.status, outcome.exit_code, outcome.trigger) == ("paused", 6, "circuit_open")
    assert outcome.breaker == "agent/scripted"
    assert outcome.retry_at is not None
    assert (outcome.retry_at - clock.now()).total_seconds() == pytest.approx(300, abs=0.01)
    assert outcome.reason.endswith("the last error was: connection reset by the model's service")
    assert len(clock.waits) == 2, "the third retry is dropped"
    assert circuit(project, clock) == "OPEN"
    outage = [(1, "failed", True), (2, "failed", True), (3, "failed", True)]
    assert records(project) == outage

    clock.advance("100s")
    again = run(project, clock, agent, max_attempts=1)
    assert (again.status, again.attempts, again.retry_at) == ("paused", 3, outcome.retry_at)
    assert len(agent.briefings) == 3, "nobody is asked while it is open"
    assert records(project) == outage, "and no attempt counts"

    clock.advance("200s")
    done = run(project, clock, agent, max_attempts=1)
    assert (done.status, done.retry_at) == ("success", None)
    assert records(project) == [*outage, (4, "success", False)]
    assert circuit(project, clock) == "HALF_OPEN", "one probe of three"


def test_a_failed_probe_opens_it_again(project: Path, run: Run) -> None:
    clock = ManualClock()
    trip(project, clock)
    clock.advance("300s")
    agent = ScriptedAgent([DOWN, {"calc.py": RIGHT}])
    assert run(project, clock, agent).status == "paused"
    assert (len(agent.briefings), clock.waits) == (1, [])
    assert circuit(project, clock) == "OPEN"


@pytest.mark.parametrize("task", [{"wait": True}, {"max_time": "20m"}])
def test_it_can_wait_instead(project: Path, run: Run, task: dict[str, Any]) -> None:
    clock = ManualClock()
    agent = ScriptedAgent([DOWN] * 4 + [{"calc.py": RIGHT}])
    outcome = run(project, clock, agent, **task)
    assert outcome.status == "success"
    assert clock.waits[-2:] == pytest.approx([300, 300], abs=0.01)
    assert [kept[0] for kept in records(project)] == [1, 2, 3, 4, 5]


def test_between_its_own_probes_it_waits_and_a_recovery_is_logged(project: Path, run: Run) -> None:
    clock = ManualClock()
    trip(project, clock)
    clock.advance("300s")
    wrong = [{"calc.py": f"def add(a, b):\n    return a - b - {n}\n"} for n in (1, 2)]
    outcome = run(project, clock, ScriptedAgent([*wrong, {"calc.py": RIGHT}]), checks=[QUICK])
    assert outcome.status == "success"
    assert clock.waits == [pytest.approx(10, abs=0.01), pytest.approx(10, abs=0.01)]
    assert circuit(project, clock) == "CLOSED"
    log = (project / ".loki/logs/circuit-recovery.log").read_text()
    assert log == "2026-01-01T00:05:20.000Z Circuit recovered: agent/scripted\n"


def test_while_another_probes_it_is_told_to_come_back(project: Path, run: Run) -> None:
    clock = ManualClock()
    trip(project, clock)
    clock.advance("300s")
    probe = loki.Workspace(project, clock=clock).breakers()["agent/scripted"].guard()
    agent = ScriptedAgent([{"calc.py": RIGHT}])
    outcome = run(project, clock, agent)
    assert (outcome.status, agent.briefings, clock.waits) == ("paused", [], [])
    assert outcome.retry_at is not None
    assert (outcome.retry_at - clock.now()).total_seconds() == pytest.approx(10, abs=0.01)
    probe.success()
    clock.advance("10s")
    assert run(project, clock, agent).status == "success"


def test_isolated_means_until_a_person_closes_it(project: Path, run: Run) -> None:
    clock = ManualClock()
    breaker = loki.Workspace(project, clock=clock).breakers()["agent/scripted"]
    breaker.isolate()
    agent = ScriptedAgent([{"calc.py": RIGHT}])
    outcome = run(project, clock, agent, wait=True)
    assert (outcome.status, outcome.retry_at) == ("paused", None)
    breaker.close()
    assert run(project, clock, agent).status == "success"


@pytest.mark.parametrize(
    ("answers", "status"),
    [
        ([loki.AgentError("invalid x-api-key", retryable=False)], "escalated"),
        ([AuthenticationError("Error code: 401 - invalid x-api-key")], "escalated"),
        ([NameError("name 'clinet' is not defined")], "escalated"),
        ([IndexError("list index out of range")], "escalated"),
        ([KeyError("timeout")], "escalated"),
        ([RuntimeError("no such item")], "escalated"),
        ([{"../x.py": "x"}], "escalated"),
        (
            [{"calc.py": "def add(:\n"}, {"calc.py": "def add(a, b):\n    return 1\n"}, {}],
            "failed",
        ),
    ],
)
def test_what_is_no_outage(project: Path, run: Run, answers: list[Any], status: str) -> None:
    """A wrong key, by whatever says so; a bug in the agent, a change that is refused or does not help."""
    clock = ManualClock()
    for _ in range(3):
        assert (
            run(project, clock, ScriptedAgent(answers), max_attempts=len(answers)).status == status
        )
    assert clock.waits == []
    shown = loki.Workspace(project, clock=clock).breakers()["agent/scripted"].snapshot()
    assert (shown.state, shown.failure_count) == ("CLOSED", 0)


def test_a_bug_in_an_agent_is_told_at_once_with_its_place(project: Path, run: Run) -> None:
    clock, asked = ManualClock(), []

    class Broken:
        name = "broken"

        def propose(self, briefing: loki.Briefing) -> Any:
            asked.append(briefing)
            return asked[3]

    outcome = run(project, clock, Broken())
    assert (outcome.status, outcome.attempts, len(asked), clock.waits) == ("escalated", 1, 1, [])
    line = Broken.propose.__code__.co_firstlineno + 2
    said = f"the agent raised IndexError: list index out of range ({__file__}:{line}, in propose)"
    assert said in outcome.reason
    assert circuit(project, clock, "agent/broken") == "CLOSED"


def test_an_outage_of_any_kind_counts(project: Path, run: Run) -> None:
    clock = ManualClock()
    errors = [TimeoutError("no answer in 60 s"), ConnectionResetError("reset"), DOWN]
    assert run(project, clock, ScriptedAgent(errors)).status == "paused"


def test_what_the_service_asks_for_wins(project: Path, run: Run) -> None:
    clock = ManualClock()
    limited = loki.AgentError("429 too many requests", retry_after=90.0)
    absurd = loki.AgentError("429 too many requests", retry_after=float("nan"))
    agent = ScriptedAgent([limited, absurd, {"calc.py": RIGHT}])
    assert run(project, clock, agent).status == "success"
    first, second = clock.waits
    assert first == 90
    assert 9 <= second <= 11


def test_an_agents_own_open_breaker_pauses_too(project: Path, run: Run) -> None:
    clock = ManualClock()
    refused = loki.BreakerOpen("api/claude", 40.0, 0.0, "529 overloaded")
    outcome = run(project, clock, ScriptedAgent([refused]))
    assert (outcome.status, outcome.breaker, outcome.attempts) == ("paused", "api/claude", 0)
    assert records(project) == []
    assert circuit(project, clock) == "CLOSED"


def test_an_agent_names_its_breaker(project: Path, run: Run) -> None:
    del run
    clock = ManualClock()
    agent = ScriptedAgent([DOWN] * 3)
    agent.breaker = "api/claude"  # type: ignore[attr-defined]
    assert run_sync(project, clock, agent).breaker == "api/claude"
    assert circuit(project, clock, "api/claude") == "OPEN"


def test_an_interrupted_probe_frees_its_slot(project: Path) -> None:
    clock = ManualClock()
    trip(project, clock)
    clock.advance("300s")
    assert run_sync(project, clock, ScriptedAgent([KeyboardInterrupt()])).status == "interrupted"
    clock.advance("10s")
    assert run_sync(project, clock, ScriptedAgent([{"calc.py": RIGHT}])).status == "success"


def test_a_cancelled_probe_frees_its_slot(project: Path) -> None:
    clock = ManualClock()
    trip(project, clock, "agent/stuck")
    clock.advance("300s")
    started = asyncio.Event()

    async def stuck(_briefing: loki.Briefing) -> dict[str, str]:
        started.set()
        await asyncio.Event().wait()
        return {}

    async def main() -> None:
        with loki.Workspace(project, clock=clock).task(TITLE, checks=[GREP]) as task:
            work = asyncio.ensure_future(task.arun(stuck))
            await started.wait()
            work.cancel()
            with pytest.raises(asyncio.CancelledError):
                await work

    asyncio.run(main())
    shown = loki.Workspace(project, clock=clock).breakers()["agent/stuck"].snapshot()
    assert (shown.state, shown.is_probing) == ("HALF_OPEN", False)


def test_tasks_share_it(project: Path, run: Run) -> None:
    clock = ManualClock()
    run(project, clock, ScriptedAgent([DOWN] * 3))
    agent = ScriptedAgent([{"calc.py": RIGHT}])
    outcome = run(project, clock, agent, id="another-task")
    assert (outcome.task_id, outcome.status, agent.briefings) == ("another-task", "paused", [])

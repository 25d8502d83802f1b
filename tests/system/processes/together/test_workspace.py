"""The library form on a real project with real checks: sync, async, and in the caller's own hands: with processes."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.action.changes.change import Change
from loki.testing import ManualClock, ScriptedAgent
from support.project import CHECK, QUICK, RIGHT, WRONG, make_project


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "calc")


def solve(_briefing: loki.Briefing) -> dict[str, str]:
    return {"calc.py": RIGHT}


def wrong(number: int) -> dict[str, str]:
    return {"calc.py": f"def add(a, b):\n    return a - b - {number}\n"}


def only_task(project: Path) -> list[dict[str, Any]]:
    workspace = loki.Workspace(project)
    (task,) = workspace.tasks()
    return [attempt.to_dict() for attempt in workspace.history(task).attempts()]


def test_run(project: Path) -> None:
    outcome = loki.run("make add add", agent=solve, checks=[QUICK], path=str(project))
    assert (outcome.status, outcome.attempts, outcome.files) == ("success", 1, ("calc.py",))
    assert (project / "calc.py").read_text() == RIGHT
    (attempt,) = only_task(project)
    assert attempt["agent"] == "solve"
    assert attempt["checks"][0]["passed"]


WHO = ContextVar("WHO", default="nobody")


def test_arun_with_an_async_agent(project: Path) -> None:
    """It is awaited in the caller's own loop, where its clients live, and sees the caller's context."""
    seen: list[tuple[str, asyncio.AbstractEventLoop]] = []

    async def agent(briefing: loki.Briefing) -> loki.Change:
        await asyncio.sleep(0)
        seen.append((WHO.get(), asyncio.get_running_loop()))
        return loki.Change.write({"calc.py": RIGHT})

    async def main() -> loki.Outcome:
        WHO.set("the caller")
        outcome = await loki.arun("make add add", agent=agent, checks=[QUICK], path=str(project))
        assert seen == [("the caller", asyncio.get_running_loop())]
        return outcome

    assert asyncio.run(main()).status == "success"


def test_run_inside_a_running_event_loop(project: Path) -> None:
    """The blocking form works there too, with an async agent as well."""

    async def agent(briefing: loki.Briefing) -> dict[str, str]:
        return solve(briefing)

    async def main() -> loki.Outcome:
        return loki.run("make add add", agent=agent, checks=[QUICK], path=str(project))

    assert asyncio.run(main()).status == "success"


def test_a_cancelled_arun_is_recorded_and_resumed(project: Path) -> None:
    started = asyncio.Event()

    async def stuck(briefing: loki.Briefing) -> dict[str, str]:
        started.set()
        await asyncio.Event().wait()
        return {}

    async def main() -> None:
        task = asyncio.ensure_future(
            loki.arun("make add add", agent=stuck, checks=[QUICK], path=str(project))
        )
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert [a["result"] for a in only_task(project)] == ["interrupted"]
    outcome = loki.run("make add add", agent=solve, checks=[QUICK], path=str(project))
    assert outcome.status == "success"
    assert [(a["attempt"], a["execution"]) for a in only_task(project)] == [(1, 1), (2, 1)]


def test_a_cancelled_arun_waits_for_an_agent_in_a_thread(project: Path) -> None:
    entered, left = threading.Event(), threading.Event()

    def slow(briefing: loki.Briefing) -> dict[str, str]:
        entered.set()
        briefing.cancelled.wait(60)
        left.set()
        return solve(briefing)

    async def main() -> None:
        work = loki.arun("make add add", agent=slow, checks=[QUICK], path=str(project))
        task = asyncio.ensure_future(work)
        await asyncio.to_thread(entered.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert left.is_set()
    assert (project / "calc.py").read_text() == WRONG
    assert [a["result"] for a in only_task(project)] == ["interrupted"]


def test_an_arun_that_is_cancelled_twice_waits_for_its_agent(project: Path) -> None:
    """Whoever waits in the loop that the agent ends in must not block it."""

    async def main() -> None:
        asked, ending, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def agent(briefing: loki.Briefing) -> dict[str, str]:
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                ending.set()
                await may_end.wait()
            return {}

        work = loki.arun("make add add", agent=agent, checks=[QUICK], path=str(project))
        task = asyncio.ensure_future(work)
        for reached in (asked, ending):
            await reached.wait()
            task.cancel()
        for _ in range(3):
            await asyncio.sleep(0)
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert [a["result"] for a in only_task(project)] == ["interrupted"]


def test_attempts_in_the_callers_hands(project: Path) -> None:
    workspace = loki.Workspace(path=project)
    seen = []
    with workspace.task("make add add", kind="bug_fix", checks=[CHECK]) as task:
        for attempt in task.attempts():
            seen.append(str(attempt.briefing))
            attempt.propose(wrong(1) if len(seen) == 1 else {"calc.py": RIGHT}, "tried something")
    assert task.outcome is not None
    assert (task.outcome.status, task.outcome.attempts) == ("success", 2)
    assert "assert -1 == 5" in seen[0]
    assert "tried something" in seen[1]
    assert "analyze_then_fix" in seen[1]


def test_a_caller_that_edits_by_itself(project: Path) -> None:
    workspace = loki.Workspace(project)
    with workspace.task("make add add", checks=[QUICK]) as task:
        for attempt in task.attempts():
            (project / "calc.py").write_text(RIGHT + "# by hand\n")
            attempt.evaluate("turned the sign")
    assert task.outcome is not None
    assert (task.outcome.status, task.outcome.files) == ("success", ("calc.py",))
    (record,) = only_task(project)
    assert record["validation"]["skipped"]
    assert workspace.journal(task.spec.id).undo().restored == ("calc.py",)
    assert (project / "calc.py").read_text() == WRONG


def test_an_exception_in_the_callers_hands_records_a_failed_attempt(project: Path) -> None:
    workspace = loki.Workspace(project)
    with pytest.raises(ZeroDivisionError), workspace.task("make add add", checks=[QUICK]) as task:
        for _ in task.attempts():
            raise ZeroDivisionError("by zero")
    (record,) = only_task(project)
    assert record["result"] == "failed"
    assert "ZeroDivisionError: by zero" in record["error"]


def test_an_attempt_without_a_report_is_a_failed_one(project: Path) -> None:
    with loki.Workspace(project).task("make add add", checks=[QUICK]) as task:
        for number, attempt in enumerate(task.attempts()):
            if number == 1:
                attempt.propose({"calc.py": RIGHT})
    assert [a["result"] for a in only_task(project)] == ["failed", "success"]


def test_two_reports_of_one_attempt_are_misuse(project: Path) -> None:
    with loki.Workspace(project).task("make add add", checks=[QUICK]) as task:
        for attempt in task.attempts():
            attempt.propose({"calc.py": RIGHT})
            with pytest.raises(loki.UsageError, match="reported already"):
                attempt.propose({"calc.py": WRONG})


def test_a_new_execution_begins_with_a_fresh_budget(project: Path) -> None:
    for number in range(2):
        agent = ScriptedAgent([wrong(number + 1)])
        outcome = loki.run(
            "make add add", agent=agent, checks=[QUICK], path=str(project), max_attempts=1
        )
        assert (outcome.status, outcome.exit_code) == ("failed", 4)
        assert outcome.page is not None
        assert (project / ".loki" / outcome.page).exists()
    assert [(a["attempt"], a["execution"]) for a in only_task(project)] == [(1, 1), (2, 2)]


def test_signs_of_a_branch_stand_below_the_task_in_the_next_briefing(project: Path) -> None:
    agent = ScriptedAgent([wrong(1), wrong(2), {"calc.py": RIGHT}])
    outcome = loki.run("make add add", agent=agent, checks=[QUICK], path=str(project))
    assert outcome.status == "success"
    first, second, third = map(str, agent.briefings)
    assert first.startswith("# Task")
    assert second.startswith("# Task")
    assert third.index("# Task") < third.index("# Signs") < third.index("# What failed last")
    assert (project / ".loki/run/@no-branch/anti-repeat.md").exists()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"big.bin": b"\0" * 100_000_000}, "large"),
        ({"bad.py": b"\xff\xfe"}, "UTF-8"),
        (Change.write({"x": "y"}, commands=["rm -rf tests"]), "not allowed"),
        (42, "expected a Change"),
        ({"calc.py": 42}, "calc.py"),
    ],
)
def test_proposals_that_cannot_be_are_refused_and_the_next_briefing_says_why(
    project: Path, answer: Any, reason: str
) -> None:
    briefings: list[str] = []

    def agent(briefing: loki.Briefing) -> Any:
        briefings.append(str(briefing))
        return answer if len(briefings) == 1 else {"calc.py": RIGHT}

    outcome = loki.run("make add add", agent=agent, checks=[QUICK], path=str(project))
    assert (outcome.status, outcome.attempts) == ("success", 2)
    assert reason in briefings[1]


def test_an_edit_of_a_file_that_changed_meanwhile_is_refused(project: Path) -> None:
    briefings: list[str] = []

    def agent(briefing: loki.Briefing) -> Any:
        briefings.append(str(briefing))
        if len(briefings) == 1:
            (project / "calc.py").write_text("# somebody else was here\n" + WRONG)
        return {"calc.py": RIGHT}

    outcome = loki.run("make add add", agent=agent, checks=[QUICK], path=str(project))
    assert outcome.status == "success"
    assert "changed" in briefings[1]


def test_a_failing_service_is_waited_for_in_injected_time(project: Path) -> None:
    clock = ManualClock()
    lost = loki.AgentError("connection reset by the model's service")
    agent = ScriptedAgent([lost, lost, {"calc.py": RIGHT}])
    workspace = loki.Workspace(project, clock=clock)
    with workspace.task("make add add", checks=[QUICK], max_attempts=1) as task:
        outcome = task.run(agent)
    assert outcome.status == "success"
    first, second = clock.waits
    assert 5 <= first <= 6
    assert 9 <= second <= 11


def test_an_agent_with_a_bug_of_its_own_is_for_a_person(project: Path) -> None:
    def broken(_briefing: loki.Briefing) -> Any:
        raise NameError("name 'clinet' is not defined")

    outcome = loki.run("make add add", agent=broken, checks=[QUICK], path=str(project))
    assert outcome.status == "escalated"
    assert "clinet" in outcome.reason
    assert outcome.page is not None
    assert "clinet" in (project / ".loki" / outcome.page).read_text()


def test_allowed_commands_run_and_are_undone(project: Path) -> None:
    (project / ".loki").mkdir()
    (project / ".loki/config.toml").write_text('[execute]\nallow_commands = ["touch *"]\n')
    change = Change.write({"calc.py": RIGHT}, commands=["touch made.txt"])
    outcome = loki.run("make add add", agent=lambda _: change, checks=[QUICK], path=str(project))
    assert (outcome.status, outcome.files) == ("success", ("calc.py", "made.txt"))
    workspace = loki.Workspace(project)
    workspace.journal(outcome.task_id).undo()
    assert not (project / "made.txt").exists()


def test_a_workspace_that_cannot_be_written_goes_on_with_a_warning(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (project / ".loki").write_text("a file where the folder should be\n")
    with caplog.at_level(logging.WARNING):
        outcome = loki.run("make add add", agent=solve, checks=[QUICK], path=str(project))
    assert outcome.status == "success"
    assert "Could not persist" in caplog.text

"""Agents that look back, asked for real: sync and async, refused, failing, interrupted."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import loki
from support import command
from support.project import QUICK, RIGHT, make_project


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "calc")


class Thinker:
    """Wrong, then right; says what it thinks in between."""

    name = "thinker"

    def __init__(self, note: Callable[[loki.ReflectionRequest], Any]) -> None:
        self.briefings: list[str] = []
        self.requests: list[loki.ReflectionRequest] = []
        self._note = note

    def propose(self, briefing: loki.Briefing) -> loki.Change:
        self.briefings.append(str(briefing))
        wrong = {"calc.py": "def add(a, b):\n    return a * b\n"}
        return loki.Change.write(wrong if len(self.briefings) == 1 else {"calc.py": RIGHT})

    def reflect(self, request: loki.ReflectionRequest) -> Any:
        self.requests.append(request)
        return self._note(request)


def noted(project: Path) -> list[dict[str, Any]]:
    (log,) = (project / ".loki/tasks").glob("*/reflections.jsonl")
    return [json.loads(line) for line in log.read_text().splitlines()]


def raises(_: loki.ReflectionRequest) -> Any:
    raise loki.AgentError("529 overloaded")


async def later(text: str) -> str:
    await asyncio.sleep(0)
    return text


@pytest.mark.parametrize("drive", ["run", "arun"])
@pytest.mark.parametrize(
    ("note", "by", "why"),
    [
        (lambda _: "multiplied", "thinker", "multiplied"),
        (lambda _: loki.Reflection(why="multiplied"), "thinker", "multiplied"),
        (lambda _: later("multiplied"), "thinker", "multiplied"),
        (raises, "facts", None),
        (lambda _: 42, "facts", None),
    ],
)
def test_what_an_agent_thinks_reaches_the_next_briefing(
    project: Path,
    drive: str,
    note: Callable[[loki.ReflectionRequest], str | Awaitable[str]],
    by: str,
    why: str | None,
) -> None:
    agent = Thinker(note)
    if drive == "run":
        outcome = loki.run("make add add", agent=agent, checks=[QUICK], path=str(project))
    else:
        work = loki.arun("make add add", agent=agent, checks=[QUICK], path=str(project))
        outcome = asyncio.run(work)
    assert (outcome.status, outcome.attempts) == ("success", 2)
    (request,) = agent.requests
    assert request.attempt == 1
    assert "make add add" in str(request)
    (kept,) = noted(project)
    assert (kept["attempt"], kept["by"]) == (1, by)
    assert "calc.py" in kept["tried"]
    assert "AssertionError: 6" in kept["happened"]
    if why:
        assert kept["why"] == why
    assert f"likely why: `{kept['why']}`" in agent.briefings[1]
    assert "# Reflections" not in agent.briefings[0]


def test_an_outage_while_reflecting_counts_for_the_breaker(project: Path) -> None:
    agent = Thinker(raises)
    loki.run("make add add", agent=agent, checks=[QUICK], path=str(project))
    found = loki.Workspace(project).breakers()["agent/thinker"].snapshot()
    assert found.failure_count == 1


def test_an_open_breaker_is_not_asked(project: Path) -> None:
    breakers = loki.Workspace(project).breakers()

    def trip(_: loki.ReflectionRequest) -> str:
        raise AssertionError("nobody asks")

    agent = Thinker(trip)
    propose = agent.propose

    def proposing(briefing: loki.Briefing) -> loki.Change:
        if not agent.briefings:
            breakers["agent/thinker"].open()
        return propose(briefing)

    agent.propose = proposing  # type: ignore[method-assign]
    outcome = loki.run("make add add", agent=agent, checks=[QUICK], path=str(project))
    assert outcome.status == "paused"
    assert agent.requests == []
    assert noted(project)[0]["by"] == "facts"


def test_a_cancelled_run_does_not_wait_for_a_reflection(project: Path) -> None:
    asked, ended = threading.Event(), threading.Event()

    async def forever(_: loki.ReflectionRequest) -> str:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    agent = Thinker(forever)

    async def main() -> None:
        work = loki.arun("make add add", agent=agent, checks=[QUICK], path=str(project))
        task = asyncio.ensure_future(work)
        await asyncio.to_thread(asked.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert ended.wait(60)
    assert noted(project)[0]["by"] == "facts"


def test_in_the_callers_own_loop(project: Path) -> None:
    briefings = []
    with loki.Workspace(project).task("make add add", checks=[QUICK], max_attempts=4) as task:
        for number, attempt in enumerate(task.attempts()):
            briefings.append(str(attempt.briefing))
            if number == 0:
                attempt.reflect("said before the report")
            text = RIGHT if number == 3 else f"def add(a, b):\n    return {number}\n"
            attempt.propose({"calc.py": text})
            if number == 1:
                attempt.reflect(loki.Reflection(why="said after it", instead="add"))
            with pytest.raises(loki.UsageError, match="expects text"):
                attempt.reflect("")
    assert "likely why: `said before the report`" in briefings[1]
    assert "try instead: `add`" in briefings[2]
    assert "in the words of `caller`" in briefings[2]
    last = {record["attempt"]: record["by"] for record in noted(project)}
    assert last == {1: "caller", 2: "caller", 3: "facts"}


AGENT = """\
import pathlib, sys
text = sys.stdin.read()
if text.startswith("# Look back"):
    pathlib.Path("calc.py").write_text("thrown away")
    print("I multiplied where I had to add.")
else:
    first = "# Reflections" not in text
    pathlib.Path("calc.py").write_text(
        "def add(a, b):\\n    return a %s b\\n" % ("*" if first else "+"))
"""


@pytest.mark.parametrize("flag", [["--reflect"], []])
def test_a_command_is_asked_once_more_only_where_that_is_wanted(
    project: Path, tmp_path: Path, flag: list[str]
) -> None:
    script = tmp_path / "agent.py"
    script.write_text(AGENT)
    agent = shlex.join([sys.executable, str(script)])
    run = ["run", "--task", "make add add", "--check", QUICK, "--agent-command", agent]
    done = command.loki(*run, *flag, cwd=project)
    assert done.code == 0, done.err
    (kept,) = noted(project)
    said = kept["why"] == "I multiplied where I had to add."
    assert said is bool(flag)
    assert (project / "calc.py").read_text() == RIGHT


@pytest.mark.parametrize(
    ("took", "status"),
    [({"tokens": 1000}, "failed"), ({"cost": 5.0}, "failed"), ({"tokens": 999}, "success")],
)
def test_what_a_reflection_takes_is_spent(project: Path, took: dict[str, Any], status: str) -> None:
    """Asked between two attempts, it may be what ends the run."""
    agent = Thinker(lambda _: loki.Reflection(why="the sign was wrong", **took))
    workspace = loki.Workspace(project)
    with workspace.task("add", checks=[QUICK], max_tokens=1000, max_cost=5) as task:
        outcome = task.run(agent)
    assert outcome.status == status
    assert len(agent.briefings) == (1 if status == "failed" else 2)
    assert outcome.exit_code == (5 if status == "failed" else 0)
    assert noted(project)[-1]["why"] == "the sign was wrong"
    assert "tokens" not in noted(project)[-1]


def test_figures_of_a_reflection_that_cannot_be_are_none(project: Path) -> None:
    """A negative cost would give the budget back."""
    agent = Thinker(lambda _: loki.Reflection(why="x", tokens=-5, cost=float("nan")))
    with loki.Workspace(project).task("add", checks=[QUICK], max_cost=5) as task:
        assert task.run(agent).status == "success"

"""Limits on attempts, time, tokens and money stop a run cleanly, whatever it is doing."""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.action.agent_protocol import Proposal
from loki.action.changes.change import Change
from support.project import RIGHT, make_project

CHECK = "python -m pytest -q -p no:cacheprovider"
QUICK = "sh quick.sh"
"""Fails at once, so that a short time limit is reached where the test says."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = make_project(tmp_path)
    (project / "quick.sh").write_text("echo 'calc.py:2: error: add does not add'; exit 1\n")
    return project


def wrong(number: int, **spent: Any) -> Proposal:
    change = Change.write({"calc.py": f"def add(a, b):\n    return a - b - {number}\n"})
    return Proposal(change, f"try {number}", **spent)


def spender(**spent: Any) -> Any:
    numbers = iter(range(1, 99))
    return lambda _: wrong(next(numbers), **spent)


@pytest.mark.parametrize(
    ("limits", "spent", "attempts", "says"),
    [
        ("attempts = 2", {}, 2, "the budget of 2 attempts is spent"),
        ("tokens = 1800", {"tokens": 1000}, 2, "the budget of 1,800 tokens is spent (2,000 used)"),
        ("cost = 0.5", {"cost": 0.25}, 2, "the budget of $0.50 is spent"),
    ],
)
def test_a_spent_budget_ends_the_run_without_a_dead_letter(
    project: Path, limits: str, spent: dict[str, Any], attempts: int, says: str,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    (project / ".loki").mkdir()
    (project / ".loki" / "config.toml").write_text(f"[limits]\n{limits}\n")
    with caplog.at_level(logging.WARNING, "loki"):
        outcome = loki.run(
            "fix add", agent=spender(**spent), checks=[CHECK], path=str(project), max_attempts=9
        )
    assert (outcome.status, outcome.trigger, outcome.exit_code) == ("failed", "budget", 5)
    assert outcome.attempts == attempts
    assert outcome.reason.startswith(says)
    assert outcome.page is None
    assert not list(project.rglob("dead-letter-*.md"))
    name = limits.split(maxsplit=1)[0]
    assert sum(f"budget={name}" in record.getMessage() for record in caplog.records) == 1


def test_an_argument_wins_over_the_configuration(project: Path) -> None:
    (project / ".loki").mkdir()
    (project / ".loki" / "config.toml").write_text("[limits]\ntokens = 10\n")
    outcome = loki.run(
        "fix add", agent=spender(tokens=1000), checks=[CHECK], path=str(project),
        max_attempts=9, max_tokens=2000,
    )  # fmt: skip
    assert outcome.attempts == 2


def test_what_an_interrupted_run_spent_counts_in_the_next(project: Path) -> None:
    answers = iter([wrong(1, tokens=1500), None])

    def agent(briefing: loki.Briefing) -> Proposal:
        answer = next(answers)
        if answer is None:
            raise KeyboardInterrupt
        return answer

    first = loki.run("fix add", agent=agent, checks=[CHECK], path=str(project), max_tokens=2000)
    assert first.status == "interrupted"
    second = loki.run(
        "fix add", agent=spender(tokens=1000), checks=[CHECK], path=str(project), max_tokens=2000
    )
    assert (second.trigger, second.attempts) == ("budget", 3)


def test_the_time_limit_ends_an_agent_that_hangs(project: Path) -> None:
    def agent(briefing: loki.Briefing) -> Any:
        assert briefing.cancelled.wait(60), "nobody ended it"
        raise loki.AgentError("ended")

    outcome = loki.run("fix add", agent=agent, checks=[QUICK], path=str(project), max_time="6s")
    assert (outcome.status, outcome.trigger) == ("failed", "budget")
    assert "6 s is spent" in outcome.reason
    (attempt,) = loki.Workspace(project).history(outcome.task_id).attempts()
    assert attempt.result == "interrupted"


def test_the_time_limit_ends_an_async_agent_that_hangs(project: Path) -> None:
    ended = threading.Event()

    async def agent(briefing: loki.Briefing) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    outcome = asyncio.run(
        loki.arun("fix add", agent=agent, checks=[QUICK], path=str(project), max_time="6s")
    )
    assert (outcome.status, outcome.trigger) == ("failed", "budget")
    assert ended.is_set()


@pytest.mark.parametrize("is_sync", [True, False])
def test_the_time_limit_ends_whatever_is_awaited(project: Path, is_sync: bool) -> None:
    ended = threading.Event()

    class Agent:
        async def __call__(self, _briefing: loki.Briefing) -> Any:
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

    options: Any = {"agent": Agent(), "checks": [QUICK], "path": str(project), "max_time": "6s"}
    work: Any = functools.partial(loki.run if is_sync else loki.arun, "fix add", **options)
    outcome = work() if is_sync else asyncio.run(work())
    assert (outcome.status, outcome.trigger) == ("failed", "budget")
    assert ended.is_set()


def test_what_a_command_changed_that_time_ended_is_listed(project: Path) -> None:
    (project / ".loki").mkdir()
    (project / ".loki/config.toml").write_text('[execute]\nallow_commands = ["sh *"]\n')
    endless = ["sh", "-c", "echo x > made.txt; while true; do read line; done < /dev/zero"]
    change = loki.Change.write({"calc.py": RIGHT}, commands=[endless])
    outcome = loki.run(
        "fix add", agent=lambda _: change, checks=[QUICK], path=str(project), max_time="6s"
    )
    assert (outcome.status, outcome.trigger) == ("failed", "budget")
    assert outcome.files == ("calc.py", "made.txt")
    (attempt,) = loki.Workspace(project).history(outcome.task_id).attempts()
    assert (attempt.result, attempt.files_modified) == ("interrupted", ("calc.py", "made.txt"))


def test_the_time_limit_ends_a_check_that_hangs(project: Path) -> None:
    (project / "test_hang.py").write_text(
        "import calc, time\n\n\ndef test_hang():\n    time.sleep(60 if calc.add(1, 1) == 2 else 0)\n"
    )
    outcome = loki.run(
        "fix add",
        agent=lambda _: {"calc.py": RIGHT},
        checks=[CHECK],
        path=str(project),
        max_time="12s",
    )
    assert (outcome.status, outcome.trigger) == ("failed", "budget")
    assert (project / "calc.py").read_text() == RIGHT  # it was applied: it stays, and is listed
    assert outcome.files == ("calc.py",)


@pytest.mark.parametrize("arguments", [{"max_tokens": 0}, {"max_cost": -1.0}])
def test_what_is_no_limit_is_refused(project: Path, arguments: dict[str, Any]) -> None:
    with pytest.raises(loki.UsageError, match="expected a number above 0"):
        loki.Workspace(project).task("fix add", checks=[CHECK], **arguments)

"""A person answers a task that stopped: real loop, real checks, a real project."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.jobs.queue.queue import queue_of
from loki.testing import ManualClock, ScriptedAgent
from support.project import RIGHT, WRONG, make_project

TASK = "make add add"
CHECK = f"{sys.executable} check_add.py"
"""Quicker than a test runner, as each test here needs many runs."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = make_project(tmp_path / "calc")
    (root / "check_add.py").write_text(
        "from calc import add\n\n"
        "result = add(2, 3)\n"
        'assert result == 5, f"expected 5, got {result}"\n'
    )
    return root


def wrong(number: int) -> dict[str, str]:
    """Another wrong answer each time; what fails stays the same."""
    return {"calc.py": f"# {number}\n{WRONG}"}


def stuck(count: int = 9) -> ScriptedAgent:
    return ScriptedAgent([wrong(number) for number in range(count)])


def escalated(project: Path, **arguments: Any) -> loki.Outcome:
    """A task whose agent fails in the same way until no strategy is left."""
    outcome = loki.run(TASK, agent=stuck(), checks=[CHECK], path=str(project), **arguments)
    assert (outcome.status, outcome.trigger, outcome.attempts) == ("escalated", "same_failure", 3)
    return outcome


def record(project: Path, task: str) -> dict[str, Any]:
    path = project / ".loki" / "tasks" / task / "task.json"
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def resume(project: Path, task: str, agent: Any, **arguments: Any) -> loki.Outcome:
    with loki.Workspace(project).resume(task, **arguments) as entered:
        return entered.run(agent)


def test_context_of_a_person_is_in_every_later_briefing(project: Path) -> None:
    stopped = escalated(project)
    agent = ScriptedAgent([wrong(11), wrong(12), {"calc.py": RIGHT}])
    said = "The sign is wrong.\nThe test is right."
    outcome = resume(project, stopped.task_id, agent, context=said)
    assert (outcome.status, outcome.attempts) == ("success", 6)
    for briefing in map(str, agent.briefings):
        assert "```text\nThe sign is wrong.\nThe test is right.\n```" in briefing
        words, output = briefing.index("The sign is wrong"), briefing.index("# What failed last")
        assert briefing.index("# Task") < words < output, "apart from what tools print"
    assert [a.attempt for a in loki.Workspace(project).history(stopped.task_id).attempts()] == [
        1, 2, 3, 4, 5, 6,
    ]  # fmt: skip


def test_signs_and_what_was_tried_still_stand(project: Path) -> None:
    stopped = escalated(project)
    agent = ScriptedAgent([{"calc.py": RIGHT}])
    resume(project, stopped.task_id, agent, context="look at the sign")
    (briefing,) = map(str, agent.briefings)
    assert "\n# Signs: binding" in briefing
    assert "- Attempt 3: `changed calc.py: " in briefing


def test_after_a_person_the_budget_and_the_strategies_begin_anew(project: Path) -> None:
    stopped = escalated(project)
    agent = ScriptedAgent([wrong(number) for number in range(20, 29)])
    outcome = resume(project, stopped.task_id, agent, context="look at the sign")
    assert (outcome.status, outcome.attempts) == ("escalated", 6)
    assert "3 more may follow" in str(agent.briefings[0])
    answers = [a.strategy_used for a in loki.Workspace(project).history(stopped.task_id).attempts()]
    assert answers == ["analyze_then_fix", "context_expand", None] * 2


def test_resumed_twice_both_contexts_stand(project: Path) -> None:
    stopped = escalated(project)
    resume(project, stopped.task_id, stuck(), context="first words")
    agent = ScriptedAgent([{"calc.py": RIGHT}])
    outcome = resume(project, stopped.task_id, agent, context="second words")
    assert outcome.status == "success"
    (briefing,) = map(str, agent.briefings)
    assert briefing.index("\nfirst words\n") < briefing.index("\nsecond words\n")


def test_what_a_person_mended_by_hand_is_success_and_stays_theirs(project: Path) -> None:
    stopped = escalated(project)
    (project / "calc.py").write_text(RIGHT)
    (project / "notes.txt").write_text("mine\n")
    agent = stuck()
    outcome = resume(project, stopped.task_id, agent)
    assert outcome.status == "success"
    assert outcome.reason == "every check passes after a person's help"
    assert not agent.briefings
    assert "notes.txt" not in outcome.files
    undone = loki.Workspace(project).journal(stopped.task_id).undo()
    assert [conflict.path for conflict in undone.conflicts] == ["calc.py"]
    assert (project / "calc.py").read_text() == RIGHT


@pytest.mark.parametrize("helped", [True, False])
def test_a_feature_is_not_done_because_it_was_resumed(project: Path, helped: bool) -> None:
    """Checks that pass are no success where nobody has done anything."""
    (project / "calc.py").write_text(RIGHT)

    def no_key(_briefing: loki.Briefing) -> Any:
        raise loki.AgentError("401 invalid x-api-key", retryable=False)

    outcome = loki.run(
        "add sub", agent=no_key, checks=[CHECK], path=str(project), kind="feature", max_attempts=1
    )
    assert outcome.status == "escalated"
    if helped:
        (project / "calc.py").write_text(RIGHT + "\n\ndef sub(a, b):\n    return a - b\n")
    agent = ScriptedAgent([])
    after = resume(project, outcome.task_id, agent)
    assert after.status == ("success" if helped else "failed")
    assert bool(agent.briefings) is not helped


def test_the_page_tells_the_answer(project: Path) -> None:
    stopped = escalated(project)
    assert stopped.page is not None
    page = project / ".loki" / stopped.page
    assert "### Awaiting" in page.read_text("utf-8")
    resume(project, stopped.task_id, ScriptedAgent([{"calc.py": RIGHT}]), context="it's the sign")
    text = page.read_text("utf-8")
    assert "### Awaiting" not in text
    assert text.endswith("a person resumed the task, and said:\n\n> it's the sign\n")


def test_resumed_after_a_dead_letter(project: Path) -> None:
    outcome = loki.run(TASK, agent=stuck(), checks=[CHECK], path=str(project), max_attempts=1)
    assert outcome.status == "failed"
    workspace = loki.Workspace(project)
    with workspace.resume(outcome.task_id) as task:
        for attempt in task.attempts():
            assert attempt.number == 2
            attempt.propose({"calc.py": RIGHT})
    assert task.outcome is not None
    assert (task.outcome.status, task.outcome.attempts) == ("success", 2)
    assert queue_of(workspace).where(outcome.task_id) == "completed"


def test_an_interrupted_task_goes_on_as_it_stood(project: Path) -> None:
    def interrupts(briefing: loki.Briefing) -> Any:
        if briefing.attempt == 2:
            raise KeyboardInterrupt
        return wrong(1)

    outcome = loki.run(TASK, agent=interrupts, checks=[CHECK], path=str(project), max_attempts=2)
    assert outcome.status == "interrupted"
    after = resume(project, outcome.task_id, stuck())
    assert (after.status, after.trigger) == ("failed", "retry_budget_exhausted")
    assert record(project, outcome.task_id)["interventions"] == []


def test_a_spent_time_budget_can_be_raised(project: Path) -> None:
    clock = ManualClock()

    def slow(_briefing: loki.Briefing) -> Any:
        clock.advance(120)
        return wrong(1)

    workspace = loki.Workspace(project, clock=clock)
    with workspace.task(TASK, checks=[CHECK], max_time="1m") as task:
        outcome = task.run(slow)
    assert outcome.exit_code == 5
    with workspace.resume(outcome.task_id, max_time="1h") as task:
        assert task.spec.budget.seconds == 3600
        assert task.run(ScriptedAgent([{"calc.py": RIGHT}])).status == "success"


def test_abort_restores_the_files_and_answers_the_page(project: Path) -> None:
    stopped = escalated(project)
    workspace = loki.Workspace(project)
    undone = workspace.abort(stopped.task_id)
    assert undone.restored == ("calc.py",)
    assert (project / "calc.py").read_text() == WRONG
    kept = record(project, stopped.task_id)
    assert (kept["outcome"]["status"], kept["outcome"]["trigger"]) == ("failed", "aborted")
    assert kept["interventions"][-1]["status"] == "escalated"
    assert stopped.page is not None
    assert "aborted the task" in (project / ".loki" / stopped.page).read_text("utf-8")


def test_abort_leaves_what_a_person_changed_and_the_task_open(project: Path) -> None:
    stopped = escalated(project)
    (project / "calc.py").write_text("mine\n")
    workspace = loki.Workspace(project)
    assert [c.path for c in workspace.abort(stopped.task_id).conflicts] == ["calc.py"]
    assert (project / "calc.py").read_text() == "mine\n"
    assert record(project, stopped.task_id)["outcome"]["status"] == "escalated"
    workspace.abort(stopped.task_id, force=True)
    assert (project / "calc.py").read_text() == WRONG


def test_an_aborted_task_can_be_taken_up_again(project: Path) -> None:
    stopped = escalated(project)
    loki.Workspace(project).abort(stopped.task_id)
    outcome = resume(project, stopped.task_id, ScriptedAgent([{"calc.py": RIGHT}]))
    assert outcome.status == "success"


def test_what_has_ended_well_is_not_resumed(project: Path) -> None:
    outcome = loki.run(TASK, agent=lambda _: {"calc.py": RIGHT}, checks=[CHECK], path=str(project))
    workspace = loki.Workspace(project)
    with pytest.raises(loki.UsageError, match=r"ended: success.*loki run"):
        workspace.resume(outcome.task_id)
    with pytest.raises(loki.UsageError, match="ended: success"):
        workspace.abort(outcome.task_id)
    with pytest.raises(loki.UsageError, match="no task 'nothing'"):
        workspace.resume("nothing")


def test_a_running_task_is_not_resumed(project: Path) -> None:
    workspace = loki.Workspace(project)
    with (
        workspace.task(TASK, checks=[CHECK]) as running,
        pytest.raises(loki.UsageError, match="another loki run"),
        workspace.resume(running.spec.id),
    ):
        pass


def test_too_many_words_are_refused(project: Path) -> None:
    stopped = escalated(project)
    with pytest.raises(loki.UsageError, match="8000"):
        loki.Workspace(project).resume(stopped.task_id, context="x" * 8001)


def test_secrets_are_not_kept_and_asked_for_again(project: Path) -> None:
    key = "sk-ant-api03-" + "a1B2" * 20
    check = loki.Check(("sh", "-c", f"test -n {key} && false"))
    agent = ScriptedAgent([wrong(1)])
    outcome = loki.run(TASK, agent=agent, checks=[check], path=str(project), max_attempts=1)
    workspace = loki.Workspace(project)
    assert key not in (project / f".loki/tasks/{outcome.task_id}/task.json").read_text("utf-8")
    with pytest.raises(loki.UsageError, match="holds a secret"):
        workspace.resume(outcome.task_id)
    with workspace.resume(outcome.task_id, checks=["true"], context=f"use {key}") as task:
        assert task.run(ScriptedAgent([])).status == "success"
    assert key not in (project / f".loki/tasks/{outcome.task_id}/task.json").read_text("utf-8")

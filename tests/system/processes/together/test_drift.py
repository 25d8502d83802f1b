"""Agents that leave their task: real loops, real checks, a real project."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.action.agent_protocol import Briefing, ReviewRequest, Verdict
from loki.people.request import HumanReviews
from loki.people.signals import Signals
from loki.testing import ManualClock
from support.project import RIGHT, WRONG, make_project

CHECK = f"{sys.executable} -S check.py"
TASK = "make add in calc.py add"

SPREE = "\n".join(
    f"def paint_{number}(canvas):\n    canvas.draw({number})\n" for number in range(20)
)
"""A module that has nothing to do with sums."""

Answer = Callable[[Briefing], Any]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = make_project(tmp_path / "calc")
    for name in ("screen", "canvas", "sound"):
        (root / "game" / name).mkdir(parents=True)
        (root / "game" / name / "draw.py").write_text("x = 1\n")
    return root


class Agent:
    """Answers from a list, and keeps what it was told."""

    name = "stray"

    def __init__(self, *answers: Mapping[str, Any] | loki.Change | Answer) -> None:
        self.answers = list(answers)
        self.told: list[Briefing] = []

    def propose(self, briefing: Briefing) -> loki.Change:
        self.told.append(briefing)
        answer = self.answers.pop(0)
        answer = answer(briefing) if callable(answer) else answer
        return answer if isinstance(answer, loki.Change) else loki.Change.write(dict(answer))


def stray(place: str, number: int = 0) -> dict[str, str]:
    return {f"game/{place}/draw.py": f"# {number}\n{SPREE}"}


def run(project: Path, agent: Agent, **options: Any) -> loki.Outcome:
    options.setdefault("scope", ["calc.py"])
    return loki.run(TASK, agent=agent, checks=[CHECK], path=str(project), **options)


def lines(project: Path) -> list[dict[str, Any]]:
    path = project / ".loki" / "signals" / "DRIFT_DETECTED"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def results(project: Path) -> list[str]:
    workspace = loki.Workspace(project)
    (task,) = workspace.tasks()
    return [attempt.result for attempt in workspace.history(task).attempts()]


def test_a_first_drift_goes_back_to_reasoning_and_costs_no_retry(project: Path) -> None:
    agent = Agent(stray("screen"), {"calc.py": RIGHT})
    outcome = run(project, agent, max_attempts=1)
    assert outcome.status == "success"
    assert (project / "game/screen/draw.py").read_text() == "x = 1\n"
    assert results(project) == ["drift", "success"]
    said = str(agent.told[1])
    assert "The last proposal left the task" in said
    assert "game/screen/draw.py" in said
    assert "left the task" not in str(agent.told[0])
    (line,) = lines(project)
    assert line["severity"] == "medium"
    assert line["original_goal"] == TASK
    assert line["agent"] == "stray"
    assert line["drift_distance"] == 3
    workspace = loki.Workspace(project)
    assert not Signals(workspace.store, workspace.clock).pending(), "the log stays, and is done"


def test_the_same_drift_again_passes_where_nobody_can_review_it(project: Path) -> None:
    both = {**stray("screen"), "calc.py": RIGHT}
    outcome = run(project, Agent(stray("screen"), both))
    assert outcome.status == "success"
    assert "game/screen/draw.py" in outcome.files


class Reviewer:
    """Says the same of everything."""

    name = "senior"

    def __init__(self, *, approves: bool) -> None:
        self.approves = approves
        self.asked: list[ReviewRequest] = []

    def review(self, request: ReviewRequest) -> Verdict:
        self.asked.append(request)
        return Verdict(self.approves, "the game draws sums")


def test_a_second_drift_is_reviewed_and_may_pass(project: Path) -> None:
    reviewer = Reviewer(approves=True)
    agent = Agent(stray("screen"), stray("canvas"), {"calc.py": RIGHT})
    outcome = run(project, agent, reviewer=reviewer)
    assert outcome.status == "success"
    assert results(project)[0] == "drift"
    assert "game/canvas/draw.py" in outcome.files
    (asked,) = reviewer.asked
    assert "game/canvas/draw.py" in asked.diff
    assert "game/canvas/draw.py" in asked.criterion.description


def test_a_second_drift_is_reviewed_and_may_be_sent_back(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    agent = Agent(stray("screen"), stray("canvas"), {"calc.py": RIGHT})
    with caplog.at_level(logging.INFO, "loki"):
        outcome = run(project, agent, reviewer=Reviewer(approves=False))
    assert outcome.status == "success"
    assert results(project) == ["drift", "drift", "success"]
    assert 'drift review=rejected by="senior"' in caplog.text


def test_a_third_drift_clears_the_context_and_loads_the_ledger(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    agent = Agent(stray("screen"), stray("canvas"), stray("sound"), {"calc.py": RIGHT})
    with caplog.at_level(logging.INFO, "loki"):
        outcome = run(project, agent)
    assert outcome.status == "success"
    assert results(project) == ["drift"] * 3 + ["success"]
    assert "context_clear trigger=drifts" in caplog.text
    assert [told.is_fresh for told in agent.told] == [False, False, False, True]
    said = str(agent.told[3])
    assert "# Where this stands" in said
    assert "# Ledger" in said
    assert "# Handoff" in said
    assert "Already tried" not in said
    handoffs = list((project / ".loki/memory/handoffs").glob("*.md"))
    assert len(handoffs) == 1


def test_an_agent_that_never_comes_back_ends_at_a_person(project: Path) -> None:
    places = ["screen", "canvas", "sound"]
    agent = Agent(*({f"game/{places[n % 3]}/new{n}.py": SPREE} for n in range(20)))
    outcome = run(project, agent)
    assert (outcome.status, outcome.trigger) == ("escalated", "drift")
    assert len(agent.told) == 7
    assert outcome.page is not None
    assert "drift" in (project / ".loki" / outcome.page).read_text("utf-8")


def test_severe_drift_pauses_the_task_and_sends_a_person(project: Path) -> None:
    agent = Agent({"calc.py": RIGHT, "LICENSE": "MIT\n" * 20})
    outcome = run(project, agent)
    assert (outcome.status, outcome.trigger, outcome.exit_code) == ("escalated", "drift", 3)
    assert (project / "calc.py").read_text() == WRONG
    workspace = loki.Workspace(project)
    reviews = HumanReviews(workspace.store, ManualClock())
    (asked,) = reviews.open()
    assert asked.severity == "high"
    assert asked.task_id == outcome.task_id
    assert "LICENSE" in asked.context
    reviews.decide(asked.id, by="ann", approved=True)
    again = Agent({"calc.py": RIGHT, "LICENSE": "MIT\n" * 20})
    with workspace.resume(outcome.task_id) as task:
        assert task.run(again).status == "success"
    assert (project / "LICENSE").exists()


def test_tests_are_not_deleted_to_get_on(project: Path) -> None:
    (project / "tests" / "test_more.py").write_text("def test_more():\n    assert True\n" * 30)
    outcome = run(
        project, Agent({"calc.py": RIGHT, "tests/test_more.py": None}, {"calc.py": RIGHT})
    )
    assert outcome.status == "success"
    assert results(project) == ["drift", "success"]
    assert (project / "tests" / "test_more.py").exists()


def test_what_a_person_says_is_part_of_the_task(project: Path) -> None:
    first = run(project, Agent({"calc.py": RIGHT, "LICENSE": "MIT\n" * 20}))
    assert first.trigger == "drift"
    again = Agent({"calc.py": RIGHT, "LICENSE": "MIT\n" * 20})
    with loki.Workspace(project).resume(first.task_id, context="add a licence, too") as task:
        assert task.run(again).status == "success"


def drift_line(task: str, **fields: Any) -> str:
    said = {"timestamp": "2026-04-04T12:00:00Z", "task_id": task, "detected_drift": "draws games"}
    return json.dumps({**said, **fields}) + "\n"


def append(project: Path, text: str) -> None:
    path = project / ".loki" / "signals" / "DRIFT_DETECTED"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as log:
        log.write(text)


def test_lines_of_others_count_by_their_task(project: Path) -> None:
    task = loki.action.task.task_id(TASK)

    def told(_briefing: Briefing) -> dict[str, str]:
        append(project, drift_line(task, severity="low", agent="ann"))
        append(project, drift_line("another", severity="critical") + "no json\n")
        return {"calc.py": RIGHT}

    agent = Agent(told, {"calc.py": RIGHT})
    assert run(project, agent).status == "success"
    assert results(project) == ["drift", "success"]
    assert "draws games" in str(agent.told[1])


def test_lines_of_before_do_not_act_on_this_run(project: Path) -> None:
    append(project, drift_line(loki.action.task.task_id(TASK), severity="critical"))
    assert run(project, Agent({"calc.py": RIGHT})).status == "success"
    assert results(project) == ["success"]


def test_it_can_be_switched_off(project: Path) -> None:
    (project / ".loki").mkdir()
    (project / ".loki" / "config.toml").write_text("[drift]\ndetect = false\nsignals = false\n")
    outcome = run(project, Agent({**stray("screen"), "calc.py": RIGHT}))
    assert outcome.status == "success"
    assert results(project) == ["success"]


@pytest.mark.parametrize("scope", [["calc.py", "game/"], []])
def test_a_task_within_its_scope_hears_nothing(project: Path, scope: list[str]) -> None:
    outcome = run(project, Agent({**stray("screen"), "calc.py": RIGHT}), scope=scope)
    assert outcome.status == "success"
    assert results(project) == ["success"]

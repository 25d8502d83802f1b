"""A person is asked where agents take more in an hour than they may, and once for so much."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

import loki
from loki.action.agent_protocol import Briefing, Proposal
from loki.action.changes.change import Change
from loki.execution.assembly import human_reviews
from loki.jobs.inbox import human_review_answers
from loki.memory.call_log import Call, Calls
from loki.memory.task_record import Outcome
from loki.people.human_review import ReviewStatus
from loki.testing import ManualClock
from support.project import QUICK, RIGHT, make_project

AT = datetime(2026, 4, 4, 12, tzinfo=timezone.utc)


def nobody(_briefing: Briefing) -> Proposal:
    raise AssertionError("nobody is to be asked")


def mends(_briefing: Briefing) -> Proposal:
    return Proposal(Change.write({"calc.py": RIGHT}), "turned the sign")


def resume(workspace: loki.Workspace, agent: object) -> Outcome:
    with workspace.resume("t") as task:
        return task.run(agent)  # type: ignore[arg-type]


def spend(workspace: loki.Workspace, dollars: float) -> None:
    at = workspace.clock.now().isoformat()
    Calls(workspace.store).add(Call(at, "anthropic", "x", "ok", cost=dollars, task="other"))


@pytest.mark.parametrize("by", ["calls", "attempts"])
def test_what_an_hour_may_cost_is_asked_about(tmp_path: Path, by: str) -> None:
    clock = ManualClock(AT)
    workspace = loki.Workspace(make_project(tmp_path / "calc"), clock=clock)
    if by == "calls":
        calls = Calls(workspace.store)
        for minutes in (90, 50, 40):
            at = (AT - timedelta(minutes=minutes)).isoformat()
            calls.add(Call(at, "anthropic", "x", "ok", cost=60.0, task="other"))
    else:
        with workspace.task("another", checks=[QUICK], id="other", max_attempts=2) as task:
            task.run(lambda _: Proposal(Change.write({"b.txt": str(clock.now())}), "b", cost=55.0))
        clock.advance(120)
    with workspace.task("make add add", checks=[QUICK], id="t") as task:
        outcome = task.run(nobody)
    assert outcome.trigger == "human_review"
    (review,) = human_reviews(workspace).open()
    assert review.reason == "cost_limit"
    assert ("$120.00" if by == "calls" else "$110.00") in review.context
    clock.advance(3600)
    human_review_answers.answer(workspace, review.id, ReviewStatus.CANCELLED, "ann")
    assert resume(workspace, mends).status == "success"


@pytest.mark.parametrize("yes", [ReviewStatus.APPROVED, ReviewStatus.CLARIFIED])
def test_who_says_yes_to_what_was_spent_is_asked_again_after_as_much_more(
    tmp_path: Path, yes: ReviewStatus
) -> None:
    clock = ManualClock(AT)
    workspace = loki.Workspace(make_project(tmp_path / "calc"), clock=clock)
    spend(workspace, 160.0)
    with workspace.task("make add add", checks=[QUICK], id="t") as task:
        assert task.run(nobody).trigger == "human_review"
    (review,) = human_reviews(workspace).open()
    human_review_answers.answer(workspace, review.id, yes, "ann", "it is worth it")
    spend(workspace, 101.0)
    assert resume(workspace, nobody).trigger == "human_review"
    (review,) = human_reviews(workspace).open()
    assert "$261.00" in review.context
    human_review_answers.answer(workspace, review.id, yes, "ann", "it is worth it")
    spend(workspace, 99.0)
    assert resume(workspace, mends).status == "success"

"""A person is asked before work goes on: each condition, each answer, in a real project."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.action.agent_protocol import Briefing, Proposal
from loki.action.changes.change import Change
from loki.base.error import UsageError
from loki.execution.assembly import human_reviews
from loki.jobs.inbox import human_review_answers
from loki.jobs.inbox.inbox import requests
from loki.jobs.queue.queue import queue_of
from loki.jobs.queue.queued_task import QueuedTask
from loki.jobs.work.queued_task_spec import task_of
from loki.memory import task_record
from loki.memory.call_log import Call, Calls
from loki.memory.task_record import Outcome
from loki.people.human_review import HumanReview, ReviewStatus
from loki.testing import ManualClock
from support.project import QUICK, RIGHT, WRONG, make_project

AT = datetime(2026, 4, 4, 12, tzinfo=timezone.utc)
Answer = Callable[[Briefing], Proposal]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "calc")


def proposes(
    confidence: float | None = None,
    question: str = "",
    commands: tuple[str, ...] = (),
    text: str = RIGHT,
) -> Answer:
    change = Change.write({"calc.py": text}, commands)
    return lambda _: Proposal(change, "turned the sign", confidence, "unsure", question=question)


def nobody(_briefing: Briefing) -> Proposal:
    raise AssertionError("nobody is to be asked")


def work(workspace: loki.Workspace, agent: Any, **options: Any) -> Outcome:
    options = {"checks": [QUICK], "id": "t", **options}
    with workspace.task("make add add", **options) as task:
        return task.run(agent)


def resume(workspace: loki.Workspace, agent: Any, **options: Any) -> Outcome:
    with workspace.resume("t", **options) as task:
        return task.run(agent)


def asked(workspace: loki.Workspace) -> HumanReview:
    (one,) = human_reviews(workspace).open()
    return one


def configure(project: Path, text: str, clock: ManualClock | None = None) -> loki.Workspace:
    (project / ".loki").mkdir(exist_ok=True)
    (project / ".loki/config.toml").write_text(text)
    return loki.Workspace(project, clock=clock)


# --- an unsure agent ----------------------------------------------------------------------------------


def test_an_unsure_proposal_of_a_critical_task_waits_and_is_made_as_it_was(project: Path) -> None:
    workspace = loki.Workspace(project)
    outcome = work(workspace, proposes(0.3), complexity="high")
    review = asked(workspace)
    assert (outcome.status, outcome.trigger, outcome.exit_code) == ("escalated", "human_review", 3)
    assert outcome.review == review.id
    assert (project / "calc.py").read_text() == WRONG
    assert (review.reason, review.task_id, review.agent) == ("low_confidence", "t", "unsure")
    page = (project / ".loki" / str(outcome.page)).read_text()
    assert f"loki approve {review.id}" in page
    assert "+    return a + b" in page
    assert "The agent is 30% sure of its proposal" in page

    human_review_answers.answer(workspace, review.id, ReviewStatus.APPROVED, "ann")
    outcome = resume(workspace, nobody)
    assert outcome.status == "success"
    assert (project / "calc.py").read_text() == RIGHT
    assert human_reviews(workspace).open() == []


@pytest.mark.parametrize(
    ("confidence", "options"),
    [(0.4, {"complexity": "high"}), (None, {"complexity": "high"}), (0.1, {})],
)
def test_others_are_not_asked_about(
    project: Path, confidence: float | None, options: dict[str, Any]
) -> None:
    assert work(loki.Workspace(project), proposes(confidence), **options).status == "success"


def test_a_rejection_goes_back_to_the_agent_with_its_reason(project: Path) -> None:
    workspace = loki.Workspace(project)
    work(workspace, proposes(0.3), complexity="high")
    human_review_answers.answer(
        workspace, asked(workspace).id, ReviewStatus.REJECTED, "ann", "use a sum()"
    )
    seen: list[str] = []

    def agent(briefing: Briefing) -> Proposal:
        seen.append(briefing.text)
        return proposes(0.9)(briefing)

    assert resume(workspace, agent).status == "success"
    assert "Their reason: use a sum()" in seen[0]


def test_a_clarification_stands_in_every_later_briefing(project: Path) -> None:
    workspace = loki.Workspace(project)
    work(workspace, proposes(0.3), complexity="high")
    human_review_answers.answer(
        workspace, asked(workspace).id, ReviewStatus.CLARIFIED, "ann", "it is about addition"
    )
    seen: list[str] = []

    def agent(briefing: Briefing) -> Proposal:
        seen.append(briefing.text)
        return proposes(0.9, text=RIGHT if len(seen) > 1 else WRONG + "# no\n")(briefing)

    assert resume(workspace, agent).status == "success"
    assert len(seen) == 2
    assert all("it is about addition" in text for text in seen)


def test_the_same_task_does_not_go_on_before_the_answer(project: Path) -> None:
    workspace = loki.Workspace(project)
    first = work(workspace, proposes(0.3), complexity="high")
    outcome = work(workspace, nobody, complexity="high")
    assert (outcome.trigger, outcome.review, outcome.attempts) == ("human_review", first.review, 0)
    assert len(human_reviews(workspace).open()) == 1


def test_who_resumes_it_has_answered_it(project: Path) -> None:
    workspace = loki.Workspace(project)
    work(workspace, proposes(0.3), complexity="high")
    assert resume(workspace, proposes(0.9), context="it is about addition").status == "success"
    (decision,) = human_reviews(workspace).decisions("t")
    assert (decision.answer, decision.note) == (ReviewStatus.CLARIFIED, "it is about addition")


def test_given_up_is_undone_and_asked_about_no_more(project: Path) -> None:
    workspace = loki.Workspace(project)
    work(workspace, proposes(0.3), complexity="high")
    human_review_answers.answer(workspace, asked(workspace).id, ReviewStatus.ABORTED, "ann")
    record = task_record.load(workspace.store, "t")
    assert (record.status, record.trigger) == ("failed", "aborted")
    work(workspace, proposes(0.3), complexity="high")
    workspace.abort("t")
    assert human_reviews(workspace).open() == []


# --- what cannot be taken back --------------------------------------------------------------------------

ALLOWED = '[execute]\nallow_commands = ["git *", "make *"]\n'
PUBLISH = ("make publish",)


def test_a_command_that_cannot_be_taken_back_waits_for_leave(project: Path) -> None:
    workspace = configure(project, ALLOWED)
    outcome = work(workspace, proposes(commands=PUBLISH))
    review = asked(workspace)
    assert (outcome.trigger, review.reason, review.severity) == (
        "human_review", "irreversible_operation", "critical",
    )  # fmt: skip
    assert "`make publish`: by its name it deploys or publishes" in review.context
    assert (project / "calc.py").read_text() == WRONG

    human_review_answers.answer(
        workspace, review.id, ReviewStatus.REJECTED, "ann", "not on a Friday"
    )
    seen: list[str] = []

    def stubborn(briefing: Briefing) -> Proposal:
        seen.append(briefing.text)
        return proposes(commands=PUBLISH if len(seen) == 1 else (), text=RIGHT + "\n" * len(seen))(
            briefing
        )

    assert resume(workspace, stubborn).status == "success"
    assert "ann rejected it: not on a Friday" in seen[1]
    assert human_reviews(workspace).open() == []


def test_what_was_approved_runs_word_by_word_and_is_not_asked_again(project: Path) -> None:
    (project / "Makefile").write_text("deploy:\n\techo deployed > deployed.txt\n")
    workspace = configure(project, ALLOWED)
    work(workspace, proposes(commands=("make deploy",)))
    assert not (project / "deployed.txt").exists()
    human_review_answers.answer(workspace, asked(workspace).id, ReviewStatus.APPROVED, "ann")
    assert resume(workspace, nobody).status == "success"
    assert (project / "deployed.txt").exists()


def test_a_command_that_is_not_allowed_is_asked_for_once(project: Path) -> None:
    workspace = loki.Workspace(project)
    work(workspace, proposes(commands=("make deploy",)), max_attempts=1)
    assert human_reviews(workspace).open() == []


def test_a_check_that_cannot_be_taken_back_does_not_run_before_leave(project: Path) -> None:
    (project / "Makefile").write_text("deploy:\n\techo deployed > deployed.txt\n")
    workspace = loki.Workspace(project)
    checks = [QUICK, "make deploy"]
    outcome = work(workspace, nobody, checks=checks)
    assert (outcome.trigger, outcome.attempts) == ("human_review", 0)
    assert not (project / "deployed.txt").exists()
    human_review_answers.answer(workspace, asked(workspace).id, ReviewStatus.REJECTED, "ann", "no")
    assert resume(workspace, nobody).trigger == "human_review"
    assert not (project / "deployed.txt").exists()
    human_review_answers.answer(workspace, asked(workspace).id, ReviewStatus.APPROVED, "ann")
    assert resume(workspace, proposes()).status == "success"
    assert (project / "deployed.txt").exists()


# --- security -------------------------------------------------------------------------------------------


def test_the_change_of_a_security_task_is_looked_at_before_it_counts(project: Path) -> None:
    workspace = loki.Workspace(project)
    outcome = work(workspace, proposes(), kind="security")
    review = asked(workspace)
    assert (outcome.status, outcome.trigger) == ("escalated", "approval")
    assert review.reason == "security_decision"
    with pytest.raises(UsageError, match="asks whether the work counts as done"):
        human_review_answers.answer(workspace, review.id, ReviewStatus.CLARIFIED, "ann", "hm")
    human_review_answers.answer(workspace, review.id, ReviewStatus.APPROVED, "ann")
    assert resume(workspace, nobody).status == "success"


def test_nobody_is_asked_twice(project: Path) -> None:
    workspace = loki.Workspace(project)
    outcome = work(workspace, proposes(), kind="security", checks=[QUICK, "approval: it is safe"])
    assert outcome.awaiting == ("it is safe",)
    workspace.approve("t", "it is safe", by="ann")
    assert resume(workspace, nobody).status == "success"
    (decision,) = human_reviews(workspace).decisions("t")
    assert decision.answer is ReviewStatus.APPROVED
    assert human_reviews(workspace).open() == []


def test_a_rejected_one_is_worked_on_again(project: Path) -> None:
    workspace = loki.Workspace(project)
    work(workspace, proposes(), kind="security")
    human_review_answers.answer(
        workspace, asked(workspace).id, ReviewStatus.REJECTED, "ann", "log nothing"
    )
    again = work_text = proposes(text=RIGHT + "# safer\n")
    del work_text
    assert resume(workspace, again).trigger == "approval"
    assert "safer" in (project / "calc.py").read_text()
    assert asked(workspace).reason == "security_decision"


# --- runs that fail, questions, money -------------------------------------------------------------------


def test_three_failed_runs_in_a_row_and_a_person_is_asked(project: Path) -> None:
    workspace = loki.Workspace(project)
    count = 0

    def wrong(briefing: Briefing) -> Proposal:
        nonlocal count
        count += 1
        return proposes(text=f"{WRONG}# {count}\n")(briefing)

    for _ in range(2):
        assert work(workspace, wrong, max_attempts=1).status == "failed"
        assert human_reviews(workspace).open() == []
    assert work(workspace, wrong, max_attempts=1).status == "failed"
    review = asked(workspace)
    assert review.reason == "failed_runs"
    assert "3 runs of this task in a row have failed" in review.context
    assert work(workspace, nobody).trigger == "human_review"
    human_review_answers.answer(workspace, review.id, ReviewStatus.APPROVED, "ann")
    assert work(workspace, wrong, max_attempts=1).status == "failed"
    assert human_reviews(workspace).open() == []


def test_an_agent_asks_and_is_answered(project: Path) -> None:
    workspace = loki.Workspace(project)
    outcome = work(workspace, proposes(question="Is it a sum or a difference?"))
    review = asked(workspace)
    assert (outcome.trigger, review.reason) == ("human_review", "blocking_ambiguity")
    assert "Is it a sum or a difference?" in review.context
    assert (project / "calc.py").read_text() == WRONG
    human_review_answers.answer(workspace, review.id, ReviewStatus.CLARIFIED, "ann", "a sum")
    assert resume(workspace, proposes()).status == "success"


def test_what_another_program_asks_holds_the_task(project: Path) -> None:
    workspace = loki.Workspace(project)
    signals = project / ".loki/signals"
    signals.mkdir(parents=True)
    theirs = {
        "reason": "security_decision",
        "task_id": "t",
        "context": "Which key?",
        "blocking": True,
    }
    (signals / "HUMAN_REVIEW_NEEDED").write_text(json.dumps(theirs))
    outcome = work(workspace, nobody)
    # About security, but of no work of ours that waits: it is about going on.
    assert outcome.trigger == "human_review"
    human_review_answers.answer(
        workspace, asked(workspace).id, ReviewStatus.CLARIFIED, "ann", "the test key"
    )
    assert resume(workspace, proposes()).status == "success"


def test_every_rule_has_a_switch(project: Path) -> None:
    off = "low_confidence = false\nsecurity = false\nirreversible = false\nfailed_runs = 0\n"
    off += "ambiguity = false\ncost_per_hour = 0\n"
    workspace = configure(project, f"[review]\n{off}{ALLOWED}")
    (project / "Makefile").write_text("deploy:\n\techo deployed > deployed.txt\n")
    Calls(workspace.store).add(Call(AT.isoformat(), "anthropic", "x", "ok", cost=900.0))
    agent = proposes(0.1, question="May I?", commands=("make deploy",))
    assert work(workspace, agent, kind="security", complexity="high").status == "success"
    assert human_reviews(workspace).open() == []


# --- time -----------------------------------------------------------------------------------------------


def test_what_nobody_answers_in_a_day_is_a_dead_letter(project: Path) -> None:
    told = project / "told.jsonl"
    clock = ManualClock(AT)
    workspace = configure(project, f"[notify]\ncommand = 'tee -a {told}'\n", clock)
    work(workspace, proposes(0.3), complexity="high")
    review = asked(workspace)
    clock.advance(24 * 3600 - 1)
    assert human_review_answers.finish_reviews(workspace) == []
    clock.advance(1)
    (decision,) = human_review_answers.finish_reviews(workspace)
    assert decision.answer is ReviewStatus.EXPIRED
    assert human_review_answers.finish_reviews(workspace) == []
    outcome = task_record.load(workspace.store, "t").outcome
    assert outcome is not None
    assert (outcome.status, outcome.trigger) == ("failed", "human_review_expired")
    assert f"nobody answered {review.id} within 24 h" in outcome.reason
    assert (project / ".loki/tasks/t/dead-letter-t.md").exists()
    (letter,) = queue_of(workspace).tasks("dead-letter")
    assert (letter.id, letter.checks) == ("t", (f"command: {QUICK}",))
    assert [(one.kind, one.id) for one in requests(workspace)] == [("dead_letter", "t")]
    kinds = [
        json.loads(line)["kind"] for line in told.read_text().replace("}{", "}\n{").splitlines()
    ]
    assert kinds[0] == "human_review"
    assert kinds.count("human_review_expired") == 1


def test_an_answer_in_a_file_is_taken(project: Path) -> None:
    workspace = loki.Workspace(project)
    work(workspace, proposes(0.3), complexity="high")
    said = {"request_id": asked(workspace).id, "approved": True, "by": "ann"}
    (project / ".loki/signals/HUMAN_APPROVED").write_text(json.dumps(said))
    (decision,) = human_review_answers.finish_reviews(workspace)
    assert decision.by == "ann"
    assert resume(workspace, nobody).status == "success"


def test_a_worker_is_nobody_who_answers(project: Path) -> None:
    workspace = loki.Workspace(project)
    outcome = work(workspace, proposes(0.3), complexity="high")
    queued = QueuedTask("t", "make add add", checks=(QUICK,), complexity="high")
    with task_of(workspace, queued) as task:
        again = task.run(nobody)
    assert (again.trigger, again.review) == ("human_review", outcome.review)
    human_review_answers.answer(workspace, asked(workspace).id, ReviewStatus.APPROVED, "ann")
    with task_of(workspace, queued) as task:
        assert task.run(nobody).status == "success"

"""What no command can tell: reviewers judge it, people approve it; and checks that nobody named."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.action.agent_protocol import ReviewRequest, Verdict
from loki.action.checks.check import Check
from loki.base.error import AgentError
from loki.people.request import request_id
from loki.testing import ManualClock
from support import command
from support.project import QUICK, RIGHT, WRONG, make_project

APPROVAL = "approval: the name is good"
REVIEW = "review: the code is simple"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "calc")


class Critic:
    """A reviewer with prepared verdicts that keeps what it was asked."""

    name = "critic"

    def __init__(self, *verdicts: Any) -> None:
        self.verdicts = list(verdicts)
        self.asked: list[ReviewRequest] = []

    def review(self, request: ReviewRequest) -> Verdict:
        self.asked.append(request)
        verdict = self.verdicts.pop(0)
        if isinstance(verdict, Exception):
            raise verdict
        return verdict  # type: ignore[no-any-return]


def work(
    project: Path, *changes: str, checks: tuple[str, ...], **options: Any
) -> tuple[loki.Outcome, list[str]]:
    told: list[str] = []

    def agent(briefing: loki.Briefing) -> dict[str, str]:
        told.append(str(briefing))
        return {"calc.py": changes[len(told) - 1]}

    workspace = loki.Workspace(project, clock=ManualClock())
    options = {"max_attempts": max(1, len(changes)), "id": "t", **options}
    with workspace.task("make add add", checks=checks, **options) as task:
        return task.run(agent), told


def nobody(briefing: loki.Briefing) -> dict[str, str]:
    raise AssertionError("nobody was to be asked")


# --- people -------------------------------------------------------------------------------------------


def test_a_person_approves_and_the_task_is_done(project: Path) -> None:
    outcome, _ = work(project, RIGHT, checks=(QUICK, APPROVAL))
    assert (outcome.status, outcome.trigger, outcome.exit_code) == ("escalated", "approval", 3)
    assert outcome.awaiting == ("the name is good",)
    page = (project / ".loki" / str(outcome.page)).read_text()
    assert f"loki approve {request_id('approval', 't', 'the name is good')}" in page
    assert "+    return a + b" in page

    workspace = loki.Workspace(project)
    workspace.approve("t", "the name is good", by="ann", note="fine")
    with workspace.resume("t") as task:
        outcome = task.run(nobody)
    assert outcome.status == "success"
    (kept,) = (project / ".loki/tasks/t/approvals.jsonl").read_text().splitlines()
    assert (json.loads(kept)["by"], json.loads(kept)["approved"]) == ("ann", True)


def test_an_approval_of_other_content_is_void(project: Path) -> None:
    work(project, RIGHT, checks=(QUICK, APPROVAL))
    workspace = loki.Workspace(project)
    workspace.approve("t", "the name is good")
    (project / "calc.py").write_text(RIGHT + "# and more\n")
    with workspace.resume("t") as task:
        outcome = task.run(nobody)
    assert (outcome.status, outcome.trigger) == ("escalated", "approval")


def test_what_is_rejected_goes_back_to_the_agent(project: Path) -> None:
    work(project, RIGHT, checks=(QUICK, APPROVAL))
    workspace = loki.Workspace(project)
    workspace.approve("t", "the name is good", approved=False, note="call it plus")
    told = []

    def agent(briefing: loki.Briefing) -> dict[str, str]:
        told.append(str(briefing))
        return {"calc.py": RIGHT + "plus = add\n"}

    with workspace.resume("t") as task:
        outcome = task.run(agent)
    assert "call it plus" in told[0]
    assert (outcome.status, outcome.trigger) == ("escalated", "approval")


def test_running_it_again_asks_again_for_the_approval_alone(project: Path) -> None:
    work(project, RIGHT, checks=(QUICK, APPROVAL))
    outcome, told = work(project, checks=(QUICK, APPROVAL))
    assert (outcome.trigger, told) == ("approval", [])


def test_only_what_is_waited_for_can_be_approved(project: Path) -> None:
    work(project, RIGHT, checks=(QUICK, APPROVAL))
    with pytest.raises(loki.UsageError, match="it waits for: 'the name is good'"):
        loki.Workspace(project).approve("t", "the nam is good")
    work(project, RIGHT, checks=(QUICK,), id="u")
    with pytest.raises(loki.UsageError, match="waits for none"):
        loki.Workspace(project).approve("u", "x")


def test_approval_at_the_command_line(project: Path) -> None:
    agent = "sh -c \"sed -i 's/a - b/a + b/' calc.py\""
    run = ("run", "--task", "add", "--check", QUICK, "--check", APPROVAL)
    first = command.loki(*run, "--agent-command", agent, cwd=project)
    assert first.code == 3, first.err
    assert "approve" in first.out
    done = command.loki("resume", "add", "--approve", "the name is good", cwd=project)
    assert done.code == 0, done.err


# --- reviewers ----------------------------------------------------------------------------------------


def test_a_reviewer_rejects_and_approves(project: Path) -> None:
    critic = Critic(Verdict(False, "too clever"), Verdict(True, "plain"))
    clever = "add = lambda a, b: a + b\n"
    outcome, told = work(project, clever, RIGHT, checks=(QUICK, REVIEW), reviewer=critic)
    assert outcome.status == "success"
    assert "rejected by critic: too clever" in told[1]
    first = critic.asked[0]
    assert first.criterion == Check.of(REVIEW)
    assert "+add = lambda a, b: a + b" in first.diff
    assert [result.passed for result in first.results] == [True]


def test_a_reviewer_is_not_asked_for_nothing(project: Path) -> None:
    """Not before there is work, and not about work that fails its checks."""
    critic = Critic(Verdict(True))
    outcome, _ = work(project, WRONG + "# x\n", RIGHT, checks=(QUICK, REVIEW), reviewer=critic)
    assert outcome.status == "success"
    assert len(critic.asked) == 1


@pytest.mark.parametrize("answer", [None, "APPROVED", Verdict("yes"), Verdict(1)])  # type: ignore[arg-type]
def test_anything_but_a_clear_yes_approves_nothing(project: Path, answer: Any) -> None:
    outcome, _ = work(project, RIGHT, checks=(QUICK, REVIEW), reviewer=Critic(answer))
    assert outcome.status == "failed"


def test_a_reviewer_that_cannot_be_reached_is_infrastructure(project: Path) -> None:
    """The same is reviewed again after a wait; no attempt is used up by it."""
    critic = Critic(AgentError("no network"), Verdict(True))
    outcome, told = work(project, RIGHT, checks=(QUICK, REVIEW), reviewer=critic)
    assert outcome.status == "success"
    assert len(told) == 1
    assert len(critic.asked) == 2


def test_an_async_reviewer(project: Path) -> None:
    class Slow:
        name = "slow"

        async def review(self, request: ReviewRequest) -> Verdict:
            return Verdict(bool(request.diff), "fine")

    outcome, _ = work(project, RIGHT, checks=(QUICK, REVIEW), reviewer=Slow())
    assert outcome.status == "success"


def test_a_reviewer_with_a_bug_does_not_end_the_run(project: Path) -> None:
    critic = Critic(ZeroDivisionError("by zero"), Verdict(True))
    outcome, told = work(project, RIGHT, checks=(QUICK, REVIEW), reviewer=critic)
    assert outcome.status == "success"
    assert (len(told), len(critic.asked)) == (1, 2)
    first, _ = loki.Workspace(project).history("t").attempts()
    assert first.infrastructure
    assert "ZeroDivisionError: by zero" in (first.error or "")


def test_an_async_reviewer_is_ended_with_the_run(project: Path) -> None:
    ended = threading.Event()

    class Stuck:
        name = "stuck"

        async def review(self, _request: ReviewRequest) -> Verdict:
            os.kill(os.getpid(), signal.SIGINT)
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            return Verdict(True)

    outcome, _ = work(project, RIGHT, checks=(QUICK, REVIEW), reviewer=Stuck())
    assert outcome.status == "interrupted"
    assert ended.is_set()


# --- checks that nobody named -------------------------------------------------------------------------


def test_the_projects_own_test_command_is_found(
    project: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    with caplog.at_level(logging.INFO, "loki"):
        outcome = loki.run("make add add", agent=lambda _: {"calc.py": RIGHT}, path=str(project))
    assert outcome.status == "success"
    assert "test check: pytest (pyproject.toml" in caplog.text
    assert "criterion 'error_resolved' is not checked" in caplog.text


def test_a_task_that_nothing_can_check_is_refused(tmp_path: Path) -> None:
    with pytest.raises(loki.UsageError, match="nothing can tell when the task is done"):
        loki.run("wish", agent=lambda _: {}, path=str(tmp_path))


def test_a_person_is_the_check_of_security(tmp_path: Path) -> None:
    outcome = loki.run(
        "close the hole", agent=lambda _: {"a.txt": "closed"}, path=str(tmp_path), kind="security"
    )
    assert outcome.trigger == "approval"
    assert outcome.awaiting == ("vulnerability_resolved", "security_tests_pass", "security_review")


def test_a_reviewer_is_the_check_of_what_has_no_command(tmp_path: Path) -> None:
    critic = Critic(*[Verdict(True)] * 9)
    outcome = loki.run(
        "write it",
        agent=lambda _: {"a.txt": "x"},
        path=str(tmp_path),
        kind="feature",
        reviewer=critic,
    )
    assert outcome.status == "success"
    asked = [request.criterion.name for request in critic.asked]
    assert asked == ["feature_works", "tests_pass", "lint_clean", "no_regressions"]

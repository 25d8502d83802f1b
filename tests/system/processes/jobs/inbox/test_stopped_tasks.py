"""What goes on only when a person says so is shown, also where nothing is asked about it any more."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import loki
from loki.action.agent_protocol import Briefing, Proposal
from loki.action.changes.change import Change
from loki.action.pipelines import pipeline_record
from loki.cli.app import app
from loki.jobs.inbox import human_review_answers
from loki.jobs.inbox.inbox import requests
from loki.jobs.inbox.project_status import status
from loki.jobs.queue.queue import queue_of
from loki.jobs.queue.queued_task import QueuedTask
from loki.people.human_review import ReviewStatus
from loki.people.request import Request
from support.forked import exit_code, fork
from support.project import QUICK, RIGHT, make_project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = make_project(tmp_path / "calc")
    monkeypatch.chdir(root)
    return root


def run(*arguments: str) -> str:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False).output


def work(workspace: loki.Workspace, agent: Any, **more: Any) -> None:
    with workspace.task("make add add", checks=[QUICK], id="t", **more) as entered:
        entered.run(agent)


def mends(_briefing: Briefing) -> Proposal:
    return Proposal(Change.write({"calc.py": RIGHT}), "turned the sign", 0.1)


def the_one(workspace: loki.Workspace) -> Request:
    (one,) = requests(workspace)
    return one


def test_a_task_whose_question_is_answered_waits_to_be_gone_on_with(project: Path) -> None:
    workspace = loki.Workspace(project)
    work(workspace, mends, complexity="high")
    asked = the_one(workspace)
    assert asked.kind == "human_review"
    human_review_answers.answer(workspace, asked.id, ReviewStatus.APPROVED, "ann")
    one = the_one(workspace)
    assert (one.kind, one.task_id) == ("stopped", "t")
    shown = run("status")
    assert "What was asked about it is answered; it goes on when you say so." in shown
    assert [answer.command for answer in one.options] == [
        "loki approve t",
        'loki approve t --context "…"',
        'loki reject t --note "why"',
    ]
    with workspace.resume("t") as task:
        assert task.run(mends).status == "success"
    assert requests(workspace) == []


def test_severe_drift_that_a_person_approved_is_not_asked_about_again(project: Path) -> None:
    (project / "LICENSE").write_text("MIT\n")
    (project / "strays.sh").write_text("sed -i s/a.-.b/a+b/ calc.py\necho GPL > LICENSE\n")
    agent = f"sh {project / 'strays.sh'}"
    ended = run("run", "--task", "mend calc.add", "--check", QUICK, "--agent-command", agent)
    workspace = loki.Workspace(project)
    asked = the_one(workspace)
    assert (asked.kind, asked.target) == ("human_review", "")
    assert f"1. Approve, where the task needs it: loki approve {asked.task_id} --resume" in ended
    assert run("approve", asked.task_id).endswith(f"Next: loki resume {asked.task_id}\n")
    assert the_one(workspace).kind == "stopped"
    assert "success" in run("resume", asked.task_id)
    assert requests(workspace) == []


def test_one_that_was_interrupted_waits_and_one_that_a_worker_takes_up_does_not(
    project: Path,
) -> None:
    workspace = loki.Workspace(project)

    def interrupted(_briefing: Briefing) -> Proposal:
        raise KeyboardInterrupt

    work(workspace, interrupted)
    assert the_one(workspace).question == "It was interrupted; it goes on when you say so."
    queue_of(workspace).submit(QueuedTask("t", "make add add"))
    assert requests(workspace) == []


def test_one_that_was_killed_waits_but_not_while_it_is_at_work(project: Path) -> None:
    workspace, seen = loki.Workspace(project), []

    def looks(_briefing: Briefing) -> Proposal:
        found = status(loki.Workspace(project))
        seen.append((found.waiting, [one["id"] for one in found.begun]))
        return mends(_briefing)

    child = fork(lambda: work(workspace, lambda _: os.kill(os.getpid(), signal.SIGKILL)))
    assert exit_code(child) == -signal.SIGKILL
    one = the_one(workspace)
    assert (one.kind, one.id) == ("stopped", "t")
    assert [begun["id"] for begun in status(workspace).begun] == []
    with workspace.resume("t") as task:
        assert task.run(looks).status == "success"
    assert seen == [([], ["t"])]
    assert requests(workspace) == []


def test_a_run_of_a_pipeline_that_is_paused_waits(project: Path) -> None:
    workspace = loki.Workspace(project)
    data = {"run": "ship-1", "pipeline": "ship", "at": "deploy", "phase": "paused"}
    pipeline_record.save(workspace.store, {**data, "reason": "api/x is open"})
    one = the_one(workspace)
    assert (one.kind, one.question) == (
        "stopped",
        "It is paused: api/x is open; it goes on when you say so.",
    )
    assert one.options[0].command == "loki approve ship-1"


def test_one_that_spent_its_budget_waits(project: Path) -> None:
    workspace = loki.Workspace(project)
    wrong = Proposal(Change.write({"calc.py": "# wrong\n"}), "mended", tokens=90)
    work(workspace, lambda _: wrong, max_tokens=50)
    one = the_one(workspace)
    assert one.kind == "stopped"
    assert one.question.startswith("Its budget is spent: ")
    assert "give up" in {answer.name for answer in one.options}
    run("resume", "t", "--abort")
    assert requests(workspace) == []

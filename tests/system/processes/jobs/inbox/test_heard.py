"""What a person answers is heard: by a task that was never begun, and wherever else it stands."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import loki
from loki.cli.app import app
from loki.execution import task_session
from loki.execution.assembly import human_reviews
from loki.jobs.inbox import human_review_answers
from loki.jobs.queue.queue import queue_of
from loki.jobs.queue.queued_task import QueuedTask
from loki.people.human_review import ReviewStatus
from loki.people.request import Decision
from support.crew import make_agent, submit, work

NOTE = "not with production credentials"
QUESTION = "May it use production credentials?"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


def asks(project: Path, task: str, **more: object) -> None:
    """Another program's request, as the documents write it."""
    signals = project / ".loki/signals"
    signals.mkdir(parents=True, exist_ok=True)
    said = {"reason": "security_decision", "task_id": task, "context": QUESTION, **more}
    (signals / "HUMAN_REVIEW_NEEDED").write_text(json.dumps(said))
    human_review_answers.finish_reviews(loki.Workspace(project))


def the_request(project: Path) -> str:
    (one,) = human_reviews(loki.Workspace(project)).open()
    return one.id


def run(project: Path, *words: str) -> str:
    done = CliRunner().invoke(app, [*words, "--project", str(project)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def briefing(project: Path, tmp_path: Path) -> str:
    """Work the queue off in a process; what the agent was told."""
    told = tmp_path / "told.txt"
    program = tmp_path / "agent.sh"
    program.write_text(f"#!/bin/sh\ncat >> {told}\necho x > a.txt\n")
    program.chmod(0o755)
    work(project, "--agent-command", str(program))
    return told.read_text() if told.exists() else ""


@pytest.mark.parametrize(
    ("reason", "context", "asked"),
    [
        ("May I use the key?", "the staging one", "May I use the key? the staging one"),
        ("it needs a key", "Which one?", "it needs a key: Which one?"),
        ("ambiguity", "Which one?", "Which one?"),
        ("May I use the key?", "", "May I use the key?"),
    ],
)
def test_what_is_asked_is_told_whole(
    project: Path, tmp_path: Path, reason: str, context: str, asked: str
) -> None:
    """Programs ask in the reason, in the context, or in both."""
    submit(project, ["a"])
    asks(project, "a", reason=reason, context=context)
    assert f"asked   {asked}\n" in run(project, "status")
    run(project, "reject", "a", "not with that one")
    assert f"said no: {asked}" in briefing(project, tmp_path)


@pytest.mark.parametrize("how", ["reject", "clarify", "approve", "file"])
def test_an_answer_reaches_a_task_that_was_never_worked_on(
    project: Path, tmp_path: Path, how: str
) -> None:
    queue = submit(project, ["a"])
    asks(project, "a")
    blocked = queue.find("a")
    assert blocked is not None
    assert blocked.blocked is not None
    if how == "file":
        said = {"request_id": the_request(project), "by": "ann", "approved": False, "note": NOTE}
        (project / ".loki/signals/HUMAN_APPROVED").write_text(json.dumps(said))
        run(project, "status")
    elif how == "reject":
        run(project, "reject", "a", "--note", NOTE)
    else:
        run(project, "approve", "a", "--context" if how == "clarify" else "--note", NOTE)
    told = briefing(project, tmp_path)
    assert NOTE in told
    assert (QUESTION in told) == (how in {"reject", "file"})
    assert queue.where("a") == "completed"


@pytest.mark.parametrize("in_a_file", [False, True])
def test_a_plain_no_leaves_the_task_blocked(
    project: Path, tmp_path: Path, *, in_a_file: bool
) -> None:
    queue = submit(project, ["a"])
    asks(project, "a")
    if in_a_file:
        said = {"request_id": the_request(project), "by": "ann", "approved": False}
        (project / ".loki/signals/HUMAN_APPROVED").write_text(json.dumps(said))
        run(project, "status")
    else:
        assert "a stays blocked" in run(project, "reject", "a")
    assert briefing(project, tmp_path) == ""
    task = queue.find("a")
    assert task is not None
    assert task.blocked is not None
    assert "said no" in task.blocked.reason
    assert "said no" in run(project, "status")
    queue.unblock("a")
    assert f"said no: {QUESTION}" in briefing(project, tmp_path)


def test_an_answer_is_heard_in_the_run_that_was_under_way_and_in_every_later_one(
    project: Path,
) -> None:
    workspace = loki.Workspace(project)
    here, seen = human_reviews(workspace), []

    def agent(told: loki.Briefing) -> dict[str, str]:
        seen.append(told.text)
        if len(seen) == 1:
            asked = here.ask(reason="scope", task_id="t", context=QUESTION, blocking=False)
            here.decide(asked.id, by="ann", approved=False, note=NOTE)
        return {"a.txt": str(len(seen))}

    for _ in range(2):
        with workspace.task("t", id="t", checks=["false"], max_attempts=2) as task:
            assert task.run(agent).status == "failed"
    assert [NOTE in text for text in seen] == [False, True, True, True]
    with workspace.resume("t", context="a.txt is wanted, too") as task:
        task.run(agent)
    assert seen[-1].count(NOTE) == 1


def test_a_task_with_two_questions_waits_for_both(project: Path) -> None:
    workspace = loki.Workspace(project)
    queue = submit(project, ["a"])
    here = human_reviews(workspace)
    one, two = (here.ask(reason=name, task_id="a", context=QUESTION) for name in ("one", "two"))
    human_review_answers.finish_reviews(workspace)
    human_review_answers.answer(workspace, one.id, ReviewStatus.APPROVED, "ann")
    task = queue.find("a")
    assert task is not None
    assert task.blocked is not None
    human_review_answers.answer(workspace, two.id, ReviewStatus.APPROVED, "ann")
    assert [task.blocked for task in queue_of(workspace).tasks()] == [None]


def test_what_is_asked_while_the_checks_run_keeps_the_work_from_landing(
    project: Path, tmp_path: Path
) -> None:
    signal = project / ".loki/signals/HUMAN_REVIEW_NEEDED"
    asks_late = tmp_path / "check.sh"
    said = json.dumps({"reason": "scope", "task_id": "a", "context": QUESTION})
    asks_late.write_text(
        f"#!/bin/sh\ntest -f a.txt || exit 1\nmkdir -p {signal.parent}\necho '{said}' > {signal}\n"
    )
    asks_late.chmod(0o755)
    workspace = loki.Workspace(project)
    queue = queue_of(workspace)
    task = QueuedTask("a", "make a", kind="refactor", complexity="low", checks=(str(asks_late),))
    queue.submit(task)
    agent, _log = make_agent(tmp_path)
    work(project, "--agent-command", agent)
    assert not (project / "a.txt").exists()
    found = queue.find("a")
    assert found is not None
    assert found.blocked is not None


def test_two_requests_in_one_file_are_numbered_and_each_answer_reaches_its_asker(
    project: Path, tmp_path: Path
) -> None:
    """Another program asks, is seen, and asks anew over it; a third time it appends."""
    queue = submit(project, ["a", "b", "c"])
    asks(project, "a")
    asks(project, "b", context="May it drop the table?")
    with (project / ".loki/signals/HUMAN_REVIEW_NEEDED").open("a") as file:
        json.dump({"reason": "cost_limit", "task_id": "c", "context": "May it cost more?"}, file)
    said = run(project, "status")
    for number, question in enumerate((QUESTION, "May it drop the table?", "May it cost more?"), 1):
        assert re.search(rf"^ *{number}\b.*?{re.escape(question)}", said, re.DOTALL | re.MULTILINE)
    run(project, "approve", "1", "the old key only")
    run(project, "reject", "2", "ask the owner first")
    run(project, "reject", "3")
    assert [[one.answer.value for one in decisions(project, task)] for task in "abc"] == [
        ["clarified"],
        ["rejected"],
        ["rejected"],
    ]
    told = {task: task_session.human_answers(loki.Workspace(project), task) for task in "ab"}
    assert "the old key only" in told["a"][0]
    assert "ask the owner first" in told["b"][0]
    blocked = {task.id for task in queue.tasks() if task.blocked}
    assert blocked == {"c"}, "a plain no"
    assert not list((project / ".loki/signals").iterdir())


def decisions(project: Path, task: str) -> list[Decision]:
    return human_reviews(loki.Workspace(project)).decisions(task)

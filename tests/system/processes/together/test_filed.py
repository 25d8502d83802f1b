"""Tasks that loki or another program files without checks: each has a way through: with processes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

import loki
from loki.cli.app import app
from loki.jobs.queue.queue import Queue, queue_of
from loki.jobs.recurring.recurring_task import AgentPart
from loki.jobs.recurring.recurring_tasks import RecurringTasks
from loki.jobs.triage.triage_verdict import FILE_FIX, Verdict
from loki.jobs.triage.triages import act
from support.crew import where, work
from support.triage import RECORD, failing

MENDS = "#!/bin/sh\ncat >> {told}\necho x > a.txt\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".loki/queue").mkdir(parents=True)
    return root


@pytest.fixture
def agent(tmp_path: Path) -> str:
    program = tmp_path / "agent.sh"
    program.write_text(MENDS.format(told=tmp_path / "told"))
    program.chmod(0o755)
    return str(program)


def run(project: Path, *words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, [*words, "--project", str(project)], catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.output


def queue_with(project: Path, *tasks: Mapping[str, object]) -> Queue:
    """Tasks as another program writes them."""
    (project / ".loki/queue/pending.json").write_text(json.dumps({"tasks": list(tasks)}))
    return queue_of(loki.Workspace(project))


@pytest.mark.parametrize("by", ["command", "agent"])
def test_a_fix_is_done_when_what_failed_passes(project: Path, agent: str, by: str) -> None:
    """Also in a project whose own tests pass, or that has none."""
    (project / "tests").mkdir()
    (project / "tests/test_a.py").write_text("def test_a():\n    pass\n")
    workspace = loki.Workspace(project)
    tasks = RecurringTasks(workspace.store)
    failed = ("test", "-f", "a.txt")
    if by == "command":
        tasks.add(failing(command=failed))
    else:
        part = AgentPart(task="make a.txt", checks=("test -f a.txt",), agent="claude")
        tasks.add(failing(command=(), agent=part))
    done = act(workspace, tasks, RECORD, Verdict(FILE_FIX, "a.txt is gone"), lambda *_: None)
    (fix,) = queue_of(workspace).tasks("pending")
    assert (done.fix, fix.checks) == (fix.id, ("test -f a.txt",))
    work(project, "--agent-command", agent)
    assert (project / "a.txt").exists()
    assert where(queue_of(workspace)) == {fix.id: "completed"}


def test_a_task_in_the_documents_form_is_worked_on_and_a_person_says_when_it_is_done(
    project: Path, agent: str
) -> None:
    """`id`, `type`, `payload`, and no check, in a project without a command that could be one."""
    form = {"id": "task-7", "type": "eng-backend", "payload": {"action": "write a.txt"}}
    queue = queue_with(project, form)
    work(project, "--agent-command", agent)
    assert not (project / "a.txt").exists()
    assert "Does this hold: write a.txt?" in run(project, "status")
    assert "Next: loki work" in run(project, "approve", "task-7")
    work(project, "--agent-command", agent)
    assert (project / "a.txt").exists()
    assert where(queue) == {"task-7": "completed"}


@pytest.mark.parametrize(
    "form", [{"type": "eng-backend", "payload": {"action": "write a.txt"}}, {"title": "x"}]
)
def test_a_task_that_names_no_kind_wants_a_change_and_no_proof_of_a_feature(
    project: Path, agent: str, form: dict[str, object]
) -> None:
    queue = queue_with(project, {"id": "a", "checks": ["true"], **form})
    work(project, "--agent-command", agent)
    assert (project / "a.txt").exists()
    assert where(queue) == {"a": "completed"}
    assert "Nothing waits for you" in run(project, "status")


def test_what_a_person_misses_is_told_and_done(project: Path, agent: str, tmp_path: Path) -> None:
    queue = queue_with(project, {"id": "task-7", "payload": {"action": "write a.txt"}})
    work(project, "--agent-command", agent)
    run(project, "reject", "task-7", "--note", "it wants a header")
    work(project, "--agent-command", agent)
    assert "it wants a header" in (tmp_path / "told").read_text()
    assert where(queue) == {"task-7": "pending"}  # asked again


def test_a_person_gives_any_queued_task_its_checks(project: Path, agent: str) -> None:
    queue = queue_with(
        project,
        {"id": "a", "payload": {"action": "write a.txt"}},
        {"id": "b", "title": "write b.txt", "checks": ["no-such-program"]},
        {"id": "c", "title": "write c.txt"},
    )
    queue.block("c", "the name is not decided")
    queue.dead_letter({"task_id": "d", "task_data": {"title": "write d.txt"}})
    work(project, "--agent-command", agent)
    blocked = queue.find("b")
    assert blocked is not None
    assert blocked.blocked is not None
    assert "cannot be worked on" in blocked.blocked.reason
    assert "now it waits for a worker" in run(project, "edit", "b", "--check", "test -f a.txt")
    assert "It is blocked: the name is" in run(project, "edit", "c", "--check", "test -f a.txt")
    run(project, "edit", "a", "--check", "test -f a.txt", "--kind", "refactor")
    run(project, "edit", "d", "--check", "test -f a.txt", "--max-attempts", "2")
    queue.requeue("d")
    for name in "ac":
        queue.unblock(name)
    for name in "abcd":
        task = queue.find(name)
        assert task is not None
        assert (task.checks, task.max_attempts) == (("test -f a.txt",), 2 if name == "d" else None)
    work(project, "--agent-command", agent)
    assert where(queue) == dict.fromkeys("abcd", "completed")
    assert "is in completed" in run(project, "edit", "a", "--check", "true", code=2)


def test_what_a_person_changed_holds_for_a_task_that_goes_on(project: Path, agent: str) -> None:
    """It had escalated: its record has the checks of before."""
    queue = queue_with(project, {"id": "a", "title": "write it", "checks": ["test -f b.txt"]})
    work(project, "--agent-command", agent)
    assert where(queue) == {"a": "pending"}
    run(project, "edit", "a", "--check", "test -f a.txt", "--task", "write a.txt")
    queue.unblock("a")
    work(project, "--agent-command", agent)
    assert where(queue) == {"a": "completed"}

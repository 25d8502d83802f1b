"""Everything that waits is in one place, and each command that is printed there works as printed."""

from __future__ import annotations

import gc
import json
import shlex
import shutil
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import loki
from loki.action.agent_protocol import Briefing, Proposal
from loki.action.changes.change import Change
from loki.cli.app import app
from loki.execution.assembly import human_reviews
from loki.jobs.dead_letters.dead_letters import DeadLetters
from loki.jobs.inbox.inbox import requests
from loki.jobs.queue.queue import queue_of
from loki.jobs.queue.queued_task import QueuedTask
from loki.jobs.recurring.recurring_task import CyclePart, Hold, RecurringTask
from loki.jobs.recurring.recurring_tasks import RecurringTasks
from loki.memory.learning.candidate import Candidate, Candidates, Source
from loki.people.request import Request
from loki.stores.file_store import FileStore
from support.dead_letters import KEY_ERROR, letter, places, raw, write_letters
from support.project import QUICK, RIGHT, make_project

AT = datetime(2026, 4, 4, 12, tzinfo=timezone.utc)

STUCK = f"{sys.executable} -S stuck.py"
SCRIPT = """\
import os, sys
if not os.path.exists("mended"):
    sys.exit("PermissionError: [Errno 13] Permission denied: '/srv/data'")
"""
CONFIG = """\
[agents.ops]
command = "sh mend.sh"
"""
PIPELINE = """\
version: 1
name: ship
stages:
  - {id: deploy, agent: ops, description: Make add add., checks: [CHECK], requires_approval: true}
"""


def run(*arguments: str) -> Result:
    """A command of loki's, in this process."""
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def task(workspace: loki.Workspace, id_: str, agent: Any, *checks: str, **more: Any) -> None:
    with workspace.task(f"make {id_} right", checks=checks or [QUICK], id=id_, **more) as entered:
        entered.run(agent)


def writes(
    text: str, *commands: str, confidence: float | None = None
) -> Callable[[Briefing], Proposal]:
    return lambda _: Proposal(Change.write({"calc.py": text}, commands), "mended", confidence)


def _review(workspace: loki.Workspace) -> None:
    task(workspace, "unsure", writes(RIGHT, confidence=0.1), complexity="high")


def _security(workspace: loki.Workspace) -> None:
    task(workspace, "secure", writes(RIGHT), kind="security")


def _approval(workspace: loki.Workspace) -> None:
    task(workspace, "named", writes(RIGHT), QUICK, "approval: the name is good")


def _command(workspace: loki.Workspace) -> None:
    task(workspace, "asks", writes(RIGHT, "true"), max_attempts=1)


def _escalation(workspace: loki.Workspace) -> None:
    (workspace.root / "stuck.py").write_text(SCRIPT)
    agent = "sed -i s/a.-.b/a+b/ calc.py"
    ran = run("run", "--task", "get unstuck", "--check", STUCK, "--agent-command", agent)
    assert ran.exit_code == 3


def _shared(workspace: loki.Workspace) -> None:
    letters = [letter(name) for name in "abc"]
    for one in letters:
        one["attempts"][0]["error_message"] = KEY_ERROR
    write_letters(workspace, letters)
    DeadLetters(workspace).review()


def _shared_with_stopped(workspace: loki.Workspace) -> None:
    """One cause for a dead letter and for two tasks that the loop stopped."""
    (workspace.root / "stuck.py").write_text(SCRIPT)
    agent = "sh -c 'echo \"# $$\" >> calc.py'"
    for title in ("get unstuck", "go on there"):
        ran = run("run", "--task", title, "--check", STUCK, "--agent-command", agent)
        assert ran.exit_code == 3
    made = letter("c")
    said = "PermissionError: [Errno 13] Permission denied: '/srv/data'"
    made["attempts"][0]["error_message"] = said
    write_letters(workspace, [made])
    DeadLetters(workspace).review()


def _foreign(workspace: loki.Workspace) -> None:
    data = {**letter("task-7")["task_data"], "title": "Rotate the signing key"}
    write_letters(workspace, [letter("task-7", task_data=data)])
    DeadLetters(workspace).review()


def _foreign_page(workspace: loki.Workspace) -> None:
    page = "## Escalation: Buy it\n\n**Task ID:** task-8\n\n### Awaiting\n\nDecide who pays.\n"
    (workspace.folder / "escalations").mkdir(parents=True)
    (workspace.folder / "escalations" / "theirs.md").write_text(page)


def _stage(workspace: loki.Workspace) -> None:
    (workspace.root / "ship.yml").write_text(PIPELINE.replace("CHECK", json.dumps(QUICK)))
    (workspace.root / ".loki").mkdir(exist_ok=True)
    (workspace.root / ".loki/config.toml").write_text(CONFIG)
    (workspace.root / "mend.sh").write_text("sed -i s/a.-.b/a+b/ calc.py\n")
    assert run("pipeline", "run", "ship.yml").exit_code == 3


def _candidate(workspace: loki.Workspace) -> None:
    rule = Candidate.rule("Never edit gen/ by hand.", [Source("t", "it came back")], "2026-04-04")
    Candidates(FileStore(workspace.folder)).propose(rule)


def _blocked(workspace: loki.Workspace) -> None:
    queue_of(workspace).submit(QueuedTask("later", "do it later"))
    queue_of(workspace).block("later", "the server is down")


def _stuck(workspace: loki.Workspace) -> None:
    queue_of(workspace).submit(QueuedTask("later", "do it later", dependencies=("nobody",)))


def _dead_letter(workspace: loki.Workspace) -> None:
    queue_of(workspace).submit(QueuedTask("gone", "do it at all"))
    entry = {"task_id": "gone", "recovery_strategy": "requires_human_review"}
    queue_of(workspace).dead_letter({**entry, "error_summary": "it failed 9 times"})


def _spent(workspace: loki.Workspace) -> None:
    task(workspace, "spent", writes("def add(a, b):\n    return a\n"), max_attempts=1)


def _recurring(workspace: loki.Workspace) -> None:
    held = Hold(since=AT, reason="it failed 3 times", status="failed")
    cycle = CyclePart.model_validate({"delay": "10m"})
    recurring = RecurringTask(id="nightly", schedule=cycle, command=("true",), stopped=held)
    RecurringTasks(FileStore(workspace.folder)).add(recurring)


def _breaker(workspace: loki.Workspace) -> None:
    workspace.breakers()["api/claude"].isolate()


MAKE: dict[str, Callable[[loki.Workspace], None]] = {
    "human_review": _review,
    "security": _security,
    "approval": _approval,
    "command": _command,
    "escalation": _escalation,
    "escalation of several": _shared,
    "escalation of several, some stopped": _shared_with_stopped,
    "escalation of another program's task": _foreign,
    "escalation of another program": _foreign_page,
    "stage": _stage,
    "candidate": _candidate,
    "blocked": _blocked,
    "stuck": _stuck,
    "dead_letter": _dead_letter,
    "dead_letter of a loop": _spent,
    "recurring": _recurring,
    "breaker": _breaker,
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = make_project(tmp_path / "calc")
    monkeypatch.chdir(root)
    return root


def the_one(project: Path) -> Request:
    (one,) = requests(loki.Workspace(project))
    return one


def copied(project: Path, to: Path) -> None:
    """A copy of a project whose queue nobody in this process has open any more: a file of its database
    goes away when whoever had it is collected."""
    gc.collect()
    shutil.copytree(project, to)


@pytest.mark.parametrize("made", MAKE)
def test_every_command_works_as_printed(
    made: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    MAKE[made](loki.Workspace(project))
    one = the_one(project)
    assert one.kind == ("human_review" if made == "security" else made.partition(" ")[0])
    shown = run("status")
    assert shown.exit_code == 0
    assert "1 thing waits for you:" in shown.output
    assert one.question.split("\n", maxsplit=1)[0][:40] in shown.output
    for number, answer in enumerate(one.options):
        assert _as_shown(answer.command) in shown.output
        copy = tmp_path / f"copy{number}"
        copied(project, copy)
        monkeypatch.chdir(copy)
        (copy / "mended").touch()
        words = shlex.split(answer.command)
        assert words[0] == "loki"
        done = run(*words[1:])
        assert done.exit_code in {0, 3, 4}, f"{answer.command}: {done.output}"
        left = [other.id for other in requests(loki.Workspace(copy))]
        looks = answer.name.startswith("look")
        assert (one.id in left) is looks, f"{answer.command} left {left}: {done.output}"


def _as_shown(command: str) -> str:
    """By the number, as a person types it."""
    words = shlex.split(command)
    if words[1] not in {"approve", "reject"}:
        return command
    return f"loki {words[1]} 1" + "".join(f' "{word}"' for word in words[4:])


@pytest.mark.parametrize("verb", ["approve", "reject"])
@pytest.mark.parametrize("made", MAKE)
def test_two_words_answer_everything(made: str, verb: str, project: Path) -> None:
    """`loki approve 1 "words"` and `loki reject 1 "why"`: it waits no longer, whatever it is."""
    MAKE[made](loki.Workspace(project))
    one = the_one(project)
    assert "1  " + one.id in run("status").output
    (project / "mended").touch()
    done = run(verb, "1", "the door is green")
    assert done.exit_code in {0, 3, 4}, done.output
    assert one.id not in [other.id for other in requests(loki.Workspace(project))], done.output
    late = run(verb, "1", "the door is green")
    assert late.exit_code == 2
    assert "waits no longer as it was shown" in late.output


@pytest.mark.parametrize("made", ["human_review", "command", "stage", "dead_letter", "recurring"])
def test_every_option_is_an_answer_by_its_number(
    made: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`loki answer 1 2`: the second option of what `loki inbox 1` shows."""
    MAKE[made](loki.Workspace(project))
    one = the_one(project)
    whole = run("inbox", "1").output if run("inbox").exit_code == 0 else ""
    for number, option in enumerate(one.options, 1):
        assert f"  {number}. {option.name}" in whole
        copy = tmp_path / f"copy{number}"
        copied(project, copy)
        monkeypatch.chdir(copy)
        (copy / "mended").touch()
        done = run("answer", "1", str(number), "the door is green")
        if not option.verb:
            assert (done.exit_code, option.command in done.output) == (2, True)
            continue
        assert done.exit_code in {0, 3, 4}, done.output
        assert one.id not in [other.id for other in requests(loki.Workspace(copy))], done.output


def test_own_words_answer_where_somebody_is_told_them(project: Path) -> None:
    workspace = loki.Workspace(project)
    here = human_reviews(workspace)
    asked = here.ask(reason="ambiguity", task_id="t", context="Which port?")
    assert run("answer", asked.id, "8080").output == f"clarified: {asked.id}\n"
    (decided,) = here.decisions("t")
    assert (decided.answer.value, decided.note) == ("clarified", "8080")
    workspace.breakers()["api/claude"].isolate()
    refused = run("answer", "api/claude", "8080")
    assert refused.exit_code == 2
    assert "takes no words of your own" in refused.output
    assert "1 (close it), 2 (leave it isolated)" in refused.output


def test_one_request_is_shown_whole(project: Path) -> None:
    asked = human_reviews(loki.Workspace(project)).ask(
        reason="cost",
        task_id="t",
        context="Go on?",
        agent="ops\u001b[2J",
        alternatives=["a smaller model"],
    )
    shown = run("inbox", asked.id[:9]).output
    assert "\u001b" not in shown
    assert "  severity high" in shown
    assert "then its task becomes a dead letter" in shown
    assert "  instead  a smaller model" in shown
    assert "1. approve: The task goes on with exactly what is shown." in shown
    (data,) = json.loads(run("inbox", "--json").output)
    assert data["evidence"][-1] == {"kind": "instead", "text": "a smaller model"}
    assert json.loads(run("status", "--json").output)["waiting"] == [data]


def test_nothing_waits_is_said_plainly(project: Path) -> None:
    assert run("status").output == run("inbox").output == "Nothing waits for you.\n"
    done = run("approve")
    assert (done.exit_code, "nothing waits for you" in done.output) == (2, True)
    assert json.loads(run("status", "--json").output)["waiting"] == []


def test_what_goes_on_is_said_or_done(project: Path) -> None:
    _review(loki.Workspace(project))
    one = the_one(project)
    done = run("approve", one.id[:9])
    assert done.exit_code == 0
    assert done.output == f"approved: {one.id}\nNext: loki resume unsure\n"
    again = run("approve", one.id)
    assert again.exit_code == 2
    assert "nothing of the id" in again.output


def test_one_command_can_be_all_of_it(project: Path) -> None:
    _approval(loki.Workspace(project))
    done = run("approve", "named", "--by", "ann", "--resume")
    assert done.exit_code == 0, done.output
    assert "approved: the name is good" in done.output
    assert "success after 1 attempt" in done.output
    assert '"ann"' in (project / ".loki/tasks/named/approvals.jsonl").read_text()


def test_several_are_listed_and_a_beginning_may_stand_for_several(project: Path) -> None:
    workspace = loki.Workspace(project)
    here = human_reviews(workspace)
    ids = [
        here.ask(reason="cost_limit", task_id=name, context=f"Go on, {name}?").id for name in "ab"
    ]
    done = run("approve")
    assert done.exit_code == 2
    assert all(id_ in done.output for id_ in ids)
    assert "stands for several" in run("approve", "review").output
    assert run("approve", "b").exit_code == 0
    assert [one.id for one in requests(workspace)] == [ids[0]]


def test_a_no_to_a_finished_work_wants_a_reason(project: Path) -> None:
    _approval(loki.Workspace(project))
    done = run("reject")
    assert done.exit_code == 2
    assert "say why: loki reject" in done.output
    assert the_one(project).kind == "approval"


def test_a_blocked_task_is_asked_about_once_and_goes_on_with_the_answer(project: Path) -> None:
    workspace = loki.Workspace(project)
    queue_of(workspace).submit(QueuedTask("unsure", "make unsure right"))
    _review(workspace)
    queued = queue_of(workspace).find("unsure")
    assert queued is not None
    assert queued.blocked is not None
    assert "low_confidence" in queued.blocked.reason
    one = the_one(project)
    assert one.kind == "human_review"
    done = run("approve", one.id)
    assert "Next: loki work\n" in done.output
    queued = queue_of(workspace).find("unsure")
    assert queued is not None
    assert queued.blocked is None


def test_json_tells_the_same(project: Path) -> None:
    _review(loki.Workspace(project))
    (one,) = json.loads(run("status", "--json").output)["waiting"]
    assert one["answers"][0]["command"] == f"loki approve {one['id']}"
    assert one["until"] > one["since"]
    data = json.loads(run("approve", one["id"], "--json").output)
    assert data == {"id": one["id"], "done": f"approved: {one['id']}", "next": "loki resume unsure"}


def test_a_review_of_another_program_is_shown_with_its_answers(project: Path) -> None:
    signals = project / ".loki/signals"
    signals.mkdir(parents=True)
    theirs = {"timestamp": "2999-01-25T10:30:00Z", "reason": "security_decision",
              "task_id": "task-099", "context": "Requires AWS \u001b[2J credentials"}  # fmt: skip
    (signals / "HUMAN_REVIEW_NEEDED").write_text(json.dumps(theirs))
    shown = run("status").output
    assert "task-099" in shown
    assert "\u001b[2J" not in shown
    one = the_one(project)
    assert run("approve", one.id).exit_code == 0
    assert not (signals / "HUMAN_REVIEW_NEEDED").exists()


def test_what_stopped_a_task_and_what_is_asked_about_it_are_one_thing(project: Path) -> None:
    workspace = loki.Workspace(project)
    _escalation(workspace)
    task_id = the_one(project).task_id
    human_reviews(workspace).ask(reason="drift", task_id=task_id, context="Is this wanted?")
    one = the_one(project)
    assert (one.kind, one.question) == ("human_review", "Is this wanted?")


def test_one_answer_is_for_all_tasks_of_an_escalation(project: Path) -> None:
    workspace = loki.Workspace(project)
    _shared(workspace)
    one = the_one(project)
    assert sorted(one.tasks) == ["a", "b", "c"]
    shown = run("status").output
    assert "tasks   a, b, c" in shown
    assert "since" in shown, "as its page says"
    done = run("approve", "b", "--context", "the port is 8080", "--by", "ann")
    assert (done.exit_code, places(workspace)) == (0, dict.fromkeys("abc", "pending")), done.output
    assert done.output.endswith("Next: loki work\n")
    assert "the port is 8080" in raw(workspace, "a")["description"]
    assert "ann" in (workspace.folder / one.page).read_text()


def test_who_gives_several_up_says_why_once(project: Path) -> None:
    workspace = loki.Workspace(project)
    _shared(workspace)
    done = run("reject", the_one(project).id, "--note", "nobody needs them")
    assert (done.exit_code, places(workspace)) == (0, dict.fromkeys("abc", "abandoned"))
    assert {raw(workspace, name)["reason"] for name in "abc"} == {"nobody needs them"}


def test_what_stopped_goes_on_at_once_and_what_was_given_up_is_queued(project: Path) -> None:
    workspace = loki.Workspace(project)
    _shared_with_stopped(workspace)
    (project / "mended").touch()
    done = run("approve", the_one(project).id)
    assert done.exit_code == 0, done.output
    assert "queued again: c" in done.output
    assert done.output.count("success after") == 2


def test_a_dead_letter_that_waits_for_another_task_waits_for_nobody_else(project: Path) -> None:
    workspace = loki.Workspace(project)
    queue = queue_of(workspace)
    write_letters(workspace, [letter("a", simpler_task="half-of-a"), letter("b")])
    queue.submit(QueuedTask("half-of-a", "do half of it"))
    assert the_one(project).task_id == "b"
    queue.abandon("half-of-a", "no need")
    assert sorted(one.task_id for one in requests(workspace)) == ["a", "b"]

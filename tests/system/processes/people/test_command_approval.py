"""A command that no setting allows runs once a person approved it, and only in exactly these words."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import loki
from loki.action.changes.change import Change
from loki.base.error import UsageError
from loki.people.approval import Approvals, digest, named
from loki.stores.file_store import FileStore
from support import command

INSTALL = ("touch", "installed file")
CHECK = "test -e 'installed file'"


def agent(*words: str) -> Callable[[loki.Briefing], Change]:
    def propose(briefing: loki.Briefing) -> Change:
        return Change(commands=(words or INSTALL,))

    return propose


@pytest.fixture
def workspace(tmp_path: Path) -> loki.Workspace:
    return loki.Workspace(tmp_path)


def stopped(workspace: loki.Workspace) -> loki.Outcome:
    with workspace.task("install it", checks=[CHECK], max_attempts=2) as task:
        return task.run(agent())


def test_what_nobody_allowed_is_not_run_and_the_person_is_told(workspace: loki.Workspace) -> None:
    """The agent learns that it may not; the record keeps what it wanted."""
    outcome = stopped(workspace)
    assert outcome.status in {"failed", "escalated"}
    assert not (workspace.root / INSTALL[1]).exists()
    error = str(workspace.history(outcome.task_id).attempts()[0].error)
    assert "is not allowed here" in error
    assert "a person can approve it" in error
    commands = Approvals(workspace.store, outcome.task_id)
    assert commands.undecided() == ["command: touch 'installed file'"]


def test_it_runs_once_it_is_approved(workspace: loki.Workspace) -> None:
    """The next briefing says so; undo knows what it changed."""
    id_ = stopped(workspace).task_id
    workspace.approve(id_, named(INSTALL), by="ann", note="fine")
    told = []

    def propose(briefing: loki.Briefing) -> Change:
        told.append(str(briefing))
        return Change(commands=(INSTALL,))

    with workspace.resume(id_) as task:
        outcome = task.run(propose)
    assert outcome.status == "success"
    assert "A person approved this command" in told[0]
    assert (workspace.root / INSTALL[1]).exists()
    assert outcome.files == (INSTALL[1],)


@pytest.mark.parametrize(
    "other",
    [("touch", "installed", "file"), ("touch", "installed file", "more"), ("sh", "-c", "touch 'installed file'"),
     ("TOUCH=1", "touch", "installed file")],
)  # fmt: skip
def test_nothing_but_its_very_words_is_approved(
    workspace: loki.Workspace, other: tuple[str, ...]
) -> None:
    """Other words make another command; nobody said yes to that."""
    id_ = stopped(workspace).task_id
    workspace.approve(id_, named(INSTALL))
    with workspace.resume(id_) as task:
        task.run(agent(*other))
    assert list(workspace.root.glob("installed*")) == []
    assert digest(other) != digest(INSTALL)


def test_a_rejection_reaches_the_agent(workspace: loki.Workspace) -> None:
    """With who said no, and why."""
    id_ = stopped(workspace).task_id
    workspace.approve(id_, named(INSTALL), approved=False, by="ann", note="use the mirror")
    with workspace.resume(id_, context="go on") as task:
        outcome = task.run(agent())
    assert not (workspace.root / INSTALL[1]).exists()
    errors = [str(attempt.error) for attempt in workspace.history(outcome.task_id).attempts()]
    assert any("ann rejected it: use the mirror" in error for error in errors)


def test_another_task_has_to_ask_itself(workspace: loki.Workspace) -> None:
    """A yes is for one task."""
    id_ = stopped(workspace).task_id
    workspace.approve(id_, named(INSTALL))
    with workspace.task("install it again", checks=[CHECK], max_attempts=1) as task:
        outcome = task.run(agent())
    assert outcome.status != "success"
    assert not (workspace.root / INSTALL[1]).exists()


def test_what_was_not_asked_for_cannot_be_approved(workspace: loki.Workspace) -> None:
    """A slip of the pen approves nothing."""
    id_ = stopped(workspace).task_id
    for name in ("command: touch installed file", "command: touch '", "command: "):
        with pytest.raises(UsageError, match="expected one of the commands that it asked for"):
            workspace.approve(id_, name)


def test_a_command_with_a_secret_is_kept_without_it(tmp_path: Path) -> None:
    """And is still approved by its very words."""
    store = FileStore(tmp_path / ".loki")
    words = ("curl", "--header", "Authorization: Bearer abcdef0123456789")
    workspace = loki.Workspace(tmp_path)
    commands = Approvals(workspace.store, "t")
    commands.ask(words)
    commands.ask(words)
    assert "abcdef" not in (tmp_path / ".loki/tasks/t/commands.jsonl").read_text()
    assert commands.asked() == ["command: curl --header 'Authorization: Bearer <secret>'"]
    commands.decide(commands.words(named(words)), True, "ann", "2026-04-04T10:00:00Z")
    said = Approvals(store, "t").of_command(words)
    assert said is not None
    assert said.approved


def test_from_the_command_line(tmp_path: Path) -> None:
    """The run says what to type; that is all there is to do."""
    script = tmp_path / "agent.py"
    script.write_text("print('nothing to do')\n")
    project = tmp_path / "project"
    project.mkdir()
    workspace = loki.Workspace(project)
    outcome = stopped(workspace)
    words = ["resume", outcome.task_id]
    agent_ = ["--agent-command", shlex.join([sys.executable, str(script)]), "--max-attempts", "1"]
    wide = {"COLUMNS": "200"}
    asked = command.loki(*words, *agent_, cwd=project, environment=wide)
    line = next(line for line in asked.out.splitlines() if "--approve" in line)
    approve = shlex.split(line.partition("to allow exactly this: ")[2])
    assert approve == ["loki", "resume", outcome.task_id, "--approve", named(INSTALL)]
    command.loki(*approve[1:], *agent_, cwd=project, environment=wide)
    assert Approvals(workspace.store, outcome.task_id).undecided() == []


def test_a_person_at_the_terminal_is_asked(
    workspace: loki.Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Yes lets the task go on; Enter leaves it undecided."""
    from loki.cli import inbox

    id_ = stopped(workspace).task_id
    typed = iter(["", "9", "1"])
    monkeypatch.setattr(inbox, "_prompt", lambda _: next(typed))
    assert inbox.ask(workspace, id_) is None
    assert "touch 'installed file'" in capsys.readouterr().err
    assert inbox.ask(workspace, id_) is None
    assert Approvals(workspace.store, id_).undecided()
    answered = inbox.ask(workspace, id_)
    assert answered is not None
    assert answered[1].tasks == (id_,)
    assert not Approvals(workspace.store, id_).undecided()


def test_who_asks_to_be_asked_is_asked_until_the_task_goes_on(
    workspace: loki.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from loki.cli import inbox, resume

    outcome = stopped(workspace)
    typed = iter(["1"])
    monkeypatch.setattr(inbox, "_prompt", lambda _: next(typed))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    assert resume.ask_person(workspace, outcome, agent()).status == "success"
    assert (workspace.root / INSTALL[1]).exists()

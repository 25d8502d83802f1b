"""What a person says to a task that waits for them, joined: yes or no, what they know, or give it up."""

from __future__ import annotations

import getpass
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from loki.action.loop import resumption, task_specification
from loki.action.task import limited, retries_of
from loki.base.error import UsageError
from loki.base.time import isoformat
from loki.execution import human_answers
from loki.jobs.inbox import human_review_answers
from loki.memory import task_record
from loki.memory.intervention import Intervention, intervention_text
from loki.memory.task_record import Awaited, TaskRecord
from loki.recognition.definition_file import did_you_mean

if TYPE_CHECKING:
    from loki.action.agent_protocol import Reviewer
    from loki.action.changes.undo import UndoResult
    from loki.action.checks.check import Check
    from loki.base.time import Duration
    from loki.execution.task_session import Task
    from loki.people.approval import Approval
    from loki.workspace import Workspace


def record_of(workspace: Workspace, task: str) -> TaskRecord:
    """What is kept of a task.

    Raises:
        UsageError: there is none.
    """
    if task in workspace.tasks() and (record := task_record.load(workspace.store, task)):
        return record
    raise UsageError(f"no task {task!r} here: `loki show` lists them")


def resume(
    workspace: Workspace,
    task: str,
    *,
    context: str = "",
    checks: Sequence[str | Check] | None = None,
    max_attempts: int | None = None,
    max_time: Duration | None = None,
    max_tokens: int | None = None,
    max_cost: float | None = None,
    wait: bool | None = None,
    reviewer: Reviewer | None = None,
) -> Task:
    """A task that stopped, to be gone on with; `loki.Workspace.resume` says more."""
    from loki.execution.assembly import resolved
    from loki.execution.task_session import Task

    record = record_of(workspace, task)
    resumption.must_be_resumable(record)
    spec = task_specification.spec_of(record, None if checks is None else ())
    spec = replace(
        spec,
        checks=resolved(workspace, spec.checks if checks is None else checks, reviewer),
        max_retries=spec.max_retries if max_attempts is None else retries_of(max_attempts),
        budget=limited(spec.budget, max_time, max_tokens, max_cost),
        wait=spec.wait if wait is None else wait,
    )
    words = intervention_text(with_commands(workspace, record, context))
    human_review_answers.resumed(workspace, record.id, words, user())
    if not resumption.is_help(record, words):
        return Task(workspace, spec, reviewer=reviewer)
    help_ = Intervention(isoformat(workspace.clock.now()), context=words)
    return Task(workspace, spec, help_, reviewer=reviewer)


def abort(workspace: Workspace, task_id: str, *, force: bool = False, why: str = "") -> UndoResult:
    """Give a task up, wherever it stands; `loki.Workspace.abort` says more."""
    from loki.action.changes.undo import UndoResult
    from loki.jobs.work.takeover import drop_takeover
    from loki.jobs.work.task_stop import given_up

    _must_be_open(workspace, task_id)
    with given_up(workspace, task_id, user()):
        record = task_record.load(workspace.store, task_id)
        if not _must_be_open(workspace, task_id):
            undone = UndoResult()
        else:
            with workspace.exclusive():
                undone = _undo(workspace, record, intervention_text(why), force=force)
            if undone.conflicts and not force:
                return undone
        drop_takeover(
            workspace, task_id, why or "a person aborted the task; its changes were undone"
        )
    human_review_answers.given_up(workspace, task_id, user())
    return undone


def _must_be_open(workspace: Workspace, task_id: str) -> bool:
    """Whether there is work of a task to be undone; else it only stands in the queue.

    Raises:
        UsageError: there is no such task, or it has ended, also just now.
    """
    record = task_record.load(workspace.store, task_id)
    if resumption.is_open(record):
        return True
    if human_review_answers.is_waiting_in_queue(workspace, task_id):
        return False
    if not record:
        raise UsageError(f"no task {task_id!r} here: `loki show` lists them, and `loki queue`")
    resumption.must_be_resumable(record)
    return True


def _undo(workspace: Workspace, record: TaskRecord, why: str, *, force: bool) -> UndoResult:
    """Undo what a task changed, and note on its pages that it is given up."""
    from loki.action.loop.refused_proposal_store import forget
    from loki.people.escalation_answer import answer_sentence, with_answer
    from loki.people.escalations import Escalations

    journal = workspace.journal(record.id)
    journal.recover()
    undone = journal.undo(force=force)
    if undone.conflicts and not force:
        return undone
    forget(workspace.store, record.id)
    after = resumption.aborted(record, isoformat(workspace.clock.now()), why)
    answer = answer_sentence(after.interventions[-1])
    Escalations(workspace.store, workspace.clock).answer_with(record.id, answer)
    page = record.outcome.page if record.outcome and resumption.awaits_approval(record) else None
    if page and (text := workspace.store.get(page)):
        workspace.store.put(page, with_answer(text, answer))
    task_record.save(workspace.store, after)
    return undone


def approve(
    workspace: Workspace,
    task: str,
    criterion: str,
    *,
    approved: bool = True,
    by: str = "",
    note: str = "",
) -> Approval:
    """Keep a person's decision; `loki.Workspace.approve` says more."""
    from loki.people.approval import PREFIX, Approval, Approvals

    record = record_of(workspace, task)
    at, who = isoformat(workspace.clock.now()), by or user()
    approvals = Approvals(workspace.strict_store, record.id)
    if criterion.startswith(PREFIX):
        return approvals.decide(approvals.words(criterion), approved, who, at, note.strip())
    awaited = record.approval or Awaited()
    names = awaited.criteria
    if criterion not in names:
        waits = f"it waits for: {', '.join(map(repr, names))}" if names else "it waits for none"
        raise UsageError(
            f"task {record.id} does not wait for an approval of {criterion!r}: {waits}"
            f"{did_you_mean(criterion, names)}"
        )
    # Of what the page showed, not of what is there now: that is looked at when the task goes on.
    approval = Approval(criterion, approved, who, at, awaited.digest, note.strip())
    approvals.add(approval)
    return approval


def with_commands(workspace: Workspace, record: TaskRecord, context: str) -> str:
    """What people said, and which commands they approved since the task stopped."""
    answers = human_answers.answers(workspace, record.id, record.updated_at)
    return "\n".join(filter(None, (context, *answers)))


def user() -> str:
    """The user of this machine, as decisions name them."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no such user, as in some containers
        return f"uid {os.getuid()}"

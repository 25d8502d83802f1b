"""Does what a verdict of a triage leads to: the program's part, never the agent's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from loki.base.error import UsageError
from loki.base.secret import holds_secret
from loki.jobs.queue.project_queue import queue_of
from loki.jobs.queue.queued_task import QueuedTask
from loki.jobs.recurring import recurring_outcome
from loki.jobs.recurring.recurring_task import RecurringTask
from loki.jobs.triage import triage_policy
from loki.jobs.triage.triage_policy import Conclusion, Fix
from loki.jobs.triage.triage_record import TriageRecord
from loki.jobs.triage.triage_verdict import Verdict

if TYPE_CHECKING:
    from loki.jobs.recurring.recurring_tasks import RecurringTasks
    from loki.workspace import Workspace

Tell = Callable[[str, str], None]
"""Tells people: id of a recurring task, and what happened to it."""


def act(
    workspace: Workspace,
    tasks: RecurringTasks,
    record: TriageRecord,
    verdict: Verdict,
    tell: Tell,
) -> TriageRecord:
    """Do what a verdict leads to.

    Args:
        workspace: the project.
        tasks: its recurring tasks.
        record: of the triage.
        verdict: its agent's.
        tell: tells people that the task was paused.

    Returns:
        The record with what was done.
    """
    found = tasks.find(record.task_id)
    task = found if isinstance(found, RecurringTask) else None
    fixes = _open_fixes(workspace, record.task_id)
    conclusion = triage_policy.conclude(verdict, record, task, fixes)
    said, fix = conclusion.said, ""
    if conclusion.act == "submit" and conclusion.fix is not None:
        said, fix = _submit(workspace, conclusion.fix)
    elif conclusion.act == "pause":
        said = _pause(workspace, tasks, record, conclusion, tell)
    return record.with_(
        verdict=verdict.kind,
        root_cause=verdict.root_cause,
        evidence=verdict.evidence,
        action_taken=verdict.action,
        problem=verdict.problem,
        acted=said,
        fix=fix,
        recommendation=conclusion.recommendation,
    )


def _open_fixes(workspace: Workspace, task: str) -> list[tuple[str, str]]:
    """Fixes that triages of a task asked for and nobody has done."""
    queue = queue_of(workspace)
    waiting = [one for name in ("pending", "in-progress") for one in queue.tasks(name)]
    return [
        (one.id, one.title) for one in waiting if one.after == task and "triage-fix" in one.tags
    ]


def _submit(workspace: Workspace, fix: Fix) -> tuple[str, str]:
    """What was done about a fix, and its id."""
    is_kept = not any(map(holds_secret, (*fix.checks, fix.reviewer_command)))
    task = QueuedTask(
        fix.id,
        fix.title,
        description=fix.description,
        checks=fix.checks if is_kept else (),  # else a person says when it is done
        reviewer_command=fix.reviewer_command if is_kept else "",
        after=fix.after,
        tags=fix.tags,
    )
    try:
        queue_of(workspace).submit(task)
    except UsageError as error:  # a crash came between the submission and the record of it
        return f"no task was submitted: {error}", ""
    return f"the task {fix.id} was submitted", fix.id


def _pause(
    workspace: Workspace,
    tasks: RecurringTasks,
    record: TriageRecord,
    conclusion: Conclusion,
    tell: Tell,
) -> str:
    now = workspace.clock.now()
    tasks.update(
        record.task_id,
        lambda task: recurring_outcome.paused(task, now, conclusion.reason, f"triage {record.id}"),
    )
    tasks.log(now, "paused", record.task_id, by=record.id, reason=conclusion.reason)
    tell(record.task_id, f"was paused by its triage {record.id}: {conclusion.reason}")
    return conclusion.said

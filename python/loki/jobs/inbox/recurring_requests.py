"""What recurring tasks ask people: those that stopped, that a triage paused, or whose file is no good."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from loki.base.time import isoformat
from loki.jobs.inbox import inbox_numbers
from loki.jobs.inbox.request_kind import Kind, Result, Said
from loki.people.request import Option, Request, yes_or_no

if TYPE_CHECKING:
    from loki.jobs.inbox.project_snapshot import ProjectSnapshot
    from loki.jobs.recurring.recurring_task import RecurringTask, Unreadable
    from loki.workspace import Workspace

TRIAGE = "triage"


def _recurring(workspace: Workspace, look: ProjectSnapshot) -> Iterator[Request]:
    yield from map(_unusable, look.unusable)
    for task in look.recurring:
        if (held := _stopped(task)) is not None:
            yield held
        elif task.consecutive_failures and (found := _recommended(workspace, task)) is not None:
            yield found


def _unusable(task: Unreadable) -> Request:
    look = Option("see whether it can be used", f"loki recur show {shlex.quote(task.id)}")
    question = (
        f"It never runs: .loki/recurring/{task.id}/task.json cannot be used: {task.reason}. Mend the "
        "file, or remove the task."
    )
    options = yes_or_no(task.id, "it is mended", "remove it", "", look)
    return Request(task.id, "recurring", task.id, question, "", options)


def _stopped(task: RecurringTask) -> Request | None:
    held = task.stopped or task.paused
    if held is None or held.status == "done":
        return None
    if held.status == "paused" and TRIAGE not in held.by:
        return None  # by a person, who knows
    is_failed = held.status == "failed"
    did = "It stopped, failed" if is_failed else f"It was paused by {held.by}"
    no = "remove it" if is_failed else "leave it paused"
    look = Option("look at it", f"loki recur show {shlex.quote(task.id)}")
    question = f"{did}: {held.reason or 'nobody said why'}. Mend the cause, then let it go on."
    since, options = isoformat(held.since), yes_or_no(task.id, "let it go on", no, "", look)
    return Request(task.id, "recurring", task.title or task.id, question, since, options)


def _recommended(workspace: Workspace, task: RecurringTask) -> Request | None:
    """A setting that the last triage of a task wants changed, as long as the task fails."""
    if task.paused is not None or task.stopped is not None or not task.triages:
        return None
    from loki.jobs.triage.triage_evidence import records  # takes long to import
    from loki.jobs.triage.triage_verdict import RECOMMEND_CONFIG

    last = records(workspace, task.id, task.triages)[-1:]
    if not last or last[0].verdict != RECOMMEND_CONFIG:
        return None
    record = last[0]
    question = (
        f"It failed {task.consecutive_failures} times in a row. Its triage recommends: "
        f"{record.recommendation}. Change the setting, or let it go on as it is."
    )
    read = Option("read the triage", f"loki show {record.id}")
    pause = Option("pause it", f"loki pause {shlex.quote(task.id)}")
    yes, no = "forgive its failures, once the setting is changed", "leave it as it is"
    options = yes_or_no(task.id, yes, no, "", read, pause, reason=False)
    since = isoformat(record.ended_at or record.started_at)
    return Request(task.id, "recurring", task.title or task.id, question, since, options)


def _go_on(workspace: Workspace, one: Request, _said: Said) -> Result:
    from loki.jobs.recurring import recurring_outcome
    from loki.jobs.recurring.recurring_tasks import RecurringTasks
    from loki.jobs.recurring.scheduling import recurrence_settings

    tasks, now, known = (
        RecurringTasks(workspace.store),
        workspace.clock.now(),
        recurrence_settings(workspace),
    )
    task = tasks.load(one.id)  # says what is wrong with one that cannot be used
    is_held = task.paused is not None or task.stopped is not None
    change = recurring_outcome.resumed if is_held else recurring_outcome.without_failures
    tasks.update(one.id, lambda there: change(there, now, known))
    tasks.log(now, "resumed" if is_held else "edited", one.id, by="person")
    return Result(f"resumed: {one.id}" if is_held else f"its failures are forgiven: {one.id}")


def _no_more(workspace: Workspace, one: Request, said: Said) -> Result:
    from loki.jobs.recurring import recurring_outcome
    from loki.jobs.recurring.recurring_task import RecurringTask
    from loki.jobs.recurring.recurring_tasks import RecurringTasks

    tasks, now = RecurringTasks(workspace.store), workspace.clock.now()
    task = tasks.find(one.id)
    if isinstance(task, RecurringTask) and task.stopped is None:
        if task.paused is None:  # a setting that a triage recommends
            return inbox_numbers.leave(workspace, one, said)
        tasks.update(one.id, lambda there: recurring_outcome.paused(there, now, said.note, said.by))
        return Result(f"it stays paused: {one.id}")
    tasks.remove(one.id)
    tasks.log(now, "removed", one.id, by="person", reason=said.note)
    return Result(f"removed: {one.id}; what is kept of its runs stays")


RECURRING = Kind("recurring task", _recurring, _go_on, _no_more)


def summary(look: ProjectSnapshot) -> list[dict[str, Any]]:
    """How each recurring task stands, the one that runs next first."""
    found = [
        {
            "id": task.id,
            "status": task.status,
            "consecutive_failures": task.consecutive_failures,
            "next_run_at": isoformat(task.next_run_at) if task.next_run_at else None,
        }
        for task in look.recurring
    ]
    return sorted(found, key=lambda one: (str(one["next_run_at"] or "9"), str(one["id"])))

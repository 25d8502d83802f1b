"""What goes on only when a person says so, although nothing is asked about it (any more).

Tasks and runs of pipelines that were paused, interrupted or killed, tasks that spent their budget, and
those whose questions a person has answered without going on. What a worker or the dispatcher takes up
by itself is not among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from loki.action.pipelines import pipeline_record
from loki.action.pipelines.pipeline_state import OVER, WAITING_FOR_A_PERSON
from loki.base import locks
from loki.base.error import UsageError
from loki.jobs.inbox import human_review_answers
from loki.jobs.inbox.request_kind import Kind, Result, Said
from loki.memory.task_record import TaskRecord
from loki.people.request import Request, yes_or_no

if TYPE_CHECKING:
    from loki.jobs.inbox.project_snapshot import ProjectSnapshot
    from loki.workspace import Workspace

WHY: Mapping[str, str] = {
    "escalated": "What was asked about it is answered",
    "paused": "It is paused: {reason}",
    "interrupted": "It was interrupted",
    "budget": "Its budget is spent: {reason}",
    "": "It was ended before it was done",
}
"""By how it stands, "" for what has no end; `escalated` is here where nothing asks about it."""


_ASKED = frozenset(phase.value for phase in OVER | WAITING_FOR_A_PERSON)


def stopped(workspace: Workspace, look: ProjectSnapshot) -> list[Request]:
    """What goes on only when a person says so; what is asked about it stands elsewhere.

    Args:
        workspace: the project.
        look: at it.
    """
    found = [*_tasks(workspace, look.records), *_runs(workspace)]
    # Without an end it may be at work just now.
    is_sure = all(status for status, _ in found) or not locks.is_held(workspace.folder / "run")
    return [one for status, one in found if status or is_sure]


def _tasks(
    workspace: Workspace, records: Mapping[str, TaskRecord]
) -> Iterator[tuple[str, Request]]:
    for id_, record in records.items():
        status = "budget" if record.trigger == "budget" else record.status
        if (
            not record
            or record.run
            or status not in WHY
            or human_review_answers.is_queued(workspace, id_)
        ):
            continue
        if status != "escalated" and _is_recurring(workspace, id_):
            continue  # the next run begins it anew
        reason = record.outcome.reason if record.outcome else ""
        yield (
            status,
            Request(
                id_,
                "stopped",
                record.title or id_,
                f"{WHY[status].format(reason=reason)}; it goes on when you say so.",
                record.updated_at,
                yes_or_no(id_, "go on", "give up", "go on, with what you know"),
                id_,
            ),
        )


def _is_recurring(workspace: Workspace, id_: str) -> bool:
    """Whether a task is a run of a recurring one."""
    from loki.jobs.recurring.recurring_tasks import RecurringTasks

    of, _, number = id_.rpartition("-")
    return number.isdecimal() and any(t.id == of for t in RecurringTasks(workspace.store).usable())


def _runs(workspace: Workspace) -> Iterator[tuple[str, Request]]:
    for data in pipeline_record.runs(workspace.store):
        phase = str(data.get("phase"))
        if phase in _ASKED:
            continue
        status = phase if phase in WHY else ""
        run, reason = str(data["run"]), str(data.get("reason") or "no reason given")
        yield (
            status,
            Request(
                run,
                "stopped",
                f"{data.get('pipeline')}: {data.get('at')}",
                f"{WHY[status].format(reason=reason)}; it goes on when you say so.",
                str(data.get("updated_at") or ""),
                yes_or_no(run, "go on", "give it up"),
                target=run,
            ),
        )


def _go_on(_workspace: Workspace, one: Request, _said: Said) -> Result:
    run = "" if one.task_id else one.target
    return Result("", tasks=one.tasks, run=run, at_once=True)


def _give_up(workspace: Workspace, one: Request, said: Said) -> Result:
    if one.task_id:
        human_review_answers.give_up(workspace, one.task_id, said.note)
    else:
        _give_run_up(workspace, one.target, said)
    return Result(f"given up: {one.task_id or one.target}; its files are as they were")


def _give_run_up(workspace: Workspace, run: str, said: Said) -> None:
    from loki.jobs.work.pipeline_abort import give_up

    if conflicts := give_up(workspace, run, said.by, said.note).conflicts:
        listing = "; ".join(f"{one.path}: {one.reason}" for one in conflicts)
        raise UsageError(
            f"run {run} stays open, because files changed since ({listing}); "
            f"`loki cancel {run} --force` overwrites them"
        )


STOPPED = Kind("stopped", stopped, _go_on, _give_up, yields=True, wants_why=False)

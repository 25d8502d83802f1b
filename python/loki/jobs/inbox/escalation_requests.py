"""Escalations that wait for a person: one entry to a page, and what an answer does for all its tasks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from loki.action.loop.resumption import DONE
from loki.execution.human_answers import human_reviews
from loki.jobs.inbox import human_review_answers, queue_requests
from loki.jobs.inbox.request_kind import Kind, Result, Said
from loki.jobs.queue.project_queue import queue_of
from loki.memory import task_record
from loki.memory.attempt import DRIFT
from loki.memory.task_record import TaskRecord
from loki.people.escalations import Escalations
from loki.people.request import Option, Request, id_of

if TYPE_CHECKING:
    from loki.jobs.inbox.project_snapshot import ProjectSnapshot
    from loki.workspace import Workspace

ASKED_OTHERWISE = frozenset({"approval", "human_review", DRIFT})
"""Triggers of escalations that other rooms tell of."""

_STAMP = re.compile(r"escalations/(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d(?:\.\d+)?)Z-")


def escalations(workspace: Workspace, look: ProjectSnapshot) -> list[Request]:
    """Tasks that stopped because they need a person, and pages that others wrote."""
    found = []
    seen = {one.task_id for one in human_reviews(workspace).open()}  # asked about already
    for page in Escalations(workspace.store, workspace.clock).open():
        tasks = [
            task
            for task in page.tasks
            if task not in seen and not _is_asked_otherwise(look.records.get(task))
        ]
        seen.update(tasks)
        if tasks:
            asked = f"{page.reason or page.trigger}. {page.asks}".strip()
            found.append(_escalation(tasks, page.title, asked, _asked_at(page.page), page.page))
    for task, record in look.records.items():
        outcome = record.outcome
        if outcome is None or outcome.status != "escalated" or task in seen:
            continue
        if not _is_asked_otherwise(record):
            reason, page_name = f"{outcome.reason}.", outcome.page or ""
            found.append(_escalation([task], record.title, reason, record.updated_at, page_name))
    return found


def id_for(page: str, task: str) -> str:
    """By which an escalation is answered.

    Args:
        page: its page below ``.loki/``; "": it has none.
        task: its task, where it has no page.
    """
    return id_of("escalation", page or task)


def _is_asked_otherwise(record: TaskRecord | None) -> bool:
    if record is None:
        return False
    if record.status == "escalated" and record.trigger in ASKED_OTHERWISE:
        return True
    return bool(record.run)  # a stage: the pipeline's run asks


def _asked_at(page: str) -> str:
    """When a page of loki's was written, as its name says."""
    found = _STAMP.match(page)
    return "{}-{}-{}T{}:{}:{}Z".format(*found.groups()) if found else ""


def _escalation(tasks: Sequence[str], title: str, asked: str, since: str, page: str) -> Request:
    id_ = id_for(page, tasks[0])
    options = (
        Option("go on, after you mended it", f"loki approve {id_}"),
        Option("go on, with what you know", f'loki approve {id_} --context "…"'),
        Option("give up", f"loki reject {id_}"),
    )
    others = tuple(tasks[1:])
    return Request(
        id_, "escalation", title, asked, since, options, tasks[0], page=page, others=others
    )


# --- what an answer does -----------------------------------------------------------------------------


def _go_on(workspace: Workspace, one: Request, said: Said) -> Result:
    """Its tasks go on where they stopped, at once; what cannot is tried again, from the queue."""
    resumed = _to_resume(workspace, one)
    others = [task for task in one.tasks if task not in resumed]
    done = "; ".join(_again(workspace, task, said) for task in others)
    is_queued = (
        any(human_review_answers.is_queued(workspace, task) for task in one.tasks)
        if done
        else False
    )
    next_ = queue_requests.GO_ON if is_queued else ""
    return Result(done, next_, resumed, at_once=bool(resumed))


def _to_resume(workspace: Workspace, one: Request) -> tuple[str, ...]:
    """The tasks of an escalation that go on where they stopped.

    A dead letter that is alone goes on at once, too; several are queued again.
    """
    lists = queue_of(workspace).lists()
    return tuple(
        task
        for task in one.tasks
        if _can_resume(workspace, task) and (not one.others or lists.where(task) != "dead-letter")
    )


def _again(workspace: Workspace, task: str, said: Said) -> str:
    if queue_of(workspace).where(task) == "dead-letter":
        return queue_requests.retry(workspace, task, said).done
    human_review_answers.unblock(workspace, task)
    _answered(workspace, task, f"a person lets it go on, by {said.by}", said.words)
    return f"may go on: {task}"


def give_up(workspace: Workspace, one: Request, said: Said) -> Result:
    """Give up every task that something is about.

    Raises:
        UsageError: files of one changed since; the tasks before it are given up.
    """
    records = {task: task_record.load(workspace.store, task) for task in one.tasks}
    # The newest change is undone first: others may lie below it, in the same files.
    newest = sorted(records, key=lambda t: records[t].updated_at, reverse=True)
    for task in newest:
        human_review_answers.give_up(workspace, task, said.note)
        _answered(workspace, task, f"given up, by {said.by}", said.note)
    files = "its files are" if not one.others else "their files are"
    return Result(f"given up: {', '.join(one.tasks)}; {files} as they were")


def _answered(workspace: Workspace, task: str, what: str, words: str) -> None:
    store = workspace.strict_store
    Escalations(store, workspace.clock).answer(task, what, words)


def _can_resume(workspace: Workspace, task: str) -> bool:
    record = task_record.load(workspace.store, task)
    return bool(record) and record.status not in DONE and not record.run


ESCALATION = Kind("escalation", escalations, _go_on, give_up, asks=True, wants_why=False)

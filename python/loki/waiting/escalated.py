"""Escalations that wait for a person: one entry to a page, and what an answer does for all its tasks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loki.action.resumption import DONE, status_of
from loki.memory import task_record
from loki.memory.attempt import DRIFT
from loki.people.escalations import Escalations
from loki.people.waiting import Answer, Waiting, id_of
from loki.queueing import queue_of
from loki.recurrence.dead_letter import Letter
from loki.recurrence.dead_letter_review import Answers, Decision
from loki.waiting import reviews

if TYPE_CHECKING:
    from loki.waiting.look import Look
    from loki.workspace import Workspace

Records = Mapping[str, Mapping[str, Any]]

ASKED_OTHERWISE = frozenset({"approval", "human_review", DRIFT})
"""Triggers of escalations that other rooms tell of."""

_STAMP = re.compile(r"escalations/(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d(?:\.\d+)?)Z-")


def escalations(workspace: Workspace, look: Look) -> list[Waiting]:
    """Tasks that stopped because they need a person, and pages that others wrote."""
    found = []
    seen = {one.task_id for one in reviews.of(workspace).open()}  # asked about already
    for page in Escalations(workspace.store, workspace.clock).open():
        tasks = [
            task
            for task in page.tasks
            if task not in seen and not _is_asked_otherwise(look.records.get(task) or {})
        ]
        seen.update(tasks)
        if tasks:
            asked = f"{page.reason or page.trigger}. {page.asks}".strip()
            found.append(_escalation(tasks, page.title, asked, _asked_at(page.page), page.page))
    for task, record in look.records.items():
        outcome = record.get("outcome") or {}
        is_open = outcome.get("status") == "escalated" and task not in seen
        if is_open and not _is_asked_otherwise(record):
            title, since = str(record.get("title")), str(record.get("updated_at") or "")
            page_name = str(outcome.get("page") or "")
            found.append(_escalation([task], title, f"{outcome.get('reason')}.", since, page_name))
    return found


def id_for(page: str, task: str) -> str:
    """By which an escalation is answered.

    Args:
        page: its page below ``.loki/``; "": it has none.
        task: its task, where it has no page.
    """
    return id_of("escalation", page or task)


def _is_asked_otherwise(record: Mapping[str, Any]) -> bool:
    outcome = record.get("outcome") or {}
    if outcome.get("status") == "escalated" and outcome.get("trigger") in ASKED_OTHERWISE:
        return True
    return bool(record.get("run"))  # a stage: the pipeline's run asks


def _asked_at(page: str) -> str:
    """When a page of loki's was written, as its name says."""
    found = _STAMP.match(page)
    return "{}-{}-{}T{}:{}:{}Z".format(*found.groups()) if found else ""


def _escalation(tasks: Sequence[str], title: str, asked: str, since: str, page: str) -> Waiting:
    id_ = id_for(page, tasks[0])
    answers = (
        Answer("go on, after you mended it", f"loki approve {id_}"),
        Answer("go on, with what you know", f'loki approve {id_} --context "…"'),
        Answer("give up", f"loki reject {id_}"),
    )
    others = tuple(tasks[1:])
    return Waiting(
        id_, "escalation", title, asked, since, answers, tasks[0], page=page, others=others
    )


# --- what an answer does -----------------------------------------------------------------------------


def to_resume(workspace: Workspace, one: Waiting) -> tuple[str, ...]:
    """The tasks of an escalation that go on where they stopped; the others are tried again.

    A dead letter that is alone goes on at once, too; several are queued again.
    """
    lists = queue_of(workspace).lists()
    return tuple(
        task
        for task in one.tasks
        if _can_resume(workspace, task) and (not one.others or lists.where(task) != "dead-letter")
    )


def try_again(workspace: Workspace, one: Waiting, by: str, words: str) -> list[str]:
    """Do what a yes means for the tasks of an escalation that are not resumed.

    Args:
        workspace: the project.
        one: the escalation.
        by: who answers; words: what the agent has to know, or "".

    Returns:
        What was done, a clause each.
    """
    resumed = to_resume(workspace, one)
    return [_again(workspace, task, by, words) for task in one.tasks if task not in resumed]


def _again(workspace: Workspace, task: str, by: str, words: str) -> str:
    from loki.dead_letters.reviewing import Reviews

    queued = queue_of(workspace)
    known = queued.find(task)
    if known is not None and queued.where(task) == "dead-letter":
        rule, why = ("new_approach", "a new approach") if words else ("person", "a person wants it")
        decision = Decision("retry", rule, why, approach=words)
        Reviews(workspace, by=by).decided(Letter.of(known), Answers(by=by), decision)
        return f"queued again: {task}"
    reviews.unblock(workspace, task)
    _answered(workspace, task, f"a person lets it go on, by {by}", words)
    return f"may go on: {task}"


def give_up(workspace: Workspace, one: Waiting, by: str, why: str) -> str:
    """Do what a no means: every task that something is about is given up.

    Args:
        workspace: the project.
        one: what waits.
        by: who says so; why: or "".

    Returns:
        What was done, a sentence.

    Raises:
        UsageError: files of one changed since; the tasks before it are given up.
    """
    records = {task: task_record.load(workspace.store, task) for task in one.tasks}
    # The newest change is undone first: others may lie below it, in the same files.
    newest = sorted(records, key=lambda t: str(records[t].get("updated_at") or ""), reverse=True)
    for task in newest:
        reviews.give_up(workspace, task, why)
        _answered(workspace, task, f"given up, by {by}", why)
    files = "its files are" if not one.others else "their files are"
    return f"given up: {', '.join(one.tasks)}; {files} as they were"


def _answered(workspace: Workspace, task: str, what: str, words: str) -> None:
    store = workspace.strict_store
    Escalations(store, workspace.clock).answer(task, what, words)


def _can_resume(workspace: Workspace, task: str) -> bool:
    record = task_record.load(workspace.store, task)
    return bool(record) and status_of(record) not in DONE and not record.get("run")


def next_command(workspace: Workspace, one: Waiting) -> str:
    """What goes on with the tasks of an escalation that were answered; "" where nothing does."""
    return "loki work" if any(reviews.is_queued(workspace, task) for task in one.tasks) else ""

"""What the queue asks people: dead letters, blocked tasks, and tasks that can never begin."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from loki.jobs.inbox import human_review_answers
from loki.jobs.inbox.request_kind import Kind, Result, Said
from loki.jobs.queue import queue_dependency
from loki.jobs.queue.project_queue import queue_of
from loki.people.request import Option, Request, yes_or_no

if TYPE_CHECKING:
    from loki.jobs.inbox.project_snapshot import ProjectSnapshot
    from loki.jobs.queue.queue_lists import Lists
    from loki.jobs.queue.queued_task import QueuedTask
    from loki.workspace import Workspace

GONE = frozenset({None, "abandoned", "failed"})
"""Where a task stands that is never completed by itself; what has a dead letter is asked about there."""

GO_ON = "loki work"

_LET_IT_GO_ON = ("let it go on", "give it up", "let it go on, with what you know")


# --- dead letters -------------------------------------------------------------------------------------


def _dead_letters(_workspace: Workspace, look: ProjectSnapshot) -> Iterator[Request]:
    """Those that wait for no other task: reviews find few ways on that a person does not know."""
    lists = look.lists
    if lists is None:
        return
    for task in lists.of("dead-letter"):
        waits_for = (*task.dependencies, str(task.raw.get("simpler_task") or ""))
        if any(lists.where(id_) in {"pending", "in-progress"} for id_ in waits_for):
            continue
        why = str(task.raw.get("error_summary") or "no reason is known")
        end = "" if why.endswith((".", "!", "?")) else "."
        question = f"It was given up: {why}{end} Is it to be tried again, or abandoned?"
        since, page = str(task.raw.get("last_failure") or ""), look.page_of(task.id)
        options = yes_or_no(task.id, "try it again", "abandon it", "try it again, another way")
        yield Request(
            task.id, "dead_letter", task.title, question, since, options, task.id, page=page
        )


def retry(workspace: Workspace, task_id: str, said: Said) -> Result:
    """Try a dead letter again, by what a person said as a new approach."""
    from loki.jobs.dead_letters.dead_letters import DeadLetters

    DeadLetters(workspace, by=said.by).retry(task_id, said.words)
    return Result(f"queued again: {task_id}", GO_ON)


def _abandon(workspace: Workspace, one: Request, said: Said) -> Result:
    from loki.jobs.dead_letters.dead_letters import DeadLetters

    DeadLetters(workspace, by=said.by).abandon(one.id, said.note)
    return Result(f"abandoned: {one.id}")


DEAD_LETTER = Kind(
    "dead letter", _dead_letters, lambda w, one, said: retry(w, one.id, said), _abandon, yields=True
)


# --- blocked tasks ------------------------------------------------------------------------------------


def _blocked(_workspace: Workspace, look: ProjectSnapshot) -> Iterator[Request]:
    """Tasks of the queue that nobody may claim."""
    for task in look.lists.blocked() if look.lists is not None else ():
        if task.blocked is not None:
            why, since = task.blocked.reason or "nobody said why", task.blocked.since
            options = yes_or_no(task.id, *_LET_IT_GO_ON)
            question = f"It is blocked: {why}. May it go on?"
            yield Request(task.id, "blocked", task.title, question, since, options, task.id)


def _unblock(workspace: Workspace, one: Request, said: Said) -> Result:
    human_review_answers.keep_words(workspace, one, said)
    queue_of(workspace).unblock(one.task_id)
    return Result(f"may go on: {one.task_id}", GO_ON)


def _give_up(workspace: Workspace, one: Request, said: Said) -> Result:
    human_review_answers.give_up(workspace, one.task_id, said.note)
    return Result(f"given up: {one.task_id}; its files are as they were")


BLOCKED = Kind("blocked", _blocked, _unblock, _give_up, yields=True)


# --- tasks that can never begin -----------------------------------------------------------------------


def _stuck(_workspace: Workspace, look: ProjectSnapshot) -> Iterator[Request]:
    """Pending tasks that nothing but a person lets begin: one request to a task, or to a circle of them."""
    lists = look.lists
    if lists is None:
        return
    pending = lists.waiting()
    for task in pending:
        if gone := never(lists, task):
            yield _alone(task, gone)
    for names in circles(pending):
        first = lists.find(names[0])
        assert first is not None
        told = " waits for ".join([*names, names[0]])
        yield _never(first, f"{told}. May {first.id} begin without?", others=tuple(names[1:]))


def _alone(task: QueuedTask, gone: Sequence[queue_dependency.InboxItem]) -> Request:
    told = ", ".join(f"{one.id} ({one.where or 'which nobody has submitted'})" for one in gone)
    back = (
        Option("bring back what it waits for", f"loki queue retry {shlex.quote(one.id)}")
        for one in gone
        if one.where
    )
    return _never(task, f"it waits for {told}. May it begin without?", *back)


def _never(task: QueuedTask, why: str, *more: Option, others: tuple[str, ...] = ()) -> Request:
    options = yes_or_no(task.id, "begin without it", "give it up", "", *more)
    question = f"It can never begin: {why}"
    since = task.submitted_at
    return Request(task.id, "stuck", task.title, question, since, options, task.id, others=others)


def never(lists: Lists, task: QueuedTask) -> tuple[queue_dependency.InboxItem, ...]:
    """What a task waits for in vain."""
    waits = queue_dependency.waits_for(task, lists.where)
    return tuple(one for one in waits if one.where in GONE)


def circles(tasks: Sequence[QueuedTask]) -> list[list[str]]:
    """Tasks that wait for each other, each circle once."""
    waiting = {task.id: task.dependencies for task in tasks}
    found = []
    while names := list(dict.fromkeys(queue_dependency.cycle(waiting, waiting))):
        found.append(names)
        for name in names:
            del waiting[name]
    return found


def let_begin(workspace: Workspace, one: Request, _said: Said) -> Result:
    """A person lets a task begin without what it waits for in vain."""
    queue = queue_of(workspace)
    lists = queue.lists()
    task = lists.find(one.task_id)
    waits = task.dependencies if task is not None else ()
    vain = {other.id for other in never(lists, task)} if task is not None else set()
    vain |= set(one.tasks)
    queue.edit(one.task_id, dependencies=tuple(id_ for id_ in waits if id_ not in vain))
    without = ", ".join(id_ for id_ in waits if id_ in vain)
    return Result(f"{one.task_id} waits no longer for {without}", GO_ON)


STUCK = Kind("can never begin", _stuck, let_begin, _give_up, yields=True)

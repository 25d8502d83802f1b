"""What the queue asks people (dead letters, blocked tasks, such as can never begin), and recurring tasks."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from loki.base.time import isoformat
from loki.jobs.inbox import human_review_answers, request_kind
from loki.jobs.inbox.request_kind import Kind, ProjectSnapshot, Result, Said
from loki.jobs.queue import queued_task
from loki.jobs.queue.queue import queue_of
from loki.jobs.queue.queued_task import QueuedTask
from loki.people.request import Option, Request, yes_or_no

if TYPE_CHECKING:
    from loki.jobs.queue.queue_index import Lists
    from loki.jobs.recurring.recurring_task import RecurringTask, Unreadable
    from loki.workspace import Workspace


GONE = frozenset({None, "abandoned", "failed"})
"""Where a task stands that is never completed by itself; what has a dead letter is asked about there."""

GO_ON = "loki work"


# --- dead letters -------------------------------------------------------------------------------------


def _dead_letters(_workspace: Workspace, look: ProjectSnapshot) -> Iterator[Request]:
    """Those that wait for no other task: reviews find few ways on that a person does not know."""
    for task in look.lists.of("dead-letter"):
        waits_for = (*task.dependencies, str(task.raw.get("simpler_task") or ""))
        if any(look.lists.where(id_) in {"pending", "in-progress"} for id_ in waits_for):
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
    for task in look.lists.blocked():
        if task.blocked is not None:
            why, since = task.blocked.reason or "nobody said why", task.blocked.since
            yes, no, more = "let it go on", "give it up", "let it go on, with what you know"
            options = yes_or_no(task.id, yes, no, more)
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
    lists, pending = look.lists, look.lists.waiting()
    for task in pending:
        if gone := never(lists, task):
            yield _alone(task, gone)
    for names in circles(pending):
        first = lists.find(names[0])
        assert first is not None
        told = " waits for ".join([*names, names[0]])
        yield _never(first, f"{told}. May {first.id} begin without?", others=tuple(names[1:]))


def _alone(task: QueuedTask, gone: Sequence[queued_task.OpenDependency]) -> Request:
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


def never(lists: Lists, task: QueuedTask) -> tuple[queued_task.OpenDependency, ...]:
    """What a task waits for in vain."""
    waits = queued_task.waits_for(task, lists.where)
    return tuple(one for one in waits if one.where in GONE)


def circles(tasks: Sequence[QueuedTask]) -> list[list[str]]:
    """Tasks that wait for each other, each circle once."""
    waiting = {task.id: task.dependencies for task in tasks}
    found = []
    while names := list(dict.fromkeys(queued_task.cycle(waiting, waiting))):
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


# --- recurring tasks that stopped, that a triage paused, or whose file is no good ---------------------

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
    from loki.jobs.triage.triage_prompt import records  # takes long to import
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

    tasks, now = RecurringTasks(workspace.store), workspace.clock.now()
    known = workspace.config.recurrence
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
            return request_kind.leave_numbers(workspace, one, said)
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

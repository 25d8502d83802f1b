"""A person's yes or no to anything that waits, by the id that ``loki status`` shows."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loki.base.error import UsageError
from loki.people.human_review import Standing
from loki.people.waiting import ASKS, Waiting
from loki.queueing import queue_of
from loki.waiting import escalated, restful, reviews
from loki.waiting.sources import waiting

if TYPE_CHECKING:
    from loki.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Said:
    """What an answer has led to.

    Attributes:
        waiting: what was answered.
        done: what was done, a sentence.
        next: the command that goes on, or "".
        resumes: ids of the tasks that can go on now.
        run: id of the pipeline's run that can go on now, or "".
        at_once: the answer is to go on with them.
    """

    waiting: Waiting
    done: str
    next: str = ""
    resumes: tuple[str, ...] = ()
    run: str = ""
    at_once: bool = False


def find(there: Sequence[Waiting], wanted: str) -> Waiting:
    """What waits under an id, the beginning of one, or for a task of which one thing waits.

    Raises:
        UsageError: there is none, or several.
    """
    exact = [one for one in there if one.id == wanted]
    found = exact or [one for one in there if wanted and one.id.startswith(wanted)]
    found = found or [one for one in there if wanted and wanted in one.tasks]
    begins = [one for one in there if any(task.startswith(wanted) for task in one.tasks)]
    found = found or (begins if wanted else [])
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(f"{one.id} ({one.title})" for one in found)
        raise UsageError(f"{wanted!r} stands for several: {listed}")
    listed = ", ".join(one.id for one in there)
    waits = f"there waits: {listed}" if listed else "nothing waits for you; `loki status` says more"
    raise UsageError(f"nothing of the id {wanted!r} waits; {waits}")


def approve(workspace: Workspace, one: Waiting, by: str, note: str = "", context: str = "") -> Said:
    """Say yes; of stages, and of what goes on where it stopped, only that is told.

    Args:
        workspace: the project.
        one: what waits.
        by: who says so.
        note: why.
        context: what the agent has to know.

    Raises:
        UsageError: it waits no longer, or this is no answer to it.
    """
    if context and not one.takes_words:
        raise UsageError(
            f"{one.id} wants a yes or a no: expected no --context; `loki reject {one.id} --note "
            '"what is missing"` tells the agent'
        )
    if one.kind in restful.KINDS:
        return _rested(one, restful.approve(workspace, one, by, context or note))
    if one.kind == "human_review":
        said = Standing.CLARIFIED if context else Standing.APPROVED
        reviews.answer(workspace, one.id, said, by, context or note)
        return _goes_on(workspace, one, f"{said.value}: {one.id}")
    if one.kind in {"approval", "command"}:
        workspace.approve(one.task_id, one.target, by=by, note=note)
        return _goes_on(workspace, one, f"approved: {one.target}", frees=True)
    if one.kind == "stage":
        return Said(one, "", run=one.target, at_once=True)
    resumes = escalated.to_resume(workspace, one)
    done = "; ".join(escalated.try_again(workspace, one, by, context or note))
    next_ = escalated.next_command(workspace, one) if done else ""
    return Said(one, done, next_, resumes, at_once=bool(resumes))


def wants_reason(one: Waiting) -> bool:
    """Whether a no to something has to say why: somebody is told, or looks it up later."""
    return one.kind not in {"escalation", "human_review", "stopped"} and any(
        "--note" in answer.command for answer in one.answers
    )


def reject(
    workspace: Workspace, one: Waiting, by: str, note: str = "", *, abort: bool = False
) -> Said:
    """Say no.

    Args:
        workspace: the project.
        one: what waits.
        by: who says so.
        note: why; the agent is told.
        abort: give the task up, and restore its files.

    Raises:
        UsageError: it waits no longer, or a reason is missing.
    """
    if one.kind in restful.KINDS:
        return Said(one, restful.reject(workspace, one, by, note))
    if one.kind == "human_review":
        said = Standing.ABORTED if abort else Standing.REJECTED
        reviews.answer(workspace, one.id, said, by, note)
        if abort:
            return Said(one, f"given up: {one.task_id or one.id}; its files are as they were")
        return _goes_on(workspace, one, f"rejected: {one.id}")
    if one.kind == "escalation" or (abort and one.task_id):
        return Said(one, escalated.give_up(workspace, one, by, note))
    if one.kind in {"approval", "command"}:
        workspace.approve(one.task_id, one.target, approved=False, by=by, note=note)
        return _goes_on(workspace, one, f"rejected: {one.target}", frees=True)
    return Said(one, "", run=one.target, at_once=True)  # a stage


def _rested(one: Waiting, done: str) -> Said:
    """What is next where something had stopped."""
    if one.kind == "stopped":
        is_run = not one.task_id
        run, tasks = (one.target, ()) if is_run else ("", (one.task_id,))
        return Said(one, "", "", tasks, run, at_once=True)
    next_ = "loki work" if one.kind in {"dead_letter", "blocked", "stuck"} else ""
    return Said(one, done, next_)


def _goes_on(workspace: Workspace, one: Waiting, done: str, *, frees: bool = False) -> Said:
    """What goes on now, unless something else of the task waits still.

    Args:
        workspace: the project.
        one: what was answered; done: how, a sentence.
        frees: a task of the queue was blocked for this alone, and may be claimed again.
    """
    from loki.action.resumption import DONE, status_of
    from loki.memory import task_record

    record = task_record.load(workspace.store, one.task_id) if one.task_id else {}
    left = [o for o in waiting(workspace) if one.task_id in o.tasks and o.kind in ASKS]
    if left and one.task_id:
        return Said(one, done, f"loki approve {left[0].id}")
    if run := str(record.get("run") or ""):
        return Said(one, done, f"loki pipeline resume {shlex.quote(run)}", run=run)
    if reviews.is_queued(workspace, one.task_id):
        if frees:
            reviews.unblock(workspace, one.task_id)
        queued = queue_of(workspace).find(one.task_id)
        if queued is not None and queued.blocked is not None:
            unblock = f"loki queue unblock {shlex.quote(one.task_id)}"
            return Said(one, f"{done}; {one.task_id} stays blocked", unblock)
        return Said(one, done, "loki work")
    if not record or status_of(record) in DONE:
        return Said(one, done)
    command = f"loki resume {shlex.quote(one.task_id)}"
    return Said(one, done, command, resumes=(one.task_id,))

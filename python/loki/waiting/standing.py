"""What has stopped and does not go on by itself: dead letters, recurring tasks, blocked tasks."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from loki.base.time import isoformat
from loki.people.waiting import Answer, Waiting, answers_of

if TYPE_CHECKING:
    from loki.recurrence.queued import QueuedTask
    from loki.recurrence.recurring import RecurringTask, Unreadable
    from loki.waiting.look import Look
    from loki.workspace import Workspace

TRIAGE = "triage"


def dead_letters(_workspace: Workspace, look: Look) -> list[Waiting]:
    """Dead letters that wait for no other task: reviews find few ways on that a person does not know."""
    lists = look.lists
    if lists is None:
        return []
    return [
        _dead_letter(task, look.records.get(task.id) or {})
        for task in lists.of("dead-letter")
        if not any(
            lists.where(id_) in {"pending", "in-progress"}
            for id_ in (*task.dependencies, str(task.raw.get("simpler_task") or ""))
        )
    ]


def _dead_letter(task: QueuedTask, record: Mapping[str, Any]) -> Waiting:
    why = str(task.raw.get("error_summary") or "no reason is known")
    end = "" if why.endswith((".", "!", "?")) else "."
    return Waiting(
        task.id,
        "dead_letter",
        task.title,
        f"It was given up: {why}{end} Is it to be tried again, or abandoned?",
        str(task.raw.get("last_failure") or ""),
        answers_of(task.id, "try it again", "abandon it", "try it again, another way"),
        task.id,
        page=str((record.get("outcome") or {}).get("page") or ""),
    )


def blocked(_workspace: Workspace, look: Look) -> list[Waiting]:
    """Tasks of the queue that nobody may claim."""
    lists = look.lists
    return [
        Waiting(
            task.id,
            "blocked",
            task.title,
            f"It is blocked: {task.blocked.reason or 'nobody said why'}. May it go on?",
            task.blocked.since,
            answers_of(task.id, "let it go on", "give it up", "let it go on, with what you know"),
            task.id,
        )
        for task in (() if lists is None else lists.blocked())
        if task.blocked is not None
    ]


def recurring(_workspace: Workspace, look: Look) -> list[Waiting]:
    """Recurring tasks that stopped as failed, that a triage has paused, or whose file cannot be used."""
    stopped = (_stopped(one) for one in look.recurring)
    return [*map(_unusable, look.unusable), *(one for one in stopped if one is not None)]


def _unusable(task: Unreadable) -> Waiting:
    id_ = shlex.quote(task.id)
    return Waiting(
        task.id,
        "recurring",
        task.id,
        f"It never runs: .loki/recurring/{task.id}/task.json cannot be used: {task.reason}. Mend the "
        "file, or remove the task.",
        "",
        answers_of(
            task.id,
            "it is mended",
            "remove it",
            "",
            Answer("see whether it can be used", f"loki recur show {id_}"),
        ),
    )


def _stopped(task: RecurringTask) -> Waiting | None:
    held = task.stopped or task.paused
    if held is None or held.status == "done":
        return None
    if held.status == "paused" and TRIAGE not in held.by:
        return None  # by a person, who knows
    did = "It stopped, failed" if held.status == "failed" else f"It was paused by {held.by}"
    id_ = shlex.quote(task.id)
    return Waiting(
        task.id,
        "recurring",
        task.title or task.id,
        f"{did}: {held.reason or 'nobody said why'}. Mend the cause, then let it go on.",
        isoformat(held.since),
        answers_of(
            task.id,
            "let it go on",
            "remove it" if held.status == "failed" else "leave it paused",
            "",
            Answer("look at it", f"loki recur show {id_}"),
        ),
    )


def recurring_summary(look: Look) -> list[dict[str, Any]]:
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

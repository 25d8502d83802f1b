"""Tasks of the queue that can never begin: what they wait for is unknown, was given up, or waits for them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from loki.people.waiting import Answer, Waiting, answers_of
from loki.queueing import queue_of
from loki.recurrence import dependency

if TYPE_CHECKING:
    from loki.recurrence.queue_lists import Lists
    from loki.recurrence.queued import QueuedTask
    from loki.waiting.look import Look
    from loki.workspace import Workspace

GONE = frozenset({None, "abandoned", "failed"})
"""Where a task stands that is never completed by itself; what has a dead letter is asked about there."""


BEGIN, GIVE_UP = "begin without it", "give it up"


def stuck(_workspace: Workspace, look: Look) -> list[Waiting]:
    """Pending tasks that nothing but a person lets begin: one entry to a task, or to a circle of them."""
    lists = look.lists
    if lists is None:
        return []
    pending = lists.waiting()
    found = [_alone(one, gone) for one in pending if (gone := never(lists, one))]
    return [*found, *(_circle(lists, names) for names in circles(pending))]


def never(lists: Lists, task: QueuedTask) -> tuple[dependency.Waiting, ...]:
    """What a task waits for in vain."""
    waits = dependency.waits_for(task, lists.where)
    return tuple(one for one in waits if one.where in GONE)


def circles(tasks: Sequence[QueuedTask]) -> list[list[str]]:
    """Tasks that wait for each other, each circle once."""
    waiting = {task.id: task.dependencies for task in tasks}
    found = []
    while names := list(dict.fromkeys(dependency.cycle(waiting, waiting))):
        found.append(names)
        for name in names:
            del waiting[name]
    return found


def _alone(task: QueuedTask, gone: Sequence[dependency.Waiting]) -> Waiting:
    told = ", ".join(f"{one.id} ({one.where or 'which nobody has submitted'})" for one in gone)
    retry = (
        Answer("bring back what it waits for", f"loki queue retry {shlex.quote(one.id)}")
        for one in gone
        if one.where
    )
    return Waiting(
        task.id,
        "stuck",
        task.title,
        f"It can never begin: it waits for {told}. May it begin without?",
        task.submitted_at,
        answers_of(task.id, BEGIN, GIVE_UP, "", *retry),
        task.id,
    )


def _circle(lists: Lists, names: Sequence[str]) -> Waiting:
    first = lists.find(names[0])
    assert first is not None
    return Waiting(
        first.id,
        "stuck",
        first.title,
        f"It can never begin: {' waits for '.join([*names, names[0]])}. May {first.id} begin without?",
        first.submitted_at,
        answers_of(first.id, BEGIN, GIVE_UP),
        first.id,
        others=tuple(names[1:]),
    )


def let_begin(workspace: Workspace, one: Waiting) -> str:
    """A person lets a task begin without what it waits for in vain.

    Args:
        workspace: the project.
        one: what waits.

    Returns:
        What was done, a sentence.

    Raises:
        UsageError: the queue does not have it any more.
    """
    queue = queue_of(workspace)
    lists = queue.lists()
    task = lists.find(one.task_id)
    waits = task.dependencies if task is not None else ()
    vain = {other.id for other in never(lists, task)} if task is not None else set()
    vain |= set(one.tasks)
    queue.edit(one.task_id, dependencies=tuple(id_ for id_ in waits if id_ not in vain))
    return f"{one.task_id} waits no longer for {', '.join(id_ for id_ in waits if id_ in vain)}"

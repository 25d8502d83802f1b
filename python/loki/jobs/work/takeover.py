"""A person goes on with a task of the queue: no worker takes it meanwhile, and its end is the queue's."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from loki.action.changes.unfinished_work import forget
from loki.action.processes.process import outlived_by_commands
from loki.base.error import UsageError
from loki.jobs.queue.lease import Slots
from loki.jobs.queue.project_queue import queue_of
from loki.jobs.queue.worker_lock import Worker
from loki.jobs.work.finish import finish, give_back

if TYPE_CHECKING:
    from loki.jobs.queue.lease import LeasedTask
    from loki.jobs.queue.queue import Queue
    from loki.memory.task_outcome import Outcome
    from loki.workspace import Workspace


@contextmanager
def take_over(workspace: Workspace, task: str) -> Iterator[Callable[[Outcome], object]]:
    """Hold a task of the queue, if it is one, while a person works on it.

    Args:
        workspace: the project.
        task: its id.

    Yields:
        To be called with how it ended; where it is not, the task waits for a person as before.

    Raises:
        UsageError: a worker is at work on it.
        StoreError: the queue cannot be read or written.
    """
    queue = queue_of(workspace)
    waited = _make_ready(queue, task)
    if waited is None:
        yield lambda _: None
        return
    with Worker(workspace.folder) as worker, outlived_by_commands(worker.fileno()):
        claim = queue.lease(worker, Slots(sys.maxsize, lambda queued: queued.id == task))
        if claim is None and queue.where(task) == "in-progress":
            raise UsageError(
                f"a worker has just begun {task}: wait for it, or end `loki work` first"
            )
        finished = []

        def ended(outcome: Outcome) -> None:
            if claim is not None:
                finished.append(finish(queue, claim, outcome))

        try:
            yield ended
        finally:
            if claim is not None and not finished:
                _as_before(queue, claim, waited)


def drop_takeover(workspace: Workspace, task: str, why: str) -> None:
    """A person gave a task up: what is left of it lands nowhere, and the queue knows.

    Args:
        workspace: the project.
        task: its id.
        why: for whoever wonders later.
    """
    queue = queue_of(workspace)
    if queue.where(task) == "in-progress":  # another program has it, or left it there
        queue.take_back(task)
    if queue.where(task) in {"pending", "failed", "dead-letter"}:
        queue.abandon(task, why)
    forget(workspace.folder, workspace.store, task)


def _make_ready(queue: Queue, task: str) -> str | None:
    """Let a task be claimed; why it was blocked, or None where it is no task to claim."""
    where, queued = queue.where(task), queue.find(task)
    if queued is None or where in {None, "completed"}:
        return None
    if where == "in-progress":
        if not queue.is_lost(queued):
            raise UsageError(
                f"a worker is at work on {task}: wait for it, or end `loki work` first"
            )
        queue.reap()
    elif where != "pending":
        queued = queue.requeue(task)
    if queued.blocked is None:
        return ""
    queue.unblock(task)
    return queued.blocked.reason


def _as_before(queue: Queue, claim: LeasedTask, waited: str) -> None:
    if waited:
        give_back(queue, claim, "blocked", waited)
    else:
        give_back(queue, claim, "interrupted", "")

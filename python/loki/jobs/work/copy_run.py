"""One task, from a copy of the project to its landing in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from loki.action.changes.unfinished_work import forget, keep_patch
from loki.execution.assembly import performer as performer_of
from loki.jobs.task_listener import attach
from loki.jobs.work.copy_merger import CopyMerger
from loki.jobs.work.task_copy import copy_of
from loki.memory import task_record
from loki.workspace import Workspace

if TYPE_CHECKING:
    import threading

    from loki.action.loop.performer import Performer
    from loki.action.task import TaskSpec
    from loki.execution.task_session import AgentLike, Task
    from loki.jobs.work.task_copy import Copy
    from loki.memory.task_outcome import Outcome

KEPT = ("success", "unverified")
"""Statuses after which nothing is left unfinished."""


def run_in_copy(
    project: Workspace,
    make_task: Callable[[Workspace], Task],
    make_agent: Callable[[Workspace], AgentLike],
    cancelled: threading.Event,
    may_land: Callable[[], bool] = lambda: True,
) -> Outcome:
    """Work on a task in a copy of the project, and land in the project what succeeds.

    What does not succeed leaves the project as it is; its change is kept as a patch.

    Args:
        project: the project.
        make_task: the task of a workspace, which is the copy's.
        make_agent: who works on it there.
        cancelled: ends all of it, as Ctrl-C does.
        may_land: whether the task is still this worker's.

    Returns:
        How it ended.

    Raises:
        Stopped: it was ended before it began.
        LeaseLost: the task is somebody else's by now; nothing has landed.
        LokiError: it cannot be worked on.
        OSError: the copy could not be made.
    """
    with copy_of(project.project, project.folder, cancelled) as copy:
        workspace = Workspace(copy.root, clock=project.clock, folder=project.folder)
        attach(workspace)
        task = make_task(workspace)
        agent = make_agent(workspace)
        task.has_project = True
        task.make_performer = _performer(workspace, copy, cancelled, may_land)
        try:
            with task as entered:
                outcome = entered.run(agent)
        finally:
            if task_record.load(project.store, task.spec.id).status in KEPT:
                forget(project.folder, project.store, task.spec.id)
            else:
                keep_patch(project.folder, project.store, task.spec.id, copy.root)
    return outcome


def _performer(
    workspace: Workspace,
    copy: Copy,
    cancelled: threading.Event,
    may_land: Callable[[], bool],
) -> Callable[[TaskSpec, int, threading.Event], Performer]:
    def make(spec: TaskSpec, execution: int, _own: threading.Event) -> Performer:
        performer = performer_of(workspace, spec, execution, cancelled)
        performer.land = CopyMerger(performer, copy, workspace.folder, may_land)
        return performer

    return make

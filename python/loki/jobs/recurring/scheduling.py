"""Joins recurring tasks with a workspace: who performs their runs, and where they are kept."""

from __future__ import annotations

import logging
import os
import shlex
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from loki.base.manual_clock import ManualClock
from loki.execution.notify_channels import notifier
from loki.jobs.recurring import command_run, recurring_agent_run
from loki.jobs.recurring.dispatcher import Dispatcher
from loki.jobs.recurring.recurring_outcome import STOPPED, Notice
from loki.jobs.recurring.recurring_run import (
    Running,
    RunPostponed,
    RunRecord,
    RunResult,
    Verdict,
)
from loki.jobs.recurring.recurring_tasks import FOLDER, RecurringTasks, hold_task
from loki.jobs.triage.triages import Triages

if TYPE_CHECKING:
    import threading
    from pathlib import Path

    from loki.config import NotificationKind
    from loki.jobs.recurring.recurring_task import RecurringTask
    from loki.workspace import Workspace


# --- What people are told -----------------------------------------------------------------------------

logger = logging.getLogger("loki")


def noticed(workspace: Workspace) -> Callable[[str, Notice], None]:
    """Tells that a task stopped by itself; what else happens to it stands in the scheduler's log."""

    def tell(id_: str, notice: Notice) -> None:
        if notice.event == STOPPED:
            _tell(workspace, "recurring_stopped", id_, f"stopped: {notice.text}")

    return tell


def _tell(workspace: Workspace, kind: NotificationKind, id_: str, text: str) -> None:
    said, answer = f"The recurring task {id_} {text}", f"loki resume {shlex.quote(id_)}"
    logger.warning("[recurrence] %s; %s", said, answer)
    notifier(workspace).notify(kind, said, task_id=id_, id=id_, answer=answer)


# --- Who performs the runs, and where they are kept ---------------------------------------------------


def recurring_tasks(workspace: Workspace) -> RecurringTasks:
    """The recurring tasks of a project, to read and to change: what cannot be kept is an error."""
    return RecurringTasks(workspace.strict_store)


def dispatcher(workspace: Workspace) -> Dispatcher:
    """What runs the recurring tasks of a project."""
    tasks = RecurringTasks(workspace.store)
    found = Dispatcher(
        tasks,
        WorkspaceRunner(workspace),
        workspace.clock,
        partial(hold_task, workspace.folder, "run"),
        workspace.config.recurrence,
        workspace.config.recurrence.parallel,
    )
    found.tell = noticed(workspace)
    waits, tell = is_simulated(workspace), partial(_tell, workspace, "recurring_paused")
    triages = Triages(workspace, tasks, found.cancelled, waits=waits, tell=tell)
    found.after_round.append(triages.tick)
    found.closing.append(triages.close)
    return found


def is_simulated(workspace: Workspace) -> bool:
    """Whether its clock's waits pass at once."""
    return isinstance(workspace.clock, ManualClock)


class Changes:
    """Tells whether another process changed a task since it was last asked.

    Args:
        folder: the workspace's.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER
        self._seen = self._stamps()

    def __call__(self) -> bool:
        """Whether anything changed."""
        now = self._stamps()
        changed, self._seen = now != self._seen, now
        return changed

    def _stamps(self) -> dict[str, int]:
        found = {}
        try:
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    try:
                        found[entry.name] = os.stat(f"{entry.path}/task.json").st_mtime_ns
                    except OSError:
                        continue
        except OSError:
            pass
        return found


class WorkspaceRunner:
    """A `loki.jobs.recurring.recurring_run.Runner` that works in a project.

    Args:
        workspace: the project.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def run(
        self, task: RecurringTask, running: Running, cancelled: threading.Event
    ) -> RunResult | RunPostponed:
        """Perform a run to its end."""
        workspace, number = self._workspace, running.number
        if task.command:
            passed = workspace.config.loop.pass_environment
            return command_run.run(
                task, number, cancelled, workspace.root, workspace.patterns, passed
            )
        ran = recurring_agent_run.run(workspace, task, number, cancelled)
        is_judged = task.agent is not None and task.agent.evaluate_command is not None
        if isinstance(ran, RunResult) and ran.status == "failed" and ran.task_id and is_judged:
            return replace(ran, status="pending_evaluation")
        return ran

    def evaluate(
        self, task: RecurringTask, run: RunRecord, cancelled: threading.Event
    ) -> Verdict | None:
        """What a reviewer says of a run that failed; None: it could not be asked."""
        return recurring_agent_run.evaluate(self._workspace, task, run, cancelled)

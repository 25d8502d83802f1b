"""Brings what succeeded in a copy into the project: all or none, and never what fails together.

What others landed, or a person edited, since the copy was taken is looked at first. Where it is one
of the task's own files, the work does not fit any more: the task begins again on a copy of the newer
project. Where it is anything else, the copy becomes one of the newer project with the work in it, and
the checks run once more there. That could go on for ever while others land all the time, so from the
second time on the checks run while the project is held.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from loki.action.changes.change import Change, Merged
from loki.action.changes.executor import (
    change_in,
    forget,
    keep_patch,
    move_over,
    work_folder,
)
from loki.action.changes.journal import ApplyError, Conflict, EditConflict, undo_journal
from loki.action.changes.scratch_copy import remove_folder, scratch_folder, update
from loki.action.changes.tree import Tree
from loki.action.checks.task_changes import link_dependency_folders
from loki.base.log import log_event
from loki.execution.stop_request import is_cancelled
from loki.execution.task_session import performer as performer_of
from loki.jobs.task_listener import attach
from loki.memory import task_record
from loki.memory.task_record import DONE, Outcome
from loki.recognition.failure import Failure
from loki.stores.project_lock import Stopped, hold_project, merging
from loki.workspace import Workspace

if TYPE_CHECKING:
    import threading

    from loki.action.loop.performer import Performer
    from loki.action.task import TaskSpec
    from loki.execution.task_session import AgentLike, Task


# --- A copy of the project for one task ---------------------------------------------------------------


class Copy:
    """The project as it was at one moment, in a folder of its own.

    Attributes:
        root: where the project is in it.
        base: its files as they were taken.
    """

    def __init__(self, project: Path, destination: str) -> None:
        """Take it; whoever does holds the project.

        Args:
            project: the project's folder.
            destination: a folder that does not exist.

        Raises:
            OSError: it could not be written.
        """
        self.project = project
        self._destination = destination
        self._seen: Tree | None = None
        self._take()

    def _take(self) -> None:
        self.base = self.now().copy_to(self._destination)
        self.root = Path(self.base.root)
        link_dependency_folders(self.project, self.root)

    def now(self) -> Tree:
        """The project as it is now."""
        self._seen = Tree.scan(self.project, self._seen)
        return self._seen

    def catch_up(self) -> None:
        """What has changed in the project comes into the copy; what was done there stays.

        Needs the project, and that nothing of it was done to the same paths.

        Raises:
            OSError: it could not be written; the copy is of no use then.
        """
        self.base = update(self.base, self.now())

    def begin_again(self) -> None:
        """The project as it is now, in the same place. Needs the project.

        Raises:
            OSError: it could not be written.
        """
        remove_folder(self._destination)
        self._take()


# --- What succeeded in a copy comes into the project --------------------------------------------------

FREE_ROUNDS = 1
"""How often the checks run on a newer project that nobody holds meanwhile. Chosen, not measured."""

MAX_ROUNDS = 6
"""How often the project may change under a task that lands: only people can go on so. Chosen."""

MOST_SHOWN = 4000
"""Characters of its lost work that an agent is shown. Chosen, not measured."""


class LeaseLost(Exception):
    """Somebody else works on the task by now."""


@dataclass
class CopyMerger:
    """Lands the work of one task.

    Args:
        performer: performs the task's effects in the copy.
        copy: the copy.
        folder: the workspace's folder.
        may_land: whether the task is still this worker's; asked while the project is held.
    """

    performer: Performer
    copy: Copy
    folder: Path
    may_land: Callable[[], bool] = lambda: True
    _rounds: int = field(default=0, init=False)

    @property
    def _task(self) -> str:
        return self.performer.task.id

    def __call__(self) -> Merged:
        """Land; `Merged` says what came of it.

        Raises:
            LeaseLost: the task is somebody else's by now; nothing has landed.
            ApplyError: the project's files cannot be written; nothing has landed.
        """
        try:
            with hold_project(self.folder, self.performer.cancelled):
                if not self.may_land():
                    raise LeaseLost
                return self._land()
        except Stopped:
            return Merged(moved=True)  # the driver sees for itself that it is to stop

    def _land(self) -> Merged:
        change = change_in(work_folder(self.folder, self._task))
        if not change.edits:
            return Merged()
        moved = self._moved()
        if not moved:
            return self._apply(change)
        if theirs := [path for path in moved if path in set(change.paths)]:
            why = "somebody else changed it meanwhile"
            return self._conflict([Conflict(path, why) for path in theirs])
        return self._verify(change)

    def _catch_up(self, change: Change) -> None:
        try:
            self.copy.catch_up()
            self.performer.regressions.restart()
        except OSError:  # such as a file where a folder was
            self._begin_again(change)

    def _moved(self) -> tuple[str, ...]:
        """The paths that are others in the project than in the copy as it was taken."""
        return self.copy.base.difference(self.copy.now()).paths

    def _verify(self, change: Change) -> Merged:
        """Check the work once more on the newer project."""
        self._rounds += 1
        if self._rounds > MAX_ROUNDS:
            message = f"the project changed {self._rounds} times while the work was to land in it"
            return Merged(failure=Failure.of(message, tool="loki", error_code="not-landed"))
        log_event(
            self._task, "the project has moved on: the checks run once more with what is new in it"
        )
        try:
            self._catch_up(change)
        except ApplyError as error:  # a file where the work has a folder, or the other way round
            return self._conflict([Conflict(change.paths[0], str(error))])
        # Somebody who does not ask may change it even while it is held.
        is_sure = self._rounds > FREE_ROUNDS and self._passes() and not self._moved()
        return self._apply(change) if is_sure else Merged(moved=True)

    def _apply(self, change: Change) -> Merged:
        # What was ended before may have ended its checks: nothing they say then counts.
        if is_cancelled(self.folder, self._task):
            self.performer.cancelled.set()
        if self.performer.cancelled.is_set():
            raise Stopped
        journal = undo_journal(self.folder, self._task)
        try:
            with merging(self.folder, self._task):
                journal.apply(change)
                journal.finish()
        except EditConflict as conflict:
            return self._conflict(conflict.conflicts)
        log_event(self._task, f"landed: {', '.join(change.paths)}")
        return Merged()

    def _passes(self) -> bool:
        checks = self.performer.checks
        return checks.run(self.performer.task.checks).first_failure is None

    def _begin_again(self, change: Change) -> None:
        self.copy.begin_again()
        self.performer.executor.journal = move_over(self.folder, self._task, change, self.copy.root)
        self.performer.regressions.restart()

    def _conflict(self, conflicts: Sequence[Conflict]) -> Merged:
        work = self.performer.executor.journal.diff()
        self._begin_again(Change.nothing())
        named = "; ".join(f"{one.path}: {one.reason}" for one in conflicts)
        log_event(self._task, f"does not fit the project any more: {named}", warning=True)
        known = self.performer.patterns
        failure = Failure.of(
            f"merge conflict with what others did in the project since the task began: {named}",
            tool="loki",
            error_code="merge-conflict",
            path=conflicts[0].path,
            pattern="merge-conflict" if "merge-conflict" in known.patterns else None,
            patterns=known,
            excerpt=f"Your change was not applied. It was:\n{work[:MOST_SHOWN]}",
        )
        return Merged(failure=failure)


# --- One task, from a copy of the project to its landing in it ----------------------------------------


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
    with scratch_folder() as place:  # after a crash it is gone when the next one is made
        with hold_project(project.folder, cancelled):
            copy = Copy(project.project, os.path.join(place, project.project.name or "project"))
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
            if task_record.load(project.store, task.spec.id).status in DONE:
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

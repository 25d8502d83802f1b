"""One look at a project: tasks, queue, recurring tasks and breakers, each read when it is asked for first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from loki.base.error import LokiError
from loki.execution.resilience import breakers as breakers_of
from loki.jobs.queue.project_queue import queue_of
from loki.memory import task_record
from loki.memory.task_record import TaskRecord

if TYPE_CHECKING:
    from loki.decision.breaker_snapshot import BreakerSnapshot
    from loki.jobs.queue.queue_lists import Lists
    from loki.jobs.recurring.recurring_task import RecurringTask, Unreadable
    from loki.workspace import Workspace


class ProjectSnapshot:
    """What the lists of what waits are made of, read once however many ask.

    Args:
        workspace: the project.

    Attributes:
        unread: why the queue could not be read; "" where it was, or nobody has asked for it.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.unread = ""

    @cached_property
    def records(self) -> dict[str, TaskRecord]:
        """What is kept of each task, by its id."""
        workspace = self._workspace
        return {id_: task_record.load(workspace.store, id_) for id_ in workspace.tasks()}

    def page_of(self, task_id: str) -> str:
        """The page that a task ended with, or ""."""
        record = self.records.get(task_id)
        return (record and record.outcome and record.outcome.page) or ""

    @cached_property
    def lists(self) -> Lists | None:
        """The queue's lists; None where they cannot be read."""
        try:
            return queue_of(self._workspace).lists()
        except LokiError as error:
            self.unread = str(error)
            return None

    @property
    def recurring(self) -> Sequence[RecurringTask]:
        """The recurring tasks that can be run, by their ids."""
        return self._recurring[0]

    @property
    def unusable(self) -> Sequence[Unreadable]:
        """The recurring tasks whose files cannot be used."""
        return self._recurring[1]

    @cached_property
    def _recurring(self) -> tuple[Sequence[RecurringTask], Sequence[Unreadable]]:
        store = self._workspace.store
        if not store.names("recurring/"):  # what reads them takes long to import
            return (), ()
        from loki.jobs.recurring.recurring_task import Unreadable
        from loki.jobs.recurring.recurring_tasks import RecurringTasks

        tasks = RecurringTasks(store).all()
        unusable = [one for one in tasks if isinstance(one, Unreadable)]
        return [one for one in tasks if not isinstance(one, Unreadable)], unusable

    @cached_property
    def breakers(self) -> Mapping[str, BreakerSnapshot]:
        """The circuit breakers by their names."""
        return breakers_of(self._workspace).snapshot()

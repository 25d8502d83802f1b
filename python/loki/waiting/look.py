"""One look at a project: what is kept of its tasks, and its queue, as they are at one moment."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from loki.base.error import LokiError
from loki.memory import task_record
from loki.queueing import queue_of

if TYPE_CHECKING:
    from loki.recurrence.queue_lists import Lists
    from loki.workspace import Workspace


class Look:
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
    def records(self) -> dict[str, dict[str, Any]]:
        """What is kept of each task, by its id."""
        workspace = self._workspace
        return {id_: task_record.load(workspace.store, id_) for id_ in workspace.tasks()}

    @cached_property
    def lists(self) -> Lists | None:
        """The queue's lists; None where they cannot be read."""
        try:
            return queue_of(self._workspace).lists()
        except LokiError as error:
            self.unread = str(error)
            return None

"""What happens to the tasks of a project, and what its queue, dead letters and inbox make of it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from loki.action.processes.command_guard_provider import register
from loki.base.error import StoreError
from loki.execution.assembly import guard
from loki.workspace import TaskListener, Workspace

if TYPE_CHECKING:
    from loki.action.task import TaskSpec
    from loki.memory.dead_letter import DeadLetter, Source
    from loki.memory.task_record import Outcome

logger = logging.getLogger("loki")


class JobListener(TaskListener):
    """Keeps the queue true to what becomes of tasks, whoever works on them.

    Args:
        workspace: the project.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def source_of(self, task: str, run: str) -> Source:
        """How a task came to be worked on."""
        from loki.jobs.dead_letters.dead_letter_intake import source_of

        return source_of(self._workspace, task, run)

    def asked(self) -> None:
        """A person is asked something new: the task is blocked, they are told."""
        from loki.jobs.inbox.human_review_answers import tell

        tell(self._workspace)

    def ended(
        self,
        spec: TaskSpec,
        outcome: Outcome,
        letter: DeadLetter | None,
        agent: Mapping[str, Any] | None,
    ) -> None:
        """Put what was given up among the dead letters; what is achieved ends as that in the queue.

        A stage of a pipeline is no task of the queue: its run is what is tried again.
        """
        from loki.jobs.dead_letters.dead_letter_intake import add
        from loki.jobs.queue.queue import queue_of

        if spec.run:
            return
        try:
            if letter is not None:
                add(self._workspace, spec, letter, agent)
            elif outcome.status == "success":
                queue_of(self._workspace).achieve(spec.id, outcome.to_dict())
        except StoreError as error:  # the loop goes on; a review adds what is missing
            logger.warning(
                "Could not persist: %s. The queue does not know how %s ended.", error, spec.id
            )


def attach(workspace: Workspace) -> None:
    """Have a workspace's tasks heard, and its commands looked after."""
    workspace.listener = JobListener(workspace)
    register(workspace.root, workspace, guard)

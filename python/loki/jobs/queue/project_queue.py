"""The queue of a project: joins it with the project's files, clock, checks and agents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loki.base.error import UsageError
from loki.base.secret import holds_mask, holds_secret, mask_secrets
from loki.jobs.queue.queue import Queue

if TYPE_CHECKING:
    from loki.jobs.queue.queued_task import QueuedTask
    from loki.workspace import Workspace


def queue_of(workspace: Workspace) -> Queue:
    """The queue of tasks that all workers of a project share.

    Example:
        >>> import tempfile
        >>> from loki.workspace import Workspace
        >>> queue_of(Workspace(tempfile.mkdtemp())).tasks()
        []
    """
    # Not the store that goes on in memory: a claim that is not kept is none.
    return Queue(workspace.strict_store, workspace.clock)


def submit(
    workspace: Workspace, tasks: Sequence[QueuedTask], *, validate: bool = True
) -> list[QueuedTask]:
    """Queue tasks, all or none.

    Args:
        workspace: the project.
        tasks: they may depend on each other in any order.
        validate: look now whether each could begin as it is: its checks and its agent are there.

    Raises:
        UsageError: one could not begin, a command holds a secret, an id is taken, or tasks would
            wait for each other.
    """
    for task in tasks:
        try:
            _keep_no_secret(task)
            if validate:
                _must_be_workable(workspace, task)
        except UsageError as error:
            where = f"task {task.id}: " if len(tasks) > 1 else ""
            raise UsageError(f"{where}{error}") from error
    return queue_of(workspace).submit_all(tasks)


def edit(workspace: Workspace, id_: str, changes: Mapping[str, Any]) -> tuple[QueuedTask, bool]:
    """Change what a task of the queue asks for.

    Args:
        workspace: the project.
        id_: its id.
        changes: fields of `loki.jobs.queue.queued_task.QueuedTask`.

    Returns:
        The task; whether it was blocked because it could not be worked on, and no longer is.

    Raises:
        UsageError: it could not begin so, a command holds a secret, or it is completed or unknown.
    """
    from loki.jobs.dead_letters import dead_letter_form
    from loki.jobs.work.finish import CANNOT

    queue = queue_of(workspace)
    if (known := queue.find(id_)) is not None:
        wanted = replace(dead_letter_form.task_of(known), **changes)
        _keep_no_secret(wanted)
        _must_be_workable(workspace, wanted, begins=False)
    task = queue.edit(id_, **changes)
    if task.blocked is None or not task.blocked.reason.startswith(CANNOT):
        return task, False
    return queue.unblock(id_), True


def must_be_whole(task: QueuedTask) -> None:
    """Refuse a task whose commands cannot be run as they were kept.

    Raises:
        UsageError: one of them held a secret.
    """
    for command in _commands(task):
        if holds_mask(command):
            raise UsageError(
                f"`{command}` held a secret, which loki does not keep: submit the task again, with a "
                "program that takes it from its environment"
            )


def _must_be_workable(workspace: Workspace, task: QueuedTask, *, begins: bool = True) -> None:
    from loki.jobs.work import queued_task_spec

    if task.agent and task.agent_command:
        raise UsageError("who works? Expected --agent or --agent-command, not both")
    queued_task_spec.must_be_workable(workspace, task, asks=not begins)
    if task.agent or task.agent_command:
        queued_task_spec.agent_of(workspace, task, queued_task_spec.DefaultAgent())


def _commands(task: QueuedTask) -> Iterator[str]:
    yield from task.checks
    yield from (task.agent_command, task.reviewer_command)


def _keep_no_secret(task: QueuedTask) -> None:
    for command in _commands(task):
        if holds_secret(command):
            raise UsageError(
                "a command holds a secret, which loki does not keep: expected a program that takes "
                f"it from its environment. It was `{mask_secrets(command)}`"
            )

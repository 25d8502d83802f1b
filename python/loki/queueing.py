"""The queue of a project: joins it with the project's files, clock, checks and agents."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from loki.base.error import UsageError
from loki.base.secret import holds_mask
from loki.recurrence.queue import Queue
from loki.stores.files import FileStore

if TYPE_CHECKING:
    from loki.action.agent import Agent, Reviewer
    from loki.recurrence.queued import QueuedTask
    from loki.session import Task
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
    return Queue(FileStore(workspace.folder), workspace.clock)


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
                prepared(workspace, task)
                agent_of(workspace, task)
        except UsageError as error:
            where = f"task {task.id}: " if len(tasks) > 1 else ""
            raise UsageError(f"{where}{error}") from error
    return queue_of(workspace).submit_all(tasks)


def prepared(workspace: Workspace, task: QueuedTask) -> Task:
    """A queued task, to be worked on inside ``with``, with the checks that it names or the default ones.

    Raises:
        UsageError: it cannot begin: a check's program does not exist, or nobody can judge it.
    """
    _must_be_whole(task)
    reviewer = reviewer_of(workspace, task)
    checks = task.checks or workspace.default_checks(task.kind, task.complexity, reviewer)
    title = task.title if not task.description else f"{task.title}\n\n{task.description}"
    return workspace.task(
        title,
        id=task.id,
        kind=task.kind,
        complexity=task.complexity,
        checks=checks,
        scope=task.scope,
        reviewer=reviewer,
        max_attempts=task.max_attempts,
        max_time=task.max_time or None,
        max_tokens=task.max_tokens,
        max_cost=task.max_cost,
    )


def agent_of(workspace: Workspace, task: QueuedTask) -> Agent | None:
    """Who works on a queued task; None: it does not say.

    Raises:
        UsageError: it cannot work: no such program, no key, or its command held a secret.
    """
    from loki import assembly
    from loki.action.words import unrunnable
    from loki.agents.command import CommandAgent

    _must_be_whole(task)
    if task.agent and task.agent_command:
        raise UsageError("who works? Expected an agent or an agent's command, not both")
    if task.briefing not in {"", "stdin", "argument"}:
        raise UsageError(f"briefing is {task.briefing!r}: expected 'stdin' or 'argument'")
    if task.agent:
        return assembly.agent(
            workspace,
            task.agent,
            task.agent_timeout or None,
            reflect=task.reflect,
            pass_environment=task.pass_env,
        )
    if not task.agent_command:
        return None
    found = CommandAgent(
        task.agent_command,
        briefing=task.briefing or None,  # type: ignore[arg-type]
        timeout=task.agent_timeout or workspace.config.loop.agent_timeout,
        reflect=task.reflect,
        pass_environment=task.pass_env or None,
    )
    if problem := unrunnable(found.command, workspace.root, may_come=False):
        raise UsageError(f"unknown agent: {problem}")
    return found


def reviewer_of(workspace: Workspace, task: QueuedTask) -> Reviewer | None:
    """Who judges what no command can check; None: it does not say.

    Raises:
        UsageError: there is no such program.
    """
    from loki.action.words import unrunnable
    from loki.agents.reviewer import CommandReviewer

    if not task.reviewer_command:
        return None
    limit = task.agent_timeout or workspace.config.loop.agent_timeout
    reviewer = CommandReviewer(task.reviewer_command, timeout=limit)
    if problem := unrunnable(reviewer.command, workspace.root, may_come=False):
        raise UsageError(f"unknown reviewer: {problem}")
    return reviewer


def _commands(task: QueuedTask) -> Iterator[str]:
    yield from task.checks
    yield from (task.agent_command, task.reviewer_command)


def _keep_no_secret(task: QueuedTask) -> None:
    from loki.action.specification import MASKED, kept_command

    for command in filter(None, _commands(task)):
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"`{command}` is no command: {error}") from error
        if MASKED in kept_command(words):
            raise UsageError(
                "a command holds a secret, which loki does not keep: expected a program that takes "
                f"it from its environment. It was `{kept_command(words)['command'][0]}`"
            )


def _must_be_whole(task: QueuedTask) -> None:
    for command in _commands(task):
        if holds_mask(command):
            raise UsageError(
                f"`{command}` held a secret, which loki does not keep: submit the task again, with a "
                "program that takes it from its environment"
            )

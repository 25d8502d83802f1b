"""What a queued task is in a workspace: a task with its checks, and who works on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from loki.action.loop.resumption import awaits_approval
from loki.base.error import UsageError
from loki.base.secret import holds_mask, holds_secret, mask_secrets
from loki.base.time import argument_seconds
from loki.execution import resolve
from loki.execution.assembly import TaskRequest, default_checks, human_reviews, task_spec
from loki.jobs.dead_letters import dead_letter_form
from loki.jobs.queue.queue import queue_of
from loki.jobs.queue.queue_lists import EDITED
from loki.jobs.queue.queued_task import QueuedTask
from loki.jobs.work.finish import CANNOT
from loki.memory import task_record
from loki.memory.task_record import Outcome, TaskRecord

if TYPE_CHECKING:
    from loki.action.agent_protocol import Reviewer
    from loki.action.checks.check import Check
    from loki.execution.task_session import AgentLike, Task
    from loki.workspace import Workspace


@dataclass(frozen=True, slots=True)
class DefaultAgent:
    """Who works on tasks that name nobody.

    Attributes:
        agent: as for ``--agent``; agent_command: or a program; "": not said.
    """

    agent: str = ""
    agent_command: str = ""

    def has_somebody(self, queued: QueuedTask) -> bool:
        """Whether anybody is named for a task."""
        return bool(queued.agent or queued.agent_command or self.agent or self.agent_command)

    def must_be_able(self, workspace: Workspace) -> None:
        """Refuse who cannot work, before there is work that they would be asked for.

        Raises:
            UsageError: no such program, no key.
        """
        if self.agent or self.agent_command:
            agent_of(workspace, QueuedTask("any", "any"), self)


def task_of(workspace: Workspace, queued: QueuedTask, *, asks: bool = False) -> Task:
    """The task of a queued one, begun or gone on with.

    A task that had asked for a person and can be claimed has been answered: it goes on from there.

    Args:
        workspace: where it is worked on.
        queued: the task.
        asks: where nothing can tell when it is done, a person is asked in the end: whoever filed it is
            another program, or loki, and cannot name a check.

    Raises:
        UsageError: it cannot be worked on as it was submitted.
    """
    from loki.execution.task_session import new_task  # how work is done is much to load

    must_be_whole(queued)
    reviewer = _reviewer(workspace, queued)
    record = task_record.load(workspace.store, queued.id)
    if _goes_on(workspace, record, queued.id):
        return _gone_on_with(workspace, queued, record, reviewer)

    return new_task(workspace, _request(workspace, queued, reviewer, asks=asks))


def must_be_workable(workspace: Workspace, queued: QueuedTask, *, asks: bool = False) -> None:
    """Refuse a task that `task_of` would refuse, without loading all that works on it.

    Raises:
        UsageError: it cannot be worked on as it was submitted.
    """
    if _goes_on(workspace, task_record.load(workspace.store, queued.id), queued.id):
        task_of(workspace, queued, asks=asks)
        return
    must_be_whole(queued)
    task_spec(workspace, _request(workspace, queued, _reviewer(workspace, queued), asks=asks))


def _goes_on(workspace: Workspace, record: TaskRecord, id_: str) -> bool:
    if record.status != "escalated" or awaits_approval(record):
        return False
    # A worker is nobody who answers: what still asks a person is not settled by going on.
    return not human_reviews(workspace).of_task(id_)


def _request(
    workspace: Workspace, queued: QueuedTask, reviewer: Reviewer | None, *, asks: bool
) -> TaskRequest:
    return TaskRequest(
        _title(queued),
        queued.checks or _default_checks(workspace, queued, reviewer, asks=asks),
        queued.kind,
        queued.complexity,
        queued.max_attempts,
        queued.max_time or None,
        queued.max_tokens,
        queued.max_cost,
        scope=queued.scope,
        reviewer=reviewer,
        id=queued.id,
    )


def _gone_on_with(
    workspace: Workspace,
    queued: QueuedTask,
    record: TaskRecord,
    reviewer: Reviewer | None,
) -> Task:
    """A task where it stopped; what a person has changed of it since is as it is in the queue."""
    from loki.jobs.work.task_interventions import resume

    is_edited = str(queued.raw.get(EDITED) or "") > record.updated_at
    if not is_edited:
        return resume(workspace, queued.id, reviewer=reviewer)
    task = resume(
        workspace,
        queued.id,
        checks=queued.checks or None,
        max_attempts=queued.max_attempts,
        reviewer=reviewer,
    )
    task.spec = replace(
        task.spec,
        title=_title(queued),
        kind=queued.kind,
        complexity=queued.complexity,
        scope=queued.scope,
    )
    return task


def _default_checks(
    workspace: Workspace, queued: QueuedTask, reviewer: Reviewer | None, *, asks: bool
) -> Sequence[str | Check]:
    try:
        return default_checks(workspace, queued.kind, queued.complexity, reviewer)
    except UsageError:
        if not asks:
            raise
        return (f"approval: {_title(queued)}",)


def _title(queued: QueuedTask) -> str:
    """What is to be achieved, in one line."""
    more = " ".join(queued.description.split())
    return f"{queued.title.strip().rstrip(':.')}: {more}" if more else queued.title.strip()


def agent_of(workspace: Workspace, queued: QueuedTask, default: DefaultAgent) -> AgentLike:
    """Who works on a queued task.

    Raises:
        UsageError: nobody is named, or who is cannot work: no such program, no key.
    """
    said = queued if queued.agent or queued.agent_command else default
    limit = (
        argument_seconds("agent_timeout", queued.agent_timeout) if queued.agent_timeout else None
    )
    if said.agent:
        return resolve.named_agent(
            workspace, said.agent, limit, reflect=queued.reflect, pass_environment=queued.pass_env
        )
    if not said.agent_command:
        raise UsageError(
            "nobody is named to work on it: expected --agent or --agent-command, of `loki submit` "
            "or, for all tasks that name nobody, of `loki work`"
        )
    if queued.briefing not in {"", "stdin", "argument"}:
        raise UsageError(f"briefing is {queued.briefing!r}: expected 'stdin' or 'argument'")
    return resolve.program(
        workspace,
        _as_in_project(workspace, said.agent_command),
        limit,
        briefing=queued.briefing or None,  # type: ignore[arg-type]
        reflect=queued.reflect,
        pass_environment=queued.pass_env or None,
    )


def _as_in_project(workspace: Workspace, command: str) -> Sequence[str]:
    """A command's words; a program that the project finds and its copy does not, by its whole path."""
    from loki.action.processes.command_line import (
        find_program,
        leading_assignments,
        split_command_line,
    )

    words = split_command_line(command)
    rest = leading_assignments(words)[1]
    if (
        rest
        and not find_program(rest[0], workspace.root)
        and (found := find_program(rest[0], workspace.project))
    ):
        return (*words[: len(words) - len(rest)], found, *rest[1:])
    return words


def finished(workspace: Workspace, queued: QueuedTask) -> Outcome | None:
    """How a task ended whose worker died right after, before it could say so; else None."""
    record = task_record.load(workspace.store, queued.id)
    is_of_now = record.updated_at >= queued.submitted_at
    if not queued.lost or record.status != "success" or not is_of_now:
        return None
    from loki.action.changes.unfinished_work import forget  # how work is done is much to load

    forget(workspace.folder, workspace.store, queued.id)
    return record.outcome


def _reviewer(workspace: Workspace, queued: QueuedTask) -> Reviewer | None:
    command = queued.reviewer_command and _as_in_project(workspace, queued.reviewer_command)
    return resolve.reviewer(workspace, command)


# --- What comes into the queue, and what is asked for anew --------------------------------------------


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
                _must_be_able_to_begin(workspace, task)
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
    queue = queue_of(workspace)
    if (known := queue.find(id_)) is not None:
        wanted = replace(dead_letter_form.task_of(known), **changes)
        _keep_no_secret(wanted)
        _must_be_able_to_begin(workspace, wanted, begins=False)
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


def _must_be_able_to_begin(workspace: Workspace, task: QueuedTask, *, begins: bool = True) -> None:
    if task.agent and task.agent_command:
        raise UsageError("who works? Expected --agent or --agent-command, not both")
    must_be_workable(workspace, task, asks=not begins)
    if task.agent or task.agent_command:
        agent_of(workspace, task, DefaultAgent())


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

"""A queued task in a workspace: what it is there, how it comes in, where it goes once it was worked on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from loki.action.loop.resumption import awaits_approval
from loki.base.error import UsageError
from loki.base.secret import holds_mask, holds_secret, mask_secrets
from loki.base.time import argument_seconds, isoformat
from loki.execution import resolve
from loki.execution.assembly import TaskRequest, default_checks, human_reviews, task_spec
from loki.jobs.dead_letters import dead_letter_form
from loki.jobs.queue.queue import EDITED, queue_of
from loki.jobs.queue.queued_task import QueuedTask
from loki.memory import task_record
from loki.memory.attempt import DRIFT
from loki.memory.task_record import DONE, Outcome, TaskRecord

if TYPE_CHECKING:
    from loki.action.agent_protocol import Reviewer
    from loki.action.checks.check import Check
    from loki.action.loop.agent_call import AnyAgent
    from loki.execution.task_session import Task
    from loki.jobs.queue.queue import LeasedTask, Queue
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


def agent_of(workspace: Workspace, queued: QueuedTask, default: DefaultAgent) -> AnyAgent:
    """Who works on a queued task.

    Raises:
        UsageError: nobody is named, or who is cannot work: no such program, no key.
    """
    said = queued if queued.agent or queued.agent_command else default
    limit = _limit(queued)
    if said.agent:
        return resolve.named_agent(
            workspace, said.agent, limit, reflect=queued.reflect, pass_environment=queued.pass_env
        )
    if not said.agent_command:
        raise UsageError(
            "nobody is named to work on it: expected --agent or --agent-command, of `loki submit` "
            "or, for all tasks that name nobody, of `loki work`"
        )
    return resolve.program(
        workspace,
        _program(workspace, queued, said.agent_command),
        limit,
        briefing=queued.briefing or None,  # type: ignore[arg-type]
        reflect=queued.reflect,
        pass_environment=queued.pass_env or None,
    )


def _limit(queued: QueuedTask) -> float | None:
    given = queued.agent_timeout
    return argument_seconds("agent_timeout", given) if given else None


def _program(workspace: Workspace, queued: QueuedTask, command: str) -> Sequence[str]:
    if queued.briefing not in {"", "stdin", "argument"}:
        raise UsageError(f"briefing is {queued.briefing!r}: expected 'stdin' or 'argument'")
    return _as_in_project(workspace, command)


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
    from loki.action.changes.executor import forget  # how work is done is much to load

    forget(workspace.folder, workspace.store, queued.id)
    return record.outcome


def _reviewer(workspace: Workspace, queued: QueuedTask) -> Reviewer | None:
    if not queued.reviewer_command:
        return None
    return resolve.reviewer(workspace, _as_in_project(workspace, queued.reviewer_command))


# --- How it comes in, and is changed ------------------------------------------------------------------


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
    if task.agent:
        agent_of(workspace, task, DefaultAgent())
    elif task.agent_command:  # what an agent needs to work is much to load
        from loki.action.processes.command_line import why_not_runnable

        _limit(task)
        command = _program(workspace, task, task.agent_command)
        if problem := why_not_runnable(command, workspace.root, may_come=False):
            raise UsageError(f"unknown agent: {problem}")


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


# --- Where it goes once it has been worked on ---------------------------------------------------------

Place: TypeAlias = Literal[
    "completed", "failed", "dead-letter", "blocked", "paused", "interrupted", "cancelled", "lost"
]
"""What became of a claim; paused, interrupted and blocked tasks are pending again, and so is a cancelled
one until whoever gave it up has put it away."""

EXIT_CODES: dict[Place, int] = {
    "completed": 0,
    "failed": 5,
    "dead-letter": 4,
    "blocked": 3,
    "paused": 6,
    "interrupted": 130,
    "cancelled": 0,
    "lost": 0,
}
"""What ``loki work`` ends with for it."""

CANNOT = "it cannot be worked on"
"""How the reason begins for which a task is blocked that could not even begin."""

SEVERITY = (130, 1, 4, 3, 5, 6, 0)
"""Exit codes, the most severe first: that of all that happened is the command's."""


@dataclass(frozen=True, slots=True)
class Finished:
    """How a task ended, and where it stands now.

    Attributes:
        task: its id; title: what was to be achieved.
        place: where it went.
        reason: why, one sentence.
        outcome: of the loop; None where it did not come to that.
        seconds: how long it was worked on.
    """

    task: str
    title: str
    place: Place
    reason: str = ""
    outcome: Outcome | None = None
    seconds: float = 0.0

    def to_dict(self) -> dict[str, object]:
        """JSON-able form."""
        return {
            "task_id": self.task,
            "title": self.title,
            "result": self.place,
            "reason": self.reason,
            "seconds": round(self.seconds, 3),
            "outcome": self.outcome.to_dict() if self.outcome else None,
        }


def finish(queue: Queue, claim: LeasedTask, outcome: Outcome) -> tuple[Place, str]:
    """Move a task to where its outcome belongs.

    Returns:
        Where that is, and why.

    Raises:
        StoreError: the queue cannot be written; the claim is lost with its worker.
    """
    reason, data = outcome.reason, outcome.to_dict()
    if outcome.status in DONE:
        return _if(queue.complete(claim, data), "completed"), reason
    if outcome.status == "failed" and outcome.trigger == "budget":
        return _if(queue.fail(claim, reason, data), "failed"), reason
    if outcome.status == "failed":
        entry = {"task_id": claim.id, "error_summary": reason, "outcome": data}
        queue.dead_letter(entry, claim)  # where its record was filed already, that one stays
        return _if(queue.where(claim.id) == "dead-letter", "dead-letter"), reason
    if outcome.status == "escalated":
        return give_back(queue, claim, "blocked", _asking(outcome))
    if outcome.status == "paused":
        until = f" (until {isoformat(outcome.retry_at)})" if outcome.retry_at else ""
        return give_back(
            queue, claim, "paused", f"{reason}{until}" if until not in reason else reason
        )
    return give_back(queue, claim, "interrupted", reason)


def give_back(
    queue: Queue,
    claim: LeasedTask,
    place: Literal["blocked", "paused", "interrupted", "cancelled"],
    reason: str,
) -> tuple[Place, str]:
    """Give a task back to the queue; ``blocked`` for nobody but a person.

    Raises:
        StoreError: the queue cannot be written; the claim is lost with its worker.
    """
    went = queue.release(claim, blocked=reason if place == "blocked" else None)
    if went == "dead-letter":
        return "dead-letter", f"too many attempts over its life; at last: {reason}"
    return _if(went is not None, place), reason


def _asking(outcome: Outcome) -> str:
    """What a person has to know who finds the task blocked."""
    page = f"; read .loki/{outcome.page}" if outcome.page else ""
    command = f"approve {outcome.review}" if outcome.review else f"resume {outcome.task_id}"
    if outcome.trigger == DRIFT or outcome.awaiting:  # the one thing that waits for the task
        command = f"approve {outcome.task_id}"
    return f"{outcome.reason}{page}; answer it with `loki {command}`"


def _if(holds: bool, place: Place) -> Place:
    return place if holds else "lost"

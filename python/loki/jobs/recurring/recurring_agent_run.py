"""A run of a recurring task that an agent works on: the closed loop, once."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from loki.action.checks.check import Check, CheckResult
from loki.action.loop.agent_call import breaker_of, is_resilient
from loki.base.error import AgentError, UsageError
from loki.execution import resolve
from loki.execution.assembly import TaskRequest, task_spec
from loki.execution.resolve import breakers as breakers_of
from loki.execution.task_session import performer as performer_of
from loki.jobs.queue.queued_task import QueuedTask
from loki.jobs.recurring.recurring_run import (
    RunPostponed,
    RunRecord,
    RunResult,
    Status,
    Verdict,
)
from loki.jobs.work import queued_task_spec

if TYPE_CHECKING:
    from loki.action.loop.agent_call import AnyAgent
    from loki.jobs.recurring.recurring_task import AgentPart, RecurringTask
    from loki.memory.attempt import Attempt
    from loki.memory.task_record import Outcome
    from loki.workspace import Workspace

BUSY = timedelta(minutes=1)
"""After this a run is tried again that found the project at work; chosen, not measured."""

UNKNOWN = timedelta(minutes=5)
"""The same where a breaker is open and nobody knows until when: its usual cooldown."""

_STATUS: dict[str, Status] = {"success": "success", "interrupted": "cancelled"}
"""Of a run, by the status of its loop; any other has failed."""


def run(
    workspace: Workspace, task: RecurringTask, number: int, cancelled: threading.Event
) -> RunResult | RunPostponed:
    """Have the agent work on it until it succeeds, fails or may not be asked.

    Args:
        workspace: the project.
        task: with its agent.
        number: of the run.
        cancelled: ends the loop when set.

    Raises:
        UsageError: it cannot be run as it is defined: no such agent, no check, no key.
    """
    part = task.agent
    assert part is not None
    queued = _queued(task, part, number)
    agent = _agent_of(workspace, queued)
    if refused := _refused(workspace, agent):
        return refused
    prepared = queued_task_spec.task_of(workspace, queued)
    with ExitStack() as stack:
        try:
            stack.enter_context(workspace.exclusive())
        except UsageError as error:
            return RunPostponed(workspace.clock.now() + BUSY, str(error))
        prepared.has_project = True
        prepared.make_performer = lambda spec, execution, _: performer_of(
            workspace, spec, execution, cancelled
        )
        outcome = stack.enter_context(prepared).run(agent)
    if outcome.status == "paused":
        until = outcome.retry_at or workspace.clock.now() + UNKNOWN
        return RunPostponed(until, outcome.reason)
    return _ran(workspace, outcome)


def evaluate(
    workspace: Workspace, task: RecurringTask, record: RunRecord, cancelled: threading.Event
) -> Verdict | None:
    """What a reviewer says of a run that failed; None: it could not be asked."""
    part = task.agent
    if part is None or part.evaluate_command is None or record.task_id is None:
        return Verdict(False, "nobody evaluates it")
    try:
        reviewer = resolve.reviewer(workspace, part.evaluate_command)
    except UsageError:
        return None
    assert reviewer is not None
    spec = task_spec(workspace, TaskRequest(part.task, id=record.task_id))
    performer = performer_of(workspace, spec, 1, cancelled)
    criterion = Check(
        kind="custom",
        description="The work that this task asks for is done well enough, although the run is "
        f"recorded as failed: {record.reason}",
    )
    attempts = workspace.history(record.task_id).attempts()
    request = performer.judge.asked(criterion, _results(attempts))
    try:
        said = reviewer.review(request)
    except (AgentError, OSError):
        return None
    return Verdict(said.approved is True, said.reason)


def _queued(task: RecurringTask, part: AgentPart, number: int) -> QueuedTask:
    """A run as a task of the queue has it; each begins with a task of its own."""
    limit = part.max_time or task.timeout
    return QueuedTask(
        f"{task.id}-{number}",
        part.task,
        kind=part.kind,
        complexity=part.complexity,
        checks=part.checks,
        scope=part.scope,
        agent=part.agent or "",
        agent_command=part.agent_command or "",
        reviewer_command=part.reviewer_command or "",
        max_attempts=part.max_attempts,
        max_time=f"{limit}s" if limit else "",
    )


def _agent_of(workspace: Workspace, queued: QueuedTask) -> AnyAgent:
    if not (queued.agent or queued.agent_command):
        raise UsageError(
            "who works? Expected --agent or --agent-command (`agent`, `agent_command` in its file)"
        )
    return queued_task_spec.agent_of(workspace, queued, queued_task_spec.DefaultAgent())


def must_be_workable(workspace: Workspace, task: RecurringTask) -> None:
    """Refuse a task for an agent whose runs could not begin.

    Raises:
        UsageError: it cannot be run as it is defined.
    """
    assert task.agent is not None
    queued = _queued(task, task.agent, 1)
    _agent_of(workspace, queued)
    queued_task_spec.must_be_workable(workspace, queued)


def _refused(workspace: Workspace, agent: AnyAgent) -> RunPostponed | None:
    """Where the agent's circuit breaker is open: until when."""
    if is_resilient(agent):  # it passes several, and says so itself
        return None
    now = breakers_of(workspace)[breaker_of(agent)].snapshot()
    if now.state != "OPEN" or now.retry_after == 0:
        return None
    wait = UNKNOWN if now.retry_after is None else timedelta(seconds=now.retry_after)
    why = f"the circuit breaker {now.name} is open: {now.last_error}".rstrip(": ")
    return RunPostponed(workspace.clock.now() + wait, why)


def _ran(workspace: Workspace, outcome: Outcome) -> RunResult:
    attempts = workspace.history(outcome.task_id).attempts()
    last = attempts[-1] if attempts else None
    ran = RunResult(
        _STATUS.get(outcome.status, "failed"),
        stdout=_transcript(outcome, attempts),
        task_id=outcome.task_id,
        reason=outcome.reason if outcome.status != "success" else "",
    )
    if ran.status != "failed" or last is None:
        return ran
    kind = (last.failure or {}).get("kind")
    return replace(
        ran,
        signature=last.signature,
        pattern=outcome.pattern,
        kind=kind if isinstance(kind, str) else None,
    )


def _transcript(outcome: Outcome, attempts: list[Attempt]) -> str:
    """What was tried and what came of it, in plain lines."""
    lines = [f"task {outcome.task_id}: {outcome.status}: {outcome.reason}"]
    for one in attempts:
        lines.append(f"attempt {one.attempt}: {one.result}: {one.action}")
        lines += [f"  error: {one.error}"] if one.error else []
        lines += [f"  check {check.name}: exit code {check.exit_code}" for check in one.checks]
        lines += [f"    {told}" for check in one.checks for told in check.output.splitlines()]
    return "\n".join(lines) + "\n"


def _results(attempts: list[Attempt]) -> tuple[CheckResult, ...]:
    """What the checks of the last attempt said."""
    return tuple(
        CheckResult(
            Check(kind="custom", name=one.name, description=one.name),
            one.passed,
            one.exit_code,
            one.duration_ms / 1000,
            one.output,
        )
        for one in (attempts[-1].checks if attempts else ())
    )

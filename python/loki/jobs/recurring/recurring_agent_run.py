"""A run of a recurring task that an agent works on: the closed loop, once."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from loki.action.agent_protocol import Agent, ReviewRequest
from loki.action.checks.check import Check, CheckResult
from loki.action.loop.agent_call import breaker_of, is_resilient
from loki.base.error import AgentError, UsageError
from loki.execution import resolve
from loki.execution.assembly import TaskRequest, default_checks, task_spec
from loki.execution.resilience import breakers as breakers_of
from loki.execution.resolve import named_agent
from loki.execution.task_session import Task, new_task
from loki.execution.task_session import performer as performer_of
from loki.jobs.recurring.recurring_run import (
    RunPostponed,
    RunRecord,
    RunResult,
    Status,
    Verdict,
)

if TYPE_CHECKING:
    from loki.action.task import TaskSpec
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
    agent = agent_of(workspace, part)
    if refused := _refused(workspace, agent):
        return refused
    prepared = _prepared(workspace, task, part, number, part.max_time or task.timeout)
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
    request = ReviewRequest(
        criterion,
        spec,
        performer.judge.diff(),
        _results(attempts),
        workspace.root,
        cancelled,
    )
    try:
        said = reviewer.review(request)
    except (AgentError, OSError):
        return None
    return Verdict(said.approved is True, said.reason)


def agent_of(workspace: Workspace, part: AgentPart) -> Agent:
    """The agent that a task's file names.

    Raises:
        UsageError: there is none, or it cannot work.
    """
    if part.agent is not None:
        return named_agent(workspace, part.agent)
    if part.agent_command is None:
        raise UsageError(
            "who works? Expected --agent or --agent-command (`agent`, `agent_command` in its file)"
        )
    return resolve.program(workspace, part.agent_command)


def _refused(workspace: Workspace, agent: Agent) -> RunPostponed | None:
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


def spec_of(workspace: Workspace, task: RecurringTask) -> TaskSpec:
    """What a run would be asked to do, to see that it can be.

    Raises:
        UsageError: it cannot be run as it is defined.
    """
    part = task.agent
    assert part is not None
    agent_of(workspace, part)
    return _prepared(workspace, task, part, 1).spec


def _prepared(
    workspace: Workspace,
    task: RecurringTask,
    part: AgentPart,
    number: int,
    max_time: float | None = None,
) -> Task:
    reviewer = resolve.reviewer(workspace, part.reviewer_command)
    request = TaskRequest(
        part.task,
        checks=part.checks or default_checks(workspace, part.kind, part.complexity, reviewer),
        kind=part.kind,
        complexity=part.complexity,
        max_attempts=part.max_attempts,
        max_time=max_time,
        scope=part.scope,
        reviewer=reviewer,
        id=f"{task.id}-{number}",  # each run begins with a task of its own
    )
    return new_task(workspace, request)

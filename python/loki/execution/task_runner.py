"""The whole loop in one call: ``loki.run`` and ``loki.arun``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

from loki.action.checks.check import Check
from loki.base.error import UsageError
from loki.base.time import Duration
from loki.execution import resolve
from loki.execution.assembly import NO_CHECK
from loki.execution.task_session import AgentLike, Task
from loki.memory.task_outcome import Outcome

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from loki.action.agent_protocol import Reviewer


class TaskOptions(TypedDict, total=False):
    """What `loki.Workspace.task` takes besides a title and checks; it says what each means."""

    kind: str
    complexity: str
    max_attempts: int | None
    max_time: Duration | None
    max_tokens: int | None
    max_cost: float | None
    wait: bool | None
    scope: Sequence[str]
    reviewer: Reviewer | None
    id: str | None


def run(
    task: str | Task,
    *,
    agent: AgentLike,
    checks: Sequence[str | Check] = (),
    path: str = ".",
    **options: Unpack[TaskOptions],
) -> Outcome:
    """The whole closed loop: ask the agent, apply, check, until it ends.

    Args:
        task: what is to be achieved, or a task of a workspace.
        agent: a `loki.Agent`, a function from briefing to change, a `loki.LLM`, or a name as for
            `loki.Workspace.agent`, like ``anthropic:claude-opus-4-5``; or several of them: the next
            one is asked where the one before cannot be.
        checks: commands that must exit with 0; only where ``task`` is text. Without any, those of its
            kind, by the project's own commands.
        path: the project's folder; only where ``task`` is text.
        options: kind, complexity, max_attempts, max_time, max_tokens, max_cost, wait, scope, reviewer
            and id, as for `loki.Workspace.task`; only where ``task`` is text.

    Returns:
        The outcome; a task that fails is a value, not an exception.

    Raises:
        UsageError: the task cannot be run as asked: no checks, a program that does not exist, a
            model without a key. Nothing has been run then.
        ConfigError: a file in ``.loki/`` cannot be used.
    """
    prepared = _task(task, checks, path, options)
    worker = resolve.agent(prepared.workspace, agent)
    with prepared as entered:
        return entered.run(worker)


async def arun(
    task: str | Task,
    *,
    agent: AgentLike,
    checks: Sequence[str | Check] = (),
    path: str = ".",
    **options: Unpack[TaskOptions],
) -> Outcome:
    """The same without blocking the event loop."""
    prepared = _task(task, checks, path, options)
    worker = resolve.agent(prepared.workspace, agent)
    with prepared as entered:
        return await entered.arun(worker)


def _task(task: str | Task, checks: Sequence[str | Check], path: str, options: TaskOptions) -> Task:
    if isinstance(task, Task):
        found = task
    else:
        from loki.workspace import Workspace

        workspace = Workspace(path)
        kind, complexity = options.get("kind", "bug_fix"), options.get("complexity", "medium")
        given = checks or workspace.default_checks(kind, complexity, options.get("reviewer"))
        found = workspace.task(task, checks=given, **options)
    if not found.spec.checks:
        raise UsageError(NO_CHECK)
    return found

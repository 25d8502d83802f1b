"""What ``loki edit`` changes of a recurring task that an agent works on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loki.base.error import UsageError

if TYPE_CHECKING:
    from loki.jobs.recurring.recurring_task import RecurringTask


def agent_changes(
    *, agent: str | None, agent_command: str | None, **said: object
) -> dict[str, Any]:
    """What changes in a task's ``agent``; empty where nothing was said.

    Args:
        agent, agent_command: who works from now on: one of them, the other goes.
        said: other fields; None: it stays. ``""`` takes away what may be missing.

    Raises:
        UsageError: two are to work.
    """
    if agent is not None and agent_command is not None:
        raise UsageError("who is to work? Expected --agent or --agent-command, not both")
    changes: dict[str, Any] = {}
    for name, value in said.items():
        if isinstance(value, list):
            changes[name] = tuple(filter(None, value))
        elif value is not None:
            changes[name] = None if value == "" and name.endswith("_command") else value
    if agent is not None or agent_command is not None:
        changes |= {"agent": agent, "agent_command": agent_command}
    return changes


def agent_changed(task: RecurringTask, changes: dict[str, Any]) -> RecurringTask:
    """A task with these changes in its ``agent``; a title that was its words goes with them.

    Raises:
        UsageError: it runs a command, or nothing is left to achieve.
    """
    if not changes:
        return task
    if task.agent is None:
        raise UsageError(
            f"{task.id} runs a command: --task, --check, --agent and the like are for tasks of agents"
        )
    if not changes.get("task", "x").strip():
        raise UsageError("--task is empty: expected what the agent is to achieve")
    after = task.with_(agent=task.agent.model_copy(update=changes))
    is_its_words = task.title == task.agent.task
    return after.with_(title=after.agent.task) if is_its_words and after.agent else after

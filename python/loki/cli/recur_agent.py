"""What ``loki edit`` changes of a recurring task that an agent works on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from loki.action.task import COMPLEXITIES, KINDS
from loki.base.error import UsageError

if TYPE_CHECKING:
    from loki.jobs.recurring.recurring_task import RecurringTask

Text = str | None
Texts = list[str] | None

NewTask = Annotated[
    Text, typer.Option("--task", help="Of an agent's task: what it is to achieve from now on.")
]
NewChecks = Annotated[
    Texts,
    typer.Option(
        "--check",
        help="Likewise: its checks from now on; repeat it for more, '' for the project's own.",
    ),
]
NewReviewer = Annotated[
    Text,
    typer.Option("--reviewer-command", help="Likewise: judges criteria; '' for none."),
]
NewEvaluator = Annotated[
    Text,
    typer.Option("--evaluate-command", help="Likewise: looks at runs that failed; '' for none."),
]
NewKind = Annotated[Text, typer.Option("--kind", help=f"Likewise: {', '.join(KINDS)}.")]
NewComplexity = Annotated[
    Text, typer.Option("--complexity", help=f"Likewise: {', '.join(COMPLEXITIES)}.")
]
NewScope = Annotated[
    Texts,
    typer.Option(
        "--scope",
        help="Likewise: files, folders or globs that it is about; repeat it for more, '' for none.",
    ),
]
NewAttempts = Annotated[
    int | None, typer.Option("--max-attempts", min=1, help="Likewise: attempts in each run.")
]


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

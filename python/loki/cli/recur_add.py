"""``loki recur add``: a new recurring task."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loki.action.task import COMPLEXITIES, KINDS
from loki.base.error import UsageError
from loki.base.time import argument_seconds
from loki.cli.common import AgentCommand, AgentName, Json, Project, open_project, show_json
from loki.cli.recur_show import (
    CronText,
    Every,
    MaxFailureRestarts,
    MaxIterations,
    Timeout,
    Zone,
    added,
    as_data,
    schedule_said,
)
from loki.jobs.recurring.recurring_agent_run import spec_of
from loki.jobs.recurring.recurring_outcome import Work, defined
from loki.jobs.recurring.scheduling import recurring_tasks


def command(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="The command, after --; or --shell, or --task.", metavar="[-- COMMAND]"
        ),
    ] = None,
    cron: CronText = None,
    every: Every = None,
    zone: Zone = None,
    id_: Annotated[
        str | None, typer.Option("--id", help="Names the task. [default: made from its title]")
    ] = None,
    title: Annotated[str, typer.Option(help="In your words. [default: the command]")] = "",
    shell: Annotated[
        str | None,
        typer.Option(help="A command for a shell (sh -c), like 'pg_dump shop | gzip > shop.gz'."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="Or: what an agent is to achieve in each run, as for `loki run`."),
    ] = None,
    agent: AgentName = None,
    agent_command: AgentCommand = None,
    check: Annotated[
        list[str] | None,
        typer.Option(help="With --task: a command that must exit with 0; repeat it for more."),
    ] = None,
    reviewer_command: Annotated[
        str | None, typer.Option(help="With --task: judges criteria that no command can check.")
    ] = None,
    evaluate_command: Annotated[
        str | None,
        typer.Option(
            help="With --task: a reviewer that looks at a run that failed. Where it ends with "
            '{"approved": true} or APPROVED, the run counts as a success: it is rescued.'
        ),
    ] = None,
    kind: Annotated[str, typer.Option(help=f"With --task: {', '.join(KINDS)}.")] = "bug_fix",
    complexity: Annotated[
        str, typer.Option(help=f"With --task: {', '.join(COMPLEXITIES)}.")
    ] = "medium",
    scope: Annotated[
        list[str] | None, typer.Option(help="With --task: a file, folder or glob that it is about.")
    ] = None,
    max_attempts: Annotated[
        int | None, typer.Option(min=1, help="With --task: attempts in each run.")
    ] = None,
    timeout: Timeout = None,
    max_iterations: MaxIterations = None,
    max_failure_restarts: MaxFailureRestarts = None,
    tag: Annotated[
        list[str] | None,
        typer.Option(help="A word to find it by; 'no-recurring-triage' keeps triage away."),
    ] = None,
    pass_env: Annotated[
        list[str] | None,
        typer.Option(help="A variable, or a glob, that a command gets although it looks secret."),
    ] = None,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Add a recurring task, and say when it runs next.

    A command runs without a shell, in the project's folder, with secrets out of its environment. A
    task for an agent goes through the loop of `loki run`: a run succeeds when the checks pass.

    Example: `loki recur add --cron "*/15 * * * *" --timeout 2m -- curl -fsS https://shop.example/health`,
    or `loki recur add --cron @daily --task "make the tests pass" --check "pytest -q" --agent claude`
    """
    workspace = open_project(project)
    agent_part = {
        "task": task,
        "agent": agent,
        "agent_command": agent_command,
        "checks": check or (),
        "reviewer_command": reviewer_command,
        "evaluate_command": evaluate_command,
        "kind": kind,
        "complexity": complexity,
        "scope": scope or (),
        "max_attempts": max_attempts,
    }
    for_task = (agent, agent_command, check, reviewer_command, evaluate_command, max_attempts)
    if task is None:
        if any(one is not None for one in for_task):
            raise UsageError(
                "what is the agent to do? --agent, --check and the like are for --task 'WHAT'"
            )
        work = Work.of_command(words or (), shell, workspace.root)
    elif words or shell:
        raise UsageError("expected a command or --task, not both")
    else:
        work = Work(agent=agent_part)
    made = defined(
        work,
        id_=id_,
        title=title,
        schedule=schedule_said(cron, every, zone, max_iterations, max_failure_restarts),
        timeout=None if timeout is None else argument_seconds("--timeout", timeout),
        tags=tuple(tag or ()),
        pass_environment=tuple(pass_env or ()),
        now=workspace.clock.now(),
    )
    if made.agent is not None:  # say now what would be wrong with every run
        spec_of(workspace, made)
    recurring_tasks(workspace).add(made)
    if json:
        show_json(as_data(made, workspace))
    else:
        typer.echo("\n".join(added(made, workspace)))

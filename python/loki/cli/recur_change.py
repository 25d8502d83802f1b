"""``loki recur add``, ``loki pause``, ``loki edit``, and what `loki resume` does with a recurring task."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loki.action.task import COMPLEXITIES, KINDS
from loki.base.error import UsageError
from loki.base.time import argument_seconds, local_zone
from loki.cli.common import AgentCommand, AgentName, Json, Project, TaskId, open_project, show_json
from loki.cli.recur_show import added, as_data, found, next_of
from loki.jobs.recurring import recurring_outcome
from loki.jobs.recurring.recurring_agent_run import spec_of
from loki.jobs.recurring.recurring_task import CronPart, RecurringTask
from loki.jobs.recurring.scheduling import recurrence_settings, recurring_tasks

if TYPE_CHECKING:
    from loki.workspace import Workspace


# --- What a task's schedule is to be ------------------------------------------------------------------

Zone = Annotated[
    str | None,
    typer.Option(help="Time zone of --cron, like Europe/Berlin. [default: this machine's]"),
]
CronText = Annotated[
    str | None,
    typer.Option(
        help="When: minute, hour, day of month, month, day of week ('30 8 * * mon-fri'); six fields "
        "begin with the second; or @hourly, @daily, @weekly, @monthly, @yearly."
    ),
]
Every = Annotated[
    str | None,
    typer.Option(help="Or again and again, so long after the last one ended: 90s, 10m, 1h30m."),
]
Timeout = Annotated[
    str | None,
    typer.Option(help="Time for a run; a command is ended then and has failed. [default: none]"),
]
MaxIterations = Annotated[
    int | None, typer.Option(min=1, help="With --every: done after so many successful ones.")
]
MaxFailureRestarts = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="With --every: failures in a row that are tried again; one more stops the task, and it "
        "waits for you. [default: 3]",
    ),
]


def schedule_said(
    cron: str | None,
    every: str | None,
    zone: str | None,
    max_iterations: int | None,
    max_failure_restarts: int | None,
) -> dict[str, Any]:
    """What a task's file says of its schedule.

    Raises:
        UsageError: both or none are said, or an option that is for the other.
    """
    if (cron is None) == (every is None):
        raise UsageError(
            "when? Expected --cron 'MINUTE HOUR DAY MONTH WEEKDAY' or --every DURATION, one of them"
        )
    if cron is not None:
        if max_iterations is not None or max_failure_restarts is not None:
            raise UsageError("--max-iterations and --max-failure-restarts are for --every")
        return {"cron": cron, "zone": zone or local_zone()}
    if zone is not None:
        raise UsageError("--zone is for --cron: --every counts from run to run")
    assert every is not None
    if not argument_seconds("--every", every):
        raise UsageError(f"--every is {every}: expected a time above 0, like 10m")
    said = {"delay": every, "max_iterations": max_iterations}
    if max_failure_restarts is not None:
        said["max_failure_restarts"] = max_failure_restarts
    return said


# --- What `loki edit` changes of an agent's recurring task --------------------------------------------


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


# --- The commands -------------------------------------------------------------------------------------


def add(
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
        work = recurring_outcome.Work.of_command(words or (), shell, workspace.root)
    elif words or shell:
        raise UsageError("expected a command or --task, not both")
    else:
        work = recurring_outcome.Work(agent=agent_part)
    made = recurring_outcome.defined(
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


def pause(
    task: TaskId,
    reason: Annotated[str, typer.Option(help="Why; it is shown with the task.")] = "",
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Do not run a recurring task until it is resumed; its failures stay counted.

    A run that is under way goes on to its end.

    Example: `loki pause backup --reason "the disk is being replaced"`
    """
    from loki.people.person import user

    workspace = open_project(project)
    id_, now = found(workspace, task), workspace.clock.now()
    told = f"paused {id_}; loki resume {id_} goes on with it"
    pauses = partial(recurring_outcome.paused, now=now, reason=reason, by=user())
    _change(workspace, id_, "paused", pauses, told, json=json)


def resume(task: TaskId, project: Project = Path(), json: Json = False) -> None:
    """Run a task again that was paused, or that stopped after too many failures.

    What fell into the pause is not made up for. Failures stay counted: the next one is the next in
    the row, and a success ends it.

    Example: `loki recur resume backup`
    """
    workspace = open_project(project)
    resume_recurring(workspace, found(workspace, task), json=json)


def resume_recurring(workspace: Workspace, id_: str, *, json: bool) -> None:
    """Resume a recurring task, and tell so.

    Args:
        workspace: the project.
        id_: of the task, as it is.
        json: tell it as JSON.
    """
    now, known = workspace.clock.now(), recurrence_settings(workspace)
    resumes = partial(recurring_outcome.resumed, now=now, settings=known)
    _change(workspace, id_, "resumed", resumes, f"resumed {id_}", json=json)


def edit(
    task: TaskId,
    cron: CronText = None,
    every: Every = None,
    schedule: Annotated[
        str | None,
        typer.Option(help="Either of them: a duration is --every, anything else is --cron."),
    ] = None,
    zone: Zone = None,
    max_iterations: MaxIterations = None,
    max_failure_restarts: MaxFailureRestarts = None,
    title: Annotated[str | None, typer.Option(help="In your words.")] = None,
    command: Annotated[
        str | None, typer.Option(help="Another command; its words as a shell would split them.")
    ] = None,
    task_text: Annotated[
        str | None,
        typer.Option("--task", help="Of an agent's task: what it is to achieve from now on."),
    ] = None,
    agent: AgentName = None,
    agent_command: AgentCommand = None,
    check: Annotated[
        list[str] | None,
        typer.Option(
            help="Likewise: its checks from now on; repeat it for more, '' for the project's own."
        ),
    ] = None,
    reviewer_command: Annotated[
        str | None, typer.Option(help="Likewise: judges criteria; '' for none.")
    ] = None,
    evaluate_command: Annotated[
        str | None, typer.Option(help="Likewise: looks at runs that failed; '' for none.")
    ] = None,
    kind: Annotated[str | None, typer.Option(help=f"Likewise: {', '.join(KINDS)}.")] = None,
    complexity: Annotated[
        str | None, typer.Option(help=f"Likewise: {', '.join(COMPLEXITIES)}.")
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            help="Likewise: files, folders or globs that it is about; repeat it for more, '' for none."
        ),
    ] = None,
    max_attempts: Annotated[
        int | None, typer.Option(min=1, help="Likewise: attempts in each run.")
    ] = None,
    timeout: Timeout = None,
    tag: Annotated[
        list[str] | None,
        typer.Option(help="Its tags from now on; repeat it for more, '' for none."),
    ] = None,
    reset_failures: Annotated[
        bool,
        typer.Option(
            "--reset-failures",
            help="Forgive the failures in a row: back to the schedule. Those of its life stay.",
        ),
    ] = False,
    clear_triage_cooldown: Annotated[
        bool,
        typer.Option(
            "--clear-triage-cooldown",
            help="The next failure may be triaged, however recent the last.",
        ),
    ] = False,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Change a recurring task: its schedule, its work, or what is counted against it; or a task of the
    queue: its checks, its words, who works on it.

    Work is its command, or of an agent's task what it is to achieve, by whom, and how it is checked. A
    run that is under way goes on as it began.

    Example: `loki edit backup --reset-failures`; `loki edit backup --schedule "30 3 * * *"`;
    `loki edit nightly --task "make the tests pass" --check "pytest -q" --agent codex`;
    `loki edit fix-backup-1 --check "make backup"`
    """
    from loki.cli.queue import edit as edit_queued
    from loki.cli.queue import queued_id

    workspace = open_project(project)
    cron, every = _either(schedule, cron, every)
    changes: dict[str, Any] = {}
    if command is not None:
        changes["command"] = recurring_outcome.Work.of_command(
            [command], None, workspace.root
        ).command
    if title is not None:
        changes["title"] = title
    if timeout is not None:
        changes["timeout"] = argument_seconds("--timeout", timeout)
    if tag is not None:
        changes["tags"] = tuple(filter(None, tag))
    if clear_triage_cooldown:
        changes["last_triaged_at"] = None
    work = agent_changes(
        agent=agent,
        agent_command=agent_command,
        task=task_text,
        checks=check,
        reviewer_command=reviewer_command,
        evaluate_command=evaluate_command,
        kind=kind,
        complexity=complexity,
        scope=scope,
        max_attempts=max_attempts,
    )
    limits = (max_iterations, max_failure_restarts)
    has_schedule = any(one is not None for one in (cron, every, zone, *limits))
    if not (changes or work or has_schedule or reset_failures):
        raise UsageError("what is to change? `loki edit --help` says what can")
    if queued := queued_id(workspace, task, recurring_tasks(workspace).ids()):
        if has_schedule:
            changes["schedule"] = True
        if reset_failures:
            changes["reset_failures"] = True
        edit_queued(workspace, queued, changes | work, json=json)
        return
    id_ = found(workspace, task)
    edits = _edits(workspace, changes, work, (cron, every, zone, *limits), reset=reset_failures)
    _change(workspace, id_, "edited", edits, f"changed {id_}", json=json)


def _either(
    schedule: str | None, cron: str | None, every: str | None
) -> tuple[str | None, str | None]:
    """``--schedule`` as the one that it is."""
    if schedule is None:
        return cron, every
    if cron is not None or every is not None:
        raise UsageError("expected one of --schedule, --cron and --every")
    is_cron = schedule.startswith("@") or " " in schedule.strip()
    return (schedule, None) if is_cron else (None, schedule)


_Schedule = tuple[str | None, str | None, str | None, int | None, int | None]


def _edits(
    workspace: Workspace,
    changes: dict[str, Any],
    work: dict[str, Any],
    said: _Schedule,
    *,
    reset: bool,
) -> Callable[[RecurringTask], RecurringTask]:
    """What makes the changed task of the one that is there."""
    now, known = workspace.clock.now(), recurrence_settings(workspace)

    def edits(task: RecurringTask) -> RecurringTask:
        if "command" in changes and not task.command:
            raise UsageError(f"{task.id} is an agent's task: --command is for those with a command")
        cron, every, zone, *limits = said
        after = agent_changed(task, work).with_(**changes)
        if any(one is not None for one in said):
            part = task.schedule
            if cron is None and every is None:  # only a detail of the schedule that it has
                if isinstance(part, CronPart):
                    cron = part.cron
                else:
                    every = str(part.model_dump(mode="json")["delay"])
                    mine = (part.max_iterations, part.max_failure_restarts)
                    limits = [
                        new if new is not None else old
                        for new, old in zip(limits, mine, strict=True)
                    ]
            if cron is not None and zone is None and isinstance(part, CronPart):
                zone = part.zone
            new = schedule_said(cron, every, zone, limits[0], limits[1])
            data = after.model_dump(mode="json") | {"schedule": new}
            unplanned = recurring_outcome.checked(data).with_(next_run_at=None)
            after = recurring_outcome.replanned(unplanned, now, known)
        if reset:
            after = recurring_outcome.without_failures(after, now, known)
        after = recurring_outcome.checked(after.model_dump(mode="json"))
        if work:  # say now what would be wrong with every run
            spec_of(workspace, after)
        return after

    return edits


def _change(
    workspace: Workspace,
    id_: str,
    event: str,
    change: Callable[[RecurringTask], RecurringTask],
    told: str,
    *,
    json: bool,
) -> None:
    """Change a task, log that a person did, and tell so.

    Raises:
        UsageError: its file cannot be used.
    """
    tasks = recurring_tasks(workspace)
    after = tasks.update(id_, change) or tasks.load(id_)
    tasks.log(workspace.clock.now(), event, id_, by="person")
    if json:
        show_json(as_data(after, workspace))
    else:
        typer.echo("\n".join((told, *next_of(after, workspace))))

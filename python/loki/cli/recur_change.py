"""``loki recur add``, ``loki pause``, ``loki edit``, and what `loki resume` does with a recurring task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loki.base.error import UsageError
from loki.base.time import argument_seconds, local_zone
from loki.cli.common import open_project, picked, present
from loki.cli.options import (
    AgentOptions,
    Json,
    Project,
    RecurringOptions,
    RecurringWork,
    ScheduleOptions,
    TaskId,
    given,
    with_kept_options,
    with_options,
)
from loki.cli.recur_show import added, as_data, found, next_of
from loki.jobs.recurring import recurring_outcome
from loki.jobs.recurring.recurring_agent_run import must_be_workable
from loki.jobs.recurring.recurring_task import CronPart, RecurringTask
from loki.jobs.recurring.scheduling import recurring_tasks

if TYPE_CHECKING:
    from loki.workspace import Workspace


# --- What somebody says of a task, as its file has it -------------------------------------------------


def schedule_said(when: ScheduleOptions) -> dict[str, Any]:
    """What a task's file says of its schedule.

    Raises:
        UsageError: both or none are said, or an option that is for the other.
    """
    said = given(when)
    cron, every = said.pop("cron", None), said.pop("every", None)
    if (cron is None) == (every is None):
        raise UsageError(
            "when? Expected --cron 'MINUTE HOUR DAY MONTH WEEKDAY' or --every DURATION, one of them"
        )
    if cron is not None:
        if set(said) - {"zone"}:
            raise UsageError("--max-iterations and --max-failure-restarts are for --every")
        return {"cron": cron, "zone": when.zone or local_zone()}
    if "zone" in said:
        raise UsageError("--zone is for --cron: --every counts from run to run")
    if not argument_seconds("--every", every):
        raise UsageError(f"--every is {every}: expected a time above 0, like 10m")
    return {"delay": every, **said}


def work_said(who: AgentOptions, work: RecurringWork) -> dict[str, Any]:
    """What a task's file says of an agent's work; ``""`` takes away what may be missing.

    Raises:
        UsageError: two are to work.
    """
    if who.agent is not None and who.agent_command is not None:
        raise UsageError("who is to work? Expected --agent or --agent-command, not both")
    said = {
        name: tuple(filter(None, value)) if isinstance(value, tuple) else value or None
        for name, value in given(work).items()
    }
    if who.names_somebody:
        said |= {"agent": who.agent, "agent_command": who.agent_command}
    return said


def common_said(common: RecurringOptions) -> dict[str, Any]:
    """What a task's file says of its title, time and tags."""
    said = given(common)
    if common.timeout is not None:
        said["timeout"] = argument_seconds("--timeout", common.timeout)
    if common.tags is not None:
        said["tags"] = tuple(filter(None, common.tags))
    return said


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


@with_options
def add(
    when: ScheduleOptions,
    who: AgentOptions,
    work: RecurringWork,
    common: RecurringOptions,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="The command, after --; or --shell, or --task.", metavar="[-- COMMAND]"
        ),
    ] = None,
    id_: Annotated[
        str | None, typer.Option("--id", help="Names the task. [default: made from its title]")
    ] = None,
    shell: Annotated[
        str | None,
        typer.Option(help="A command for a shell (sh -c), like 'pg_dump shop | gzip > shop.gz'."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="Or: what an agent is to achieve in each run, as for `loki run`."),
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
    for_agent = work_said(who, work)
    if task is None:
        if for_agent:
            raise UsageError(
                "what is the agent to do? --agent, --check and the like are for --task 'WHAT'"
            )
        what: dict[str, Any] = {
            "command": recurring_outcome.command_words(words or (), shell, workspace.root)
        }
    elif words or shell:
        raise UsageError("expected a command or --task, not both")
    else:
        what = {"agent": {"task": task, **for_agent}}
    said = {
        **what,
        **common_said(common),
        "timeout": common.timeout,
        "id": id_,
        "schedule": schedule_said(when),
        "pass_environment": pass_env or (),
    }
    made = recurring_outcome.defined(said, workspace.clock.now(), workspace.config.recurrence)
    if made.agent is not None:  # say now what would be wrong with every run
        must_be_workable(workspace, made)
    recurring_tasks(workspace).add(made)
    present(as_data(made, workspace), added(made, workspace), json=json)


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
    now, known = workspace.clock.now(), workspace.config.recurrence
    resumes = partial(recurring_outcome.resumed, now=now, settings=known)
    _change(workspace, id_, "resumed", resumes, f"resumed {id_}", json=json)


@with_kept_options
def edit(
    task: TaskId,
    when: ScheduleOptions,
    who: AgentOptions,
    work: RecurringWork,
    common: RecurringOptions,
    schedule: Annotated[
        str | None,
        typer.Option(help="--cron or --every: a duration is the latter, anything else the former."),
    ] = None,
    command: Annotated[
        str | None, typer.Option(help="Another command; its words as a shell would split them.")
    ] = None,
    task_text: Annotated[
        str | None,
        typer.Option("--task", help="Of an agent's task: what it is to achieve from now on."),
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

    Work is its command, or of an agent's task what it is to achieve, by whom, and how it is checked. What
    is not said stays; '' takes away checks, scope, tags and who judges. A run that is under way goes on
    as it began.

    Example: `loki edit backup --reset-failures`; `loki edit backup --schedule "30 3 * * *"`;
    `loki edit nightly --task "make the tests pass" --check "pytest -q" --agent codex`;
    `loki edit fix-backup-1 --check "make backup"`
    """
    from loki.cli.queue import edit as edit_queued
    from loki.cli.queue import queued_id

    workspace = open_project(project)
    when = _with_either(when, schedule)
    changes = common_said(common)
    if command is not None:
        changes["command"] = recurring_outcome.command_words([command], None, workspace.root)
    if clear_triage_cooldown:
        changes["last_triaged_at"] = None
    of_agent = work_said(who, work) | ({} if task_text is None else {"task": task_text})
    if not (changes or of_agent or given(when) or reset_failures):
        raise UsageError("what is to change? `loki edit --help` says what can")
    if queued := queued_id(workspace, task, recurring_tasks(workspace).ids()):
        if given(when):
            changes["schedule"] = True
        if reset_failures:
            changes["reset_failures"] = True
        edit_queued(workspace, queued, changes | of_agent, json=json)
        return
    id_ = found(workspace, task)
    edits = _edits(workspace, changes, of_agent, when, reset=reset_failures)
    _change(workspace, id_, "edited", edits, f"changed {id_}", json=json)


def _with_either(when: ScheduleOptions, schedule: str | None) -> ScheduleOptions:
    """``--schedule`` as the one that it is."""
    if schedule is None:
        return when
    if when.cron is not None or when.every is not None:
        raise UsageError("expected one of --schedule, --cron and --every")
    is_cron = schedule.startswith("@") or " " in schedule.strip()
    return replace(when, cron=schedule) if is_cron else replace(when, every=schedule)


def _edits(
    workspace: Workspace,
    changes: dict[str, Any],
    work: dict[str, Any],
    when: ScheduleOptions,
    *,
    reset: bool,
) -> Callable[[RecurringTask], RecurringTask]:
    """What makes the changed task of the one that is there."""
    now, known = workspace.clock.now(), workspace.config.recurrence

    def edits(task: RecurringTask) -> RecurringTask:
        if "command" in changes and not task.command:
            raise UsageError(f"{task.id} is an agent's task: --command is for those with a command")
        after = agent_changed(task, work).with_(**changes)
        if given(when):
            data = after.model_dump(mode="json")
            data["schedule"] = schedule_said(_completed(when, task))
            unplanned = recurring_outcome.checked(data).with_(next_run_at=None)
            after = recurring_outcome.replanned(unplanned, now, known)
        if reset:
            after = recurring_outcome.without_failures(after, now, known)
        after = recurring_outcome.checked(after.model_dump(mode="json"))
        if work:  # say now what would be wrong with every run
            must_be_workable(workspace, after)
        return after

    return edits


def _completed(when: ScheduleOptions, task: RecurringTask) -> ScheduleOptions:
    """A schedule of which only a detail is said, or not the zone, with the rest of what the task has."""
    part = task.schedule
    if isinstance(part, CronPart):
        if when.every is not None:
            return when
        return replace(when, **{"cron": part.cron, "zone": part.zone} | given(when))
    if when.cron is not None or when.every is not None:
        return when
    kept = {"every": part.model_dump(mode="json")["delay"]}
    kept |= picked(part, "max_iterations", "max_failure_restarts")
    return replace(when, **kept | given(when))


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
    present(as_data(after, workspace), (told, *next_of(after, workspace)), json=json)

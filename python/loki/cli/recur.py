"""Tasks that come round again: a command or an agent, at times or in a cycle.

`loki recur add --cron "0 2 * * *" -- pg_dump -f backup.sql shop` — every night at two

`loki recur add --every 10m --task "make the tests pass" --check "pytest -q" --agent claude`

`loki tick --watch` runs them when they are due; `loki tick`, from cron or a timer, runs what is due
now.

A run that fails is tried again later and later: twice the schedule's interval, four times, up to a
day, until it succeeds or you say `loki recur edit ID --reset-failures`. Pausing forgets nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loki.base import path_containment
from loki.base.error import UsageError
from loki.cli import recur_change, recur_show
from loki.cli.common import open_project, present, take_signals
from loki.cli.options import Json, Project, TaskId, command_group
from loki.cli.recur_show import found
from loki.jobs.recurring.recurring_tasks import FOLDER, hold_task
from loki.jobs.recurring.scheduling import dispatcher, recurring_tasks

app = command_group(__doc__)


app.command("add", context_settings={"allow_interspersed_args": False})(recur_change.add)
app.command("pause")(recur_change.pause)
app.command("resume")(recur_change.resume)
app.command("edit")(recur_change.edit)


@app.command("list")
def list_(project: Project = Path(), json: Json = False) -> None:
    """List all recurring tasks: status, failures in a row, next run.

    Example: `loki recur list`
    """
    workspace = open_project(project)
    recur_show.list_all(recurring_tasks(workspace).all(), workspace, json=json)


@app.command("show")
def show(task: TaskId, project: Project = Path(), json: Json = False) -> None:
    """Show a task: its schedule, failures, next attempt, last triage and last runs.

    Example: `loki recur show backup`
    """
    workspace = open_project(project)
    recur_show.show(workspace, found(workspace, task), json=json)


@app.command("run")
def run(task: TaskId, project: Project = Path(), json: Json = False) -> None:
    """Run a task now, due or not, paused or not; its outcome counts like any other.

    Exit codes: 0 success, 4 it failed, 6 put off, 130 interrupted.

    Example: `loki recur run backup`
    """
    from loki.cli.tick import tell

    workspace = open_project(project)
    take_signals()
    runs_now = dispatcher(workspace)
    done = runs_now.run_now(found(workspace, task))
    runs_now.close()
    tell(done, json=json)
    if done.busy:
        raise UsageError(f"{done.busy[0]} is running already")
    statuses = [run.status for _, run in done.runs]
    if done.put_off or "pending_evaluation" in statuses[-1:]:
        raise typer.Exit(6)
    if statuses[-1:] not in (["success"], ["rescued"]):
        raise typer.Exit(4)


@app.command("history")
def history(
    task: TaskId,
    output: Annotated[bool, typer.Option("--output", help="Also what the runs printed.")] = False,
    last: Annotated[int, typer.Option(min=1, help="So many of the last runs.")] = 20,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """List a task's runs: when, how they ended, and why; what they printed is kept of the last ten.

    Example: `loki recur history backup --output --last 1`
    """
    workspace = open_project(project)
    recur_show.history(workspace, found(workspace, task), last, json=json, output=output)


@app.command("remove")
def remove(task: TaskId, project: Project = Path(), json: Json = False) -> None:
    """Remove a task with all that is kept of its runs.

    Example: `loki recur remove backup`
    """
    workspace = open_project(project)
    id_ = found(workspace, task)
    with hold_task(workspace.folder, "run", id_) as is_ours:
        if not is_ours:
            raise UsageError(f"{id_} is running: pause it, and remove it when the run has ended")
        recurring_tasks(workspace).remove(id_)
        path_containment.remove_tree(workspace.folder, f"{FOLDER}/{id_}")
    present({"id": id_, "removed": True}, f"removed {id_}", json=json)

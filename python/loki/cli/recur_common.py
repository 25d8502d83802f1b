"""What the commands for recurring tasks share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from loki.base.error import UsageError
from loki.base.time import argument_seconds
from loki.base.time_zone import local_zone
from loki.cli.show import find

if TYPE_CHECKING:
    from loki.workspace import Workspace

Id = Annotated[str, typer.Argument(help="Id of the task, or how it begins.")]
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


def found(workspace: Workspace, wanted: str) -> str:
    """The id of a recurring task.

    Raises:
        UsageError: there is none, or several begin so.
    """
    from loki.jobs.recurring.scheduling import recurring_tasks

    return find(recurring_tasks(workspace).ids(), wanted, "recurring task")


def recurring_id(workspace: Workspace, wanted: str) -> str | None:
    """The recurring task that a command for tasks of either kind means; None: it means none.

    A task of its own of exactly that id comes first, then a recurring one, by its whole id or, where
    no task begins so, by its beginning.
    """
    from loki.jobs.recurring.scheduling import recurring_tasks

    ids, tasks = recurring_tasks(workspace).ids(), workspace.tasks()
    if wanted in tasks:
        return None
    if wanted in ids:
        return wanted
    begun = [id_ for id_ in ids if id_.startswith(wanted)]
    if wanted and len(begun) == 1 and not any(task.startswith(wanted) for task in tasks):
        return begun[0]
    return None


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

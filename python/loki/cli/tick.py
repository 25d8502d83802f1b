"""``loki tick``: run the recurring tasks that are due."""

from __future__ import annotations

import json as jsonlib
from contextlib import nullcontext
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loki.base.error import UsageError
from loki.base.text_format import amount, line
from loki.base.time import argument_seconds, isoformat, moment
from loki.cli.common import colored, load_project, log_to_console, take_signals
from loki.cli.options import JsonLines, Project
from loki.execution.stop_request import Word, listening
from loki.jobs.recurring import scheduling
from loki.jobs.recurring.recurring_task import Unreadable
from loki.jobs.recurring.recurring_tasks import RecurringTasks

if TYPE_CHECKING:
    from loki.jobs.recurring.dispatcher import Dispatcher, DispatchRound
    from loki.workspace import Workspace


def command(
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on, and run each task when it is due.")
    ] = False,
    for_: Annotated[
        str | None, typer.Option("--for", help="With --watch: end after so long, like 8h.")
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(help="With --watch: end at this moment, like 2026-04-04T18:00:00Z."),
    ] = None,
    project: Project = Path(),
    json: JsonLines = False,
) -> None:
    """Run the recurring tasks that are due, and wait for them; act on the signals that wait.

    Each runs once, whatever was missed while nothing watched, and in one process at a time: several
    of these may run. With --watch it goes on until Ctrl-C, which ends what runs and counts no failure
    for it. Dead letters are reviewed where that is due, before that and once a day.

    Example: `loki tick --watch`; from cron: `* * * * * cd /srv/shop && loki tick`
    """
    from loki.cli.dead_letters import echo
    from loki.jobs.dead_letters.dead_letters import Daily
    from loki.jobs.signals.signal_handling import attend, followed
    from loki.jobs.work.worker_pool import run_maintenance

    log_to_console()
    take_signals()
    workspace = load_project(project)
    run_maintenance(workspace, echo)
    unusable = _tell_unusable(workspace)
    dispatcher = scheduling.dispatcher(workspace)
    if not watch:
        if for_ is not None or until is not None:
            raise UsageError("--for and --until are for --watch")
        with listening(workspace.folder, partial(on_word, dispatcher)):
            done = dispatcher.tick()
            dispatcher.close()
        attend(workspace)
        nothing = "Nothing else was due." if unusable else "Nothing was due."
        tell(done, json=json, also_nothing=nothing)
        return
    is_simulated = scheduling.is_simulated(workspace)
    daily = Daily(workspace, echo)
    if is_simulated:
        dispatcher.after_round.append(daily)
    with (
        nullcontext() if is_simulated else followed(workspace, daily),
        listening(workspace.folder, partial(on_word, dispatcher)),
    ):
        dispatcher.watch(
            _end(for_, until, workspace.clock.now()),
            heard=lambda done: tell(done, json=json),
            has_changed=scheduling.Changes(workspace.folder),
            is_simulated=is_simulated,
        )


def _tell_unusable(workspace: Workspace) -> bool:
    """Tell of tasks that never run, as their file is torn or says what cannot be; whether there are any."""
    found = [one for one in RecurringTasks(workspace.store).all() if isinstance(one, Unreadable)]
    for one in found:
        id_ = line(one.id)
        told = (
            f".loki/recurring/{id_}/task.json cannot be used, so it never runs: {line(one.reason)}"
        )
        typer.secho(f"loki: {told}; mend it, or loki recur remove {id_}", err=True, fg="red")
    return bool(found)


def on_word(dispatcher: Dispatcher, word: Word) -> None:
    """A person ends all that is at work here.

    Args:
        dispatcher: what runs here; word: what they say.
    """
    if word == "stop":
        dispatcher.cancelled.set()
    dispatcher.draining.set()


def _end(for_: str | None, until: str | None, now: datetime) -> datetime | None:
    if for_ is not None and until is not None:
        raise UsageError("expected --for or --until, not both")
    if for_ is not None:
        return now + timedelta(seconds=argument_seconds("--for", for_))
    found = moment(until) if until is not None else None
    if until is not None and found is None:
        raise UsageError(f"--until is {until!r}: expected a moment like 2026-04-04T18:00:00Z")
    return found


def tell(done: DispatchRound, *, json: bool, also_nothing: str = "") -> None:
    """What a round did; where it did nothing, that in these words."""
    if not (done.runs or done.put_off or also_nothing):
        return
    if json:
        typer.echo(jsonlib.dumps(_as_data(done)))
        return
    for id_, run in done.runs:
        why = f": {line(run.reason, 160)}" if run.reason else ""
        missed = f" ({amount(run.missed, 'missed run')} before it)" if run.missed else ""
        status = f"{colored(run.status)}{why}{missed}"
        typer.echo(f"{isoformat(run.started_at)} {id_} run {run.number} {status}")
    for id_, put_off in done.put_off:
        typer.echo(f"{id_} put off until {isoformat(put_off.until)}: {line(put_off.reason, 160)}")
    if not (done.runs or done.put_off):
        typer.echo(also_nothing)


def _as_data(done: DispatchRound) -> dict[str, Any]:
    return {
        "runs": [{"task": id_, **run.model_dump(mode="json")} for id_, run in done.runs],
        "put_off": [
            {"task": id_, "until": isoformat(one.until), "reason": one.reason}
            for id_, one in done.put_off
        ],
        "busy": done.busy,
    }

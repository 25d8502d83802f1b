"""``loki cancel``, ``loki drain`` and ``loki stop``: a person ends what is under way."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loki.base.text_format import line
from loki.base.time import argument_seconds
from loki.cli.common import conflicts_of, fail, find, load_project, present, show_json
from loki.cli.options import Force, Json, Project

if TYPE_CHECKING:
    from loki.execution.stop_request import Word

Wait = Annotated[str, typer.Option(help="How long to wait for it, like 30s or 2h.")]


def cancel(
    task: Annotated[str, typer.Argument(help="Id of the task or run, or how it begins.")],
    reason: Annotated[str, typer.Argument(help="Why, for whoever wonders later.")] = "",
    force: Force = False,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Give a task, or a run of a pipeline, up, wherever it stands: waiting, under work in any process, or
    stopped.

    Whoever works on it is ended, with all that it runs; nothing of it lands in the project, and what
    it had changed there is restored. A task is kept in abandoned; `loki queue retry` brings it back. The
    same as `loki resume --abort`. Of a run, all stages are undone; commands of a rollback are not run.

    Exit codes: 0 given up, 1 files changed since, 2 it has ended already, or does not end.

    Example: `loki cancel fix-login "the page is gone"`
    """
    from loki.action.pipelines import pipeline_record
    from loki.jobs.queue.queue import queue_of
    from loki.jobs.work.task_interventions import give_up
    from loki.people.person import user

    workspace = load_project(project)
    known = {*workspace.tasks(), *queue_of(workspace).lists().ids()}
    runs = {*pipeline_record.ids(workspace.store)} - known
    found = find(sorted({*known, *runs}), task, "task and no run")
    if is_run := found in runs:
        undone = give_up(workspace, found, user(), reason, force=force)
    else:
        undone = workspace.abort(found, force=force, why=reason)
    stays_open = bool(undone.conflicts) and not force
    if json and (is_run or not stays_open):
        name = "run" if is_run else "task_id"
        show_json({name: found, "status": "failed", "restored": list(undone.restored)})
    for path in () if json else undone.restored:
        typer.echo(f"restored {path}")
    if stays_open:
        what = "the run" if is_run else "nothing was restored and the task"
        why = f"files changed since ({conflicts_of(undone)}); --force overwrites them"
        fail(f"{what} stays open, because {why}", 1)
    told = f"`loki show {shlex.quote(found)}` still tells every attempt"
    if is_run:
        told = f"`loki pipeline show {shlex.quote(found)}` still tells every stage"
    elif found not in workspace.tasks():
        told = "it was never begun"
    if not json:
        typer.echo(f"aborted {found}: {told}.")


def drain(wait: Wait = "24h", project: Project = Path(), json: Json = False) -> None:
    """Let every worker of the project end once it has done what it has in hand; wait for that.

    Workers take nothing more from the queue, the dispatcher begins no run. What is begun afterwards is
    not meant.

    Exit codes: 0 nobody is at work, 1 somebody still is.

    Example: `loki drain --wait 10m`
    """
    _say("drain", wait, project, json)


def stop(wait: Wait = "30s", project: Project = Path(), json: Json = False) -> None:
    """End all that is at work on the project, at once, in whichever process; wait for that.

    Tasks of the queue go back to pending, others can be gone on with by `loki resume`; nothing is lost,
    and nothing half done lands. What is begun afterwards is not meant.

    Exit codes: 0 nobody is at work, 1 somebody still is.

    Example: `loki stop`
    """
    _say("stop", wait, project, json)


def _say(word: Word, wait: str, project: Path, json: bool) -> None:
    from loki.jobs.work.task_interventions import broadcast

    there = broadcast(load_project(project).folder, word, argument_seconds("--wait", wait))
    nothing = "" if there else "Nobody is at work on the project."
    present({"said": word, "at_work": there}, nothing, json=json)
    if there:
        fail(f"still at work: {line(', '.join(there))}; whoever hears it ends", 1)

"""Show the signals of a project, act on those that wait, and give new ones.

A signal is a file in `.loki/signals/`. Programs, agents and people write it; its one consumer acts
on it and removes it. One of a run that is over never acts.

`loki signals` — what waits, from whom, since when, and what happens next?

`loki signals give FEATURE_READY login` — the login is ready to be tested

`loki signals handle` — act on what waits, now

`loki signals watch` — the same at once whenever a signal comes, until Ctrl-C
"""

from __future__ import annotations

import json as jsonlib
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loki.base.text_format import amount, line
from loki.base.time import isoformat
from loki.cli.common import (
    colored,
    find,
    name_and_value,
    open_project,
    present,
    take_signals,
    time_between,
)
from loki.cli.options import Json, Project, command_group, listing
from loki.execution.assembly import signals_of
from loki.people.signal import FOLDER, KINDS, Signal

if TYPE_CHECKING:
    from loki.jobs.signals.signal_handling import Handled
    from loki.workspace import Workspace


def _kinds() -> str:
    rows = [
        f"| {kind.pattern} | {kind.meaning}: from {kind.producer}, for {kind.consumer} |"
        for kind in KINDS.values()
    ]
    return "\n".join(["| KIND | MEANS |", "|---|---|", *rows])


app = command_group(f"{__doc__}\n{_kinds()}")

Id = Annotated[str, typer.Argument(help="Id of the signal, its file's name, or how either begins.")]


@listing(app)
def list_(
    all_: Annotated[
        bool, typer.Option("--all", help="Also those that are done, or of another run.")
    ] = False,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """List what waits: from whom, since when, and what happens next. Same as no command.

    Example: `loki signals list --all`
    """
    workspace = open_project(project)
    signals = signals_of(workspace)
    known = signals.all()
    shown = known if all_ else [one for one in known if one.standing in {"pending", "unreadable"}]
    lines = [told for one in shown for told in _told(one, workspace)]
    if rest := len(known) - len(shown):
        lines.append(f"{amount(rest, 'signal')} of other runs, or done: loki signals --all")
    if not known:
        lines.append("No signal waits: see `loki signals --help` for what there is.")
    told = "is no signal; see `loki signals --help`"
    lines += [f".loki/{line(name)}: {told}" for name in signals.foreign()]
    present([one.to_dict() for one in shown], lines, json=json)


@app.command("show")
def show(id: Id, project: Project = Path(), json: Json = False) -> None:  # noqa: A002
    """Show all that a signal says.

    Example: `loki signals show DOCS_NEEDED`
    """
    workspace = open_project(project)
    signal = _find(workspace, id)
    said = (
        f"  {line(name)}: {line(value if isinstance(value, str) else jsonlib.dumps(value))}"
        for name, value in signal.data.items()
    )
    present(signal.to_dict(), (*_told(signal, workspace), *said), json=json)


@app.command("give")
def give(
    kind: Annotated[str, typer.Argument(help="One of the kinds in `loki signals --help`.")],
    name: Annotated[
        str | None, typer.Argument(help="Of the feature or the branch, for kinds that have one.")
    ] = None,
    said: Annotated[
        list[str] | None,
        typer.Option("--say", help="What it says, as KEY=VALUE; may be given again."),
    ] = None,
    description: Annotated[str, typer.Option("--description", help="Same as --say for it.")] = "",
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Give a signal.

    Example: `loki signals give DOCS_NEEDED --description "The login takes a token now"`
    """
    data = dict(name_and_value("--say", one, "what it says") for one in said or ())
    if description:
        data["description"] = description
    signal = signals_of(open_project(project)).emit(kind, name or "", data)
    told = f"given: {line(signal.label)} ({signal.id}); next: {signal.about.next}"
    present(signal.to_dict(), told, json=json)


@app.command("clear")
def clear(id: Id, project: Project = Path(), json: Json = False) -> None:  # noqa: A002
    """Remove a signal that nobody is to act on.

    Example: `loki signals clear MERGE_REQUESTED_login`
    """
    workspace = open_project(project)
    signal = _find(workspace, id)
    gone = signals_of(workspace).clear(signal)
    label = line(signal.label)
    told = f"cleared: {label}" if gone else f"{label} has been given anew just now: it stays"
    present({**signal.to_dict(), "cleared": gone}, told, json=json)


@app.command("handle")
def handle(project: Project = Path(), json: Json = False) -> None:
    """Act on what waits: run tests, queue tasks, merge where that is allowed.

    Example: `loki signals handle --json`
    """
    from loki.jobs.signals.signal_handling import handle as handle_all

    take_signals()
    workspace = open_project(project)
    found = handle_all(workspace)
    handled = {one.signal.id for one in found}
    others = [one for one in signals_of(workspace).pending() if one.id not in handled]
    left = (f"waits: {line(one.label)}: for {one.about.consumer}" for one in others)
    lines = (*_tell(found), *left)
    present([one.to_dict() for one in found], lines, json=json, nothing="No signal waits.")


@app.command("watch")
def watch(project: Project = Path(), json: Json = False) -> None:
    """Act on signals as they come, until Ctrl-C.

    Example: `loki signals watch`
    """
    from loki.execution.stop_request import listening
    from loki.jobs.signals.signal_handling import changes
    from loki.jobs.signals.signal_handling import handle as handle_all

    take_signals()
    workspace, cancelled = open_project(project), threading.Event()
    told: dict[str, str] = {}
    with listening(workspace.folder, lambda _: cancelled.set()):
        for _ in changes(workspace.folder / FOLDER, cancelled):
            found = handle_all(workspace)
            new = [one for one in found if one.done or told.get(one.signal.id) != one.told]
            told = {one.signal.id: one.told for one in found if not one.done}
            for line_ in (jsonlib.dumps(one.to_dict()) for one in new) if json else _tell(new):
                typer.echo(line_)


def _find(workspace: Workspace, wanted: str) -> Signal:
    known = [one for one in signals_of(workspace).all() if one.standing != "handled"]
    by_file = {one.file.partition("/")[2]: one for one in known}
    by_id = {one.id: one for one in known}
    if wanted in by_file or any(name.startswith(wanted) for name in by_file):
        return by_file[find(list(by_file), wanted, "signal")]
    return by_id[find(list(by_id), wanted, "signal")]


def _told(signal: Signal, workspace: Workspace) -> Iterable[str]:
    standing = colored(signal.standing)
    since = ""
    if signal.given_at is not None:
        ago = time_between(signal.given_at, workspace.clock.now())
        since = f", {ago} ago ({isoformat(signal.given_at)})"
    by = signal.string_field("agent") or signal.string_field("by")
    by = f" from {line(by, 60)}" if by else ""
    task = signal.string_field("task_id")
    task = f", task {line(task, 80)}" if task else ""
    yield f"{signal.id}  {standing}  {line(signal.label, 100)}{by}{task}{since}"
    if signal.problem:
        yield f"    {line(signal.problem, 200)}"
    if signal.standing == "pending":
        yield f"    {signal.about.meaning}; next, by {signal.about.consumer}: {signal.about.next}"
    texts = map(signal.string_field, ("description", "reason", "detected_drift"))
    if said := next(filter(None, texts), ""):
        yield f"    said: {line(said, 200)}"


def _tell(found: Iterable[Handled]) -> Iterator[str]:
    for one in found:
        word = typer.style("done", fg="green") if one.done else typer.style("waits", fg="yellow")
        yield f"{word}: {line(one.signal.label, 100)}: {line(one.told, 400)}"

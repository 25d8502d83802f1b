"""``loki close``: the end of a run, and what is to be learned from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loki.base.error import UsageError
from loki.base.text_format import amount
from loki.cli.common import load_project, present, project_option
from loki.cli.options import Json, Project

if TYPE_CHECKING:
    from loki.execution.assembly import Runs
    from loki.memory.run_close import Closed


def command(
    branch: Annotated[
        str | None,
        typer.Option(help="The git branch whose run ends. [default: the one checked out]"),
    ] = None,
    all_: Annotated[
        bool,
        typer.Option("--all", help="The runs of every branch that is merged or deleted."),
    ] = False,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """End a run: all work on one git branch, and the signs that bind it.

    A sign says: this failure came back, what led to it leads nowhere, do not do it again. Signs of
    tasks that did not succeed become candidates for lasting rules, which `loki review` shows to
    you; none holds before you approve it. Attempts, pages and what `loki undo` needs stay.

    The run of a branch that is merged or deleted ends by itself at the next `loki run`.

    Example: `loki close --branch fix-login`
    """
    if all_ and branch is not None:
        raise UsageError("--all and --branch exclude each other: say one of them")
    workspace = load_project(project)
    with workspace.exclusive():
        runs = workspace.runs()
        closed = runs.close_ended() if all_ else _one(runs, branch)
    lines = [told for one in closed for told in _tell(one)]
    if any(one.candidates for one in closed):
        lines.append(f"decide: loki review{project_option(project)}")
    what = "no branch with an open run is merged or deleted" if all_ else "no run is open here"
    nothing = f"Nothing to close: {what}."
    present([one.to_dict() for one in closed], lines, json=json, nothing=nothing)


def _one(runs: Runs, branch: str | None) -> list[Closed]:
    found = runs.close(branch)
    if found is None and branch is not None:
        known = ", ".join(run.branch or "(no branch)" for run in runs.open())
        raise UsageError(f"no run is open on {branch!r}; open are: {known or 'none'}")
    return [found] if found else []


def _tell(closed: Closed) -> Iterator[str]:
    name = closed.branch or "no branch"
    why = "" if closed.reason == "closed" else f", which is {closed.reason}"
    yield f"closed the run on {name}{why}: {amount(closed.signs, 'sign')}"
    yield from (f"candidate {one.id}: {one.name}" for one in closed.candidates)

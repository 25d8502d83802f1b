"""``loki approve`` and ``loki reject``: one command answers anything that waits for a person."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from loki.base.error import UsageError
from loki.cli.common import amount, line, log_to_console, show_json, speaks_plainly

if TYPE_CHECKING:
    from loki.people.waiting import Waiting
    from loki.waiting.answers import Said
    from loki.workspace import Workspace

Which = Annotated[
    Optional[str],  # noqa: UP045
    typer.Argument(
        metavar="[ID]",
        help="As `loki status` shows it, or how it begins, or the id of a task; what waits where "
        "that is one thing alone.",
    ),
]
By = Annotated[str, typer.Option(help="Who decides. [default: the user of this machine]")]
Project = Annotated[Path, typer.Option(help="The project's folder.")]
Json = Annotated[bool, typer.Option("--json", help="What was done as JSON on stdout.")]


@speaks_plainly
def approve(
    id_: Which = None,
    note: Annotated[str, typer.Option(help="Why, for the record.")] = "",
    context: Annotated[
        str,
        typer.Option(
            help="What you know and the agent cannot; every later briefing has it. Where the agent "
            "asks something, that is the answer."
        ),
    ] = "",
    by: By = "",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the task at once, as `loki resume` does.")
    ] = False,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Say yes to something that waits for you: `loki status` lists it.

    What is approved is exactly what was shown: a command word by word, a change, a criterion of this
    content, a stage of this run. Says which command goes on with the task; an escalation and a stage
    of a pipeline go on at once.

    Exit codes: 0 answered, 2 nothing of that id waits; where it goes on, those of `loki run`.

    Example: `loki approve review-3f9a2c`; `loki approve review-3f9a2c --context "use the staging key"`
    """
    from loki.waiting import answers

    workspace, one = _begin(id_, project, json=json)
    said = answers.approve(workspace, one, by.strip() or _user(), note, context)
    _end(said, project, context, resume=resume, json=json, yes=True, by=by, note=note)


@speaks_plainly
def reject(
    id_: Which = None,
    note: Annotated[str, typer.Option(help="Why; the agent is told.")] = "",
    by: By = "",
    abort: Annotated[
        bool, typer.Option("--abort", help="Give the task up, and restore its files.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the task at once, as `loki resume` does.")
    ] = False,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Say no to something that waits for you: `loki status` lists it.

    The agent is told why, and looks for another way; with --abort the task is given up. Rejecting an
    escalation gives its task up, too, and rejecting a stage ends the pipeline's run.

    Exit codes: 0 answered, 1 files changed since, 2 nothing of that id waits, or no reason was given.

    Example: `loki reject review-3f9a2c --note "not on a Friday"`
    """
    from loki.waiting import answers

    workspace, one = _begin(id_, project, json=json)
    if not note.strip() and not abort and one.kind != "escalation":
        raise UsageError(f"rejecting {one.id} needs a reason: --note; the agent is told")
    said = answers.reject(workspace, one, by.strip() or _user(), note, abort=abort)
    _end(said, project, "", resume=resume, json=json, yes=False, by=by, note=note)


def _begin(id_: str | None, project: Path, *, json: bool) -> tuple[Workspace, Waiting]:
    """The project, and what is answered.

    Raises:
        UsageError: nothing of that id waits, or several things wait and no id says which.
    """
    from loki.people.waiting import BY_ID
    from loki.waiting import answers, reviews
    from loki.waiting.sources import waiting
    from loki.workspace import Workspace

    log_to_console()
    workspace = Workspace(project)
    reviews.settle(workspace)
    there = waiting(workspace)
    if id_ is not None:
        return workspace, answers.find(there, id_)
    mine = [one for one in there if one.kind in BY_ID]
    if not mine:
        raise UsageError("nothing waits for you; `loki status` says more")
    if len(mine) > 1:
        listed = "\n".join(
            f"  {one.id}  {line(one.title, 40)}: {line(one.asked, 100)}" for one in mine
        )
        raise UsageError(
            f"{amount(len(mine), 'thing')} wait for you: expected the id of one\n{listed}"
        )
    if not json:
        typer.echo(f"{mine[0].id}  {line(mine[0].title)}\n  {line(mine[0].asked)}", err=True)
    if sys.stdin.isatty() and sys.stdout.isatty():
        typer.confirm("Answer this one?", abort=True, err=True)
    return workspace, mine[0]


def _end(
    said: Said,
    project: Path,
    context: str,
    *,
    resume: bool,
    json: bool,
    yes: bool,
    by: str,
    note: str,
) -> None:
    """Say what was done and what is next, or do that."""
    from loki.waiting.answers import GOES_ON

    if said.done and not (json and resume):
        if json:
            data = {"id": said.waiting.id, "done": said.done, "next": said.next or None}
            show_json(data)
        else:
            typer.echo(said.done)
    must_go_on = said.waiting.kind in GOES_ON and not said.done
    if must_go_on and said.run:
        from loki.cli.pipeline import resume as go_on

        approves = yes and said.waiting.answers[0].name == "let it begin"
        go_on(said.run, approve=approves, reject=not yes, note=note, by=by, context=context,
              project=project, json=json)  # fmt: skip
    elif said.resumes and (must_go_on or resume):
        from loki.cli.resume import command as go_on_with

        go_on_with(
            said.resumes, context=context if must_go_on else None, project=project, json=json
        )
    elif said.run and resume:
        from loki.cli.pipeline import resume as go_on

        go_on(said.run, project=project, json=json)
    elif said.next and not json:
        where = "" if str(project) == "." else f" --project {project}"
        typer.echo(f"Next: {said.next}{where}")


def _user() -> str:
    from loki.answering import user

    return user()

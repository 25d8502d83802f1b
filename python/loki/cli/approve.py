"""``loki approve`` and ``loki reject``: one command answers anything that waits for a person."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from loki.base.error import UsageError
from loki.cli.common import amount, line, log_to_console, show_json, speaks_plainly
from loki.people.waiting import LET_BEGIN

if TYPE_CHECKING:
    from loki.people.waiting import Waiting
    from loki.waiting.answers import Said
    from loki.workspace import Workspace

Which = Annotated[
    Optional[str],  # noqa: UP045
    typer.Argument(
        metavar="[NUMBER or ID]",
        help="As `loki status` shows it, or how an id begins, or that of a task; what waits where "
        "that is one thing alone.",
    ),
]
Words = Annotated[
    str,
    typer.Argument(
        metavar="[WORDS]", help="The same as --context where that is taken, else --note."
    ),
]
Why = Annotated[str, typer.Argument(metavar="[WHY]", help="The same as --note.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with the task at once, as `loki resume` does.")
]
AgentOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(help="Who goes on with it, as for `loki resume`. [default: who began it]"),
]
AgentCommandOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(help="The same as a command."),
]
By = Annotated[str, typer.Option(help="Who decides. [default: the user of this machine]")]
Project = Annotated[Path, typer.Option(help="The project's folder.")]
Json = Annotated[bool, typer.Option("--json", help="What was done as JSON on stdout.")]


@speaks_plainly
def approve(
    id_: Which = None,
    words: Words = "",
    note: Annotated[str, typer.Option(help="Why, for the record.")] = "",
    context: Annotated[
        str,
        typer.Option(
            help="What you know and the agent cannot; every later briefing has it. Where the agent "
            "asks something, that is the answer."
        ),
    ] = "",
    by: By = "",
    resume: Resume = False,
    agent: AgentOption = None,
    agent_command: AgentCommandOption = None,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Say yes to anything that waits for you: `loki status` numbers it.

    Numbers are given out once: one that you saw never comes to mean something else. What asks nothing
    and has stopped goes on: a task, a dead letter, a paused recurring task, a merge, a circuit breaker.

    What is approved is exactly what was shown: a command word by word, a change, a criterion of this
    content, a stage of this run. Says which command goes on with the task; an escalation and a stage
    of a pipeline go on at once. An escalation about several tasks is answered for all of them: those
    that were given up are queued again.

    Exit codes: 0 answered, 2 nothing of that id waits; where it goes on, those of `loki run`.

    Example: `loki approve 3`; `loki approve 3 "use the staging key"`
    """
    from loki.waiting import answers

    workspace, one = _begin(id_, project, json=json)
    if words and one.takes_words:
        context = context or words
    else:
        note = note or words
    said = answers.approve(workspace, one, by.strip() or _user(), note, context)
    _end(said, _Way(project, resume, json, True, by, note, context, agent, agent_command))


@speaks_plainly
def reject(
    id_: Which = None,
    why: Why = "",
    note: Annotated[str, typer.Option(help="Why; the agent is told.")] = "",
    by: By = "",
    abort: Annotated[
        bool, typer.Option("--abort", help="Give the task up, and restore its files.")
    ] = False,
    resume: Resume = False,
    agent: AgentOption = None,
    agent_command: AgentCommandOption = None,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Say no to anything that waits for you: `loki status` numbers it.

    The agent is told why, and looks for another way; without a reason the task stays blocked. With
    --abort the task is given up. Rejecting an escalation gives its task up, too, and rejecting a stage
    ends the pipeline's run.

    Exit codes: 0 answered, 1 files changed since, 2 nothing of that id waits, or no reason was given.

    Example: `loki reject 3 "not on a Friday"`
    """
    from loki.waiting import answers

    workspace, one = _begin(id_, project, json=json)
    note = note or why
    if not note.strip() and not abort and answers.wants_reason(one):
        raise UsageError(
            f'say why: loki reject {shlex.quote(id_ or one.id)} "…"; it is kept with your no'
        )
    said = answers.reject(workspace, one, by.strip() or _user(), note, abort=abort)
    _end(said, _Way(project, resume, json, False, by, note, "", agent, agent_command))


def _begin(id_: str | None, project: Path, *, json: bool) -> tuple[Workspace, Waiting]:
    """The project, and what is answered.

    Raises:
        UsageError: nothing of that id waits, or several things wait and no id says which.
    """
    from loki.waiting import answers, numbers, reviews
    from loki.waiting.sources import waiting
    from loki.workspace import Workspace

    log_to_console()
    workspace = Workspace(project)
    reviews.settle(workspace)
    there = waiting(workspace)
    if id_ is not None and id_.isdecimal() and not any(one.id == id_ for one in there):
        return workspace, numbers.of_number(workspace, there, int(id_))
    if id_ is not None:
        return workspace, answers.find(there, id_)
    mine = there
    if not mine:
        raise UsageError("nothing waits for you; `loki status` says more")
    if len(mine) > 1:
        listed = "\n".join(
            f"  {one.number}  {one.id}  {line(one.title, 40)}: {line(one.asked, 100)}"
            for one in numbers.numbered(workspace, mine)
        )
        raise UsageError(
            f"{amount(len(mine), 'thing')} wait for you: expected the number of one\n{listed}"
        )
    if not json:
        typer.echo(f"{mine[0].id}  {line(mine[0].title)}\n  {line(mine[0].asked)}", err=True)
    if sys.stdin.isatty() and sys.stdout.isatty():
        typer.confirm("Answer this one?", abort=True, err=True)
    return workspace, mine[0]


@dataclass(frozen=True, slots=True)
class _Way:
    """How an answer was given, and how it is to go on."""

    project: Path
    resume: bool
    json: bool
    yes: bool
    by: str
    note: str
    context: str = ""
    agent: str | None = None
    agent_command: str | None = None


def _end(said: Said, way: _Way) -> None:
    """Say what was done and what is next, or do that."""
    if said.done and not (way.json and way.resume):
        if way.json:
            next_ = said.next or None
            show_json({"id": said.waiting.id, "done": said.done, "next": next_})
        else:
            typer.echo(said.done)
    is_to_go_on = way.resume or said.at_once
    if is_to_go_on and said.run:
        _go_on_with_run(said, way)
    elif is_to_go_on and said.resumes:
        _go_on_with_tasks(said, way)
    elif said.next and not way.json:
        where = "" if str(way.project) == "." else f" --project {shlex.quote(str(way.project))}"
        typer.echo(f"Next: {said.next}{where}")


def _go_on_with_tasks(said: Said, way: _Way) -> None:
    """Resume them, one after another; the exit code is the first one's that is not 0."""
    from loki.cli.resume import command as go_on

    codes = []
    for task in said.resumes:
        try:
            go_on(
                task,
                context=way.context if said.at_once else None,
                agent=way.agent,
                agent_command=way.agent_command,
                project=way.project,
                json=way.json,
            )
        except typer.Exit as ended:
            codes.append(ended.exit_code)
    raise typer.Exit(next(filter(None, codes), 0))


def _go_on_with_run(said: Said, way: _Way) -> None:
    from loki.cli.pipeline import resume as go_on

    is_answer = not said.done
    approves = is_answer and way.yes and said.waiting.answers[0].name == LET_BEGIN
    go_on(
        said.run,
        approve=approves,
        reject=is_answer and not way.yes,
        note=way.note,
        by=way.by,
        context=way.context if is_answer else "",
        agent=None if way.agent is None else [way.agent],
        agent_command=way.agent_command,
        project=way.project,
        json=way.json,
    )


def _user() -> str:
    from loki.answering import user

    return user()

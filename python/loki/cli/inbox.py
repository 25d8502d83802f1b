"""``loki inbox``, ``approve``, ``reject`` and ``answer``: what waits for a person, and how it is answered."""

from __future__ import annotations

import logging
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loki.base.error import UsageError
from loki.base.text_format import amount, escape_control_characters, line
from loki.base.time import moment
from loki.cli.app import changes_nothing
from loki.cli.common import (
    errors_as_sentences,
    open_project,
    present,
    project_option,
    shown_path,
    time_between,
)
from loki.cli.options import (
    AgentOptions,
    Context,
    Decider,
    Json,
    Limits,
    Note,
    Project,
    with_options,
)

if TYPE_CHECKING:
    from datetime import datetime

    from loki.jobs.inbox.request_kind import Result, Said
    from loki.people.request import Option, Request
    from loki.workspace import Workspace

Which = Annotated[
    str | None,
    typer.Argument(
        metavar="[NUMBER or ID]",
        help="As `loki inbox` shows it, or how an id begins, or that of a task; what waits where "
        "that is one thing alone.",
    ),
]
Words = Annotated[
    str,
    typer.Argument(
        metavar="[WORDS]", help="The same as --context where that is taken, else --note."
    ),
]


@dataclass(frozen=True)
class AnswerOptions(AgentOptions):
    """Where something is answered, by whom, and how it is to go on."""

    by: Decider = ""
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the task at once, as `loki resume` does.")
    ] = False
    project: Project = Path()
    json: Json = False


# --- The list -----------------------------------------------------------------------------------------


def command(
    which: Annotated[
        str | None,
        typer.Argument(
            metavar="[NUMBER or ID]", help="Only this one, with everything that is told."
        ),
    ] = None,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Show what waits for you, each with a number, what is asked, and the commands that answer it.

    With a number, one of them: what speaks for which answer, and the page that tells all of it.

    A number never comes to mean something else. `loki status` shows the same and how the rest stands.

    Exit codes: 0, also where nothing waits; 2 nothing of that number waits.

    Example: `loki inbox`; `loki inbox 3`
    """
    from loki.jobs.inbox import human_review_answers, inbox
    from loki.jobs.inbox import request_kind as numbers

    workspace, tidies = open_project(project), not changes_nothing()
    if tidies:
        human_review_answers.finish_reviews(workspace)
    found = numbers.numbered(workspace, inbox.requests(workspace), gives=tidies)
    if which is not None:
        found = [inbox.find_shown(workspace, found, which)]
    now, where = workspace.clock.now(), project_option(project)
    lines = listed(found, workspace.root, now, where)
    if which is not None:
        lines = _whole(found[0], workspace, now, where)
    present([one.to_dict() for one in found], lines, json=json)


def listed(there: list[Request], root: Path, now: datetime, where: str) -> Iterator[str]:
    """What waits, as lines.

    Args:
        there: it, numbered.
        root: of the project.
        now: the time.
        where: behind each command; see `project_option`.
    """
    if not there:
        yield "Nothing waits for you."
        return
    verb = "waits" if len(there) == 1 else "wait"
    yield typer.style(f"{amount(len(there), 'thing')} {verb} for you:", bold=True)
    for one in there:
        yield ""
        yield from _head(one, root, now)
        width = max(len(option.name) for option in one.options)
        for number, option in enumerate(one.options):
            label = "answer" if number == 0 else ""
            yield f"  {label:<7} {option.name:<{width}}  {line(_typed(option, one, root, where))}"


def _head(one: Request, root: Path, now: datetime) -> Iterator[str]:
    from loki.jobs.inbox.inbox import KINDS

    name = f"{one.number}  {line(one.id)}" if one.number else line(one.id)
    yield f"{typer.style(name, bold=True)}  {KINDS[one.kind].label}: {line(one.title, 80)}"
    if one.task_id and one.task_id != one.id:
        yield f"  {'tasks' if one.others else 'task':<7} {line(', '.join(one.tasks))}"
    yield f"  asked   {line(one.question)}"
    if since := ago(one.since, now):
        until = _left(one.until, now)
        yield f"  since   {since}{f'; {until}' if until else ''}"
    if one.page:
        yield f"  read    {line(str(shown_path(root / '.loki' / one.page)))}"


def _whole(one: Request, workspace: Workspace, now: datetime, where: str) -> Iterator[str]:
    """One request, its evidence, what follows of each answer, and its page."""
    yield from _head(one, workspace.root, now)
    if one.until:
        yield f"  until   {line(one.until)}; then {one.expires}"
    for found in one.evidence:
        yield f"  {found.kind:<8} {line(found.text)}"
    for number, option in enumerate(one.options, 1):
        follows = f": {option.follows}" if option.follows else ""
        yield f"  {number}. {option.name}{follows}"
        yield f"     {line(_typed(option, one, workspace.root, where))}"
    page = workspace.store.read(one.page) if one.page.endswith(".md") else None
    if page:
        yield f"\n{escape_control_characters(page).rstrip()}"


def _typed(option: Option, one: Request, root: Path, where: str) -> str:
    """A command as it is typed here, where the project may be another folder."""
    command_ = option.typed(one.id, one.number)
    if not where or command_.startswith("loki "):
        return f"{command_}{where}"
    return f"cd {shlex.quote(str(root))} && {command_}"


def ago(text: str, now: datetime) -> str:
    """How long ago a moment was; "" where nobody knows."""
    at = moment(text)
    return "" if at is None else f"{time_between(at, now)} ago"


def _left(text: str, now: datetime) -> str:
    at = moment(text)
    return "" if at is None else f"given up in {time_between(now, at)} if nobody answers"


# --- Answers ------------------------------------------------------------------------------------------


@with_options
def approve(
    way: AnswerOptions,
    id_: Which = None,
    words: Words = "",
    note: Note = "",
    context: Context = None,
) -> None:
    """Say yes to anything that waits for you: `loki inbox` numbers it.

    Numbers are given out once: one that you saw never comes to mean something else. What asks nothing
    and has stopped goes on: a task, a dead letter, a paused recurring task, a merge, a circuit breaker.

    What is approved is exactly what was shown: a command word by word, a change, a criterion of this
    content, a stage of this run. Says which command goes on with the task; an escalation and a stage
    of a pipeline go on at once. An escalation about several tasks is answered for all of them: those
    that were given up are queued again.

    Exit codes: 0 answered, 2 nothing of that id waits; where it goes on, those of `loki run`.

    Example: `loki approve 3`; `loki approve 3 "use the staging key"`
    """
    workspace, one = _begin(id_, way)
    if words and one.takes_words:
        context = context or words
    _answer(workspace, one, "approve", note or ("" if context else words), context or "", way)


@with_options
def reject(
    way: AnswerOptions,
    id_: Which = None,
    why: Annotated[str, typer.Argument(metavar="[WHY]", help="The same as --note.")] = "",
    note: Note = "",
    abort: Annotated[
        bool, typer.Option("--abort", help="Give the task up, and restore its files.")
    ] = False,
) -> None:
    """Say no to anything that waits for you: `loki inbox` numbers it.

    The agent is told why, and looks for another way; without a reason the task stays blocked. With
    --abort the task is given up. Rejecting an escalation gives its task up, too, and rejecting a stage
    ends the pipeline's run.

    Exit codes: 0 answered, 1 files changed since, 2 nothing of that id waits, or no reason was given.

    Example: `loki reject 3 "not on a Friday"`
    """
    workspace, one = _begin(id_, way)
    _answer(workspace, one, "reject", note or why, "", way, abort=abort)


@with_options
def answer(
    way: AnswerOptions,
    id_: Annotated[str, typer.Argument(metavar="NUMBER or ID", help="As `loki inbox` shows it.")],
    said: Annotated[
        str,
        typer.Argument(
            metavar="OPTION or TEXT",
            help="The number or the name of an option that `loki inbox NUMBER` shows; else what you "
            "know and the agent cannot, as for `loki approve --context`.",
        ),
    ],
    words: Annotated[
        str, typer.Argument(metavar="[WORDS]", help="What goes with the option: words, or why.")
    ] = "",
) -> None:
    """Answer anything that waits for you, by one of its options or in your own words.

    Exit codes: those of `loki approve` and `loki reject`.

    Example: `loki answer 3 "it is the staging key"`; `loki answer 3 2 "not on a Friday"`
    """
    workspace, one = _begin(id_, way)
    option = _option(one, said)
    if option is None:
        if not one.takes_words:
            there = ", ".join(f"{n} ({o.name})" for n, o in enumerate(one.options, 1))
            raise UsageError(
                f"{one.id} takes no words of your own: expected one of its options, {there}"
            )
        _answer(workspace, one, "approve", "", said, way)
        return
    if not option.verb:
        raise UsageError(f"{option.name!r} is a command of its own: {option.command}")
    if option.takes == "context" and not words.strip():
        raise UsageError(f'say it: loki answer {shlex.quote(id_)} {shlex.quote(said)} "…"')
    note, context = ("", words) if option.takes == "context" else (words, "")
    _answer(workspace, one, option.verb, note, context, way, abort=option.aborts)


def _option(one: Request, said: str) -> Option | None:
    """The option of a number or a name; None where it is neither."""
    name = said.strip().casefold()
    numbered = enumerate(one.options, 1)
    return next((o for n, o in numbered if name in {str(n), o.name.casefold()}), None)


def ask(workspace: Workspace, task: str) -> tuple[Said, Result] | None:
    """Ask on the terminal what is asked about a task.

    Args:
        workspace: the project.
        task: its id.

    Returns:
        What the person said, and what came of it; None where nothing is asked, or they leave it open.
    """
    from loki.jobs.inbox import inbox
    from loki.jobs.inbox.request_kind import Said
    from loki.people.person import user

    there = [one for one in inbox.requests(workspace) if task in one.tasks]
    asked = next((one for one in there if inbox.KINDS[one.kind].asks), None)
    if asked is None:
        return None
    options = {str(n): o for n, o in enumerate((o for o in asked.options if o.verb), 1)}
    typer.echo(f"{line(asked.title)}\n{line(asked.question)}", err=True)
    for number, option in options.items():
        typer.echo(f"  {number}. {option.name}", err=True)
    chosen = _prompt(f"Which? [{', '.join(options)}; Enter leaves it open]")
    if chosen not in options:
        return None
    option = options[chosen]
    context = _prompt("What should the agent know?") if option.takes == "context" else ""
    note = _prompt("Why?") if option.takes == "note" else ""
    said = Said(user(), note, context, option.aborts)
    decide = inbox.approve if option.verb == "approve" else inbox.reject
    return said, decide(workspace, asked, said)


def _prompt(text: str) -> str:
    """What the person types; nothing where they end the input."""
    try:
        return str(typer.prompt(text, default="", show_default=False, err=True)).strip()
    except typer.Abort:
        return ""


def _begin(id_: str | None, way: AnswerOptions) -> tuple[Workspace, Request]:
    """The project, and what is answered.

    Raises:
        UsageError: nothing of that id waits, or several things wait and no id says which.
    """
    from loki.jobs.inbox import human_review_answers, inbox
    from loki.jobs.inbox import request_kind as numbers

    workspace = open_project(way.project, logging.INFO)
    human_review_answers.finish_reviews(workspace)
    there = inbox.requests(workspace)
    if id_ is not None:
        return workspace, inbox.find_shown(workspace, there, id_)
    if not there:
        raise UsageError("nothing waits for you; `loki status` says more")
    if len(there) > 1:
        listing = "\n".join(
            f"  {one.number}  {one.id}  {line(one.title, 40)}: {line(one.question, 100)}"
            for one in numbers.numbered(workspace, there)
        )
        raise UsageError(
            f"{amount(len(there), 'thing')} wait for you: expected the number of one\n{listing}"
        )
    (one,) = there
    if not way.json:
        typer.echo(f"{one.id}  {line(one.title)}\n  {line(one.question)}", err=True)
    if sys.stdin.isatty() and sys.stdout.isatty():
        typer.confirm("Answer this one?", abort=True, err=True)
    return workspace, one


def _answer(
    workspace: Workspace,
    one: Request,
    verb: str,
    note: str,
    context: str,
    way: AnswerOptions,
    *,
    abort: bool = False,
) -> None:
    """Do what was said, say what was done, and what is next, or do that."""
    from loki.jobs.inbox import inbox
    from loki.jobs.inbox.request_kind import Said
    from loki.people.person import user

    said = Said(way.by.strip() or user(), note, context, abort)
    if verb == "reject" and not note.strip() and not abort and inbox.wants_why(one):
        raise UsageError(f'say why: loki reject {shlex.quote(one.id)} "…"; it is kept with your no')
    decide = inbox.approve if verb == "approve" else inbox.reject
    result = decide(workspace, one, said)
    if result.done and not (way.json and way.resume):
        data = {"id": one.id, "done": result.done, "next": result.next or None}
        present(data, result.done, json=way.json)
    is_to_go_on = way.resume or result.at_once
    if is_to_go_on and result.run:
        _go_on_with_run(result, said, way, approves=verb == "approve")
    elif is_to_go_on and result.tasks:
        _go_on_with_tasks(result, said, way)
    elif result.next and not way.json:
        typer.echo(f"Next: {result.next}{project_option(way.project)}")


def _go_on_with_tasks(result: Result, said: Said, way: AnswerOptions) -> None:
    """Resume them, one after another; the exit code is the first one's that is not 0."""
    from loki.cli.resume import command as go_on

    codes = []
    for task in result.tasks:
        try:
            with errors_as_sentences():
                go_on(
                    task,
                    context=said.context if result.at_once else None,
                    who=way,
                    limits=Limits(),
                    project=way.project,
                    json=way.json,
                )
        except typer.Exit as ended:
            codes.append(ended.exit_code)
    raise typer.Exit(next(filter(None, codes), 0))


def _go_on_with_run(result: Result, said: Said, way: AnswerOptions, *, approves: bool) -> None:
    from loki.cli.pipeline import RunOptions
    from loki.cli.pipeline import resume as go_on

    is_answer = not result.done
    go_on(
        result.run,
        approve=is_answer and approves and result.lets_begin,
        reject=is_answer and not approves,
        note=said.note,
        by=said.by,
        context=said.context if is_answer else "",
        options=RunOptions(None if way.agent is None else [way.agent], way.agent_command),
        project=way.project,
        json=way.json,
    )

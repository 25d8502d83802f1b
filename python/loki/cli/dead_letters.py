"""``loki dead-letters``: the tasks that were given up, and what becomes of them."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loki.base.error import StoreError, UsageError
from loki.base.text_format import amount, line
from loki.cli.common import Json, Project, is_passed_on, open_project, show_json
from loki.cli.dead_letter_text import as_data, in_full, in_short
from loki.cli.read_only import changes_nothing
from loki.cli.show import find

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loki.jobs.dead_letters.dead_letters import DeadLetters, Reviewed

app = typer.Typer(
    invoke_without_command=True,
    rich_markup_mode="markdown",
    help=(
        "Show the tasks that were given up, and decide what becomes of them.\n\n"
        "A task whose attempts are spent is a dead letter, in `.loki/queue/dead-letter.json`. Once a "
        "day a review looks whether one can be tried again (what it depends on is there, a commit "
        "fixed what blocked it), is to be abandoned (10 attempts and more, the same error over 3 "
        "approaches), or needs a person.\n\n"
        "`loki dead-letters` — what was given up, and why?\n\n"
        "`loki dead-letters show fix-login` — everything that is known of one\n\n"
        "`loki dead-letters review` — go through them; on a terminal you are asked about each\n\n"
        '`loki dead-letters retry fix-login --approach "ask the cache first"`\n\n'
        '`loki dead-letters abandon fix-login --reason "the login page is gone"`'
    ),
)

NONE = "No dead letters: no task was given up."

Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="Of the tasks, or how they begin.")]
SomeIds = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[ID...]", help="Of the tasks, or how they begin; all where none is said."
    ),
]
By = Annotated[str, typer.Option(help="Who decides; the user of this machine by default.")]
Approach = Annotated[
    str, typer.Option("--approach", help="A new approach: its failures so far count no more.")
]
Simpler = Annotated[
    str,
    typer.Option("--simpler", help="A smaller task that is worth having: it is queued instead."),
]
FixedBy = Annotated[
    str, typer.Option("--fixed-by", metavar="COMMIT", help="The commit that fixed what blocked it.")
]


@app.callback()
def _default(context: typer.Context, project: Project = Path(), json: Json = False) -> None:
    if not is_passed_on(context, project=str(project), json=json):
        list_(project, json)


@app.command("list")
def list_(project: Project = Path(), json: Json = False) -> None:
    """List the tasks that were given up.

    Example: `loki dead-letters list --json`
    """
    letters = _letters(project)
    if not changes_nothing():
        with suppress(StoreError):  # what was given up before there was a list is in it from now on
            letters.complete()
    found = letters.review(dry_run=True)
    known = letters.queue.dead_letter_metadata()
    if json:
        show_json({"tasks": [as_data(one) for one in found], "metadata": known})
    elif not found:
        typer.echo(NONE)
    else:
        last, due = known.get("last_reviewed"), ", so a review is due" if letters.is_due() else ""
        counts = [line(str(known.get(f"total_{name}"))) for name in ("recovered", "abandoned")]
        typer.echo(
            f"{amount(len(found), 'dead letter')}; {counts[0]} recovered and {counts[1]} abandoned "
            f"so far. Last review: {line(str(last or 'never'))}{due}."
        )
        for one in found:
            typer.echo("\n" + in_short(one))
        typer.echo("\nGo through them: loki dead-letters review")


@app.command()
def show(
    task: Annotated[str, typer.Argument(metavar="ID", help="Of the task, or how it begins.")],
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Show everything that is known of a dead letter: attempts, facts, and how to go on.

    Example: `loki dead-letters show fix-login`
    """
    letters = _letters(project)
    (id_,) = _found(letters, [task])
    (found,) = letters.review([id_], dry_run=True)
    if json:
        show_json(as_data(found, whole=True))
    else:
        typer.echo(in_full(found, letters.workspace))


@app.command()
def review(
    tasks: SomeIds = None,
    approach: Approach = "",
    simpler: Simpler = "",
    fixed_by: FixedBy = "",
    scope_gone: Annotated[
        str, typer.Option("--scope-gone", metavar="WHY", help="Nobody needs the task any more.")
    ] = "",
    dependency_never: Annotated[
        str,
        typer.Option(
            "--dependency-never", metavar="WHAT", help="What it depends on will never be there."
        ),
    ] = "",
    confidence: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="How sure you are of the recovery; under 0.30 asks a person."
        ),
    ] = None,
    reading: Annotated[
        list[str] | None,
        typer.Option(help="One reading of an ambiguous task; two or more ask a person."),
    ] = None,
    reviewer: Annotated[
        str | None,
        typer.Option(
            "--reviewer", help="Who answers what no fact decides: as --agent of `loki run`."
        ),
    ] = None,
    reviewer_command: Annotated[
        str | None,
        typer.Option(help="Or: any program that reads the question and answers in JSON."),
    ] = None,
    if_due: Annotated[
        bool, typer.Option("--if-due", help="Only where the last review is over 24 hours ago.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done; no reviewer is asked.")
    ] = False,
    by: By = "",
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Review the dead letters: retry, abandon, ask a person, or leave them, one by one.

    For each the first that holds decides: something has changed since it failed, so that it can be
    tried again; it is hopeless; it needs a person, who finds a page in `.loki/escalations/`; else it
    stays. What no fact decides is answered by you or by a reviewer; unanswered, it counts as no.

    On a terminal, without options, you are asked about each. In scripts:
    `loki dead-letters review --reviewer-command "claude -p"`, or
    `loki dead-letters review fix-login --approach "ask the cache first" --json`
    """
    from loki.jobs.dead_letters.dead_letter_review import Answers, Scope

    letters = _letters(project, reviewer, reviewer_command, by)
    given = Answers(
        approach,
        Scope(simpler) if simpler.strip() else None,
        scope_gone,
        dependency_never,
        fixed_by,
        confidence=confidence,
        readings=tuple(reading or ()),
    )
    is_scripted = json or dry_run or given != Answers() or reviewer or reviewer_command or if_due
    found: Sequence[Reviewed] = ()
    nothing = NONE
    if if_due and not letters.is_due():
        nothing = "The last review is not 24 hours ago: nothing to do."
    elif not is_scripted and sys.stdin.isatty() and sys.stdout.isatty():
        from loki.cli.dead_letter_dialog import go_through

        return go_through(letters, _found(letters, tasks or ()) or None)
    else:
        ids = _found(letters, tasks or ()) or None
        found = letters.review(ids, {"": given}, dry_run=dry_run)
    if not (found or json):
        typer.echo(nothing)
    return _show(found, letters, json, dry_run=dry_run)


@app.command()
def retry(
    tasks: Ids,
    approach: Approach = "",
    simpler: Simpler = "",
    fixed_by: FixedBy = "",
    by: By = "",
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Queue tasks again that were given up: for `loki work`, or for `loki resume ID`.

    Example: `loki dead-letters retry fix-login --approach "ask the cache first"`

    What was tried stays on record. With `--simpler` a new task is queued that names this one.
    """
    if sum(map(bool, (approach.strip(), simpler.strip(), fixed_by.strip()))) > 1:
        raise UsageError("expected one of --approach, --simpler and --fixed-by")
    letters = _letters(project, by=by)
    how = {"simpler": simpler.strip(), "fixed_by": fixed_by.strip()}
    done = [letters.retry(id_, approach.strip(), **how) for id_ in _found(letters, tasks)]
    _show(done, letters, json)


@app.command()
def abandon(
    tasks: Ids,
    reason: Annotated[str, typer.Option(help="Why: it tells the next reader.")],
    by: By = "",
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Give tasks up for good; attempts, pages and edits stay.

    Example: `loki dead-letters abandon fix-login --reason "the login page is gone"`

    `loki undo ID` restores the files as they were; `loki queue` still lists the task.
    """
    if not reason.strip():
        raise UsageError("--reason is empty: expected why the task is given up")
    letters = _letters(project, by=by)
    done = [letters.abandon(id_, reason.strip()) for id_ in _found(letters, tasks)]
    _show(done, letters, json)


def _found(letters: DeadLetters, tasks: Sequence[str]) -> list[str]:
    """The dead letters that somebody named, each once."""
    known = letters.ids()
    return list(dict.fromkeys(find(known, task, "dead letter") for task in tasks))


def _show(
    found: Sequence[Reviewed], letters: DeadLetters, json: bool, *, dry_run: bool = False
) -> None:
    if json:
        known = letters.queue.dead_letter_metadata()
        show_json(
            {"reviewed": [as_data(one) for one in found], "metadata": known, "dry_run": dry_run}
        )
    for one in () if json else found:
        typer.echo(in_short(one, decided=not dry_run))


def _letters(
    project: Path, reviewer: str | None = None, reviewer_command: str | None = None, by: str = ""
) -> DeadLetters:
    from loki.cli.review import user
    from loki.jobs.dead_letters.dead_letters import DeadLetters

    workspace, reviewers = open_project(project), list[object]()
    if reviewer is not None and reviewer_command is not None:
        raise UsageError("expected --reviewer or --reviewer-command, not both")
    if reviewer is not None or reviewer_command is not None:
        from loki.cli.agent import agent_said

        reviewers = [agent_said(workspace, reviewer, reviewer_command)]
    return DeadLetters(workspace, reviewers, by.strip() or user())

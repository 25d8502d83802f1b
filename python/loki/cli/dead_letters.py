"""Show the tasks that were given up, and decide what becomes of them.

A task whose attempts are spent is a dead letter, in `.loki/queue/dead-letter.json`. Once a day a
review looks whether one can be tried again (what it depends on is there, a commit fixed what
blocked it), is to be abandoned (10 attempts and more, the same error over 3 approaches), or needs a
person.

`loki dead-letters` — what was given up, and why?

`loki dead-letters show fix-login` — everything that is known of one

`loki dead-letters review` — go through them; on a terminal you are asked about each

`loki dead-letters retry fix-login --approach "ask the cache first"`

`loki dead-letters abandon fix-login --reason "the login page is gone"`
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loki.base.error import StoreError, UsageError
from loki.base.text_format import amount, line
from loki.cli.app import changes_nothing
from loki.cli.common import find, open_project, picked, present, tell
from loki.cli.options import (
    AgentOptions,
    Decider,
    Json,
    Project,
    agent_said,
    command_group,
    given,
    listing,
    with_options,
)
from loki.jobs.dead_letters.dead_letter_review import Answers, Scope
from loki.jobs.dead_letters.dead_letters import DeadLetters, Reviewed
from loki.memory import dead_letter

if TYPE_CHECKING:
    from loki.workspace import Workspace


# --- How dead letters are told of, for people and for programs ----------------------------------------

WIDTH = 100
"""Characters of what others said in one line; chosen to fit a screen."""

NONE = "No dead letters: no task was given up."

_ACTIONS = {
    "retry": ("green", "can be queued again", "queued again", "next    loki work"),
    "simplify": (
        "green",
        "a simpler task can be queued",
        "a simpler task was queued",
        "next    loki work does {new}; this one stays until that is completed",
    ),
    "abandon": (
        "red",
        "to be abandoned",
        "abandoned",
        "kept    its attempts, pages and edits; loki undo {id} restores the files",
    ),
    "escalate": (
        "yellow",
        "needs a person",
        "waits for a person",
        "next    read the page; then loki dead-letters retry {id} or abandon {id} --reason …",
    ),
    "stay": (None, "stays", "stays", ""),
}
"""By what was decided: a color, how it is said before and after it is done, and what to do next."""


def in_short(one: Reviewed, *, decided: bool = False) -> str:
    """A dead letter in a few lines: what it is, what becomes of it and why, what to do.

    Args:
        one: it.
        decided: a review was carried out; else it was only looked at.
    """
    return "\n".join(_short(one, decided=decided))


def _short(one: Reviewed, *, decided: bool) -> Iterator[str]:
    letter, decision = one.letter, one.decision
    color, would, done, next_ = _ACTIONS[decision.action]
    what = done if decided else would
    if decided and not one.done:
        what = "is no dead letter any more: somebody else was quicker"
    head = f"{typer.style(line(one.task_id), bold=True)}: {typer.style(what, fg=color)}"
    last = f", last {line(letter.last_failure[:16])}" if letter.last_failure else ""
    summary = line(letter.error_summary or "not told", WIDTH)
    yield f"{head}: {line(decision.reason, WIDTH)}"
    yield f"  what    {line(letter.title, WIDTH)}"
    yield f"  failed  {amount(letter.total_attempts, 'attempt')}{last}: {summary}"
    yield from (f"  because {line(text, WIDTH)}" for text in decision.evidence if text)
    if one.page:
        yield f"  page    .loki/{line(one.page)}"
    if next_ and decided and one.done:
        yield "  " + next_.format(id=shlex.quote(one.task_id), new=one.new_task)


def echo(one: Reviewed) -> None:
    """Tell of a dead letter that was reviewed beside other work, on stderr."""
    typer.echo(in_short(one, decided=True), err=True)


def in_full(one: Reviewed, workspace: Workspace) -> Iterator[str]:
    """Everything that is known of a dead letter, as lines.

    Args:
        one: it.
        workspace: the project.
    """
    letter, facts = one.letter, one.facts
    recovery, back = letter.recovery_strategy or "not told", amount(letter.requeues, "time")
    yield from _short(one, decided=False)
    yield f"  recover {line(recovery)}; brought back {back} before"
    for needed in facts.dependencies:
        yield f"  needs   {line(needed.name)}: {needed.state}: {line(needed.evidence)}"
    for commit in facts.commits:
        yield f"  commit  {commit.commit[:12]} {line(commit.subject, WIDTH)}: {line(commit.why)}"
    if letter.simpler_task:
        yield f"  simpler {line(letter.simpler_task)}: {facts.simpler_state or 'gone'}"
    for tried in letter.attempts:
        by = f"  by {line(tried.agent_id)}" if tried.agent_id else ""
        number, at = tried.attempt_number, line(tried.timestamp)
        yield f"\nattempt {number}  {at}  {line(tried.error_type)}{by}"
        yield f"  did     {line(tried.approach or 'not told', 200)}"
        yield f"  error   {line(tried.error_message or 'not told', 300)}"
    page = dead_letter.page_name(one.task_id)
    if workspace.store.read(page) is not None:
        yield f"\npage: {workspace.folder / page}"
    id_ = shlex.quote(one.task_id)
    yield f'\nGo on: loki dead-letters retry {id_} --approach "…"'
    yield f'   or: loki dead-letters abandon {id_} --reason "…"'


def as_data(one: Reviewed, *, whole: bool = False) -> dict[str, Any]:
    """A dead letter for programs.

    Args:
        one: it.
        whole: with all that stands in the file.
    """
    letter, decision = one.letter, one.decision
    data: dict[str, Any] = {
        "task_id": one.task_id,
        **picked(letter, "title", "failure_count", "total_attempts"),
        "last_failure": letter.last_failure or None,
        "error_summary": letter.error_summary,
        "recovery_strategy": letter.recovery_strategy or None,
        "decision": decision.action,
        "rule": decision.rule or None,
        "reason": decision.reason,
        "evidence": list(decision.evidence),
        "commit": decision.commit or None,
        "new_task": one.new_task or None,
        "page": one.page or None,
        "done": one.done,
    }
    if whole:
        data["dependencies"] = [asdict(needed) for needed in one.facts.dependencies]
        data["commits"] = [asdict(commit) for commit in one.facts.commits]
        data["entry"] = dict(one.task.raw)
    return data


# --- A person goes through the dead letters on a terminal ---------------------------------------------

_CHOICES = (
    "[enter] as loki says, [n]ew approach, [s]impler scope, [f]ixed by a commit, [a]bandon, "
    "[d]etails, [k]eep for later, [q]uit"
)


def go_through(letters: DeadLetters, tasks: Sequence[str] | None) -> None:
    """Ask about each dead letter.

    Args:
        letters: those of the project.
        tasks: ids; None: all, and the time of the review is kept once all were seen.
    """
    letters.complete()
    found = letters.review(tasks, dry_run=True)
    if not found:
        typer.echo(NONE)
    for number, one in enumerate(found, 1):
        typer.echo(f"\n{number} of {len(found)}  {in_short(one)}")
        if not _ask(letters, one):
            typer.echo(f"{amount(len(found) - number + 1, 'dead letter')} left for another time.")
            return
    if tasks is None:
        letters.queue.reviewed()


def _ask(letters: DeadLetters, one: Reviewed) -> bool:
    """Ask about one; False where the person has had enough."""
    while True:
        answer = typer.prompt(f"\n{_CHOICES}", default="", show_default=False).strip().lower()[:1]
        if answer in {"k", "q"}:
            return bool(answer == "k")
        if answer == "d":
            tell(("", *in_full(one, letters.workspace)))
        elif answer and answer not in _ANSWERS:
            typer.echo("Say n, s, f, a, d, k or q, or press enter.")
        elif _decide(letters, one, answer):
            return True


def _decide(letters: DeadLetters, one: Reviewed, answer: str) -> bool:
    """Do what the person said; whether that changed anything."""
    try:
        said = {one.task_id: _ANSWERS[answer]()} if answer else {}
        done = letters.review([one.task_id], said)
    except UsageError as error:
        typer.secho(str(error), fg="red")
        return False
    for now in done:
        typer.echo(in_short(now, decided=True))
    if answer and any(now.decision.action == "stay" for now in done):
        typer.echo("That changes nothing: it was tried already, or says nothing.")
        return False
    return True


def _words(question: str, *, needed: bool = True) -> str:
    said = str(typer.prompt(question, default="", show_default=False)).strip()
    if needed and not said:
        raise UsageError("nothing was said, so nothing was done")
    return said


_ANSWERS: dict[str, Callable[[], Answers]] = {
    "n": lambda: Answers(new_approach=_words("How is it to be gone about?")),
    "s": lambda: Answers(
        simpler_scope=Scope(
            _words("Which smaller task is worth having?"),
            _words("What does it leave out?", needed=False),
        )
    ),
    "f": lambda: Answers(fixed_by=_words("Which commit fixed it?")),
    "a": lambda: Answers(abandon=_words("Why?")),
}


# --- The commands -------------------------------------------------------------------------------------

app = command_group(__doc__)

Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="Of the tasks, or how they begin.")]
SomeIds = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[ID...]", help="Of the tasks, or how they begin; all where none is said."
    ),
]


@dataclass(frozen=True)
class RetryOptions:
    """What has changed since a task was given up."""

    approach: Annotated[
        str, typer.Option(help="A new approach: its failures so far count no more.")
    ] = ""
    simpler: Annotated[
        str, typer.Option(help="A smaller task that is worth having: it is queued instead.")
    ] = ""
    fixed_by: Annotated[
        str, typer.Option(metavar="COMMIT", help="The commit that fixed what blocked it.")
    ] = ""


@dataclass(frozen=True)
class ReviewOptions(RetryOptions):
    """What no fact decides, as a person answers it."""

    scope_gone: Annotated[
        str, typer.Option(metavar="WHY", help="Nobody needs the task any more.")
    ] = ""
    dependency_never: Annotated[
        str, typer.Option(metavar="WHAT", help="What it depends on will never be there.")
    ] = ""
    confidence: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="How sure you are of the recovery; under 0.30 asks a person."
        ),
    ] = None
    reading: Annotated[
        list[str] | None,
        typer.Option(help="One reading of an ambiguous task; two or more ask a person."),
    ] = None

    @property
    def answers(self) -> Answers:
        """The same, as a review takes them."""
        return Answers(
            self.approach,
            Scope(self.simpler) if self.simpler.strip() else None,
            **picked(self, "scope_gone", "dependency_never", "fixed_by", "confidence"),
            readings=tuple(self.reading or ()),
        )


@listing(app)
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
    data = {"tasks": [as_data(one) for one in found], "metadata": known}
    present(data, _listed(found, known, is_due=letters.is_due()), json=json, nothing=NONE)


def _listed(found: Sequence[Reviewed], known: Mapping[str, Any], *, is_due: bool) -> Iterator[str]:
    if not found:
        return
    last, due = known.get("last_reviewed"), ", so a review is due" if is_due else ""
    counts = [line(str(known.get(f"total_{name}"))) for name in ("recovered", "abandoned")]
    yield (
        f"{amount(len(found), 'dead letter')}; {counts[0]} recovered and {counts[1]} abandoned "
        f"so far. Last review: {line(str(last or 'never'))}{due}."
    )
    yield from (f"\n{in_short(one)}" for one in found)
    yield "\nGo through them: loki dead-letters review"


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
    present(as_data(found, whole=True), in_full(found, letters.workspace), json=json)


@app.command()
@with_options
def review(
    said: ReviewOptions,
    tasks: SomeIds = None,
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
    by: Decider = "",
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
    letters = _letters(project, reviewer, reviewer_command, by)
    answers = said.answers
    is_scripted = json or dry_run or answers != Answers() or reviewer or reviewer_command or if_due
    found: Sequence[Reviewed] = ()
    nothing = NONE
    if if_due and not letters.is_due():
        nothing = "The last review is not 24 hours ago: nothing to do."
    else:
        ids = _found(letters, tasks or ()) or None
        if not is_scripted and sys.stdin.isatty() and sys.stdout.isatty():
            return go_through(letters, ids)
        found = letters.review(ids, {"": answers}, dry_run=dry_run)
    return _show(found, letters, json, dry_run=dry_run, nothing=nothing)


@app.command()
@with_options
def retry(
    tasks: Ids,
    changed: RetryOptions,
    by: Decider = "",
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Queue tasks again that were given up: for `loki work`, or for `loki resume ID`.

    Example: `loki dead-letters retry fix-login --approach "ask the cache first"`

    What was tried stays on record. With `--simpler` a new task is queued that names this one.
    """
    how = {name: said.strip() for name, said in given(changed).items()}
    if sum(map(bool, how.values())) > 1:
        raise UsageError("expected one of --approach, --simpler and --fixed-by")
    letters = _letters(project, by=by)
    done = [letters.retry(id_, **how) for id_ in _found(letters, tasks)]
    _show(done, letters, json)


@app.command()
def abandon(
    tasks: Ids,
    reason: Annotated[str, typer.Option(help="Why: it tells the next reader.")],
    by: Decider = "",
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
    found: Sequence[Reviewed],
    letters: DeadLetters,
    json: bool,
    *,
    dry_run: bool = False,
    nothing: str = "",
) -> None:
    data, known = [as_data(one) for one in found], letters.queue.dead_letter_metadata()
    lines = (in_short(one, decided=not dry_run) for one in found)
    told = {"reviewed": data, "metadata": known, "dry_run": dry_run}
    present(told, lines, json=json, nothing=nothing)


def _letters(
    project: Path, reviewer: str | None = None, reviewer_command: str | None = None, by: str = ""
) -> DeadLetters:
    from loki.people.person import user

    workspace, reviewers = open_project(project), list[object]()
    if reviewer is not None and reviewer_command is not None:
        raise UsageError("expected --reviewer or --reviewer-command, not both")
    if reviewer is not None or reviewer_command is not None:
        reviewers = [agent_said(workspace, AgentOptions(reviewer, reviewer_command))]
    return DeadLetters(workspace, reviewers, by.strip() or user())

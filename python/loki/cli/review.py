"""``loki review``: a person decides what loki learns."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loki.base import codec
from loki.base.error import ConfigError, StoreError, UsageError
from loki.cli.common import load_project, picked, present, project_option, shown_path
from loki.cli.options import Decider, Json, Project

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from loki.memory.learning.candidate import Candidate, Source
    from loki.memory.learning.learned_rules import Agenda, Review

_CHOICES = "[a]pprove, [r]eject, [d]efer, [s]kip, [q]uit"


def command(
    approve: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Learn this one; may be said again.")
    ] = None,
    reject: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID", help="Do not learn this one, for the --reason; may be said again."
        ),
    ] = None,
    defer: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Put this one off to a later review; may be said again."),
    ] = None,
    reason: Annotated[str, typer.Option(help="Why it is rejected.")] = "",
    by: Decider = "",
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Decide what loki learns from tasks that failed: patterns and lasting rules.

    Nothing is learned without a person. An approved pattern is added to
    `.loki/learned-patterns.yml`, beside your own `failure-patterns.yml`, which counts first; an
    approved rule joins every later briefing. What is rejected is not proposed again. At most ten
    are shown, the longest waiting first; once a week is often enough.

    On a terminal each one is shown and asked about. In scripts:
    `loki review --json`, then `loki review --approve pattern-1a2b3c4d`, or
    `loki review --reject rule-1a2b3c4d --reason "that folder is gone"`.
    """
    from loki.people.person import user

    workspace = load_project(project)
    review, now = workspace.review(), workspace.clock.now()
    person = by.strip() or user()
    if reject and not reason.strip():
        raise UsageError("--reject needs a --reason: it tells the next reader why")
    decided = [review.approve(id_, person, now) for id_ in approve or []]
    decided += [review.reject(id_, reason, person, now) for id_ in reject or []]
    decided += [review.defer(id_, person, now) for id_ in defer or []]
    agenda = review.agenda(now)
    if json or decided:
        left = f"{agenda.waiting} more to decide." if agenda.waiting else "Nothing more to decide."
        lines = (*(_decision(review, candidate) for candidate in decided), left)
        present(_as_data(review, agenda, decided), lines, json=json)
    else:
        _go_through(review, agenda, person, now)


def reminder(project: Path) -> str:
    """A line that says that a review is due, for the end of a run; "" where none is.

    Args:
        project: the project's folder.
    """
    workspace = load_project(project)
    try:
        agenda = workspace.review().agenda(workspace.clock.now())
    except StoreError:  # the run's own outcome is what matters
        return ""
    where = project_option(project)
    waiting = _waiting(agenda.waiting)
    return f"review:  {waiting} for you to decide: loki review{where}" if agenda.is_due else ""


def _waiting(count: int) -> str:
    return "1 candidate waits" if count == 1 else f"{count} candidates wait"


def _go_through(review: Review, agenda: Agenda, person: str, now: datetime) -> None:
    """Show each candidate; ask about it where somebody can answer."""
    typer.echo(_head(agenda))
    asks = sys.stdin.isatty() and sys.stdout.isatty()
    for number, candidate in enumerate(agenda.candidates, 1):
        typer.echo("\n" + _tell(review, candidate, f"{number} of {len(agenda.candidates)}"))
        if asks and not _ask(review, candidate, person, now):
            return
    if agenda.candidates and not asks:
        typer.echo("\nDecide with --approve ID, --reject ID --reason TEXT or --defer ID.")


def _ask(review: Review, candidate: Candidate, person: str, now: datetime) -> bool:
    """Ask about one candidate; False where the person has had enough."""
    decide: dict[str, Callable[[], Candidate]] = {
        "a": lambda: review.approve(candidate.id, person, now),
        "r": lambda: review.reject(candidate.id, typer.prompt("Why not?"), person, now),
        "d": lambda: review.defer(candidate.id, person, now),
    }
    while True:
        answer = typer.prompt(f"\n{_CHOICES}", default="s").strip().lower()[:1]
        if answer in {"s", "q"}:
            return bool(answer == "s")
        if answer not in decide:
            typer.echo("Say a, r, d, s or q.")
            continue
        try:
            typer.echo(_decision(review, decide[answer]()))
            return True
        except (UsageError, ConfigError) as error:  # it can still be put off, or skipped
            typer.secho(str(error), fg="red")


def _head(agenda: Agenda) -> str:
    last = f"Last review: {agenda.last[:10]}." if agenda.last else "There was no review yet."
    if not agenda.waiting:
        return f"Nothing to decide. {last}"
    more = agenda.waiting - len(agenda.candidates)
    shown = f", of which {len(agenda.candidates)} are for this review" if more else ""
    due = " A review is due: once a week is usual." if agenda.is_due else ""
    return f"{_waiting(agenda.waiting)}{shown}. {last}{due}"


def _tell(review: Review, candidate: Candidate, number: str) -> str:
    from loki.memory.learning.candidate import as_entry
    from loki.memory.learning.learned_rules import is_put_off

    what = f"{candidate.kind} {candidate.id}"
    lines = [f"{typer.style(what, bold=True)} ({number}, since {candidate.created_at[:10]})"]
    if candidate.deferrals:
        times = _times(candidate)
        urge = ": decide it this time" if is_put_off(candidate) else ""
        lines.append(typer.style(f"  put off {times}{urge}", fg="yellow" if urge else None))
    if candidate.kind == "rule":
        lines.append("  rule    " + "\n          ".join(_plain(candidate.name).splitlines()))
    lines += [f"  from    {_source(source)}" for source in candidate.sources]
    if candidate.kind == "pattern":
        tasks = [letter.task_id for letter in review.would_match(candidate)]
        lines.append(f"  matches {', '.join(map(_plain, tasks)) or 'no dead letter kept here'}")
        lines.append(f"  adds to {shown_path(review.pattern_file)}:")
        lines += [f"    {_plain(line)}" for line in as_entry(candidate.content)]
    lines.append(f"  page    {shown_path(review.pattern_file.parent / candidate.document)}")
    return "\n".join(lines)


def _source(source: Source) -> str:
    error = " ".join(source.error.split())[:120]
    return _plain(f"{source.task}: {error}" if error else source.task)


def _decision(review: Review, candidate: Candidate) -> str:
    """What was decided, and what follows."""
    from loki.memory.learning.learned_rules import is_put_off

    if candidate.status == "rejected":
        told = _plain(candidate.reason)
    elif candidate.status == "deferred":
        urge = ", which is often: decide it next time" if is_put_off(candidate) else ""
        told = f"put off {_times(candidate)}{urge}"
    elif candidate.kind == "pattern":
        told = f"added {_plain(candidate.name)} to {shown_path(review.pattern_file)}"
    else:
        told = "the rule joins every later briefing"
    return f"{candidate.status} {candidate.id}: {told}"


def _times(candidate: Candidate) -> str:
    return "once" if candidate.deferrals == 1 else f"{candidate.deferrals} times"


def _as_data(review: Review, agenda: Agenda, decided: list[Candidate]) -> dict[str, Any]:
    return {
        "last_review": agenda.last,
        "is_due": agenda.is_due,
        "waiting": agenda.waiting,
        "decided": [_candidate(candidate) for candidate in decided],
        "candidates": [
            {
                **_candidate(candidate),
                "would_match": [letter.task_id for letter in review.would_match(candidate)],
            }
            for candidate in agenda.candidates
        ],
    }


def _candidate(candidate: Candidate) -> dict[str, Any]:
    from loki.memory.learning.learned_rules import is_put_off

    return {
        **picked(candidate, "id", "kind", "status", "created_at", "deferrals"),
        "is_put_off": is_put_off(candidate),
        "reason": candidate.reason or None,
        "decided_at": candidate.decided_at or None,
        "decided_by": candidate.decided_by or None,
        candidate.kind: candidate.content,
        "sources": codec.write(candidate.sources),
        "page": candidate.document,
    }


def _plain(text: str) -> str:
    """A text that nobody has checked, without what a terminal would take for commands."""
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)

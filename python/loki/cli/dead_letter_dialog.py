"""A person goes through the dead letters on a terminal: each is shown with its evidence, then asked about."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import typer

from loki.base.error import UsageError
from loki.base.text_format import amount
from loki.cli.dead_letter_text import in_full, in_short
from loki.jobs.dead_letters.dead_letter_review import Answers, Scope
from loki.jobs.dead_letters.dead_letters import DeadLetters, Reviewed

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
        typer.echo("No dead letters: no task was given up.")
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
            typer.echo("\n" + in_full(one, letters.workspace))
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

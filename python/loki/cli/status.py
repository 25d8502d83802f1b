"""``loki status``: what waits for you and how to answer it, what runs, and how the rest stands."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loki.cli.common import amount, line, log_to_console, show_json, span, speaks_plainly
from loki.cli.read_only import changes_nothing

if TYPE_CHECKING:
    from datetime import datetime

    from loki.people.waiting import Waiting
    from loki.waiting.status import Status

_COLORS = {"success": "green", "failed": "red"}

_NAMES = {
    "rule": "rule changed",
    "human_review": "review",
    "approval": "approval",
    "command": "command",
    "stage": "stage",
    "escalation": "escalation",
    "dead_letter": "dead letter",
    "recurring": "recurring task",
    "candidate": "to be learned",
    "blocked": "blocked",
    "stuck": "can never begin",
    "signal": "signal",
    "stopped": "stopped",
    "breaker": "circuit breaker",
}


@speaks_plainly
def command(
    project: Annotated[Path, typer.Option(help="The project's folder.")] = Path(),
    json: Annotated[bool, typer.Option("--json", help="Everything as JSON.")] = False,
) -> None:
    """Show what waits for you, with the command that answers it; then what runs, and how the rest stands.

    Everything that needs a person is here: requests for a decision, approvals of criteria, of commands
    and of stages, escalations, and what loki would like to learn. Each says what is asked, since when,
    how long it waits, and how to answer.

    Each has a number, which never comes to mean something else: `loki approve 3`, `loki reject 3 "why"`.

    Example: `loki status`; `loki status --json`
    """
    from loki.waiting.status import status
    from loki.workspace import Workspace

    log_to_console(logging.WARNING)
    workspace = Workspace(project)
    found = status(workspace, settles=not changes_nothing())
    if json:
        show_json(found.to_dict())
        return
    now = workspace.clock.now()
    where = "" if str(project) == "." else f" --project {shlex.quote(str(project))}"
    typer.echo("\n".join((*_waits(found, now, where), *_rest(found, now, where))))


def what_waits() -> None:
    """What waits in the project of this folder, as `loki status` begins."""
    from loki.waiting.status import status
    from loki.workspace import Workspace

    log_to_console(logging.WARNING)
    workspace = Workspace()
    found = status(workspace, settles=not changes_nothing())
    typer.echo("\n".join((*_waits(found, workspace.clock.now(), ""), "")))


def _waits(found: Status, now: datetime, where: str) -> Iterator[str]:
    for why in found.unread:
        yield typer.style("The queue cannot be read, so nobody works on it:", fg="red")
        yield f"  {line(why)}"
        yield ""
    if not found.waiting:
        yield "Nothing else waits for you." if found.unread else "Nothing waits for you."
        return
    count = len(found.waiting)
    verb = "waits" if count == 1 else "wait"
    yield typer.style(f"{amount(count, 'thing')} {verb} for you:", bold=True)
    for one in found.waiting:
        yield ""
        yield from _waiting(one, found.project, now, where)


def _waiting(one: Waiting, project: str, now: datetime, where: str) -> Iterator[str]:
    name = f"{one.number}  {line(one.id)}" if one.number else line(one.id)
    head = typer.style(name, bold=True)
    yield f"{head}  {_NAMES[one.kind]}: {line(one.title, 80)}"
    if one.task_id and one.task_id != one.id:
        yield f"  {'tasks' if one.others else 'task':<7} {line(', '.join(one.tasks))}"
    yield f"  asked   {line(one.asked)}"
    if since := _ago(one.since, now):
        until = _left(one.until, now)
        yield f"  since   {since}{f'; {until}' if until else ''}"
    if one.page:
        yield f"  read    {line(str(_shown(Path(project) / '.loki' / one.page)))}"
    width = max(len(answer.name) for answer in one.answers)
    for number, answer in enumerate(one.answers):
        label = "answer" if number == 0 else ""
        command = _typed(_short(answer.command, one), project, where)
        yield f"  {label:<7} {answer.name:<{width}}  {line(command)}"


def _short(command: str, one: Waiting) -> str:
    """A command as a person types it: by the number, the words without their option."""
    for verb, option in (("approve", "--context"), ("reject", "--note")):
        long = f"loki {verb} {shlex.quote(one.id)}"
        if one.number and command.startswith(long):
            return command.replace(long, f"loki {verb} {one.number}").replace(f" {option} ", " ")
    return command


def _typed(command: str, project: str, where: str) -> str:
    """A command as it is typed here, where the project may be another folder."""
    if not where or command.startswith("loki "):
        return f"{command}{where}"
    return f"cd {shlex.quote(project)} && {command}"


def _rest(found: Status, now: datetime, where: str) -> Iterator[str]:
    if found.running or found.begun:
        yield ""
        yield typer.style("Running now, or stopped without an end:", bold=True)
    for one in found.running:
        by = f" by {line(str(one['worker']))}" if one["worker"] else ""
        yield f"  {line(str(one['id']))}  {_ago(str(one['since']), now)}{by}: {line(str(one['title']), 60)}"
    for one in found.begun:
        if one["id"] not in {other["id"] for other in found.running}:
            yield f"  {line(str(one['id']))}  {_ago(str(one['since']), now)}: {line(str(one['title']), 60)}"
    if found.queue:
        blocked = found.queue.get("blocked", 0)
        told = [
            f"{count} {name}" + (f" ({blocked} blocked)" if name == "pending" and blocked else "")
            for name, count in found.queue.items()
            if count and name != "blocked"
        ]
        yield ""
        yield typer.style("Queue:", bold=True) + f" {', '.join(told)}"
    yield from _breakers(found)
    yield from _recurring(found, now)
    if found.signals:
        yield ""
        given = (f"{line(name)}{f' ({n})' if n > 1 else ''}" for name, n in found.signals.items())
        yield typer.style("Signals pending:", bold=True) + f" {', '.join(given)}"
        yield f"  loki signals handle{where} acts on them, or says what each waits for"
    yield from _outcomes(found, now)


def _breakers(found: Status) -> Iterator[str]:
    if found.breakers:
        yield ""
        yield typer.style("Circuit breakers that are not closed:", bold=True)
    for one in found.breakers:
        after = one["retry_after"]
        when = "" if after is None else f", may be asked again in {span(max(0.0, after) * 1000)}"
        error = f": {line(str(one['last_error']), 80)}" if one["last_error"] else ""
        yield f"  {line(str(one['name']))}  {one['state']}{when}{error}"


def _recurring(found: Status, now: datetime) -> Iterator[str]:
    """Those that fail or do not run, and the one that runs next."""
    if not found.recurring:
        return
    yield ""
    yield typer.style("Recurring tasks:", bold=True) + f" {len(found.recurring)}"
    runs = [one for one in found.recurring if one["status"] in {"scheduled", "backing_off"}]
    for one in found.recurring:
        is_next = runs[:1] == [one]
        failures = int(one["consecutive_failures"])
        if is_next or failures or one["status"] not in {"scheduled", "done"}:
            failed = f", {amount(failures, 'failure')} in a row" if failures else ""
            when = _in(str(one["next_run_at"] or ""), now) if one in runs else ""
            yield f"  {line(str(one['id']))}  {one['status']}{failed}{f', next {when}' if when else ''}"


def _in(text: str, now: datetime) -> str:
    from loki.base.time import moment

    at = moment(text)
    if at is None:
        return ""
    return f"in {span((at - now).total_seconds() * 1000)}" if at > now else "now"


def _outcomes(found: Status, now: datetime) -> Iterator[str]:
    if found.outcomes:
        yield ""
        yield typer.style("Last outcomes:", bold=True)
    width = max((len(str(one["id"])) for one in found.outcomes), default=0)
    for one in found.outcomes:
        state = str(one["status"])
        shown = typer.style(f"{state:<11}", fg=_COLORS.get(state, "yellow"))
        ago = _ago(str(one["at"]), now)
        yield f"  {line(str(one['id'])):<{width}}  {shown}  {ago}: {line(str(one['reason']), 80)}"


def _ago(text: str, now: datetime) -> str:
    """How long ago a moment was; "" where nobody knows."""
    from loki.base.time import moment

    at = moment(text)
    if at is None:
        return ""
    return f"{span(max(0.0, (now - at).total_seconds()) * 1000)} ago"


def _left(text: str, now: datetime) -> str:
    from loki.base.time import moment

    at = moment(text)
    if at is None:
        return ""
    return f"given up in {span(max(0.0, (at - now).total_seconds()) * 1000)} if nobody answers"


def _shown(path: Path) -> Path:
    """A path as a person would type it here."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path

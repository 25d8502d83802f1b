"""``loki status``: what waits for you and how to answer it, what runs, and how the rest stands."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from loki.base.text_format import amount, line, span
from loki.base.time import moment
from loki.cli.app import changes_nothing
from loki.cli.common import colored, open_project, present, project_option, time_between
from loki.cli.inbox import ago, listed
from loki.cli.options import Json, Project

if TYPE_CHECKING:
    from datetime import datetime

    from loki.jobs.inbox.project_status import Status


def command(project: Project = Path(), json: Json = False) -> None:
    """Show what waits for you, with the command that answers it; then what runs, and how the rest stands.

    Everything that needs a person is here: requests for a decision, approvals of criteria, of commands
    and of stages, escalations, and what loki would like to learn. Each says what is asked, since when,
    how long it waits, and how to answer.

    Each has a number, which never comes to mean something else: `loki approve 3`, `loki reject 3 "why"`.

    Example: `loki status`; `loki status --json`
    """
    from loki.jobs.inbox.project_status import status

    workspace = open_project(project)
    found = status(workspace, settles=not changes_nothing())
    now = workspace.clock.now()
    where = project_option(project)
    lines = chain(_waits(found, now, where), _rest(found, now, where))
    present(found.to_dict(), lines, json=json)


def what_waits() -> None:
    """What waits in the project of this folder, as `loki status` begins."""
    from loki.jobs.inbox.project_status import status

    workspace = open_project(Path())
    found = status(workspace, settles=not changes_nothing())
    typer.echo("\n".join((*_waits(found, workspace.clock.now(), ""), "")))


def _waits(found: Status, now: datetime, where: str) -> Iterator[str]:
    for why in found.unread:
        yield typer.style("The queue cannot be read, so nobody works on it:", fg="red")
        yield f"  {line(why)}"
        yield ""
    if found.waiting or not found.unread:
        yield from listed(found.waiting, Path(found.project), now, where)
    else:
        yield "Nothing else waits for you."


def _head(text: str) -> str:
    return f"\n{typer.style(text, bold=True)}"


def _rest(found: Status, now: datetime, where: str) -> Iterator[str]:
    if found.running or found.begun:
        yield _head("Running now, or stopped without an end:")
    running = {one["id"] for one in found.running}
    for one in (*found.running, *(one for one in found.begun if one["id"] not in running)):
        by = f" by {line(str(one['worker']))}" if one.get("worker") else ""
        yield f"  {line(str(one['id']))}  {ago(str(one['since']), now)}{by}: {line(str(one['title']), 60)}"
    if found.queue:
        blocked = found.queue.get("blocked", 0)
        told = [
            f"{count} {name}" + (f" ({blocked} blocked)" if name == "pending" and blocked else "")
            for name, count in found.queue.items()
            if count and name != "blocked"
        ]
        yield f"{_head('Queue:')} {', '.join(told)}"
    yield from _breakers(found)
    yield from _recurring(found, now)
    if found.signals:
        given = (f"{line(name)}{f' ({n})' if n > 1 else ''}" for name, n in found.signals.items())
        yield f"{_head('Signals pending:')} {', '.join(given)}"
        yield f"  loki signals handle{where} acts on them, or says what each waits for"
    yield from _outcomes(found, now)


def _breakers(found: Status) -> Iterator[str]:
    if found.breakers:
        yield _head("Circuit breakers that are not closed:")
    for one in found.breakers:
        after = one["retry_after"]
        when = "" if after is None else f", may be asked again in {span(max(0.0, after) * 1000)}"
        error = f": {line(str(one['last_error']), 80)}" if one["last_error"] else ""
        yield f"  {line(str(one['name']))}  {one['state']}{when}{error}"


def _recurring(found: Status, now: datetime) -> Iterator[str]:
    """Those that fail or do not run, and the one that runs next."""
    if not found.recurring:
        return
    yield f"{_head('Recurring tasks:')} {len(found.recurring)}"
    runs = [one for one in found.recurring if one["status"] in {"scheduled", "backing_off"}]
    for one in found.recurring:
        is_next = runs[:1] == [one]
        failures = int(one["consecutive_failures"])
        if is_next or failures or one["status"] not in {"scheduled", "done"}:
            failed = f", {amount(failures, 'failure')} in a row" if failures else ""
            when = _in(str(one["next_run_at"] or ""), now) if one in runs else ""
            yield f"  {line(str(one['id']))}  {one['status']}{failed}{f', next {when}' if when else ''}"


def _in(text: str, now: datetime) -> str:
    at = moment(text)
    if at is None:
        return ""
    return f"in {time_between(now, at)}" if at > now else "now"


def _outcomes(found: Status, now: datetime) -> Iterator[str]:
    if found.outcomes:
        yield _head("Last outcomes:")
    width = max((len(str(one["id"])) for one in found.outcomes), default=0)
    for one in found.outcomes:
        state = str(one["status"])
        shown = colored(state, 11)
        since = ago(str(one["at"]), now)
        yield f"  {line(str(one['id'])):<{width}}  {shown}  {since}: {line(str(one['reason']), 80)}"

"""Show the circuit breakers of a project, and open or close them by hand.

A breaker stops calls to what has failed too often, and finds out carefully when it is back:

- **CLOSED**: calls go out. Three failures within 60 s open it.
- **OPEN**: calls are refused, for 300 s.
- **HALF_OPEN**: single calls are let through, 10 s apart. Three successes close it, one failure
  opens it again.

`loki breakers` — what is open, and until when?

`loki breakers close api/claude` — the other side is back, do not wait

`loki breakers isolate api/claude` — no calls there until I say so

`loki breakers watch` — a line for each change, as it happens

All processes that use the project's `.loki/state/circuit-breakers.json` follow within a tenth of a
second.
"""

from __future__ import annotations

import dataclasses
import json as jsonlib
import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loki.base.error import UsageError
from loki.base.text_format import line
from loki.base.time import SystemClock, isoformat, seconds
from loki.cli.common import colored, columns, open_project, present, tell, told_facts, unknown
from loki.cli.options import Json, Project, command_group, listing

if TYPE_CHECKING:
    from loki.decision.breaker import BreakerSnapshot, Transition
    from loki.decision.breakers import Breakers, SharedBreaker

app = command_group(__doc__)

Name = Annotated[str, typer.Argument(help="The breaker's name, like api/claude.")]
New = Annotated[bool, typer.Option("--new", help="Also where the name was never heard of here.")]

NONE = "No breaker has had anything to tell yet: see `loki breakers --help`."
HEAD = ("NAME", "STATE", "FAILURES", "COOLDOWN", "LAST ERROR")


@listing(app)
def list_(project: Project = Path(), json: Json = False) -> None:
    """List all: state, failures, what is left of the cooldown, last error. Same as no command.

    Example: `loki breakers list --json`
    """
    found = _open(project).snapshot()
    data = [_as_data(one) for one in found.values()]
    present(data, _table(found), json=json, nothing=NONE)


@app.command("show")
def show(name: Name, project: Project = Path(), json: Json = False) -> None:
    """Show one breaker.

    Example: `loki breakers show api/claude`
    """
    _show(_find(_open(project), name).snapshot(), json)


@app.command("open")
def open_(name: Name, project: Project = Path(), new: New = False, json: Json = False) -> None:
    """Refuse calls for one cooldown from now, as if it had tripped.

    Example: `loki breakers open api/claude`
    """
    _act(_find(_open(project), name, new), lambda breaker: breaker.open(), json)


@app.command("close")
def close(name: Name, project: Project = Path(), json: Json = False) -> None:
    """Let calls go out again at once.

    Example: `loki breakers close api/claude`
    """
    _act(_find(_open(project), name), lambda breaker: breaker.close(), json)


@app.command("reset")
def reset(name: Name, project: Project = Path(), json: Json = False) -> None:
    """Close it, and forget all failures: also those of one that is closed.

    Example: `loki breakers reset api/claude`
    """
    _act(_find(_open(project), name), lambda breaker: breaker.reset(), json)


@app.command("isolate")
def isolate(name: Name, project: Project = Path(), new: New = False, json: Json = False) -> None:
    """Refuse calls until somebody closes, resets or opens it.

    Example: `loki breakers isolate api/claude --new`
    """
    _act(_find(_open(project), name, new), lambda breaker: breaker.isolate(), json)


@app.command("watch")
def watch(
    project: Project = Path(),
    interval: Annotated[str, typer.Option(help="Time between two looks.")] = "1s",
    json: Json = False,
) -> None:
    """Print a line for each change of state, in any process, until Ctrl-C.

    Example: `loki breakers watch --json | tee changes.jsonl`
    """
    try:
        wait = seconds(interval)
    except ValueError as error:
        raise UsageError(f"--interval: {error}") from error
    if not wait:
        raise UsageError(f"--interval is {interval}: expected a time above 0, like 1s")
    breakers = _open(project)

    def tell_change(change: Transition) -> None:
        if json:
            typer.echo(jsonlib.dumps({**dataclasses.asdict(change), "at": isoformat(change.at)}))
            return
        error = line(breakers[change.name].snapshot().last_error)
        why = f": {error}" if error and change.after == "OPEN" else ""
        after = colored(change.after)
        typer.echo(f"{isoformat(change.at)} {line(change.name)} {change.before} -> {after}{why}")

    if not json:
        tell(_table(breakers.snapshot()), NONE)
    breakers.listen(tell_change)
    while True:
        breakers.refresh()
        SystemClock().wait(wait, threading.Event())


def _open(project: Path) -> Breakers:
    return open_project(project).breakers()


def _find(breakers: Breakers, name: str, new: bool | None = None) -> SharedBreaker:
    """The breaker of that name; None for new: the command has no such option.

    Raises:
        UsageError: there is none; the message has the names that are near.
    """
    known = breakers.names()
    if name in known or new:
        return breakers[name]
    advice = "" if new is None else " (--new: do it where the name was never heard of)"
    raise UsageError(f"{unknown(known, name, 'breaker')}{advice}")


def _act(breaker: SharedBreaker, action: Callable[[SharedBreaker], None], json: bool) -> None:
    action(breaker)
    _show(breaker.snapshot(), json)


def _table(found: dict[str, BreakerSnapshot]) -> Iterator[str]:
    rows = [
        (
            line(one.name),
            colored(one.state),
            str(one.failure_count),
            _wait(one),
            line(one.last_error, 60) or "-",
        )
        for one in found.values()
    ]
    return columns(rows, HEAD if rows else ())


def _show(one: BreakerSnapshot, json: bool) -> None:
    facts = {
        "state": colored(one.state),
        "cooldown": _wait(one).strip("-"),
        "failures": f"{one.failure_count} that count",
        "successes": f"{one.success_count} in a row" if one.state == "HALF_OPEN" else "",
        "probe": "in flight" if one.is_probing else "",
        "tripped": f"{one.trips} in a row" if one.trips > 1 else "",
        "changed": isoformat(one.last_state_change) if one.last_state_change else "",
        "failed": isoformat(one.last_failure_time) if one.last_failure_time else "",
        "error": line(one.last_error),
    }
    known = ((name, value) for name, value in facts.items() if value)
    present(_as_data(one), told_facts(line(one.name), known, 10), json=json)


def _wait(one: BreakerSnapshot) -> str:
    """What is left of the cooldown, in words."""
    if one.state != "OPEN":
        return "-"
    if one.retry_after is None:
        return "until closed by hand"
    return f"{one.retry_after:.0f} s left" if one.retry_after else "over: the next call is a probe"


def _as_data(one: BreakerSnapshot) -> dict[str, Any]:
    data = dataclasses.asdict(one)
    del data["counts"]  # of this process, which made no call
    return {
        key: isoformat(value) if isinstance(value, datetime) else value
        for key, value in data.items()
    }

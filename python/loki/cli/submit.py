"""``loki submit``: put tasks into the queue."""

from __future__ import annotations

import json as jsonlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from loki.action.task import task_id
from loki.base.error import ConfigError, UsageError
from loki.base.text_format import amount, line
from loki.cli.common import present, project_option
from loki.cli.options import (
    AgentOptions,
    CallOptions,
    Json,
    Limits,
    Project,
    ReviewedWork,
    given,
    with_options,
)
from loki.jobs.queue.queue import queue_of
from loki.jobs.queue.queued_task import PRIORITIES, QueuedTask, read_entry, unread, waits_for
from loki.jobs.work.queued_task_spec import submit
from loki.workspace import Workspace


@dataclass(frozen=True)
class QueueOptions:
    """What only the queue asks of a task."""

    description: Annotated[str | None, typer.Option(help="More about what is to be achieved.")] = (
        None
    )
    dependencies: Annotated[
        list[str] | None,
        typer.Option(
            "--depends-on",
            help="Id of a task that must be completed before; repeat it for more.",
        ),
    ] = None
    after: Annotated[
        str | None,
        typer.Option(help="Id of the task that it came from; it does not wait for that one."),
    ] = None
    urgent: Annotated[
        bool, typer.Option("--urgent", help="Work on it also while a circuit breaker is open.")
    ] = False
    background: Annotated[
        bool,
        typer.Option("--background", help="Do not work on it while a circuit breaker is open."),
    ] = False
    tags: Annotated[
        list[str] | None, typer.Option("--tag", help="A word to find it by; repeat it for more.")
    ] = None


@with_options
def command(
    who: AgentOptions,
    work: ReviewedWork,
    place: QueueOptions,
    limits: Limits,
    how: CallOptions,
    task: Annotated[str | None, typer.Option(help="What is to be achieved, in your words.")] = None,
    id_: Annotated[
        str | None, typer.Option("--id", help="Names the task. [default: made from its words]")
    ] = None,
    priority: Annotated[
        str, typer.Option(help="critical, high, medium, low, or a number: higher comes first.")
    ] = "medium",
    json_file: Annotated[
        str | None,
        typer.Option(
            help="A file with a task, or a list of tasks, as JSON, instead of --task; '-' for stdin."
        ),
    ] = None,
    validate: Annotated[
        bool,
        typer.Option(
            "--validate/--no-validate", help="Look now whether its checks and its agent are there."
        ),
    ] = True,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Put a task into the project's queue, for `loki work` to work on.

    It is kept in `.loki/queue/pending.json`. Tasks of higher priority come first, then those that
    were submitted earlier; one that depends on others waits until all of them are completed. What
    `loki run` would refuse is refused here: a program that does not exist, a kind that there is
    not. Who works on it can be said here, or to `loki work`.

    Commands that hold a secret are not kept: let the program take it from its environment.

    The same submission again changes nothing and is a success, so a program that was interrupted can
    say it once more; another task of the same id is refused.

    Exit codes: 0 queued, 1 the queue could not be read or written, 2 usage: nothing was queued.

    Example: `loki submit --task "fix the login test" --check "pytest -q" --agent claude --priority high`

    Several at once, which may depend on each other: `loki submit --json-file tasks.json`, with
    `[{"id": "a", "title": "Add it"}, {"id": "b", "title": "Use it", "dependencies": ["a"]}]` in it
    """
    if (task is None) == (json_file is None):
        raise UsageError("what is to be queued? Expected --task or --json-file, one of them")
    if task is None:
        assert json_file is not None
        tasks = _tasks_in(json_file)
    else:
        said = given(who, work, place, limits, how)
        tasks = [QueuedTask(id_ or task_id(task), task, priority=priority_of(priority), **said)]
    workspace = Workspace(project)
    queued = submit(workspace, tasks, validate=validate)
    present([dict(one.raw) for one in queued], _told(workspace, queued, project), json=json)


def _told(workspace: Workspace, queued: list[QueuedTask], project: Path) -> Iterator[str]:
    ids = {id_ for one in queued for id_ in (one.id, *one.dependencies)}
    queue = queue_of(workspace)
    where_of = queue.places(ids).get
    for one in queued:
        if (there := where_of(one.id)) not in {"pending", None}:
            yield f"{one.id} was submitted before, and is in {there}: loki queue show {one.id}"
        else:
            yield f"queued {one.id}: {line(one.title)}{_waits(one, where_of)}"
    where = project_option(project)
    count = amount(queue.counts()[0]["pending"], "task")
    yield f"{count} pending; work on them: loki work{where}; look at them: loki queue{where}"


def _waits(task: QueuedTask, where: Any) -> str:
    waiting = waits_for(task, where)
    if not waiting:
        return ""
    told = (f"{one.id} ({one.where or 'which nobody has submitted yet'})" for one in waiting)
    return f"; waits for {line(', '.join(told))}"


def priority_of(text: str) -> str | float:
    """A priority that somebody said; a file's may be anything, a person's slip is told.

    Raises:
        UsageError: it is none.
    """
    if text.strip().lower() in PRIORITIES:
        return text.strip().lower()
    try:
        number = float(text)
        if number - number == 0:  # neither infinite nor NaN
            return int(number) if number.is_integer() else number
    except ValueError:
        pass
    raise UsageError(f"priority is {text!r}: expected {', '.join(PRIORITIES)} or a number")


def _tasks_in(name: str) -> list[QueuedTask]:
    """The tasks of a JSON file.

    Raises:
        ConfigError: it is none; says where.
        UsageError: it cannot be read.
    """
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--json-file: cannot read {name}: {error}") from error
    file = "stdin" if name == "-" else name
    try:
        data = jsonlib.loads(text)
    except jsonlib.JSONDecodeError as error:
        raise ConfigError(error.msg, file=file, line=error.lineno, column=error.colno) from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(str(error), file=file, line=1, column=1) from error
    if isinstance(data, dict) and isinstance(data.get("tasks"), list):
        data = data["tasks"]
    found = []
    for number, one in enumerate(data if isinstance(data, list) else [data], 1):
        try:
            found.append(read_entry(one))
        except ValueError as error:
            raise ConfigError(f"task {number}: {error}", file=file) from error
        if isinstance(one, dict) and (wrong := unread(one)):
            said = ", ".join(f"{name} is {one[name]!r}" for name in wrong)
            raise ConfigError(f"task {number}: {line(said)}: see `loki submit --help`", file=file)
    if not found:
        raise UsageError(f"{file} holds no task: expected one, or a list of them")
    return found

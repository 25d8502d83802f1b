"""Show the project's queue: what is pending, who works on what, what waits for what.

`loki submit` puts tasks into it, `loki work` works on them. A task stands in one of six lists,
files in `.loki/queue/` that other programs may read and write, too:

- **pending**: waits for a worker. One that depends on others waits until they are completed; one
  that is blocked waits for a person.
- **in-progress**: a worker has it. If the worker dies, the task goes back to pending.
- **completed**, **failed**, **abandoned**: it has ended.
- **dead-letter**: it was tried in vain; see `loki dead-letters`.

`loki queue` — what stands where?

`loki queue show fix-login` — all that is known of a task

`loki queue priority fix-login high` — sooner, please

`loki queue block fix-login "needs a decision"` — nobody works on it until `unblock`
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loki.base.error import UsageError
from loki.base.text_format import amount, line
from loki.base.time import moment
from loki.cli.common import (
    colored,
    find,
    open_project,
    present,
    show_json,
    tell,
    time_between,
    told_facts,
)
from loki.cli.options import Json, Project, TaskId, command_group, listing
from loki.jobs.queue.queue import Queue, queue_of
from loki.jobs.queue.queued_task import LISTS, ListName, QueuedTask, waits_for, write_entry

if TYPE_CHECKING:
    from datetime import datetime

    from loki.jobs.queue.queue_index import Lists
    from loki.workspace import Workspace


# --- What `loki edit` changes of a task of the queue --------------------------------------------------

FIELDS = frozenset(
    {
        "title", "agent", "agent_command", "checks", "reviewer_command", "kind", "complexity",
        "scope", "max_attempts", "tags",
    }
)  # fmt: skip


def queued_id(workspace: Workspace, wanted: str, recurring: list[str]) -> str | None:
    """The task of the queue that somebody means; None: they mean a recurring one.

    Args:
        workspace: the project.
        wanted: what they said.
        recurring: ids of the recurring tasks, which come first.

    Raises:
        UsageError: they mean none of either, or several.
    """
    if any(id_.startswith(wanted) for id_ in recurring):
        return None
    ids = queue_of(workspace).lists().ids()
    return find(sorted({*ids, *recurring}), wanted)


def edit(workspace: Workspace, id_: str, said: dict[str, Any], *, json: bool) -> None:
    """Change a task, and tell so.

    Args:
        workspace: the project.
        id_: the task.
        said: what is to change, by the names of `loki edit`.
        json: tell it as JSON.

    Raises:
        UsageError: something is to change that such a task does not have.
    """
    changes = {"title": said.pop("task"), **said} if "task" in said else dict(said)
    if wrong := sorted(set(changes) - FIELDS):
        named = ", ".join(f"--{name.replace('_', '-')}" for name in wrong)
        raise UsageError(f"{id_} is a task of the queue, and has no {named}")
    texts = {name for name in FIELDS if name.endswith("command") or name == "agent"}
    plain = {n: "" if v is None and n in texts else v for n, v in changes.items()}
    from loki.jobs.work.queued_task_spec import edit as edit_task  # much to load for a look

    task, is_free = edit_task(workspace, id_, plain)
    told = [f"changed {id_}"]
    if is_free:
        told.append("It was blocked because it could not be worked on; now it waits for a worker.")
    elif task.blocked is not None:
        unblock = f"loki queue unblock {shlex.quote(id_)}"
        told.append(f"It is blocked: {line(task.blocked.reason)}; {unblock}")
    present(dict(task.raw), told, json=json)


# --- The commands -------------------------------------------------------------------------------------

app = command_group(__doc__)

SHOWN = 20
"""Tasks of a list that are shown without ``--all``; chosen to fit a screen."""

_TITLE = 48
_QUIET = frozenset({"completed", "abandoned"})
"""Lists of which the number is enough."""


@listing(app)
def list_(
    project: Project = Path(),
    list_name: Annotated[
        str | None, typer.Option("--list", help="Only this list, like failed: all of it.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every task of every list.")] = False,
    json: Json = False,
) -> None:
    """List what stands where. Same as no command.

    Example: `loki queue list --list failed --json`
    """
    names = [name for name in LISTS if list_name in {None, name}]
    if not names:
        raise UsageError(f"--list is {list_name!r}: expected one of {', '.join(LISTS)}")
    queue = _open(project)
    lists, now = queue.lists(), queue.clock.now()
    if json:
        show_json({name: [_data(queue, lists, one) for one in lists.of(name)] for name in names})
        return
    is_whole = all_ or list_name is not None
    lines = (told for name in names for told in _tell_list(queue, lists, name, now, is_whole))
    nothing = "" if len(lists) else "The queue is empty: see `loki submit --help`."
    tell(lines, nothing)


@app.command("show")
def show(id_: TaskId, project: Project = Path(), json: Json = False) -> None:
    """Show a task: what is asked, where it stands, who has it, what it waits for.

    Example: `loki queue show fix-login`
    """
    _show(_open(project), id_, json)


@app.command("block")
def block(
    id_: TaskId,
    reason: Annotated[str, typer.Argument(help="Why, for whoever sees it.")],
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Let nobody work on a task until `loki queue unblock`.

    Who works on it already goes on; it is blocked once it is given back.

    Example: `loki queue block fix-login "the wording is not decided"`
    """
    _act(project, id_, json, lambda queue, task: queue.block(task, reason))


@app.command("unblock")
def unblock(id_: TaskId, project: Project = Path(), json: Json = False) -> None:
    """Let a blocked task be worked on again.

    Example: `loki queue unblock fix-login`
    """
    _act(project, id_, json, lambda queue, task: queue.unblock(task))


@app.command("priority")
def priority(
    id_: TaskId,
    value: Annotated[str, typer.Argument(help="critical, high, medium, low, or a number.")],
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Give a task another priority: higher comes first.

    Example: `loki queue priority fix-login critical`
    """
    from loki.cli.submit import priority_of

    _act(project, id_, json, lambda queue, task: queue.prioritize(task, priority_of(value)))


@app.command("remove")
def remove(
    id_: TaskId,
    reason: Annotated[
        str, typer.Option(help="Why, for whoever wonders later.")
    ] = "removed by hand",
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Take a task out that is pending, failed or a dead letter: it is kept in abandoned.

    Example: `loki queue remove fix-login --reason "the page is gone"`
    """
    _act(project, id_, json, lambda queue, task: queue.abandon(task, reason))


@app.command("retry")
def retry(id_: TaskId, project: Project = Path(), json: Json = False) -> None:
    """Bring a task back to pending that failed or was removed.

    Example: `loki queue retry fix-login`
    """
    _act(project, id_, json, lambda queue, task: queue.requeue(task))


@app.command("release")
def release(id_: TaskId, project: Project = Path(), json: Json = False) -> None:
    """Put a task back into pending that another program left in progress.

    Of loki's own workers nobody need do this: a task goes back by itself once its worker is dead.

    Example: `loki queue release fix-login`
    """
    _act(project, id_, json, lambda queue, task: queue.take_back(task))


# --- How the queue and its tasks are shown ------------------------------------------------------------


def _open(project: Path) -> Queue:
    return queue_of(open_project(project))


def _act(project: Path, id_: str, json: bool, action: Callable[[Queue, str], QueuedTask]) -> None:
    queue = _open(project)
    _show(queue, action(queue, find(queue.lists().ids(), id_)).id, json)


def _data(queue: Queue, lists: Lists, task: QueuedTask) -> dict[str, Any]:
    """A task as it stands in its file, with what follows from the others."""
    waiting = waits_for(task, lists.where) if lists.where(task.id) == "pending" else ()
    return {
        **write_entry(task),
        "list": lists.where(task.id),
        "waits_for": [{"id": one.id, "list": one.where} for one in waiting],
        "is_lost": queue.is_lost(task),
    }


def _tell_list(
    queue: Queue, lists: Lists, name: ListName, now: datetime, all_: bool
) -> Iterator[str]:
    count = lists.count(name)
    if not count:
        return
    yield f"{typer.style(colored(name), bold=True)}  {amount(count, 'task')}"
    most = -1 if all_ else 0 if name in _QUIET else SHOWN
    shown = lists.ranked(most) if name == "pending" else lists.of(name, most)
    width = max((len(line(one.id)) for one in shown), default=0)
    for one in shown:
        title = line(one.title, _TITLE)
        said = "; ".join(_notes(queue, lists, one, now))
        priority = line(str(one.priority), 8)
        yield f"  {line(one.id):<{width}}  {priority:<8}  {title}{'  — ' if said else ''}{said}"
    if shown and count > len(shown):
        yield f"  … and {count - len(shown):,} more: loki queue --list {name}"


def _notes(queue: Queue, lists: Lists, task: QueuedTask, now: datetime) -> Iterator[str]:
    """What a person wants to know of a task besides its title."""
    where = lists.where(task.id)
    if task.blocked is not None and where in {"pending", "in-progress"}:
        yield f"blocked{_ago(task.blocked.since, now)}: {line(task.blocked.reason)}"
    if where == "pending":
        for one in waits_for(task, lists.where):
            hint = ", which does not end by itself" if one.is_stuck else ""
            told = f"{one.where}{hint}" if one.where else "which nobody has submitted"
            yield f"waits for {line(one.id)} ({told})"
        if task.urgent or task.background:
            yield "urgent" if task.urgent else "background"
    elif where == "in-progress":
        yield _holder(queue, task, now)
    elif why := task.raw.get("reason") or task.raw.get("error_summary"):
        yield line(str(why), 80)


def _holder(queue: Queue, task: QueuedTask, now: datetime) -> str:
    lease = task.claim
    if lease is None:
        return f"another program has it, or left it: loki queue release {shlex.quote(task.id)}"
    if queue.is_lost(task):
        return f"{line(lease.worker)} is gone: the next worker takes it"
    end = moment(lease.until)
    left = "" if end is None else f", its lease is good for another {time_between(now, end)}"
    return f"{line(lease.worker)} has had it{_ago(lease.since, now)}{left}"


def _ago(text: str, now: datetime) -> str:
    since = moment(text)
    return "" if since is None else f" for {time_between(since, now)}"


def show_unbegun(workspace: Workspace, wanted: str, *, json: bool) -> bool:
    """Show a task that waits in the queue and of which nothing else is known yet.

    Args:
        workspace: the project.
        wanted: its id, or how it begins.
        json: as JSON.

    Returns:
        Whether the queue has it.
    """
    queue = queue_of(workspace)
    ids = queue.lists().ids()
    if not any(id_.startswith(wanted) for id_ in ids):
        return False
    _show(queue, find(ids, wanted), json, begun=False)
    return True


def holder(workspace: Workspace, id_: str) -> str:
    """Who works on a task of the queue, for how long; "": nobody."""
    queue = queue_of(workspace)
    lists = queue.lists()
    task = lists.find(id_)
    if task is None or lists.where(id_) != "in-progress":
        return ""
    return _holder(queue, task, queue.clock.now())


def _show(queue: Queue, id_: str, json: bool, *, begun: bool = True) -> None:
    lists = queue.lists()
    task = lists.find(find(lists.ids(), id_))
    assert task is not None
    facts = _facts(queue, lists, task, begun=begun)
    present(_data(queue, lists, task), told_facts(line(task.title), facts), json=json)


def _facts(
    queue: Queue, lists: Lists, task: QueuedTask, *, begun: bool
) -> Iterator[tuple[str, str]]:
    where = lists.where(task.id) or ""
    yield "id", line(task.id)
    yield "list", colored(where)
    for note in _notes(queue, lists, task, queue.clock.now()):
        yield "", note
    said = {
        "about": task.description,
        "priority": str(task.priority),
        "kind": f"{task.kind}, {task.complexity}",
        "checks": "; ".join(task.checks),
        "scope": ", ".join(task.scope),
        "depends on": ", ".join(task.dependencies),
        "agent": task.agent or task.agent_command,
        "attempts": str(task.lifetime_attempts or ""),
        "tags": ", ".join(task.tags),
        "came from": task.after,
        "submitted": task.submitted_at,
    }
    yield from ((label, line(value)) for label, value in said.items() if value)
    if begun:
        yield "details", f"loki show {shlex.quote(task.id)}"

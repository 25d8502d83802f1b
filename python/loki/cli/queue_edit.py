"""What ``loki edit`` changes of a task of the queue."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import typer

from loki.base.error import UsageError
from loki.base.text_format import line
from loki.cli.common import show_json
from loki.cli.show import find

if TYPE_CHECKING:
    from loki.workspace import Workspace

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
    from loki.jobs.queue.project_queue import queue_of

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
        UsageError: nothing is to change, or something that such a task does not have.
    """
    from loki.jobs.queue import project_queue

    changes = {"title": said.pop("task"), **said} if "task" in said else dict(said)
    if wrong := sorted(set(changes) - FIELDS):
        named = ", ".join(f"--{name.replace('_', '-')}" for name in wrong)
        raise UsageError(f"{id_} is a task of the queue, and has no {named}")
    if not changes:
        raise UsageError("what is to change? `loki edit --help` says what can")
    texts = {name for name in FIELDS if name.endswith("command") or name == "agent"}
    plain = {n: "" if v is None and n in texts else v for n, v in changes.items()}
    task, is_free = project_queue.edit(workspace, id_, plain)
    if json:
        show_json(dict(task.raw))
        return
    typer.echo(f"changed {id_}")
    if is_free:
        typer.echo("It was blocked because it could not be worked on; now it waits for a worker.")
    elif task.blocked is not None:
        typer.echo(
            f"It is blocked: {line(task.blocked.reason)}; loki queue unblock {shlex.quote(id_)}"
        )

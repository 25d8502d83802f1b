"""``loki show``: a task and its attempts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from loki.base.error import UsageError
from loki.cli.common import show_json, speaks_plainly
from loki.memory.attempt import Attempt


@speaks_plainly
def command(
    task: Annotated[
        str | None,
        typer.Argument(help="Id of the task, or how it begins; all tasks where none."),
    ] = None,
    project: Annotated[Path, typer.Option(help="The project's folder.")] = Path(),
    json: Annotated[bool, typer.Option("--json", help="Everything as JSON.")] = False,
) -> None:
    """Show what was tried on a task, what came of it, and where its pages are."""
    from loki.memory import task_record
    from loki.workspace import Workspace, describe

    workspace = Workspace(project)
    if task is None:
        records = [task_record.load(workspace.store, id_) for id_ in workspace.tasks()]
        if json:
            show_json(records)
        else:
            typer.echo(
                "\n".join(map(describe, records)) or "No task here yet: see `loki run --help`."
            )
        return
    id_ = find(workspace.tasks(), task)
    record, attempts = task_record.load(workspace.store, id_), workspace.history(id_).attempts()
    if json:
        show_json({**record, "attempts": [attempt.to_dict() for attempt in attempts]})
        return
    typer.echo(_head(record))
    for attempt in attempts:
        typer.echo(_tell(attempt))
    for name in workspace.store.names(f"tasks/{id_}/"):
        if name.endswith(".md"):
            typer.echo(f"page: {project / '.loki' / name}")


def find(tasks: list[str], wanted: str) -> str:
    """The id that is, or alone begins with, what was asked for.

    Raises:
        UsageError: there is none, or several.
    """
    if wanted in tasks:
        return wanted
    found = [id_ for id_ in tasks if wanted and id_.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{wanted!r} is the beginning of several tasks: {', '.join(found)}")
    there = f"there are: {', '.join(tasks)}" if tasks else "there are no tasks here yet"
    raise UsageError(f"no task {wanted!r}; {there}")


def _head(record: dict[str, Any]) -> str:
    outcome = record.get("outcome") or {}
    lines = [typer.style(str(record.get("title")), bold=True)]
    lines.append(f"  id      {record.get('id')} ({record.get('kind')}, {record.get('complexity')})")
    lines += [f"  check   {' '.join(c['command'])} ({c['kind']})" for c in record.get("checks", [])]
    if outcome:
        lines.append(f"  status  {outcome['status']}: {outcome['reason']}")
        if outcome.get("files_modified"):
            lines.append(f"  files   {', '.join(outcome['files_modified'])}")
    else:
        lines.append("  status  not ended: it runs, or it was killed; run it again to go on")
    return "\n".join(lines)


def _tell(attempt: Attempt) -> str:
    color = {"success": "green", "failed": "red"}.get(attempt.result, "yellow")
    head = f"attempt {attempt.attempt}  {typer.style(attempt.result, fg=color)}"
    lines = [f"\n{head}  {attempt.timestamp}  {attempt.duration_ms / 1000:.1f} s"]
    lines.append(f"  did     {' '.join(attempt.action.split()) or '(nothing)'}")
    if attempt.files_modified:
        lines.append(f"  files   {', '.join(attempt.files_modified)}")
    lines += [f"  check   {c.name}: {'passed' if c.passed else 'failed'}" for c in attempt.checks]
    if attempt.error:
        lines.append(f"  error   {attempt.error}")
    if attempt.decision:
        then = attempt.strategy_used or attempt.decision["action"]
        lines.append(f"  then    {then}: {attempt.decision['reason']}")
    return "\n".join(lines)

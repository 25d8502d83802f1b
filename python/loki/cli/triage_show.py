"""How triages are shown: with their recurring task, and alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from loki.base.error import UsageError
from loki.base.text_format import line
from loki.base.time import isoformat
from loki.cli.common import show_json
from loki.jobs.triage import triage_record
from loki.jobs.triage.triage_evidence import records
from loki.jobs.triage.triage_policy import parts_of
from loki.jobs.triage.triage_record import TriageRecord, document

if TYPE_CHECKING:
    from loki.jobs.recurring.recurring_task import RecurringTask
    from loki.workspace import Workspace

SHOWN = 3
"""Triages that are shown with a task, the last ones."""

_COLORS = {"failed": "red", "running": "yellow"}


def of(workspace: Workspace, task: RecurringTask) -> list[TriageRecord]:
    """The triages of a task that are kept, oldest first."""
    return records(workspace, task.id, task.triages)


def show(workspace: Workspace, id_: str, *, json: bool) -> None:
    """Everything about one triage.

    Raises:
        UsageError: there is none of that id.
    """
    parts = parts_of(id_)
    text = workspace.store.get(document(*parts)) if parts else None
    record = triage_record.read(text) if text is not None else None
    if record is None:
        task = parts[0] if parts else "TASK"
        raise UsageError(f"no triage {id_!r} here: `loki recur show {task}` lists those of a task")
    if json:
        show_json(record.to_dict())
        return
    typer.echo("\n".join(triage_lines(record)))
    for one in record.evidence.splitlines():
        typer.echo(f"  evidence  {line(one)}")
    for name in filter(None, (record.prompt, record.answer)):
        typer.echo(f"  kept      .loki/{name}")


def triage_lines(record: TriageRecord) -> Iterator[str]:
    """A triage in a few lines."""
    shown = record.verdict or record.status
    status = typer.style(shown, fg=_COLORS.get(record.status))
    yield f"triage {record.number}  {status}  {isoformat(record.started_at)}  by {line(record.agent)}"
    for name, text in (
        ("cause", record.root_cause),
        ("failed", record.reason),
        ("unread", record.problem),
        ("acted", record.acted),
        ("asks for", record.recommendation),
    ):
        if text:
            yield f"  {name:<9} {line(text, 200)}"
    for refusal in record.refused:
        yield f"  refused   {line(refusal.what, 200)}"
    for change in record.meanwhile:
        yield f"  meanwhile {line(change, 200)}, by whom loki cannot tell"

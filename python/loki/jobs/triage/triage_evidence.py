"""Gathers what is known of a recurring task that keeps failing, from a workspace's files."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from loki.base.time import moment
from loki.execution.resilience import breakers as breakers_of
from loki.jobs.recurring.recurring_tasks import LOG
from loki.jobs.triage import triage_record
from loki.jobs.triage.triage_prompt import ROWS, Evidence
from loki.jobs.triage.triage_record import TriageRecord, document

if TYPE_CHECKING:
    from loki.jobs.recurring.recurring_run import RunRecord
    from loki.jobs.recurring.recurring_task import RecurringTask
    from loki.jobs.recurring.recurring_tasks import RecurringTasks
    from loki.memory.attempt import Attempt
    from loki.workspace import Workspace

AROUND = timedelta(minutes=2)
"""Lines of the scheduler's log so near a failure are evidence, whatever task they are about. Chosen."""

LINES = 60
"""Lines of it, at most, the last ones; chosen, not measured."""

ATTEMPTS = 3
"""Attempts of an agent's run that are told, the last ones; chosen, not measured."""


def gather(workspace: Workspace, tasks: RecurringTasks, task: RecurringTask) -> Evidence:
    """What is known of a task.

    Args:
        workspace: the project.
        tasks: its recurring tasks.
        task: the one that keeps failing.
    """
    runs = list(deque(tasks.runs(task.id), maxlen=ROWS))
    return Evidence(
        task,
        workspace.clock.now(),
        runs,
        {run.number: (tasks.output(run.output), tasks.output(run.error_output)) for run in runs},
        [told for run in runs[-2:] for told in _transcript(workspace, run)],
        _scheduler(workspace, task.id, [run.ended_at for run in runs if run.status == "failed"]),
        list(_breakers(workspace)),
        records(workspace, task.id, task.triages),
        str(workspace.root),
    )


def records(workspace: Workspace, task: str, triages: int) -> list[TriageRecord]:
    """The triages of a task that are kept, oldest first.

    Args:
        workspace: the project.
        task: id of the recurring task.
        triages: how many there were.
    """
    texts = (workspace.store.get(document(task, number)) for number in range(1, triages + 1))
    found = (triage_record.read(text) for text in texts if text is not None)
    return [record for record in found if record is not None]


def began(workspace: Workspace, task: RecurringTask) -> datetime | None:
    """When the last triage of a task began whose cooldown a person has cleared; None: of another."""
    if task.last_triaged_at is not None or not task.triages:
        return None
    text = workspace.store.get(document(task.id, task.triages))
    record = triage_record.read(text) if text is not None else None
    return None if record is None else record.started_at


def _transcript(workspace: Workspace, run: RunRecord) -> Iterator[tuple[str, str]]:
    """What an agent did in a run, attempt by attempt."""
    if not run.task_id:
        return
    attempts = [
        one
        for one in workspace.history(run.task_id).attempts()
        if (at := moment(one.timestamp)) is not None and run.started_at <= at <= run.ended_at
    ]
    for one in attempts[-ATTEMPTS:]:
        yield f"What the agent did in run {run.number}, attempt {one.attempt}", _told(one)


def _told(attempt: Attempt) -> str:
    lines = [f"action: {attempt.action}", f"result: {attempt.result}"]
    if attempt.agent:
        lines.append(f"agent: {attempt.agent} {attempt.model or ''}".rstrip())
    if attempt.files_modified:
        lines.append(f"files: {', '.join(attempt.files_modified)}")
    if attempt.error:
        lines.append(f"error: {attempt.error}")
    lines += [
        f"command: {one.get('command')} exit code {one.get('exit_code')}"
        for one in attempt.commands
    ]
    for check in attempt.checks:
        state = "passed" if check.passed else f"failed, exit code {check.exit_code}"
        lines.append(f"check {check.command}: {state}")
        if not check.passed and check.output:
            lines.append(check.output)
    return "\n".join(lines)


def _scheduler(workspace: Workspace, task: str, failures: list[datetime]) -> list[str]:
    """Lines about the task, and those of others near its failures."""
    kept: deque[str] = deque(maxlen=LINES)
    for record in workspace.store.scan(LOG):
        if record.get("task") == task or _is_near(record, failures):
            kept.append(_line(record))
    return list(kept)


def _is_near(record: dict[str, Any], failures: list[datetime]) -> bool:
    at = moment(record["at"]) if isinstance(record.get("at"), str) else None
    return at is not None and any(abs(at - failure) <= AROUND for failure in failures)


def _line(record: dict[str, Any]) -> str:
    """A line; what a triage came to is told in other words than an answer's, which is no echo of it."""
    rest = {key: value for key, value in record.items() if key not in {"at", "event"}}
    words = " ".join(
        f"{'came_to' if key == 'verdict' else key}={json.dumps(value, ensure_ascii=False)}"
        for key, value in rest.items()
    )
    return f"{record.get('at')} {record.get('event')} {words}".rstrip()


def _breakers(workspace: Workspace) -> Iterator[str]:
    """Circuit breakers that are not closed."""
    for name, now in sorted(breakers_of(workspace).snapshot().items()):
        if now.state != "CLOSED":
            left = "" if now.retry_after is None else f", {now.retry_after:g} s left"
            yield f"{name}: {now.state}{left}; last error: {now.last_error or 'none'}"

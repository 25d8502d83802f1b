"""How recurring tasks and their triages are found and shown."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import typer

from loki.base.error import UsageError
from loki.base.text_format import amount, line, span
from loki.base.time import isoformat
from loki.cli.common import colored, find, present
from loki.cli.show import quote
from loki.jobs.recurring.recurring_run import RunRecord
from loki.jobs.recurring.recurring_task import CronPart, RecurringTask, Unreadable
from loki.jobs.recurring.schedule import Cron
from loki.jobs.recurring.scheduling import recurring_tasks
from loki.jobs.triage import triage_policy, triage_verdict
from loki.jobs.triage.triage_policy import parts_of
from loki.jobs.triage.triage_prompt import records
from loki.jobs.triage.triage_verdict import TriageRecord, document

if TYPE_CHECKING:
    from loki.workspace import Workspace


# --- The recurring task that somebody means -----------------------------------------------------------


def found(workspace: Workspace, wanted: str) -> str:
    """The id of a recurring task.

    Raises:
        UsageError: there is none, or several begin so.
    """
    return find(recurring_tasks(workspace).ids(), wanted, "recurring task")


def recurring_id(workspace: Workspace, wanted: str) -> str | None:
    """The recurring task that a command for tasks of either kind means; None: it means none.

    A task of its own of exactly that id comes first, then a recurring one, by its whole id or, where
    no task begins so, by its beginning.
    """
    ids, tasks = recurring_tasks(workspace).ids(), workspace.tasks()
    if wanted in tasks:
        return None
    if wanted in ids:
        return wanted
    begun = [id_ for id_ in ids if id_.startswith(wanted)]
    if wanted and len(begun) == 1 and not any(task.startswith(wanted) for task in tasks):
        return begun[0]
    return None


# --- How triages are shown ----------------------------------------------------------------------------

SHOWN_TRIAGES = 3
"""Triages that are shown with a task, the last ones."""


def triage_of(workspace: Workspace, task: RecurringTask) -> list[TriageRecord]:
    """The triages of a task that are kept, oldest first."""
    return records(workspace, task.id, task.triages)


def show_triage(workspace: Workspace, id_: str, *, json: bool) -> None:
    """Everything about one triage.

    Raises:
        UsageError: there is none of that id.
    """
    parts = parts_of(id_)
    text = workspace.store.read(document(*parts)) if parts else None
    record = triage_verdict.read_triage(text) if text is not None else None
    if record is None:
        task = parts[0] if parts else "TASK"
        raise UsageError(f"no triage {id_!r} here: `loki recur show {task}` lists those of a task")
    lines = [*triage_lines(record)]
    lines += [f"  evidence  {line(one)}" for one in record.evidence.splitlines()]
    lines += [f"  kept      .loki/{name}" for name in (record.prompt, record.answer) if name]
    present(record.to_dict(), lines, json=json)


def triage_lines(record: TriageRecord) -> Iterator[str]:
    """A triage in a few lines."""
    shown = record.verdict or record.status
    status = colored(record.status, said=shown)
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


# --- How recurring tasks are shown --------------------------------------------------------------------

_STATUS = len("backing_off")
"""Width of a status in a list; longer ones are rare."""

NONE = "No recurring task here yet: see `loki recur add --help`."

RUNS = 5
"""Last runs that are shown."""


def in_zone(moment: datetime, task: RecurringTask) -> str:
    """A moment as the clock on the wall has it, with its zone."""
    part = task.schedule
    zone = part.zone if isinstance(part, CronPart) else "UTC"
    return moment.astimezone(ZoneInfo(zone)).strftime("%a %Y-%m-%d %H:%M:%S %Z")


def schedule_of(task: RecurringTask) -> str:
    """Its schedule in words."""
    part = task.schedule
    if isinstance(part, CronPart):
        return f"cron {part.cron} ({part.zone})"
    most = f", {task.iterations} of {part.max_iterations} iterations" if part.max_iterations else ""
    return f"{span(part.delay * 1000)} after each run{most}"


def added(task: RecurringTask, workspace: Workspace) -> Iterator[str]:
    """What is said of a new task: its id, and its next three runs."""
    yield f"added {typer.style(task.id, bold=True)}: {line(task.title)}"
    timing = task.timing()
    if isinstance(timing, Cron):
        for at in islice(timing.fires(workspace.clock.now()), 3):
            yield f"  next  {in_zone(at, task)}"
    else:
        yield f"  next  at once, then {schedule_of(task)}"
    yield "It runs while `loki tick --watch` does, or when `loki tick` is called."


def in_words(moment: datetime, now: datetime) -> str:
    """How far off a moment is."""
    left = (moment - now).total_seconds()
    return f"in {span(left * 1000)}" if left > 0 else "due now"


def as_data(task: RecurringTask | Unreadable, workspace: Workspace) -> dict[str, Any]:
    """A task for programs: its file, and what can be calculated from it."""
    if isinstance(task, Unreadable):
        return {"id": task.id, "status": "unreadable", "reason": task.reason}
    now = workspace.clock.now()
    left = cooldown_left(task, workspace)
    next_in = (task.next_run_at - now).total_seconds() if task.next_run_at else None
    return {
        **task.model_dump(mode="json"),
        "status": task.status,
        "next_run_in_seconds": next_in,
        "triage_cooldown_left_seconds": left or None,
    }


def cooldown_left(task: RecurringTask, workspace: Workspace) -> float:
    """Seconds until it may be triaged again."""
    rules = workspace.config.recurrence
    return triage_policy.cooldown_left(task, rules, workspace.clock.now())


def list_all(
    tasks: Sequence[RecurringTask | Unreadable], workspace: Workspace, *, json: bool
) -> None:
    """A line for each task."""
    now, width = workspace.clock.now(), max((len(task.id) for task in tasks), default=0)
    rows = (" ".join(_row(task, now, width)) for task in tasks)
    present([as_data(task, workspace) for task in tasks], rows, json=json, nothing=NONE)


def _row(task: RecurringTask | Unreadable, now: datetime, width: int) -> Iterator[str]:
    if isinstance(task, Unreadable):
        yield f"{task.id:<{width}}  {colored('unreadable')}  {line(task.reason)}"
        return
    yield f"{task.id:<{width}} "
    yield colored(task.status, _STATUS) + " "
    if task.consecutive_failures:
        yield f"{amount(task.consecutive_failures, 'failure')} in a row "
    if task.status in {"scheduled", "backing_off", "pending_evaluation"} and task.next_run_at:
        yield f"next {in_words(task.next_run_at, now)} "
    yield line(task.title, 60)


def show(workspace: Workspace, id_: str, *, json: bool) -> None:
    """Everything about one task."""
    tasks = recurring_tasks(workspace)
    task, runs = tasks.load(id_), tasks.runs(id_)
    triages = triage_of(workspace, task)
    recent = {
        "recent_runs": [run.model_dump(mode="json") for run in runs[-2 * RUNS :]],
        "recent_triages": [one.to_dict() for one in triages[-2 * RUNS :]],
    }
    lines = [*_told(task, workspace)]
    for run in runs[-RUNS:]:
        lines += told_run(run)
    for record in triages[-SHOWN_TRIAGES:]:
        lines += [*triage_lines(record), f"  more      loki show {record.id}"]
    present({**as_data(task, workspace), **recent}, lines, json=json)


def history(workspace: Workspace, id_: str, last: int, *, json: bool, output: bool) -> None:
    """The last runs of a task, oldest first."""
    tasks = recurring_tasks(workspace)
    data, lines = [], []
    for run in tasks.runs(id_)[-last:]:
        printed = [tasks.output(name) for name in (run.output, run.error_output) if output]
        data.append(
            run.model_dump(mode="json") | dict(zip(("stdout", "stderr"), printed, strict=False))
        )
        lines += [*told_run(run), *(told for text in printed for told in quote(text))]
    present(data, lines, json=json, nothing="It has not run yet.")


def _told(task: RecurringTask, workspace: Workspace) -> Iterator[str]:
    yield typer.style(line(task.title), bold=True)
    yield f"  id        {task.id}"
    if task.command:
        yield f"  command   {line(shlex.join(task.command))}"
    if task.agent is not None:
        if task.agent.task != task.title:
            yield f"  task      {line(task.agent.task)}"
        who = task.agent.agent or task.agent.agent_command or "nobody"
        yield f"  agent     {line(who)}"
        for check in task.agent.checks:
            yield f"  check     {line(check)}"
    yield f"  schedule  {schedule_of(task)}"
    yield f"  status    {colored(task.status)}{_why(task)}"
    if task.total_failures:
        yield f"  failures  {task.consecutive_failures} in a row ({task.total_failures} in all)"
    yield from next_of(task, workspace)
    yield from _triage(task, workspace)
    if task.tags:
        yield f"  tags      {line(', '.join(task.tags))}"


def _why(task: RecurringTask) -> str:
    held = task.paused or task.stopped
    if held is None:
        return f": {line(task.put_off)}" if task.put_off else ""
    who = f" by {held.by}" if held.by else ""
    why = f": {line(held.reason)}" if held.reason else ""
    return f"{who} since {isoformat(held.since)}{why}; loki resume {task.id}"


def next_of(task: RecurringTask, workspace: Workspace) -> Iterator[str]:
    """When it runs next: in how long, which iteration of the backoff, and its cap."""
    if task.next_run_at is None or task.stopped or task.paused:
        return
    planned = max(filter(None, (task.next_run_at, task.not_before)))
    told = in_words(planned, workspace.clock.now())
    if task.consecutive_failures:
        cap = span(workspace.config.recurrence.failure_backoff_max_delay * 1000)
        told += f", backoff iteration {task.consecutive_failures}, cap {cap}"
    yield f"  next      {in_zone(planned, task)} ({told})"


def _triage(task: RecurringTask, workspace: Workspace) -> Iterator[str]:
    if task.last_triaged_at is None:
        return
    left = cooldown_left(task, workspace)
    over = f"cooldown: {span(left * 1000)} left" if left else "cooldown is over"
    yield f"  triaged   {isoformat(task.last_triaged_at)} ({over})"


def told_run(run: RunRecord) -> Iterator[str]:
    """A run in a few lines."""
    took = span((run.ended_at - run.started_at).total_seconds() * 1000)
    code = "" if run.exit_code is None else f", exit code {run.exit_code}"
    status = colored(run.status)
    yield f"run {run.number}  {status}{code}  {isoformat(run.started_at)}  {took}"
    if run.missed:
        yield f"  missed    {amount(run.missed, 'run')} before it"
    if run.reason:
        yield f"  reason    {line(run.reason, 200)}"
    if run.signature:
        kind = f", {run.kind}" if run.kind else ""
        yield f"  signature {run.signature}{kind}"
    for name in filter(None, (run.output, run.error_output)):
        yield f"  printed   .loki/{name}"

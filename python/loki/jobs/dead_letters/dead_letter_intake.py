"""How a task becomes a dead letter of the queue, and how it ends that by itself when it succeeds."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loki.action.checks.check import EVIDENCE
from loki.action.loop import recorder
from loki.base.error import StoreError, UsageError
from loki.base.time import isoformat
from loki.jobs.dead_letters import dead_letter_form
from loki.jobs.dead_letters.dead_letter_review import strategy_for
from loki.jobs.dead_letters.fact_finder import FactFinder
from loki.jobs.queue import queued_task
from loki.jobs.queue.queue import queue_of
from loki.jobs.queue.queued_task import QueuedTask
from loki.jobs.recurring.recurring_tasks import RecurringTasks
from loki.memory import dead_letter, task_record
from loki.memory.dead_letter import HUMAN, DeadLetter, Source, blocked_reason
from loki.memory.dead_letter_log import DeadLetterLog
from loki.memory.task_record import Outcome, TaskRecord
from loki.recognition.failure import Failure

if TYPE_CHECKING:
    from loki.action.task import TaskSpec
    from loki.workspace import Workspace


SUMMARY = 300
"""Characters of an ``error_summary``; chosen, not measured."""

EXPIRED = "human_review_expired"
"""What ended a task that nobody answered for."""


def source_of(workspace: Workspace, task_id: str, run: str) -> Source:
    """How a task came to be worked on.

    Args:
        workspace: the project.
        task_id: the task.
        run: id of the pipeline's run that it is a stage of, or "".
    """
    if run:
        return "pipeline"
    with suppress(StoreError):
        if queue_of(workspace).where(task_id) is not None:
            return "queue"
    return "recurring" if RecurringTasks(workspace.store).has_run(task_id) else "loop"


def add(
    workspace: Workspace, spec: TaskSpec, letter: DeadLetter, agent: Mapping[str, Any] | None
) -> None:
    """Put a task whose loop is exhausted among the dead letters; twice is as good as once.

    Raises:
        StoreError: it could not be kept.
    """
    from loki.jobs.dead_letters.dead_letters import DeadLetters

    queue = queue_of(workspace)
    asked = queue.find(spec.id) or _asked(spec, agent)
    summary = str(letter.recognized() or letter.message)[:SUMMARY]
    queue.dead_letter(_entry(workspace, FactFinder(workspace), asked, summary, letter.at))
    DeadLetters(workspace).escalate(spec.id)


def expire(workspace: Workspace, task_id: str, reason: str) -> None:
    """Give up a task that nobody answered for; one that has ended otherwise stays as it is.

    Args:
        workspace: the project.
        task_id: the task.
        reason: why, a sentence.

    Raises:
        UsageError: another run is at work here; nothing was done.
    """
    queue = queue_of(workspace)
    by_person = {"task_id": task_id, "recovery_strategy": HUMAN}
    with workspace.exclusive():
        record = task_record.load(workspace.store, task_id)
        if record and record.status in {"escalated", ""}:
            letter = _end(workspace, record, reason)
            if not record.run:
                add(workspace, _spec(record), letter, record.agent)
                queue.dead_letter(by_person)  # whatever failed before
        elif not record and queue.where(task_id) in {"pending", "in-progress"}:
            now = isoformat(workspace.clock.now())
            queue.dead_letter({**by_person, "error_summary": reason, "last_failure": now})


def _end(workspace: Workspace, record: TaskRecord, reason: str) -> DeadLetter:
    """Keep that a task failed, with its page."""
    task_id, title = record.id, record.title
    now, history = isoformat(workspace.clock.now()), workspace.history(task_id)
    made = [one for one in history.attempts() if one.execution == record.execution]
    found = (one.recognized() for one in reversed(made))
    failure = next(filter(None, found), None) or Failure.of(reason, tool="loki")
    files, page = workspace.journal(task_id).changes(), dead_letter.page_name(task_id)
    source = source_of(workspace, task_id, record.run)
    letter = DeadLetter.of(
        task_id, title, made, failure, blocked_reason(EXPIRED), now, files, source
    )
    DeadLetterLog(workspace.store, workspace.patterns).add(letter, made, page)
    before = record.outcome or Outcome(task_id, "", len(made))
    outcome = replace(before, status="failed", reason=reason, trigger=EXPIRED, page=page)
    history.end(record.execution, outcome.to_dict(), title=title, at=now)
    task_record.save(workspace.store, replace(record, outcome=outcome, updated_at=now))
    return letter


def complete(workspace: Workspace) -> list[str]:
    """Add what the list of dead letters lacks: tasks given up earlier, and attempts of others.

    Returns:
        Ids of the tasks that were added or completed.

    Raises:
        StoreError: it could not be kept.
    """
    queue = queue_of(workspace)
    finder = FactFinder(workspace)
    lacking: list[dict[str, Any]] = []
    for id_, logged in finder.logged.items():
        if finder.lists.where(id_) is not None:
            continue
        record = task_record.load(workspace.store, id_)
        if _was_given_up(record):
            asked = _asked_of(record, id_, logged.title)
            summary = (logged.message or logged.signature)[:SUMMARY]
            lacking.append(_entry(workspace, finder, asked, summary, logged.at))
    for id_, letter in finder.letters.items():
        if not letter.attempts and finder.life(id_):
            task, at = finder.task(letter), letter.last_failure
            lacking.append(_entry(workspace, finder, task, letter.error_summary, at))
        elif not letter.recovery_strategy:
            how = strategy_for(letter, finder.facts(letter))
            lacking.append({"task_id": id_, "recovery_strategy": how})
    for entry in lacking:
        queue.dead_letter(entry)
    return [entry["task_id"] for entry in lacking]


def _entry(
    workspace: Workspace, finder: FactFinder, task: QueuedTask, summary: str, at: str
) -> dict[str, Any]:
    """The whole entry of a task; ``task_data`` where the queue does not know it."""
    life, at = finder.life(task.id), at or isoformat(workspace.clock.now())
    made = dead_letter_form.of_loop(task, life, summary, at, strategy="")
    letter = finder.letter(replace(task, raw={**task.raw, **made}))
    made["recovery_strategy"] = strategy_for(letter, finder.facts(letter, task=task))
    if finder.lists.where(task.id) is None:
        data = queued_task.write_entry(task)
        made["task_data"] = {name: value for name, value in data.items() if name != "id"}
    return made


def _was_given_up(record: TaskRecord) -> bool:
    is_dead = record.status == "failed" and record.trigger not in {"budget", "aborted"}
    return is_dead and not record.run


def _spec(record: TaskRecord) -> TaskSpec:
    try:
        return recorder.spec_of(record)
    except UsageError:  # a check held a secret: whoever tries it again says its checks again
        return recorder.spec_of(record, ())


def _asked_of(record: TaskRecord, task_id: str, title: str) -> QueuedTask:
    try:
        return _asked(_spec(record), record.agent)
    except UsageError:
        return QueuedTask(task_id, title or task_id)


def _asked(spec: TaskSpec, agent: Mapping[str, Any] | None) -> QueuedTask:
    """A task that was never queued, as the queue would have it."""
    said = agent or {}
    argv = said.get("command") or ()
    command = "" if said.get("masked") or said.get("preset") else shlex.join(map(str, argv))
    known = said.get("preset") or said.get("agent") or ""
    return QueuedTask(
        spec.id,
        spec.title,
        kind=spec.kind,
        complexity=spec.complexity,
        checks=tuple(check.shown for check in spec.checks if check.name != EVIDENCE),
        scope=spec.scope,
        agent="" if command else str(known),
        agent_command=command,
        max_attempts=None if spec.max_retries is None else spec.max_retries + 1,
    )

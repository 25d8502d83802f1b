"""A task that nobody answered for becomes a dead letter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loki.action import specification
from loki.action.resumption import status_of
from loki.base.error import UsageError
from loki.base.time import isoformat
from loki.dead_letters import burial
from loki.memory import task_record
from loki.memory.dead_letter import DeadLetter, blocked_reason
from loki.memory.dead_letters import DeadLetters
from loki.queueing import queue_of
from loki.recognition.failure import Failure
from loki.recurrence.dead_letter import HUMAN

if TYPE_CHECKING:
    from loki.action.task import TaskSpec
    from loki.workspace import Workspace

TRIGGER = "human_review_expired"


def bury(workspace: Workspace, task_id: str, reason: str) -> None:
    """Make a task a dead letter, with its page; one that has ended otherwise stays as it is.

    Args:
        workspace: the project.
        task_id: the task.
        reason: why, a sentence.

    Raises:
        UsageError: another run is at work here; nothing was done.
    """
    with workspace.exclusive():
        record = task_record.load(workspace.store, task_id)
        if record and status_of(record) in {"escalated", ""}:
            _write(workspace, record, reason)
        elif not record and queue_of(workspace).where(task_id) in {"pending", "in-progress"}:
            now = isoformat(workspace.clock.now())
            entry = {"task_id": task_id, "error_summary": reason, "last_failure": now}
            queue_of(workspace).bury({**entry, "recovery_strategy": HUMAN})


def _write(workspace: Workspace, record: dict[str, Any], reason: str) -> None:
    task_id, title = str(record["id"]), str(record.get("title") or "")
    now = isoformat(workspace.clock.now())
    execution = int(record.get("execution") or 1)
    history = workspace.history(task_id)
    made = [one for one in history.attempts() if one.execution == execution]
    found = (one.recognized() for one in reversed(made))
    failure = next(filter(None, found), None) or Failure.of(reason, tool="loki")
    files = workspace.journal(task_id).changes()
    page = f"tasks/{task_id}/dead-letter-{task_id}.md"
    letter = DeadLetter(task_id, title, made, failure, blocked_reason(TRIGGER), now, files)
    kept = DeadLetters(workspace.store, workspace.patterns).keep(letter, page)
    before = record.get("outcome") or {"task_id": task_id, "attempts": len(made)}
    outcome = {**before, "status": "failed", "reason": reason, "trigger": TRIGGER, "page": page}
    history.end(execution, outcome, title=title, at=now)
    after = {**record, "outcome": outcome, "updated_at": now, "dead_letter": kept.to_dict()}
    task_record.save(workspace.store, after)
    if not record.get("run"):  # a stage is no task of the queue
        burial.bury(workspace, _spec(record), letter, record.get("agent"))
        # Whatever failed before: it is a person who did not answer.
        queue_of(workspace).bury({"task_id": task_id, "recovery_strategy": HUMAN})


def _spec(record: dict[str, Any]) -> TaskSpec:
    try:
        return specification.from_dict(record)
    except UsageError:  # a check held a secret: whoever tries it again says its checks again
        return specification.from_dict(record, ())

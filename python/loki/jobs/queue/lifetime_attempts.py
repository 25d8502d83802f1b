"""How often a task was attempted over its life, whoever worked on it."""

from __future__ import annotations

from loki.action.task import safe_id
from loki.base.error import StoreError, UsageError
from loki.jobs.queue.queued_task import QueuedTask
from loki.memory.history import log_name
from loki.memory.store import Store


def attempts(store: Store, task: QueuedTask, made: int | None = None) -> int:
    """Attempts over a task's life.

    Args:
        store: where its attempts are kept.
        task: the task, with those that are known.
        made: attempts since; None: as its history says. A worker that died reported none.
    """
    if made is not None:
        return task.lifetime_attempts + made
    return max(task.lifetime_attempts, _last(store, task.id))


def _last(store: Store, id_: str) -> int:
    try:
        numbers = (record.get("attempt") for record in store.scan(log_name(safe_id(id_))))
        return max((number for number in numbers if isinstance(number, int)), default=0)
    except (UsageError, StoreError):  # it cannot have a folder, or nobody can tell
        return 0

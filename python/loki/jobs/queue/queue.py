"""The queue of tasks, shared by all workers of a project.

Every verb takes in, under one lock, what other programs have written into the lists, changes the index
in one transaction, and sees to it that the lists follow. Why it is so: ``docs/design/queue.md``. Under
test: ``tests/py/jobs/queue/test_queue*.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from loki.base.log import log_event
from loki.base.secret import mask_secrets, masked
from loki.base.time import Clock, isoformat
from loki.jobs.queue import lifetime_attempts, queue_lists, queue_operations
from loki.jobs.queue.lease import Capacity, LeasedTask
from loki.jobs.queue.queue_lists import Lists
from loki.jobs.queue.queue_shared import QueueStore, Shared
from loki.jobs.queue.queued_task import LISTS, Blocked, ListName, QueuedTask
from loki.jobs.queue.worker_lock import Worker, is_over

LEASE = 60.0
"""Seconds that a claim holds, for workers of other machines. Chosen, not measured."""


class Queue:
    """The queue of a project. Every verb may raise `loki.StoreError`; no task is lost then.

    Args:
        store: where the lists are kept; not one that goes on in memory where it fails.
        clock: where time comes from.
        lease: seconds that a claim holds without being renewed, for workers of other machines.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from loki.stores import open_store
        >>> from loki.testing import ManualClock
        >>> store = open_store(Path(tempfile.mkdtemp()))
        >>> queue = Queue(store, ManualClock())
        >>> queue.submit(QueuedTask("login", "Fix the login")).sequence
        1
        >>> with Worker(store.folder) as worker:
        ...     claim = queue.lease(worker)
        ...     queue.complete(claim)
        True
        >>> [task.id for task in queue.tasks("completed")]
        ['login']
    """

    def __init__(self, store: QueueStore, clock: Clock, lease: float = LEASE) -> None:
        self._store, self.clock, self._lease = store, clock, lease
        self._shared = Shared(store, clock)

    # --- looking ---------------------------------------------------------------------------------------

    def lists(self) -> Lists:
        """All lists at one moment, to look at."""
        return self._shared.copy()

    def tasks(self, list_name: ListName | None = None) -> list[QueuedTask]:
        """The tasks of a list, or of all, in their order."""
        with self._shared.looking() as lists:
            return [task for name in LISTS if list_name in {None, name} for task in lists.of(name)]

    def find(self, id_: str) -> QueuedTask | None:
        """A task, wherever it stands; None: there is none."""
        with self._shared.looking() as lists:
            return lists.find(id_)

    def where(self, id_: str) -> ListName | None:
        """The list that a task stands in; None: there is none."""
        with self._shared.looking() as lists:
            return lists.where(id_)

    def places(self, ids: Iterable[str]) -> dict[str, ListName]:
        """The lists that some tasks stand in, at one moment; what is unknown is left out."""
        with self._shared.looking() as lists:
            found = {id_: lists.where(id_) for id_ in ids}
        return {id_: name for id_, name in found.items() if name is not None}

    def counts(self) -> tuple[dict[ListName, int], int]:
        """How many tasks stand in each list, and how many of pending are blocked."""
        with self._shared.looking() as lists:
            return {name: lists.count(name) for name in LISTS}, len(lists.blocked())

    def holds(self, claim: LeasedTask) -> bool:
        """Whether a claim still holds."""
        with self._shared.looking() as lists:
            return queue_operations.leased(lists, claim) is not None

    def is_lost(self, task: QueuedTask) -> bool:
        """Whether a task's claim is over: its worker is dead, or did not renew it elsewhere."""
        return task.claim is not None and is_over(task.claim, self._store.folder, self.clock.now())

    # --- coming in -------------------------------------------------------------------------------------

    def submit(self, task: QueuedTask) -> QueuedTask:
        """Queue a task.

        Returns:
            It, as it stands in pending.

        Raises:
            UsageError: there is one of its id already, or it would wait for itself.
        """
        return self.submit_all([task])[0]

    def submit_all(self, tasks: Sequence[QueuedTask]) -> list[QueuedTask]:
        """Queue several tasks, all or none; they may depend on each other in any order.

        Raises:
            UsageError: as for `submit`.
        """
        with self._changing() as lists:
            return queue_operations.submit(lists, tasks, self._now())

    # --- working ---------------------------------------------------------------------------------------

    def lease(self, worker: Worker, capacity: Capacity | None = None) -> LeasedTask | None:
        """Take the first task that can be worked on, for this worker alone.

        First come those of higher priority, then those that were submitted earlier. Claims of
        workers that died are over, and their tasks can be taken at once.

        Args:
            worker: who; inside its ``with``.
            capacity: how much may be out, and which; None: all.

        Returns:
            The claim; None: nothing can be worked on now.
        """
        worker.fileno()
        with self._changing() as lists:
            self._reap(lists, worker)
            task = next(queue_operations.leasable(lists, capacity), None)
            if task is None:
                return None
            now = self.clock.now()
            claim = queue_operations.lease_task(
                lists, task, worker.lease(task, now, self._end(now))
            )
        worker.held.add((claim.id, claim.lease.generation))
        return claim

    def renew(self, claim: LeasedTask) -> LeasedTask | None:
        """Hold a claim for longer; None: it is lost, and the work is another's."""
        with self._changing() as lists:
            task = queue_operations.leased(lists, claim)
            if task is None:
                return None
            lease = replace(claim.lease, until=self._end(self.clock.now()))
            lists.replace(replace(task, claim=lease))
            return replace(claim, lease=lease)

    def complete(
        self,
        claim: LeasedTask,
        outcome: Mapping[str, Any] | None = None,
        *,
        attempts: int | None = None,
    ) -> bool:
        """A task is achieved.

        Args:
            claim: who says so.
            outcome: how it ended, JSON-able; kept with the task.
            attempts: made since it was claimed; None: as its history says.

        Returns:
            Whether the claim still held; if not, nothing changes.
        """
        return self._end_claim(claim, "completed", {"completed_at": self._now()}, outcome, attempts)

    def fail(
        self,
        claim: LeasedTask,
        reason: str,
        outcome: Mapping[str, Any] | None = None,
        *,
        attempts: int | None = None,
    ) -> bool:
        """A task ended without being achieved, and is not tried again by itself; as `complete`.

        Args:
            claim, outcome, attempts: likewise.
            reason: why, in one sentence.
        """
        said = {"failed_at": self._now(), "reason": mask_secrets(reason)}
        return self._end_claim(claim, "failed", said, outcome, attempts)

    def _end_claim(
        self,
        claim: LeasedTask,
        to: ListName,
        said: Mapping[str, Any],
        outcome: Mapping[str, Any] | None,
        attempts: int | None,
    ) -> bool:
        more = {} if outcome is None else {"outcome": masked(outcome)}
        with self._changing() as lists:
            task = queue_operations.leased(lists, claim)
            if task is not None:
                queue_operations.end(lists, self._lived(task, attempts), to, {**said, **more})
            return task is not None

    def release(
        self, claim: LeasedTask, *, attempts: int | None = None, blocked: str | None = None
    ) -> ListName | None:
        """Give a task back, for whoever claims it next.

        Args:
            claim: who has it.
            attempts: made since it was claimed; None: as its history says.
            blocked: why nobody may claim it before `unblock`; None: anybody may.

        Returns:
            Where it went: pending, or dead-letter after too many attempts over its life; None: the
            claim is lost, and nothing changed.
        """
        with self._changing() as lists:
            task = queue_operations.leased(lists, claim)
            if task is None:
                return None
            if blocked is not None:
                task = replace(task, blocked=Blocked(mask_secrets(blocked), self._now()))
            return self._give_back(lists, self._lived(task, attempts))

    def reap(self) -> list[str]:
        """End the claims of dead workers; ids of their tasks. `claim` does so, too."""
        with self._changing() as lists:
            return self._reap(lists)

    def _reap(self, lists: Lists, worker: Worker | None = None) -> list[str]:
        now, over, folder = self.clock.now(), [], self._store.folder
        for task in lists.of("in-progress"):
            lease = task.claim
            if lease is None:
                continue
            if worker is not None and not worker.knows(task.id, lease):
                lists.move(replace(task, claim=None), "pending")  # nobody was told of this claim
            elif is_over(lease, folder, now):
                to = self._give_back(lists, self._lived(replace(task, lost=task.lost + 1), None))
                over.append(task.id)
                log_event(task.id, f"worker={lease.worker} is gone; back in {to}", warning=True)
        return over

    def _give_back(self, lists: Lists, task: QueuedTask) -> ListName:
        to, why = queue_operations.release(lists, task, self._now())
        if why:
            log_event(task.id, f"given up: {why}", warning=True)
        return to

    # --- by hand, and by reviews -----------------------------------------------------------------------

    def block(self, id_: str, reason: str) -> QueuedTask:
        """Let nobody claim a task; one that is being worked on is blocked once it is given back.

        Raises:
            UsageError: no such task is pending or in progress.
        """
        blocked = Blocked(mask_secrets(reason), self._now())
        return self._edit(id_, lambda task: replace(task, blocked=blocked))

    def unblock(self, id_: str) -> QueuedTask:
        """Let a task be claimed again; one that was not blocked stays as it is. Raises as `block`."""
        return self._edit(id_, lambda task: replace(task, blocked=None))

    def prioritize(self, id_: str, priority: str | float) -> QueuedTask:
        """Give a task another priority. Raises as `block`."""
        return self._edit(id_, lambda task: replace(task, priority=priority))

    def take_back(self, id_: str) -> QueuedTask:
        """Put a task back into pending that another program, or a lost claim, left in progress.

        Raises:
            UsageError: no such task is in progress, or a worker of loki's is at work on it.
        """
        with self._changing() as lists:
            self._reap(lists)
            return queue_operations.withdraw(lists, id_)

    def edit(self, id_: str, **changes: Any) -> QueuedTask:
        """Change what a task asks for, wherever it stands; who works on it goes on as they began.

        Raises:
            UsageError: there is no such task, or it is completed.
        """
        with self._changing() as lists:
            return queue_operations.edit(lists, id_, changes, self._now())

    def _edit(self, id_: str, change: Callable[[QueuedTask], QueuedTask]) -> QueuedTask:
        with self._changing() as lists:
            task = queue_operations.task_in_lists(lists, id_, ("pending", "in-progress"))
            changed = change(task)
            if changed != task:
                lists.replace(changed)
            return lists.find(id_) or changed

    def dead_letter(self, entry: Mapping[str, Any], claim: LeasedTask | None = None) -> bool:
        """Put a task among the dead letters, or change its dead letter.

        Args:
            entry: as SPEC has it; ``task_id`` is enough. What the queue knows of the task is kept
                in its ``task_data``, so that `requeue` can bring it back.
            claim: who has it; None: whoever has it loses it.

        Returns:
            Whether the claim still held; if not, nothing changes.

        Raises:
            UsageError: the entry does not say which task it is.
        """
        with self._changing() as lists:
            if claim is not None and queue_operations.leased(lists, claim) is None:
                return False
            queue_operations.dead_letter(lists, entry, self._now())
            return True

    def requeue(
        self, id_: str, *, said: Mapping[str, Any] | None = None, reset: bool = False
    ) -> QueuedTask:
        """Bring a task back to pending that failed, was given up or abandoned.

        Args:
            id_: its id.
            said: what to add to it, JSON-able: ``recovery_strategy``, the commit of a fix, …
            reset: its attempts so far no longer count: a new approach was found.

        Raises:
            UsageError: no such task failed, is a dead letter or was abandoned.
        """
        with self._changing() as lists:
            return queue_operations.requeue(lists, id_, said or {}, self._now(), reset=reset)

    def abandon(self, id_: str, reason: str) -> QueuedTask:
        """Give a task up for good.

        Raises:
            UsageError: no such task is pending, failed or a dead letter.
        """
        with self._changing() as lists:
            return queue_operations.abandon(lists, id_, reason, self._now())

    def achieve(self, id_: str, outcome: Mapping[str, Any] | None = None) -> bool:
        """Nobody is to work on a task any more that was achieved by whoever had not claimed it.

        Args:
            id_: its id; one that is unknown or being worked on stays as it is.
            outcome: how it ended, JSON-able.
        """
        if self.where(id_) in {None, "completed", "in-progress"}:  # as nearly always
            return False
        with self._changing() as lists:
            return queue_operations.achieve(lists, id_, masked(outcome or {}), self._now())

    def dead_letter_metadata(self) -> dict[str, Any]:
        """``last_reviewed``, ``total_abandoned`` and ``total_recovered`` of ``dead-letter.json``."""
        with self._shared.looking() as lists:
            return queue_lists.metadata(lists.beside("dead-letter"))

    def reviewed(self) -> None:
        """The dead letters have been reviewed just now."""
        with self._changing() as lists:
            extra = lists.beside("dead-letter")
            extra["metadata"] = {**queue_lists.metadata(extra), "last_reviewed": self._now()}
            lists.set_extra("dead-letter", extra)

    # --- under the lock --------------------------------------------------------------------------------

    def _changing(self) -> AbstractContextManager[Lists]:
        return self._shared.changing()

    def _now(self) -> str:
        return isoformat(self.clock.now())

    def _end(self, now: datetime) -> str:
        return isoformat(now + timedelta(seconds=self._lease))

    def _lived(self, task: QueuedTask, attempts: int | None) -> QueuedTask:
        return replace(
            task, lifetime_attempts=lifetime_attempts.attempts(self._store, task, attempts)
        )

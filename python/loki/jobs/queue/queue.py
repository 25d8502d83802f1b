"""The queue of tasks, and how each verb moves a task between its lists.

The moves of all verbs:

============================= ================================== =========================
from                          verb                               to
============================= ================================== =========================
nowhere                       submit                             pending
pending                       claim                              in-progress
in-progress                   release, or its worker died        pending; dead-letter
in-progress of others         take back                          pending
in-progress                   complete                           completed
in-progress                   fail                               failed
anywhere, also nowhere        dead_letter                        dead-letter
failed, dead-letter           requeue                            pending
abandoned                     requeue                            pending
pending, failed, dead-letter  abandon                            abandoned
pending, failed, dead-letter  achieve                            completed
abandoned                     achieve                            completed
============================= ================================== =========================

Every other verb leaves a task in its list, or is refused.

Every verb takes in, under one lock, what other programs have written into the lists, changes the index
in one transaction, and sees to it that the lists follow. Why it is so: ``docs/design/queue.md``. Under
test: ``tests/py/jobs/queue/test_queue*.py``.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from loki.action.task import safe_id
from loki.base.error import StoreError, UsageError
from loki.base.log import log_event
from loki.base.secret import mask_secrets, masked
from loki.base.time import Clock, isoformat
from loki.jobs.dead_letters import dead_letter_form
from loki.jobs.queue import queued_task
from loki.jobs.queue.queue_file_sync import DELAY, QueueFileSync, Writing
from loki.jobs.queue.queue_index import Database, Lists, Unreadable, copied, in_memory, metadata
from loki.jobs.queue.queued_task import (
    LISTS,
    LONGEST_LIFE,
    Blocked,
    Lease,
    ListName,
    QueuedTask,
    cycle,
)
from loki.jobs.queue.worker_lock import Worker, is_over
from loki.memory.attempt import log_name
from loki.memory.store import Store

if TYPE_CHECKING:
    from loki.workspace import Workspace


# --- A claim, and how much may be claimed at a time ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class Slots:
    """How much work may be out, and which.

    Attributes:
        slots: claims that may be out at a time, over all workers.
        admits: whether a task may be claimed now.
    """

    slots: int = sys.maxsize
    admits: Callable[[QueuedTask], bool] = lambda _: True


NO_LIMIT = Slots()


@dataclass(frozen=True, slots=True)
class LeasedTask:
    """A task that a worker has.

    Attributes:
        task: as it stood when it was claimed.
        lease: who has it, since when, until when.
    """

    task: QueuedTask
    lease: Lease

    @property
    def id(self) -> str:
        """Id of the task."""
        return self.task.id


# --- What the verbs do --------------------------------------------------------------------------------

EDITED = "edited_at"
"""Field of a task that a person has changed: when, ISO 8601 UTC."""

MOST_LOST = 10
"""Claims of a task that may end with their worker's life; chosen: such a task may well kill them."""


def submit(lists: Lists, tasks: Sequence[QueuedTask], now: str) -> list[QueuedTask]:
    """New tasks come in, numbered in their order; what was submitted to the word before is there.

    Raises:
        UsageError: an id is taken by another task, or tasks would wait for each other.
    """
    clean = [queued_task.read_entry(masked(queued_task.write_entry(task))) for task in tasks]
    new = _new(lists, clean)
    if names := cycle(_waiting(lists, new), {task.id: None for task in new}):
        raise UsageError(f"tasks would wait for each other for ever: {' -> '.join(names)}")
    lists.add(
        [
            replace(task, sequence=n, submitted_at=task.submitted_at or now, claim=None)
            for n, task in enumerate(new, lists.last_sequence + 1)
        ]
    )
    return [task for one in tasks if (task := lists.find(one.id)) is not None]


def _new(lists: Lists, tasks: Sequence[QueuedTask]) -> list[QueuedTask]:
    """Those that are not there; who was killed after it had submitted one says it again."""
    ids: set[str] = set()
    new = []
    for task in tasks:
        where, known = lists.where(safe_id(task.id)), lists.find(task.id)
        if where and (known is None or queued_task.asked(known) != queued_task.asked(task)):
            raise UsageError(
                f"task {task.id!r} is in the queue already ({where}), and is another one: expected "
                "another id"
            )
        if task.id in ids:
            raise UsageError(f"task {task.id!r} is submitted twice: expected an id for each")
        ids.add(task.id)
        if not where:
            new.append(task)
    return new


def _waiting(lists: Lists, tasks: Sequence[QueuedTask]) -> dict[str, tuple[str, ...]]:
    """What tasks wait for, and what that waits for, and so on."""
    waiting = {task.id: task.dependencies for task in tasks}
    unknown = [id_ for task in tasks for id_ in task.dependencies]
    while unknown:
        if (id_ := unknown.pop()) not in waiting:
            waiting[id_] = lists.needs(id_)
            unknown += waiting[id_]
    return waiting


def leasable(lists: Lists, slots: Slots = NO_LIMIT) -> Iterator[QueuedTask]:
    """The tasks that may be claimed, in order; those that are not admitted left out."""
    if lists.claimed < slots.slots:
        yield from filter(slots.admits, lists.ready())


def leased(lists: Lists, claim: LeasedTask) -> QueuedTask | None:
    """The task of a claim, if it is still that claim's."""
    task = lists.find(claim.id)
    if task is None or lists.where(claim.id) != "in-progress" or task.claim is None:
        return None
    said, mine = task.claim, claim.lease
    return task if (said.worker, said.generation) == (mine.worker, mine.generation) else None


def release(lists: Lists, task: QueuedTask, now: str) -> tuple[ListName, str]:
    """A task in progress goes back to pending, unless it has lived too long.

    A claim that made no attempt says nothing about the task: it is then queued again in any case.

    Returns:
        The list that it is in now; why, where it is given up.
    """
    before = task.claim.attempts if task.claim else task.lifetime_attempts
    task = replace(task, claim=None)
    why = ""
    if LONGEST_LIFE <= task.lifetime_attempts != before:
        why = f"{task.lifetime_attempts} attempts over its life"
    elif task.lost >= MOST_LOST:
        why = f"{task.lost} workers died while they worked on it"
    if not why:
        lists.move(task, "pending")
        return "pending", ""
    dead_letter(lists, {"task_id": task.id, "error_summary": why}, now, task)
    return "dead-letter", why


def dead_letter(
    lists: Lists, entry: Mapping[str, Any], now: str, task: QueuedTask | None = None
) -> QueuedTask:
    """A task is a dead letter from now on, or its dead letter says something else.

    Args:
        lists: the lists.
        entry: what the dead letter says; ``task_id`` at least.
        now: ISO 8601 UTC.
        task: the task as it is by now; None: as it stands in its list, or is in the entry.

    Raises:
        UsageError: the entry does not say which task it is.
    """
    try:
        said = queued_task.read_entry(entry)
    except ValueError as error:
        raise UsageError(f"no dead letter: {error}") from error
    where = lists.where(said.id)
    known = task or lists.find(said.id) or dead_letter_form.asked(said)
    queue: ListName = where if where in {"pending", "in-progress"} else "in-progress"
    whole = dead_letter_form.entry(known, masked(entry), original_queue=queue, at=now)
    if where == "dead-letter":
        lists.replace(queued_task.read_entry(whole))
    else:
        lists.move(queued_task.read_entry(whole), "dead-letter")
        extra = lists.beside("dead-letter")
        lists.set_extra("dead-letter", {**extra, "metadata": metadata(extra)})
    return task_in_lists(lists, said.id, LISTS)


def task_in_lists(lists: Lists, id_: str, names: Sequence[ListName]) -> QueuedTask:
    """A task that stands in one of some lists.

    Raises:
        UsageError: it does not.
    """
    task, where = lists.find(id_), lists.where(id_)
    if task is None:
        raise UsageError(f"no task {id_!r} in the queue: `loki queue` lists them")
    if where not in names:
        raise UsageError(f"task {id_!r} is in {where}: expected one in {' or '.join(names)}")
    return task


def saying(task: QueuedTask, more: Mapping[str, Any]) -> QueuedTask:
    """A task that nobody works on any more, with more in it."""
    task = replace(task, claim=None)
    return queued_task.read_entry({**queued_task.write_entry(task), **more})


# --- What processes share -----------------------------------------------------------------------------

LOCK = "queue"

PATIENCE, POLL = 5.0, 0.05
"""Seconds to wait for a list that somebody is writing, and between two looks. Chosen."""

ROUNDS = 5
"""How often lists are written that other programs write at the same time; chosen."""

logger = logging.getLogger("loki")


class QueueStore(Store, Protocol):
    """A store in a folder, where a database can stand beside its documents."""

    @property
    def folder(self) -> Path:
        """The workspace's folder."""


class Shared:
    """The queue's lists, for whoever changes or looks at them.

    Args:
        store: where they are kept.
        clock: where time comes from.
    """

    def __init__(self, store: QueueStore, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._database, self._outside = Database(store.folder), QueueFileSync(store.folder)
        self._follower: threading.Thread | None = None
        self._pid = 0

    # --- looking ---------------------------------------------------------------------------------------

    def copy(self) -> Lists:
        """All lists at one moment."""
        copies: list[Lists] = []
        with self.looking(lambda lists: copies.append(copied(lists))) as lists:
            pass
        return copies[0] if copies else lists

    @contextmanager
    def looking(self, then: Callable[[Lists], object] = id) -> Iterator[Lists]:
        """The lists, to look at inside ``with``.

        Args:
            then: is shown them afterwards, where there is an index.

        Raises:
            StoreError: one of them cannot be read; says where.
        """
        with ExitStack() as stack:
            if not self._is_there():  # a look alone makes no folder
                lists = self._read_only()
            else:
                try:
                    lists = stack.enter_context(self.changing(then))
                except Unreadable:
                    raise
                except StoreError:
                    # Where nothing can be written there is no index either, and nobody moves anything.
                    lists = self._read_only()
            yield lists

    def _is_there(self) -> bool:
        return self._database.path.exists() or bool(self._store.keys("queue/"))

    def _read_only(self) -> Lists:
        lists = in_memory(self._now())
        self._take_in(lists)
        return lists

    # --- changing --------------------------------------------------------------------------------------

    @contextmanager
    def changing(self, then: Callable[[Lists], object] = id) -> Iterator[Lists]:
        """The lists, to be changed; kept at the end, unless something went wrong.

        Args:
            then: is shown them after they were kept, still under the lock.

        Raises:
            StoreError: they cannot be read or written; nothing has changed then.
        """
        waited = 0.0
        while True:
            with self._store.lock(LOCK):
                try:
                    lists = self._begin()
                except Unreadable:
                    if waited >= PATIENCE:
                        raise
                else:
                    with self._database.undone_where_it_fails(lists):
                        yield lists
                        writings = self._outside.due(lists)
                    self._database.commit(lists)
                    self._write(lists, writings)
                    then(lists)
                    return
            waited += POLL
            self._clock.wait(POLL, threading.Event())  # somebody may be writing it just now

    def _begin(self) -> Lists:
        lists = self._database.begin(self._now)
        with self._database.undone_where_it_fails(lists):
            self._take_in(lists)
        return lists

    def _take_in(self, lists: Lists) -> None:
        self._outside.take_in(lists)
        for complaint in lists.complaints():
            self._tell(complaint)

    # --- the lists follow ------------------------------------------------------------------------------

    def follow(self) -> None:
        """Write out now what the lists lack, if they can be written."""
        if not self._database.path.exists():  # somebody has removed it all meanwhile
            return
        try:
            with self._store.lock(LOCK):
                self._round(ROUNDS)
        except StoreError as error:
            self._tell(f"{error}. The queue goes on; its lists follow once they can be written")

    def _round(self, left: int) -> None:
        lists = self._begin()
        writings = self._outside.due(lists, at_once=True)
        self._database.commit(lists)
        self._write(lists, writings, left)

    def _write(self, lists: Lists, writings: Sequence[Writing], left: int = ROUNDS) -> None:
        """Write lists after their change was kept; that one fails loses nothing."""
        try:
            is_done = self._outside.write(writings)
            if any(one.name == "in-progress" for one in writings):
                self._outside.show_current(lists)
            else:
                self._outside.mend_current(lists)
            if not is_done and left:
                self._round(left - 1)
        except StoreError as error:
            self._tell(f"{error}. The queue goes on; its lists follow once they can be written")
        if not writings and lists.has_changed:
            self._follow_later()

    def _follow_later(self) -> None:
        if self._follower is None or not self._follower.is_alive() or self._pid != os.getpid():
            self._pid = os.getpid()
            self._follower = threading.Thread(target=self._follow_soon, daemon=True)
            self._follower.start()
            _behind.add(self)

    def _follow_soon(self) -> None:
        time.sleep(DELAY)
        self._follower = None
        self.follow()
        _behind.discard(self)

    def _tell(self, what: str) -> None:
        if (said := f"{self._store.folder}: {what}") not in _told:
            _told.add(said)
            logger.warning("%s", what)

    def _now(self) -> float:
        return self._clock.now().timestamp()


_behind: weakref.WeakSet[Shared] = weakref.WeakSet()
_told: set[str] = set()  # by this process, however many look at the queue in it


def _at_exit() -> None:
    for shared in list(_behind):
        if shared._pid == os.getpid():
            shared.follow()


atexit.register(_at_exit)


# --- The verbs ----------------------------------------------------------------------------------------

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
        >>> from loki.stores.file_store import open_store
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
            return leased(lists, claim) is not None

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
        with self._shared.changing() as lists:
            return submit(lists, tasks, self._now())

    # --- working ---------------------------------------------------------------------------------------

    def lease(self, worker: Worker, slots: Slots = NO_LIMIT) -> LeasedTask | None:
        """Take the first task that can be worked on, for this worker alone.

        First come those of higher priority, then those that were submitted earlier. Claims of
        workers that died are over, and their tasks can be taken at once.

        Args:
            worker: who; inside its ``with``.
            slots: how much may be out, and which.

        Returns:
            The claim; None: nothing can be worked on now.
        """
        worker.fileno()
        with self._shared.changing() as lists:
            self._reap(lists, worker)
            task = next(leasable(lists, slots), None)
            if task is None:
                return None
            now = self.clock.now()
            lease = worker.lease(task, now, self._end(now))
            leased = replace(task, claim=lease, generation=lease.generation)
            claim = LeasedTask(lists.move(leased, "in-progress"), lease)
        worker.held.add((claim.id, lease.generation))
        return claim

    def renew(self, claim: LeasedTask) -> LeasedTask | None:
        """Hold a claim for longer; None: it is lost, and the work is another's."""
        with self._shared.changing() as lists:
            task = leased(lists, claim)
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
        with self._shared.changing() as lists:
            task = leased(lists, claim)
            if task is not None:
                lists.move(saying(self._lived(task, attempts), {**said, **more}), to)
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
        with self._shared.changing() as lists:
            task = leased(lists, claim)
            if task is None:
                return None
            if blocked is not None:
                task = replace(task, blocked=Blocked(mask_secrets(blocked), self._now()))
            return self._give_back(lists, self._lived(task, attempts))

    def reap(self) -> list[str]:
        """End the claims of dead workers; ids of their tasks. `claim` does so, too."""
        with self._shared.changing() as lists:
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
        to, why = release(lists, task, self._now())
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
        with self._shared.changing() as lists:
            self._reap(lists)
            task = lists.find(id_)
            if task is not None and lists.where(id_) == "in-progress":
                if task.claim is not None:
                    raise UsageError(
                        f"{task.claim.worker} works on {id_!r}: end that process first"
                    )
                lists.move(task, "pending")
            return task_in_lists(lists, id_, ("pending",))

    def edit(self, id_: str, **changes: Any) -> QueuedTask:
        """Change what a task asks for, wherever it stands; who works on it goes on as they began.

        Raises:
            UsageError: there is no such task, or it is completed.
        """
        with self._shared.changing() as lists:
            task = task_in_lists(lists, id_, [name for name in LISTS if name != "completed"])
            after = replace(dead_letter_form.task_of(task), **changes)
            data = masked({**queued_task.write_entry(after), EDITED: self._now()})
            if isinstance(task.raw.get("task_data"), Mapping):
                data = {**task.raw, "task_data": {**task.raw["task_data"], **data}}
            lists.replace(queued_task.read_entry(data))
            return task_in_lists(lists, id_, LISTS)

    def _edit(self, id_: str, change: Callable[[QueuedTask], QueuedTask]) -> QueuedTask:
        with self._shared.changing() as lists:
            task = task_in_lists(lists, id_, ("pending", "in-progress"))
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
        with self._shared.changing() as lists:
            if claim is not None and leased(lists, claim) is None:
                return False
            dead_letter(lists, entry, self._now())
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
        with self._shared.changing() as lists:
            more = said or {}
            letter = task_in_lists(lists, id_, ("failed", "dead-letter", "abandoned"))
            if lists.where(id_) != "failed":
                before = dead_letter_form.letter_of(letter)
                past = dead_letter_form.requeued(before, self._now(), is_new_approach=reset)
                more = {**past, **more}
            task = dead_letter_form.task_of(letter)
            task = replace(task, lost=0, lifetime_attempts=0 if reset else task.lifetime_attempts)
            return lists.move(saying(task, masked(more)), "pending")

    def abandon(self, id_: str, reason: str) -> QueuedTask:
        """Give a task up for good.

        Raises:
            UsageError: no such task is pending, failed or a dead letter.
        """
        with self._shared.changing() as lists:
            task = task_in_lists(lists, id_, ("pending", "failed", "dead-letter"))
            said = masked({"reason": reason, "abandoned_at": self._now()})
            return lists.move(saying(task, said), "abandoned")

    def achieve(self, id_: str, outcome: Mapping[str, Any] | None = None) -> bool:
        """Nobody is to work on a task any more that was achieved by whoever had not claimed it.

        Args:
            id_: its id; one that is unknown or being worked on stays as it is.
            outcome: how it ended, JSON-able.
        """
        if self.where(id_) in {None, "completed", "in-progress"}:  # as nearly always
            return False
        with self._shared.changing() as lists:
            task = lists.find(id_)
            if task is None or lists.where(id_) in {"completed", "in-progress"}:
                return False
            said = {"completed_at": self._now(), "outcome": masked(outcome or {})}
            lists.move(saying(dead_letter_form.task_of(task), said), "completed")
            return True

    def dead_letter_metadata(self) -> dict[str, Any]:
        """``last_reviewed``, ``total_abandoned`` and ``total_recovered`` of ``dead-letter.json``."""
        with self._shared.looking() as lists:
            return metadata(lists.beside("dead-letter"))

    def reviewed(self) -> None:
        """The dead letters have been reviewed just now."""
        with self._shared.changing() as lists:
            extra = lists.beside("dead-letter")
            extra["metadata"] = {**metadata(extra), "last_reviewed": self._now()}
            lists.set_extra("dead-letter", extra)

    # --- under the lock --------------------------------------------------------------------------------

    def _now(self) -> str:
        return isoformat(self.clock.now())

    def _end(self, now: datetime) -> str:
        return isoformat(now + timedelta(seconds=self._lease))

    def _lived(self, task: QueuedTask, attempts: int | None) -> QueuedTask:
        """With the attempts of its life; None since: as its history says, for who died told none."""
        if attempts is None:
            lived = max(task.lifetime_attempts, self._last_attempt(task.id))
        else:
            lived = task.lifetime_attempts + attempts
        return replace(task, lifetime_attempts=lived)

    def _last_attempt(self, id_: str) -> int:
        try:
            found = (record.get("attempt") for record in self._store.scan(log_name(safe_id(id_))))
            return max((number for number in found if isinstance(number, int)), default=0)
        except (UsageError, StoreError):  # it cannot have a folder, or nobody can tell
            return 0


# --- The queue of a project ---------------------------------------------------------------------------


def queue_of(workspace: Workspace) -> Queue:
    """The queue of tasks that all workers of a project share.

    Example:
        >>> import tempfile
        >>> from loki.workspace import Workspace
        >>> queue_of(Workspace(tempfile.mkdtemp())).tasks()
        []
    """
    # Not the store that goes on in memory: a claim that is not kept is none.
    return Queue(workspace.strict_store, workspace.clock)

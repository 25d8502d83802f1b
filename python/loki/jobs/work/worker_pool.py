"""Workers of one process on a project's queue: they claim, work in copies, and say how it ended.

`loki.decision.recovery` decides; this feeds it with what the breakers' file says, which all processes
at work in the project share. So each of them comes to the same answer by itself, and what they have
claimed together counts against it.

One thread claims and renews; each claimed task is worked on in a thread of its own, where nearly all
time goes into other programs (agents, checks). Any number of such processes share a queue. What is
claimed belongs to the process: its worker's lock is held by it and by the supervisors of all that it
runs, so that nobody takes a task over before the last program of a killed worker is gone.
"""

from __future__ import annotations

import logging
import math
import os
import select
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from loki.action.processes.process import outlived_by_commands
from loki.base import path_containment
from loki.base.error import LokiError, StoreError, UsageError
from loki.decision.recovery import (
    START_PERCENT,
    STEP_PERCENT,
    STEP_SECONDS,
    Changed,
    Event,
    Failed,
    Recovery,
    Tick,
    next_change,
    step,
)
from loki.execution.resolve import breakers as breakers_of
from loki.execution.stop_request import Word, begins, is_cancelled, listening
from loki.jobs.dead_letters.dead_letters import Reviewed, review_when_due
from loki.jobs.queue.queue import LEASE, LeasedTask, Slots, leasable, queue_of
from loki.jobs.queue.queue_index import Unreadable
from loki.jobs.queue.worker_lock import Worker
from loki.jobs.signals.signal_handling import attend
from loki.jobs.work.copy_merger import LeaseLost, run_in_copy
from loki.jobs.work.queued_task_spec import (
    CANNOT,
    EXIT_CODES,
    SEVERITY,
    DefaultAgent,
    Finished,
    Place,
    agent_of,
    finish,
    finished,
    give_back,
    task_of,
)
from loki.stores.project_lock import Stopped

if TYPE_CHECKING:
    from loki.base.time import Clock
    from loki.decision.breaker import BreakerSnapshot
    from loki.decision.breakers import Breakers
    from loki.jobs.queue.queued_task import QueuedTask
    from loki.memory.task_record import Outcome
    from loki.workspace import Workspace


# --- How much may be worked on now: the recovery controller over the breakers -------------------------

GROWTH = STEP_SECONDS * ((100 - START_PERCENT) / STEP_PERCENT)
"""Seconds from CLOSED to full capacity."""


class Capacity:
    """What a queue may hand out now.

    While nothing is broken, each worker says for itself how much it takes. Else so many claims may be
    out over all of them as `Recovery` says of ``parallel``.

    Args:
        breakers: the project's.
        clock: the time.
        parallel: slots over all workers that a recovery is reckoned from.
    """

    def __init__(self, breakers: Breakers, clock: Clock, parallel: int) -> None:
        self._breakers, self._clock = breakers, clock
        self._state = Recovery(parallel)
        self._known: dict[str, BreakerSnapshot] = {}
        self._held: dict[str, datetime | None] = {}
        self._lock = threading.Lock()

    def look(self) -> Recovery:
        """Take in how the breakers are now; how it stands then."""
        with self._lock:
            now = self._clock.monotonic()
            for name, found in sorted(self._breakers.snapshot().items()):
                self._see(name, found, now)
            self._step(Tick(), now)
            return self._state

    def _see(self, name: str, found: BreakerSnapshot, now: float) -> None:
        known = self._known.get(name)
        self._known[name] = found
        if known is None and found.state == "CLOSED":
            self._began_to_grow(found, now)
        elif known is None or _has_changed(known, found):
            if known is not None and known.state == found.state == "CLOSED":
                self._step(Changed(name, "OPEN", 0.0), now)  # opened and closed since the last look
            self._step(Changed(name, found.state, _wait(found)), now)
        elif found.state == "CLOSED" and found.failure_count > known.failure_count:
            self._step(Failed(name), now)

    def _began_to_grow(self, found: BreakerSnapshot, now: float) -> None:
        """Another process saw it close: capacity grows since then."""
        if found.last_state_change is None:
            return
        age = (self._clock.now() - found.last_state_change).total_seconds()
        if 0 <= age < GROWTH:
            self._step(Changed(found.name, "OPEN", 0.0), now - age)
            self._step(Changed(found.name, "CLOSED"), now - age)

    def _step(self, event: Event, now: float) -> None:
        self._state = step(self._state, event, now)

    @property
    def is_full(self) -> bool:
        """Whether nothing is broken, nor was a short time ago."""
        return not self._state.broken and self._state.capacity == self._state.full

    @property
    def slots(self) -> int:
        """Claims that may be out at a time, over all workers."""
        return sys.maxsize if self.is_full else self._state.capacity

    def admits(self, task: QueuedTask) -> bool:
        """Whether a task may be claimed now."""
        if task.background and self._state.is_restricted:
            return False
        if task.id in self._held:
            until = self._held[task.id]
            if self._state.broken and (until is None or until > self._clock.now()):
                return False
            del self._held[task.id]  # its time has come, or somebody closed the breaker
        return self._state.admits(urgent=task.urgent, circuit=None)

    @property
    def stops_background(self) -> bool:
        """Whether work in the background is to stop."""
        return self._state.is_restricted

    def hold(self, task: str, until: datetime | None) -> None:
        """Do not take a task before a time, or before no breaker is open; None: before that alone."""
        self._held[task] = until

    @property
    def seconds(self) -> float | None:
        """Seconds until time alone lets more out; None: it does not."""
        moments = [t for t in (next_change(self._state),) if t is not None and math.isfinite(t)]
        left = [moment - self._clock.monotonic() for moment in moments]
        now = self._clock.now()
        left += [(until - now).total_seconds() for until in self._held.values() if until]
        return max(0.0, min(left)) if left else None


def _has_changed(known: BreakerSnapshot, found: BreakerSnapshot) -> bool:
    """Whether a breaker changed its state between two looks, be it the same again."""
    if known.state != found.state:
        return True
    # What is closed and was opened between was also closed again. A reset of what is closed is one.
    return found.generation - known.generation >= (2 if found.state == "CLOSED" else 1)


def _wait(found: BreakerSnapshot) -> float:
    return math.inf if found.retry_after is None else found.retry_after


# --- What is done before new work ---------------------------------------------------------------------


def run_maintenance(workspace: Workspace, notify: Callable[[Reviewed], object]) -> None:
    """Review the dead letters where that is due, and act on answers and signals that wait.

    Args:
        workspace: the project.
        notify: told of each dead letter as it is done.

    Raises:
        StoreError: they cannot be read or written.
    """
    review_when_due(workspace, notify=notify)
    attend(workspace)


# --- The workers --------------------------------------------------------------------------------------

IDLE = 1.0
"""Seconds between two looks at a queue that has nothing to claim. Chosen."""

NAMED = "--agent or --agent-command, of `loki work` or of `loki submit`"
"""What says who works."""

logger = logging.getLogger("loki")


@dataclass
class Job:
    """A task that is being worked on."""

    claim: LeasedTask
    cancelled: threading.Event = field(default_factory=threading.Event)
    renewed: float = field(default_factory=time.monotonic)
    is_paused: bool = False
    is_given_up: bool = False


class WakeupPipe:
    """Wakes who waits, also from a signal handler, where a `threading.Event` could block for ever."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    def wake(self) -> None:
        """Wake who waits, or who waits next."""
        with suppress(OSError):  # rung often enough already, or nobody is there any more
            os.write(self._writer, b".")

    def wait(self, seconds: float) -> None:
        """Until it rings, or time is up."""
        select.select([self._reader], [], [], seconds)
        with suppress(BlockingIOError):
            os.read(self._reader, 4096)

    def __del__(self) -> None:
        """Nobody is left who could ring."""
        for handle in (self._writer, self._reader):
            with suppress(OSError):
                os.close(handle)


@dataclass(frozen=True, slots=True)
class PoolCounts:
    """How the queue stands: tasks that wait, that a person has to answer, and that are worked on."""

    pending: int
    blocked: int
    in_progress: int


class WorkerPool:
    """Works on a project's queue.

    Args:
        workspace: the project.
        workers: tasks at a time in this process.
        default: who works on tasks that name nobody.
        watch: stay when there is nothing to do, and take what comes.
        max_tasks: end after so many; None: no limit.
        tell: called with each task that was begun (its claim, and None) or has ended (how, and how the
            queue stands then); one call at a time.

    Attributes:
        finished: what has ended, in order.
        is_stopping: whether somebody stopped it.
    """

    def __init__(
        self,
        workspace: Workspace,
        workers: int,
        *,
        default: DefaultAgent = DefaultAgent(),  # noqa: B008 - frozen
        watch: bool = False,
        max_tasks: int | None = None,
        tell: Callable[[LeasedTask | Finished, PoolCounts | None], object] = lambda *_: None,
    ) -> None:
        if workers < 1:
            raise UsageError(f"workers is {workers}: expected 1 or more")
        self._workspace, self._workers, self._default = workspace, workers, default
        self._watch, self._left, self._tell = watch, max_tasks, tell
        self._queue = queue_of(workspace)
        self._unnamed = -1
        self._capacity = Capacity(
            breakers_of(workspace), workspace.clock, workspace.config.work.parallel
        )
        self._jobs: dict[str, Job] = {}
        self.is_stopping = self._is_draining = False
        self._unreadable = ""
        self._wakeup = WakeupPipe()
        self._telling = threading.Lock()
        self.finished: list[Finished] = []

    def run(self) -> int:
        """Work until the queue has nothing more to do, or somebody stops it.

        It has something as long as a task of it can be claimed, now or once those in progress, also
        of other workers, have ended; what waits for a person, an open breaker or another program is
        left.

        Returns:
            The exit code of `loki work`.

        Raises:
            StoreError: the queue cannot be read or written.
        """
        # As files are stamped, whatever the clock says.
        path_containment.sweep(self._workspace.folder, time.time() - path_containment.STALE)
        with (
            Worker(self._workspace.folder) as worker,
            outlived_by_commands(worker.fileno()),
            listening(self._workspace.folder, self._heard),
        ):
            try:
                while not self.is_stopping and self._turn(worker):
                    pass
            finally:
                self._wait_for_all()
        return self.exit_code

    def stop(self) -> None:
        """End all tasks, which go back to pending; may be called from a signal handler."""
        self.is_stopping = True
        self._wakeup.wake()

    def _heard(self, word: Word) -> None:
        if word == "stop":
            self.stop()
        self._is_draining = True
        self._wakeup.wake()

    @property
    def exit_code(self) -> int:
        """The most severe of what happened."""
        codes = {EXIT_CODES[one.place] for one in self.finished}
        if self.is_stopping:
            codes.add(130)
        else:
            codes |= {6} if self.delayed() else set()
            codes |= {3} if self.without_agent() else set()
        return next((code for code in SEVERITY if code in codes), 0)

    def delayed(self) -> list[str]:
        """Ids of tasks that nothing but an open breaker keeps from being worked on."""
        if self._is_over:
            return []
        ready = leasable(self._queue.lists(), Slots(admits=self._default.has_somebody))
        return [task.id for task in ready if not self._capacity.admits(task)]

    def without_agent(self) -> list[str]:
        """Ids of tasks that could be worked on if anybody were named to."""
        if self._is_over or self._default.agent or self._default.agent_command:
            return []
        ready = leasable(self._queue.lists())
        return [task.id for task in ready if not self._default.has_somebody(task)]

    # --- claiming --------------------------------------------------------------------------------------

    def _turn(self, worker: Worker) -> bool:
        """Claim one task, or wait for something to change; whether there is more to do."""
        try:
            return self._try_turn(worker)
        except Unreadable as error:
            if not self._watch:
                raise
            if str(error) != self._unreadable:
                self._unreadable = str(error)
                logger.warning("%s. Nothing is claimed until then", error)
        self._wakeup.wait(IDLE)
        return True

    def _try_turn(self, worker: Worker) -> bool:
        self._look_after()
        is_done = self._is_over
        if not is_done and len(self._jobs) < self._workers:
            claim = self._queue.lease(worker, Slots(self._capacity.slots, self._may_take))
            if claim is not None:
                self._begin(claim)
                return True
            if not self._jobs and not self._watch and not self._may_come():
                return False
            self._warn_of_nameless()
        elif is_done and not self._jobs:
            return False
        self._wakeup.wait(self._pause())
        return True

    def _may_take(self, task: QueuedTask) -> bool:
        """Whether a task is for this process: one that names nobody waits for who brings an agent."""
        return self._default.has_somebody(task) and self._capacity.admits(task)

    def _warn_of_nameless(self) -> None:
        """Once, and again when others wait."""
        pending = self._queue.counts()[0]["pending"]
        if self._watch and pending != self._unnamed and (names := self.without_agent()):
            more = f" and {len(names) - 1} more" if names[1:] else ""
            logger.warning("nobody is named to work on %s%s: expected %s", names[0], more, NAMED)
        self._unnamed = pending

    @property
    def _is_over(self) -> bool:
        """Whether it takes nothing more."""
        return self._is_draining or (self._left is not None and self._left <= 0)

    def _pause(self) -> float:
        """Seconds until it is worth looking again."""
        until = self._capacity.seconds
        return IDLE if until is None else min(IDLE, max(0.05, until))

    def _may_come(self) -> bool:
        """Whether a task can become free to claim without a person, a breaker or a new task."""
        if not any(task.claim for task in self._queue.tasks("in-progress")):
            return False  # what another program has, or left, may stay there for ever
        self._queue.reap()
        return True

    def _look_after(self) -> None:
        """Renew what is claimed, and see how the breakers stand."""
        self._capacity.look()
        now = time.monotonic()
        for job in tuple(self._jobs.values()):
            if self._capacity.stops_background and job.claim.task.background:
                job.is_paused = True
            if is_cancelled(self._workspace.folder, job.claim.id):
                job.is_given_up = True
            if self.is_stopping or job.is_paused or job.is_given_up:
                job.cancelled.set()
            if now - job.renewed > LEASE / 3:
                job.renewed = now
                if self._queue.renew(job.claim) is None:
                    job.cancelled.set()

    def _begin(self, claim: LeasedTask) -> None:
        if self._left is not None:
            self._left -= 1
        begins(self._workspace.folder, claim.id)
        job = self._jobs[claim.id] = Job(claim)
        with self._telling:
            self._tell(claim, None)
        threading.Thread(target=self._work, args=(job,), name=f"loki-{claim.id}").start()

    def _wait_for_all(self) -> None:
        while self._jobs:
            self._look_after()
            self._wakeup.wait(IDLE)

    # --- working: in a thread of the task's own ------------------------------------------------------------

    def _work(self, job: Job) -> None:
        begun = time.monotonic()
        ended = None
        try:
            place, reason, outcome = self._try(job)
            seconds = time.monotonic() - begun
            title = job.claim.task.title
            ended = Finished(job.claim.id, title, place, reason, outcome, seconds)
            self.finished.append(ended)
        except StoreError as error:  # the claim ends with this process
            logger.error("the queue could not be written after %s: %s", job.claim.id, error)
        finally:
            # It may be claimed again already, here, if it went back to pending.
            if self._jobs.get(job.claim.id) is job:
                del self._jobs[job.claim.id]
            if ended is not None:
                self._say(ended)
            self._wakeup.wake()

    def _try(self, job: Job) -> tuple[Place, str, Outcome | None]:
        claim, queue = job.claim, self._queue
        try:
            outcome = finished(self._workspace, claim.task) or self._run(job)
        except LeaseLost:
            return "lost", "another worker has it by now", None
        except Stopped:
            return (*self._put_back(job, "stopped before it began"), None)
        except (LokiError, OSError) as error:
            return (*give_back(queue, claim, "blocked", f"{CANNOT}: {error}"), None)
        except Exception as error:  # a defect of loki must not come round for ever
            logger.exception("task %s", claim.id)
            reason = f"loki could not work on it ({type(error).__name__}: {error})"
            return (*give_back(queue, claim, "blocked", reason), None)
        if outcome.status == "paused":
            self._capacity.hold(claim.id, outcome.retry_at)
        if outcome.status == "interrupted":
            return (*self._put_back(job, outcome.reason), outcome)
        return (*finish(queue, claim, outcome), outcome)

    def _put_back(self, job: Job, reason: str) -> tuple[Place, str]:
        """What was ended goes back to pending."""
        if job.is_given_up or is_cancelled(self._workspace.folder, job.claim.id):
            return give_back(self._queue, job.claim, "cancelled", "a person gave it up")
        if job.is_paused and not self.is_stopping:
            reason = "work in the background stops while a circuit breaker is open"
            return give_back(self._queue, job.claim, "paused", reason)
        return give_back(self._queue, job.claim, "interrupted", reason)

    def _run(self, job: Job) -> Outcome:
        queued, default = job.claim.task, self._default
        return run_in_copy(
            self._workspace,
            lambda copy: task_of(copy, queued, asks=True),
            lambda copy: agent_of(copy, queued, default),
            job.cancelled,
            lambda: self._queue.holds(job.claim),
        )

    def _say(self, what: Finished) -> None:
        with self._telling:
            counts, blocked = self._queue.counts()
            pending = counts["pending"] - blocked
            self._tell(what, PoolCounts(pending, blocked, counts["in-progress"]))


def exit_immediately() -> None:
    """End this process now: supervisors see to it that nothing of it runs on."""
    os._exit(130)

"""Who runs recurring tasks when they are due, each in one process at a time.

What is due stands in `loki.jobs.recurring.recurring_outcome`, which is pure; the dispatcher performs. A
run holds its task's lock, which the system takes from a dispatcher that dies: the next one records what
it left as cancelled, and counts no failure.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from loki.base.error import LokiError
from loki.base.time import Clock, isoformat
from loki.config import RecurrenceConfig
from loki.jobs.job_pool import JobPool
from loki.jobs.recurring.recurring_outcome import (
    Notice,
    Step,
    begun,
    due,
    is_due,
    next_time,
    put_off,
    recorded,
    run_of,
)
from loki.jobs.recurring.recurring_run import Runner, Running, RunPostponed, RunRecord, RunResult
from loki.jobs.recurring.recurring_task import RecurringTask
from loki.jobs.recurring.recurring_tasks import RecurringTasks

logger = logging.getLogger("loki")

POLL = 1.0
"""Seconds between two looks for what other processes changed, while nothing is due; chosen."""

Locks = Callable[[str], AbstractContextManager[bool]]
"""From a task's id to a context that says whether its lock was free and is held now."""


@dataclass
class DispatchRound:
    """What one round of the dispatcher did.

    Attributes:
        runs: task and record of each run that ended.
        put_off: task and why it did not begin.
        busy: tasks that another dispatcher runs.
    """

    runs: list[tuple[str, RunRecord]] = field(default_factory=list)
    put_off: list[tuple[str, RunPostponed]] = field(default_factory=list)
    busy: list[str] = field(default_factory=list)


class Dispatcher:
    """Runs what is due.

    Args:
        tasks: of the workspace.
        runner: performs a run.
        clock: where time comes from.
        locks: a task's lock.
        settings: how failures are waited out.
        parallel: runs at a time.
        pool: where they run; threads of its own where nothing is said.

    Attributes:
        cancelled: ends all runs when it is set; draining: no run is begun any more.
        tell: called with a task's id and what happened to it: ``done``, ``stopped``, ``interrupted``.
        after_round: called after each round with the time; says when it is to be called next, whatever
            is due then, or None.
        closing: called when it ends.
    """

    def __init__(
        self,
        tasks: RecurringTasks,
        runner: Runner,
        clock: Clock,
        locks: Locks,
        settings: RecurrenceConfig | None = None,
        parallel: int = 4,
        pool: Executor | None = None,
    ) -> None:
        self.tasks = tasks
        self.clock = clock
        self.cancelled, self.draining = threading.Event(), threading.Event()
        self.tell: Callable[[str, Notice], None] = lambda _task, _notice: None
        self.after_round: list[Callable[[datetime], datetime | None]] = []
        self.closing: list[Callable[[], None]] = []
        self._runner = runner
        self._locks = locks
        self._settings = settings or RecurrenceConfig()
        self._jobs = JobPool(parallel, "loki-run", self.cancelled, pool)
        self._round = DispatchRound()

    def tick(self, only: Sequence[str] | None = None) -> DispatchRound:
        """Run what is due, and wait for it.

        Args:
            only: ids of the tasks that are looked at; all where nothing is said.
        """
        self._begin(only)
        self._jobs.wait()
        self._after()
        return self._take()

    def run_now(self, id_: str) -> DispatchRound:
        """Run a task at once, due or not, paused or not; its schedule goes on from there."""
        self._submit(id_, is_wanted=True)
        self._jobs.wait()
        return self._take()

    def watch(
        self,
        until: datetime | None = None,
        *,
        heard: Callable[[DispatchRound], None] = lambda _: None,
        has_changed: Callable[[], bool] = lambda: False,
        is_simulated: bool = False,
    ) -> None:
        """Run what is due when it is due, until a time or until it is interrupted.

        Args:
            until: when to end; None: never.
            heard: told what ended, where anything did.
            has_changed: whether another process changed a task; asked every `POLL` seconds.
            is_simulated: the clock's waits pass at once: runs end before time goes on.
        """
        while not self.draining.is_set() and (until is None or self.clock.now() < until):
            self._begin()
            if is_simulated:
                self._jobs.wait()
            wanted = self._after()
            round_ = self._take()
            heard(round_)
            if not self._sleep(until, wanted, has_changed, round_.busy, is_simulated):
                break
            self._jobs.collect()
        self.close()
        heard(self._take())

    def close(self) -> None:
        """Wait for all runs and for what was begun after rounds, and end the threads."""
        self._jobs.wait()
        for hook in self.closing:
            hook()
        self._jobs.close()

    def _sleep(
        self,
        until: datetime | None,
        wanted: datetime | None,
        has_changed: Callable[[], bool],
        busy: Sequence[str],
        is_simulated: bool,
    ) -> bool:
        """Until the next task is due, a run ends or something changes; False: nothing ever is due."""
        try:
            while True:
                idle = [
                    task
                    for task in self.tasks.usable()
                    if task.id not in busy and task.id not in self._jobs
                ]
                times = [time for time in (next_time(idle), until) if time is not None]
                if is_simulated and not times:
                    return False
                times += [wanted] if wanted is not None else []
                left = (min(times) - self.clock.now()).total_seconds() if times else POLL
                if left <= 0:
                    return True
                self.clock.wait(left if is_simulated else min(left, POLL), self.draining)
                if has_changed() or self.draining.is_set() or self._jobs.has_ended():
                    return True
                # Another dispatcher that dies changes no file: its runs are looked after here.
                if not is_simulated and (busy or self._mend_all(idle)):
                    return True
        except BaseException:  # Ctrl-C
            self._jobs.cancel()
            raise

    def _take(self) -> DispatchRound:
        """What was done since it was last asked."""
        round_, self._round = self._round, DispatchRound()
        return round_

    def _after(self) -> datetime | None:
        """When the first of what follows a round is to be called again; None: after the next."""
        times = [hook(self.clock.now()) for hook in self.after_round]
        return min(filter(None, times), default=None)

    def _begin(self, only: Sequence[str] | None = None) -> None:
        """Begin what is due and not under way here already."""
        usable = [task for task in self.tasks.usable() if only is None or task.id in only]
        usable = [task for task in usable if task.id not in self._jobs]
        self._mend_all(usable)
        for task in due(usable, self.clock.now()):
            self._submit(task.id)

    def _submit(self, id_: str, *, is_wanted: bool = False) -> None:
        self._jobs.start(id_, partial(self._alone, id_, is_wanted=is_wanted))

    def _alone(self, id_: str, *, is_wanted: bool) -> None:
        """From a task's lock to its record, unless another dispatcher has the lock; in a thread."""
        if self.cancelled.is_set() and not is_wanted:
            return  # a run that a person asks for is begun all the same
        with self._locks(id_) as is_ours:
            if is_ours:
                self._perform(id_, is_wanted=is_wanted)
            else:
                self._round.busy.append(id_)

    def _mend_all(self, tasks: Sequence[RecurringTask]) -> bool:
        """Mend the runs whose dispatcher died; whether there was any."""
        found = False
        for task in tasks:
            if task.running is not None:
                with self._locks(task.id) as is_ours:
                    found = (is_ours and self._mend(task.id)) or found
        return found

    def _mend(self, id_: str) -> bool:
        """Record a run whose dispatcher died as cancelled; whether there was one. The lock is held."""
        task = self.tasks.find(id_)
        if not isinstance(task, RecurringTask) or task.running is None:
            return False
        left = task.running
        known = [run for run in self.tasks.runs(id_) if run.number == left.number]
        if known:  # it had ended, and died before that was counted
            self._count(id_, known[0])
            return True
        reason = "interrupted: its dispatcher ended in the middle of the run"
        cancelled = RunResult("cancelled", reason=reason)
        self._record(id_, left.ended(self.clock.now(), cancelled))
        self._tell(id_, [Notice("interrupted", reason)])
        return True

    def _perform(self, id_: str, *, is_wanted: bool = False) -> None:
        """A run of a task that is due, or that a person wants now; the lock is held."""
        if is_wanted:
            self._mend(id_)
        # Another dispatcher may have been quicker, or a person may have paused it.
        if (task := self._ready(id_, is_wanted=is_wanted)) is None:
            return
        if task.pending is not None:
            self._evaluate(task)
            if (task := self._ready(id_, is_wanted=is_wanted)) is None:
                return
        now = self.clock.now()
        wanted = Running(
            number=task.runs + 1, scheduled_at=now, started_at=now, triggered_by="person"
        )
        self._run(task, wanted if is_wanted else run_of(task, now))

    def _ready(self, id_: str, *, is_wanted: bool) -> RecurringTask | None:
        """A task as it is now, if it is to run now."""
        if is_wanted:
            return self.tasks.load(id_)
        task = self.tasks.find(id_)
        if self.cancelled.is_set() or not isinstance(task, RecurringTask):
            return None
        return task if is_due(task, self.clock.now()) else None

    def _run(self, task: RecurringTask, running: Running) -> None:
        id_, number = task.id, running.number
        self.tasks.update(id_, lambda known: begun(known, running))
        planned = {"scheduled_at": isoformat(running.scheduled_at), "missed": running.missed}
        self.tasks.log(running.started_at, "started", id_, run=number, **planned)
        try:
            ran = self._runner.run(task, running, self.cancelled)
        except LokiError as error:
            ran = RunResult("failed", reason=str(error))
        except Exception as error:  # one task's trouble is not the others'
            logger.exception("recurring task %s: run %d could not be performed", id_, number)
            ran = RunResult("failed", reason=f"{type(error).__name__}: {error}")
        if isinstance(ran, RunPostponed):
            self._put_off(id_, ran)
            return
        self._record(id_, running.ended(self.clock.now(), ran), ran.stdout, ran.stderr)
        if ran.status == "pending_evaluation":
            self._evaluate(self.tasks.load(id_), is_last=False)

    def _put_off(self, id_: str, postponed: RunPostponed) -> None:
        self.tasks.update(id_, lambda task: put_off(task, postponed))
        said = {"until": isoformat(postponed.until), "reason": postponed.reason}
        self.tasks.log(self.clock.now(), "put_off", id_, **said)
        self._round.put_off.append((id_, postponed))

    def _evaluate(self, task: RecurringTask, *, is_last: bool = True) -> None:
        """Have a failed run judged; one that nobody could judge by the next run has failed."""
        found = [run for run in self.tasks.runs(task.id) if run.number == task.pending]
        if not found:
            self.tasks.update(task.id, lambda one: one.with_(pending=None))
            return
        run = found[0]
        if run.status != "pending_evaluation":  # it was judged, and died before that was counted
            self._count(task.id, run)
            return
        try:
            verdict = self._runner.evaluate(task, run, self.cancelled)
        except LokiError as error:
            logger.warning("recurring task %s: run %d: %s", task.id, run.number, error)
            verdict = None
        if verdict is None and not is_last:
            return
        is_good = verdict is not None and verdict.is_good
        said = verdict.reason if verdict is not None else "nobody could evaluate it in time"
        reason = said if is_good else "; ".join(filter(None, (run.reason, said)))
        run = run.with_(status="rescued" if is_good else "failed", reason=reason)
        self._record(task.id, run)

    def _record(self, id_: str, run: RunRecord, stdout: str = "", stderr: str = "") -> None:
        self._count(id_, self.tasks.add_run(id_, run, stdout, stderr))

    def _count(self, id_: str, run: RunRecord) -> None:
        steps: list[Step] = []

        def outcome(task: RecurringTask) -> RecurringTask:
            steps[:] = [recorded(task, run, self.clock.now(), self._settings)]
            return steps[0].task

        after = self.tasks.update(id_, outcome)
        planned = after.next_run_at if after is not None else None
        failures = after.consecutive_failures if after is not None else 0
        self.tasks.log(
            self.clock.now(),
            "ended",
            id_,
            run=run.number,
            status=run.status,
            reason=run.reason,
            consecutive_failures=failures,
            next_run_at=isoformat(planned) if planned else None,
        )
        self._round.runs.append((id_, run))
        self._tell(id_, steps[0].notices if steps else ())

    def _tell(self, id_: str, notices: Sequence[Notice]) -> None:
        for notice in notices:
            self.tasks.log(self.clock.now(), notice.event, id_, reason=notice.text)
            self.tell(id_, notice)

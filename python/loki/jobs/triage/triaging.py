"""Triages of a workspace's recurring tasks: started by the dispatcher, each in a thread of its own.

Why it is so: ``docs/design/triage.md``.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from datetime import datetime, timedelta
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING

from loki.jobs.triage import triage_policy
from loki.jobs.triage.triage_policy import TriageRules

if TYPE_CHECKING:
    from loki.jobs.recurring.recurring_task import RecurringTask
    from loki.jobs.recurring.recurring_tasks import RecurringTasks
    from loki.jobs.triage.triage_runner import Tell, TriageRunner
    from loki.workspace import Workspace

PARALLEL = 2
"""Triages at a time; chosen, not measured."""

HELD = timedelta(minutes=5)
"""After this a circuit breaker that holds triages up is looked at again: its usual cooldown."""

HOW = 'set `triage_agent` in [recurrence] of .loki/config.toml, like triage_agent = "claude"'

logger = logging.getLogger("loki")


class Triages:
    """Starts triages that are due, and acts on what they find.

    Args:
        workspace: the project.
        tasks: its recurring tasks.
        cancelled: stops triages that are under way when it is set.
        waits: whether each tick waits for the triages that it started, as where time is simulated.
        tell: tells people what happened to a task; None: the log alone.
        pool: where they run; threads of its own where nothing is said.
    """

    def __init__(
        self,
        workspace: Workspace,
        tasks: RecurringTasks,
        cancelled: threading.Event,
        *,
        waits: bool = False,
        tell: Tell | None = None,
        pool: Executor | None = None,
    ) -> None:
        said = workspace.config.recurrence
        self.rules = TriageRules(said.triage_threshold, said.triage_cooldown)
        self.cancelled = cancelled
        self._workspace, self._tasks, self._waits = workspace, tasks, waits
        self._tell = tell or _warn
        self._running: dict[str, Future[None]] = {}
        self._pool = pool
        self._has_mended = False
        self._told: set[tuple[str, int]] = set()

    # What agents need is loaded when a task is triaged for the first time, as few ever are.

    @cached_property
    def _runner(self) -> TriageRunner:
        from loki.jobs.triage.triage_runner import TriageRunner

        return TriageRunner(self._workspace, self._tasks, self.rules, self.cancelled, self._tell)

    def tick(self, now: datetime) -> datetime | None:
        """Start what is due.

        Args:
            now: the time.

        Returns:
            When triage is due next if no task runs before; None: not before one does.
        """
        tasks = self._tasks.usable()
        if not self._has_mended:
            self._has_mended = True
            for task in tasks:
                if task.triages or triage_policy.is_wanted(task, self.rules, now):
                    self._runner.repair(task.id)
            tasks = self._tasks.usable()
        self._running = {id_: one for id_, one in self._running.items() if not one.done()}
        wanted = [task for task in tasks if triage_policy.is_wanted(task, self.rules, now)]
        times = [triage_policy.wanted_at(task, self.rules, now) for task in tasks]
        if wanted and self._start(wanted, now):
            times.append(now + HELD)
        if self._waits:
            self.wait()
        return min(filter(None, times), default=None)

    def _start(self, tasks: Sequence[RecurringTask], now: datetime) -> bool:
        """Begin what may begin; whether a circuit breaker holds something up."""
        from loki.jobs.triage.triage_prompt import began

        agents, running = self._runner.agents, self._running
        since = partial(began, self._workspace)
        blocked = cache(agents.open_breaker)  # looked at once a tick
        due = triage_policy.due(tasks, self.rules, now, agents.of, blocked, running, since)
        self._say_held(due, now)
        for task in due.agentless:
            self._say_agentless(task)
        for task, agent in due.start:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(PARALLEL, thread_name_prefix="loki-triage")
            self._running[task.id] = self._pool.submit(self._runner.run, task.id, agent)
        return bool(due.held)

    def wait(self) -> None:
        """Until the triages that are under way have ended; interrupted, they are stopped."""
        try:
            wait(list(self._running.values()))
        except BaseException:  # Ctrl-C
            self.cancelled.set()
            wait(list(self._running.values()))
            raise
        for one in self._running.values():
            one.result()  # raises what only a bug of ours can have raised

    def close(self) -> None:
        """Wait for what is under way, and end the threads."""
        self.wait()
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    # --- what is told -----------------------------------------------------------------------------

    def _say_held(self, due: triage_policy.Due, now: datetime) -> None:
        if due.held:
            names, count = ", ".join(due.breakers), len(due.held)
            what = "1 recurring task waits" if count == 1 else f"{count} recurring tasks wait"
            logger.info("[triage] circuit breaker %s is open: %s for triage", names, what)
            self._tasks.log(now, "triage_suppressed", count=count, breakers=list(due.breakers))

    def _say_agentless(self, task: RecurringTask) -> None:
        key = (task.id, task.total_failures)
        if key in self._told:
            return
        self._told.add(key)
        problem = self._runner.agents.problem(task)
        why = f" ({problem})" if problem else ""
        logger.warning(
            "[triage] recurring task %r failed %d times in a row, and no agent can look at it%s: %s",
            task.id, task.consecutive_failures, why, HOW,
        )  # fmt: skip


def _warn(task: str, text: str) -> None:
    logger.warning("[triage] %s: %s", task, text)

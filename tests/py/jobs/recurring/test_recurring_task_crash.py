"""A dispatcher that dies at any write: each run is counted once, and none is begun twice."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta, timezone
from typing import Any, TypeVar

import pytest

from loki.config import RecurrenceConfig
from loki.jobs.recurring.dispatcher import Dispatcher
from loki.jobs.recurring.recurring_outcome import replanned
from loki.jobs.recurring.recurring_run import Running, RunRecord, RunResult, Status, Verdict
from loki.jobs.recurring.recurring_task import RecurringTask
from loki.jobs.recurring.recurring_tasks import RecurringTasks
from loki.memory.store import Record, Rewrite
from loki.testing import ManualClock, MemoryStore

NOW = datetime(2026, 4, 4, 10, tzinfo=timezone.utc)
T = TypeVar("T")


class Killed(BaseException):
    """The process is gone."""


class Mortal(MemoryStore):
    """Dies before or after its write of a number."""

    def __init__(self) -> None:
        super().__init__()
        self.dies_at: float = -1.0
        self.writes = 0.0

    def _step(self) -> None:
        self.writes += 0.5
        if self.writes == self.dies_at:
            raise Killed

    def append(self, log: str, record: Record, *, durable: bool = True) -> None:
        self._step()
        super().append(log, record, durable=durable)
        self._step()

    def write(self, document: str, text: str) -> None:
        self._step()
        super().write(document, text)
        self._step()

    def update(self, document: str, change: Rewrite, *, durable: bool = True) -> None:
        self._step()
        super().update(document, change, durable=durable)
        self._step()


class Here(Executor):
    """Runs at once what it is given."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class Runner:
    def __init__(self, status: Status) -> None:
        self.status = status
        self.begun: list[int] = []

    def run(self, task: RecurringTask, running: Running, cancelled: threading.Event) -> RunResult:
        del task, cancelled
        self.begun.append(running.number)
        return RunResult(self.status, stdout="out\n")

    def evaluate(self, task: Any, run: RunRecord, cancelled: threading.Event) -> Verdict:
        del task, run, cancelled
        return Verdict(False, "no")


def free(_id: str) -> AbstractContextManager[bool]:
    return nullcontext(True)


@pytest.mark.parametrize("status", ["failed", "success", "pending_evaluation"])
def test_each_run_is_counted_once_wherever_it_dies(status: Status) -> None:
    for step in range(1, 40):
        store, clock, runner = Mortal(), ManualClock(NOW), Runner(status)
        tasks = RecurringTasks(store)
        part = {"id": "t", "schedule": {"cron": "0 * * * *"}, "command": ["x"]}
        tasks.add(replanned(RecurringTask.model_validate(part), NOW, RecurrenceConfig()))
        clock.advance("1h")
        store.dies_at = store.writes + step / 2
        survived = True
        try:
            Dispatcher(tasks, runner, clock, free, pool=Here()).tick()
        except Killed:
            survived = False
        tasks = RecurringTasks(store)
        clock.advance("1m")
        Dispatcher(tasks, runner, clock, free, pool=Here()).tick()
        clock.advance("1m")
        Dispatcher(tasks, runner, clock, free, pool=Here()).tick()
        task, runs = tasks.load("t"), tasks.runs("t")
        assert len(set(runner.begun)) == len(runner.begun), step
        assert [run.number for run in runs] == list(range(1, task.runs + 1)), step
        counted = [run for run in runs if run.status == "failed"]
        if task.pending is None:
            assert task.total_failures == len(counted), step
        assert task.iterations == sum(run.is_success for run in runs), step
        assert task.running is None
        assert task.next_run_at is not None
        assert task.next_run_at > NOW + timedelta(hours=1)
        if survived:
            return
    raise AssertionError("it never came to an end")

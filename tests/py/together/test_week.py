"""A week of fifty recurring tasks with correlated outages, in seconds: the real dispatcher, a clock that
obeys, and a reference that goes minute by minute."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from loki.recurrence.definition import checked
from loki.recurrence.dispatcher import Dispatcher
from loki.recurrence.outcome import Knobs, paused, replanned, resumed
from loki.recurrence.recurring import RecurringTask
from loki.recurrence.recurring_tasks import RecurringTasks
from loki.recurrence.run import Ran, RunRecord, Start, Verdict
from loki.scheduling import Locks
from loki.stores.files import FileStore
from loki.testing import ManualClock
from support.memory_store import MemoryStore
from support.slow_week import SlowTask, slow_week
from support.week import START, WEEK, Happened, Outage, Plan, outages, plans, succeeds

T = TypeVar("T")


def task_of(plan: Plan) -> RecurringTask:
    delay = f"{round(plan.delay.total_seconds())}s"
    cycle = {"delay": delay, "max_iterations": plan.max_iterations}
    schedule = {"cron": plan.cron, "zone": plan.zone} if plan.cron else cycle
    task = checked({"id": plan.id, "schedule": schedule, "command": ["x"]})
    return replanned(task, START, Knobs())


class Services:
    """Runs that take no time, and fail while the service that they need is down."""

    def __init__(self, week: list[Plan], down: list[Outage], seed: int, clock: ManualClock) -> None:
        self.plans = {plan.id: plan for plan in week}
        self.down, self.seed, self.clock = down, seed, clock

    def run(self, task: RecurringTask, start: Start) -> Ran:
        del start
        is_good = succeeds(self.plans[task.id], self.clock.now(), self.down, self.seed)
        return Ran("success") if is_good else Ran("failed", 1, reason="down")

    def evaluate(self, task: object, run: RunRecord, cancelled: threading.Event) -> Verdict | None:
        raise AssertionError(f"nobody asked to evaluate {task} {run} {cancelled}")


def free(_id: str) -> AbstractContextManager[bool]:
    return nullcontext(True)


class Here(Executor):
    """Runs at once what it is given: fifty tasks that take no time want no threads."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def live(week: list[Plan], down: list[Outage], seed: int, *, restarts: int = 0) -> RecurringTasks:
    """The week with the real dispatcher; restarted so often, at any time."""
    store = MemoryStore()
    tasks = RecurringTasks(store)
    clock = ManualClock(START)
    for plan in week:
        tasks.add(task_of(plan))
    ends: list[tuple[datetime, str, str]] = [(START + WEEK, "", "")]
    for plan in week:
        for moment, what in zip(plan.paused or (), ("pause", "resume"), strict=False):
            ends.append((START + moment, what, plan.id))
    ends += [(START + WEEK * (n + 1) / (restarts + 1), "", "") for n in range(restarts)]
    for until, what, id_ in sorted(ends):
        tasks = RecurringTasks(store)  # nothing is remembered but what is in files
        services = Services(week, down, seed, clock)
        dispatcher = Dispatcher(tasks, services, clock, free, pool=Here())
        dispatcher.watch(until, is_simulated=True)
        if what == "pause":
            tasks.update(id_, partial(paused, now=until, reason="for a person"))
        elif what == "resume":
            tasks.update(id_, partial(resumed, now=until, knobs=Knobs()))
    return tasks


def told(tasks: RecurringTasks) -> list[Happened]:
    """What was run, with the failures in a row after each."""
    found = []
    for id_ in tasks.ids():
        failures = 0
        for run in tasks.runs(id_):
            failures = 0 if run.status == "success" else failures + 1
            found.append(Happened(run.started_at, id_, run.status, failures))
    return sorted(found)


def expected(slow: list[SlowTask]) -> list[Happened]:
    return sorted(happened for task in slow for happened in task.happened)


def test_a_week_goes_as_the_reference_says() -> None:
    seed = 1
    week, down = plans(seed), outages(seed)
    tasks, slow = live(week, down, seed), slow_week(week, down, seed)
    assert told(tasks) == expected(slow)
    for reference in slow:
        task = tasks.load(reference.plan.id)
        failed = [h for h in reference.happened if h.status == "failed"]
        assert task.consecutive_failures == reference.failures
        assert task.total_failures == len(failed)
        assert task.iterations == reference.iterations
        assert task.runs == len(reference.happened)
        assert (task.stopped is not None) is reference.is_stopped
        if not reference.is_stopped and not task.paused:
            assert task.next_run_at == reference.next
    # It was a week worth the name.
    counts = Counter(happened.status for happened in expected(slow))
    assert counts["success"] > 1500
    assert counts["failed"] > 150
    assert any(task.is_stopped and task.restarts for task in slow)
    assert max(happened.failures for happened in expected(slow)) >= 4


def test_restarts_change_nothing() -> None:
    """However often the dispatcher begins anew, from what is in files, it does the same."""
    week, down = plans(3), outages(3)
    assert told(live(week, down, 3, restarts=25)) == told(live(week, down, 3))


def test_a_day_in_real_files(tmp_path: Path) -> None:
    """The same from real files, with real locks."""
    week, down = plans(4)[:6], outages(4)
    short = [Plan(p.id, p.service, p.cron, p.zone, p.delay, p.max_iterations) for p in week]
    clock = ManualClock(START)
    tasks = RecurringTasks(FileStore(tmp_path / ".loki"))
    for plan in short:
        tasks.add(task_of(plan))
    services = Services(short, down, 4, clock)
    dispatcher = Dispatcher(tasks, services, clock, Locks(tmp_path / ".loki"))
    dispatcher.watch(START + timedelta(days=1), is_simulated=True)
    slow = slow_week(short, down, 4)
    first_day = [h for h in expected(slow) if h.at < START + timedelta(days=1)]
    assert told(tasks) == first_day
    assert len(first_day) > 30


def herd(jitter: float) -> Counter[datetime]:
    """Runs by minute after a day's outage of fifty tasks that all run on the hour."""
    week = [Plan(f"hourly-{n:02}", "network", "0 * * * *") for n in range(50)]
    end = START + timedelta(hours=24)
    down = [Outage("network", START, end)]
    tasks, clock = RecurringTasks(MemoryStore()), ManualClock(START)
    for plan in week:
        tasks.add(task_of(plan))
    services = Services(week, down, -1, clock)
    knobs = Knobs(jitter=jitter)
    dispatcher = Dispatcher(tasks, services, clock, free, knobs, pool=Here())
    dispatcher.watch(end + timedelta(days=1), is_simulated=True)
    first = [next(run for run in tasks.runs(plan.id) if run.is_success) for plan in week]
    return Counter(run.started_at.replace(second=0, microsecond=0) for run in first)


def test_no_stampede_when_the_outage_ends() -> None:
    """Without jitter all fifty come back in the same minute; with it they are spread over hours."""
    together, spread = herd(0.0), herd(0.1)
    print(f"tasks that come back in one minute: {max(together.values())} without jitter, "
          f"{max(spread.values())} with, over {(max(spread) - min(spread))}")  # fmt: skip
    assert max(together.values()) == 50
    assert max(spread.values()) <= 5
    assert max(spread) - min(spread) > timedelta(hours=2)

"""A week of fifty recurring tasks with correlated outages, in seconds: the real dispatcher and the real
triage, a clock that obeys, and a reference that goes minute by minute."""

from __future__ import annotations

import os
from collections import Counter
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest

from loki.jobs.recurring import recurring_outcome
from loki.jobs.recurring.dispatcher import Dispatcher
from loki.jobs.recurring.recurring_tasks import RecurringTasks, hold_task
from loki.stores.file_store import FileStore
from loki.testing import ManualClock, MemoryStore
from support.live_week import Here, LiveWeek, Services, acts_of, free, task_of, told
from support.slow_triage import SlowTriage
from support.slow_week import SlowTask, SlowWeek
from support.week import (
    START,
    Happened,
    Outage,
    Plan,
    outages,
    plans,
    triaged_outages,
)

RICH = (1, 2)
"""Seeds of weeks in which everything happens that is to be seen."""

SEEDS = range(1, 31) if os.environ.get("LOKI_THOROUGH") == "1" else RICH


def both(seed: int, root: Path, restarts: int = 0) -> tuple[LiveWeek, list[SlowTask], SlowTriage]:
    week, down = plans(seed), triaged_outages(seed)
    acts = acts_of(week, down, restarts)
    live, slow = (
        LiveWeek(week, down, seed, acts, root),
        SlowWeek(week, down, seed, acts, is_triaged=True),
    )
    live.run()
    slow.week()
    assert slow.triage is not None
    return live, slow.tasks, slow.triage


def expected(slow: list[SlowTask]) -> list[Happened]:
    return sorted(happened for task in slow for happened in task.happened)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_week_goes_as_the_reference_says(seed: int, tmp_path: Path) -> None:
    live, slow, triage = both(seed, tmp_path)
    assert live.happened() == expected(slow)
    assert live.triaged() == sorted(triage.triaged)
    assert live.held() == triage.held
    assert live.fixes() == sorted(triage.fixes)
    assert sorted(live.told) == sorted(triage.paused)
    assert live.tasks.ids() == [task.plan.id for task in slow]  # no triage is a task
    for reference in slow:
        agrees(live.tasks, reference, triage)
    if seed in RICH:
        worth_the_name(slow, triage)


def agrees(tasks: RecurringTasks, reference: SlowTask, triage: SlowTriage) -> None:
    """A task's counters at the end of the week."""
    task = tasks.load(reference.plan.id)
    failed = [h for h in reference.happened if h.status == "failed"]
    assert task.consecutive_failures == reference.failures
    assert task.total_failures == len(failed)
    assert task.iterations == reference.iterations
    assert task.runs == len(reference.happened)
    assert task.triages == triage.numbers.get(task.id, 0)
    assert task.last_triaged_at == triage.began.get(task.id)
    assert (task.stopped is not None) is reference.is_stopped
    by = task.paused.by if task.paused is not None else ""
    assert ("triage" if by else "person" if task.paused else "") == reference.held_by
    assert by in {"", f"triage .triage-{task.id}-{task.triages}"}
    if not reference.is_stopped and not task.paused:
        assert task.next_run_at == reference.next


def worth_the_name(slow: list[SlowTask], triage: SlowTriage) -> None:
    """It was a week in which everything happened that is to be seen."""
    counts = Counter(happened.status for happened in expected(slow))
    assert counts["success"] > 1000
    assert counts["failed"] > 150
    assert max(happened.failures for happened in expected(slow)) >= 4
    said = Counter(one.verdict for one in triage.triaged)
    came = Counter(one.came for one in triage.triaged)
    assert {*said} >= {"NOOP", "FILE-FIX", "PAUSE", "out"}
    assert came["paused"] >= 3
    assert came["filed"] >= 3
    assert max(one.number for one in triage.triaged) >= 2
    assert max(one.count for one in triage.held) >= 2
    print(dict(counts), dict(said), dict(came), f"lines of held triages: {len(triage.held)}")


def test_restarts_change_nothing(tmp_path: Path) -> None:
    """However often the dispatcher begins anew, from what is in files, it does what it would have."""
    live, slow, triage = both(3, tmp_path, restarts=25)
    assert live.happened() == expected(slow)
    assert live.triaged() == sorted(triage.triaged)
    assert live.held() == triage.held


def test_a_day_in_real_files(tmp_path: Path) -> None:
    """The same from real files, with real locks."""
    week, down = plans(4)[:6], outages(4)
    short = [Plan(p.id, p.service, p.cron, p.zone, p.delay, p.max_iterations) for p in week]
    clock = ManualClock(START)
    tasks = RecurringTasks(FileStore(tmp_path / ".loki"))
    for plan in short:
        tasks.add(task_of(plan))
    services = Services(short, down, 4, clock)
    dispatcher = Dispatcher(tasks, services, clock, partial(hold_task, tmp_path / ".loki", "run"))
    dispatcher.watch(START + timedelta(days=1), is_simulated=True)
    slow = SlowWeek(short, down, 4, acts_of(short, []), is_triaged=False)
    slow.week()
    first_day = [h for h in expected(slow.tasks) if h.at < START + timedelta(days=1)]
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
    dispatcher = Dispatcher(tasks, services, clock, free, pool=Here())
    with patch.object(recurring_outcome, "JITTER", jitter):
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

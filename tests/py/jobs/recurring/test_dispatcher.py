"""Who runs what is due: once, one at a time, and what is no outcome counts nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from typing import Any

from loki.base.error import UsageError
from loki.config import RecurrenceConfig
from loki.jobs.recurring.dispatcher import Dispatcher
from loki.jobs.recurring.recurring_outcome import (
    Notice,
    begun,
    due,
    next_time,
    paused,
    replanned,
)
from loki.jobs.recurring.recurring_run import Running, RunPostponed, RunRecord, RunResult, Verdict
from loki.jobs.recurring.recurring_task import RecurringTask
from loki.jobs.recurring.recurring_tasks import LOG, RecurringTasks
from loki.testing import ManualClock, MemoryStore

NOW = datetime(2026, 4, 4, 10, tzinfo=timezone.utc)
BEGUN = Running(number=1, scheduled_at=NOW, started_at=NOW)


def made(id_: str = "t", schedule: dict[str, Any] | None = None, **more: Any) -> RecurringTask:
    data = {"id": id_, "schedule": schedule or {"cron": "0 * * * *"}, "command": ["x"], **more}
    return replanned(RecurringTask.model_validate(data), NOW, RecurrenceConfig())


class Answers:
    """A runner that says what it is told to; each call is kept."""

    def __init__(
        self, *answers: RunResult | RunPostponed | Exception, verdict: Verdict | None = None
    ) -> None:
        self.answers = list(answers)
        self.verdict = verdict
        self.began: list[Running] = []

    def run(
        self, task: RecurringTask, running: Running, cancelled: threading.Event
    ) -> RunResult | RunPostponed:
        del task, cancelled
        self.began.append(running)
        answer = self.answers.pop(0) if self.answers else RunResult("success")
        if isinstance(answer, Exception):
            raise answer
        return answer

    def evaluate(self, task: Any, run: RunRecord, cancelled: threading.Event) -> Verdict | None:
        del task, run, cancelled
        return self.verdict


class Locks:
    """Locks of one process; what is in ``taken`` is held by another."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    @contextmanager
    def __call__(self, id_: str) -> Iterator[bool]:
        yield id_ not in self.taken


class House:
    """A store with tasks, a clock and a dispatcher."""

    def __init__(self, runner: Answers, *tasks: RecurringTask) -> None:
        self.store, self.clock, self.locks = MemoryStore(), ManualClock(NOW), Locks()
        self.tasks = RecurringTasks(self.store)
        for task in tasks:
            self.tasks.add(task)
        self.dispatcher = Dispatcher(self.tasks, runner, self.clock, self.locks)
        self.told: list[tuple[str, str]] = []
        self.dispatcher.tell = self._hear

    def _hear(self, task: str, notice: Notice) -> None:
        self.told.append((task, notice.event))

    def tick(self, later: str = "0s") -> list[tuple[str, str]]:
        self.clock.advance(later)
        return [(id_, run.status) for id_, run in self.dispatcher.tick().runs]

    def events(self) -> list[str]:
        return [record["event"] for record in self.store.records(LOG)]


def test_what_is_due_and_in_which_order() -> None:
    late, early = made("late").with_(next_run_at=NOW), made("early")
    early = early.with_(next_run_at=NOW - timedelta(minutes=1))
    never: list[Callable[[RecurringTask], RecurringTask]] = [
        lambda task: paused(task, NOW),
        lambda task: begun(task, BEGUN),
        lambda task: task.with_(not_before=NOW + timedelta(seconds=1)),
        lambda task: task.with_(next_run_at=None),
        lambda task: task.with_(next_run_at=NOW + timedelta(seconds=1)),
    ]
    others = [change(late) for change in never]
    assert [one.id for one in due([late, early, *others], NOW)] == ["early", "late"]
    assert next_time([late, early]) == early.next_run_at
    assert next_time([others[0]]) is None


def test_missed_runs_are_made_up_for_once() -> None:
    runner = Answers()
    house = House(runner, made())
    assert house.tick("9h30m") == [("t", "success")]
    (run,) = runner.began
    assert (run.scheduled_at, run.missed) == (NOW + timedelta(hours=9), 8)
    assert house.tasks.runs("t")[0].missed == 8
    assert house.tick() == []
    assert house.tasks.load("t").next_run_at == NOW + timedelta(hours=10)


def test_what_another_dispatcher_runs_is_left_to_it() -> None:
    house = House(Answers(), made())
    house.locks.taken.add("t")
    house.clock.advance("1h")
    done = house.dispatcher.tick()
    assert (done.runs, done.busy) == ([], ["t"])
    house.locks.taken.clear()
    assert house.tick() == [("t", "success")]


def test_a_run_whose_dispatcher_died_is_cancelled_and_counts_nothing() -> None:
    task = made().with_(consecutive_failures=2, total_failures=2)
    house = House(Answers(), begun(task, BEGUN))
    house.locks.taken.add("t")  # it lives
    assert house.tick("30m") == []
    house.locks.taken.clear()
    assert house.tick() == [("t", "cancelled")]
    left = house.tasks.load("t")
    assert (left.consecutive_failures, left.running, left.runs) == (2, None, 1)
    assert house.told == [("t", "interrupted")]


def test_a_person_who_runs_a_task_loses_no_outcome() -> None:
    """What a dispatcher that died left is settled before: its run is cancelled, or judged and counted."""
    house = House(Answers(), begun(made(), BEGUN))
    done = house.dispatcher.run_now("t").runs
    assert [(run.number, run.status) for _, run in done] == [(1, "cancelled"), (2, "success")]
    house = House(Answers(RunResult("pending_evaluation"), RunResult("failed")), made())
    house.tick("1h")
    done = house.dispatcher.run_now("t").runs
    assert [(run.number, run.status) for _, run in done] == [(1, "failed"), (2, "failed")]
    assert house.tasks.load("t").consecutive_failures == 2


def test_a_verdict_that_was_not_counted_is_not_asked_for_again() -> None:
    house = House(Answers(RunResult("pending_evaluation"), verdict=None), made())
    house.tick("1h")
    (run,) = house.tasks.runs("t")
    house.tasks.add_run("t", run.model_copy(update={"status": "rescued"}))  # and it died
    assert house.tick("1h") == [("t", "rescued"), ("t", "success")]
    assert len(list(house.tasks.scan_runs("t"))) == 3


def test_a_dispatcher_that_watches_sees_that_another_died() -> None:
    house = House(Answers(), begun(made(), BEGUN))
    house.locks.taken.add("t")

    def die() -> bool:
        house.locks.taken.clear()
        return False

    house.dispatcher.watch(NOW + timedelta(minutes=50), has_changed=die)
    (run,) = house.tasks.runs("t")
    assert (run.status, run.ended_at - NOW) == ("cancelled", timedelta(seconds=1))


def test_what_follows_a_round_comes_again_when_it_wants_to() -> None:
    house, called = House(Answers(), made()), []

    def hook(now: datetime) -> datetime | None:
        called.append(now)
        return NOW + timedelta(minutes=20) if len(called) == 1 else None

    house.dispatcher.after_round.append(hook)
    house.dispatcher.watch(NOW + timedelta(minutes=50), is_simulated=True)
    assert called == [NOW, NOW + timedelta(minutes=20)]


def test_put_off_is_no_run() -> None:
    until = NOW + timedelta(hours=1, minutes=5)
    house = House(Answers(RunPostponed(until, "the breaker is open")), made())
    house.clock.advance("1h")
    done = house.dispatcher.tick()
    assert (done.runs, [one.reason for _, one in done.put_off]) == ([], ["the breaker is open"])
    task = house.tasks.load("t")
    assert (task.runs, task.total_failures, task.not_before) == (0, 0, until)
    assert house.tick() == []
    assert house.tick("5m") == [("t", "success")]
    assert house.tasks.runs("t")[0].scheduled_at == NOW + timedelta(hours=1)


def test_what_a_runner_raises_is_a_failure_of_that_task_alone() -> None:
    house = House(
        Answers(UsageError("no such agent"), ValueError("a defect")), made("a"), made("b")
    )
    assert sorted(house.tick("1h")) == [("a", "failed"), ("b", "failed")]
    reasons = {house.tasks.runs(id_)[0].reason for id_ in ("a", "b")}
    assert reasons == {"no such agent", "ValueError: a defect"}


def test_a_rescued_run_is_a_success() -> None:
    runner = Answers(
        RunResult("failed"), RunResult("pending_evaluation"), verdict=Verdict(True, "good enough")
    )
    house = House(runner, made())
    house.tick("1h")
    assert house.tick("3h") == [("t", "pending_evaluation"), ("t", "rescued")]
    task = house.tasks.load("t")
    assert (task.consecutive_failures, task.total_failures, task.pending) == (0, 1, None)
    assert [run.status for run in house.tasks.runs("t")] == ["failed", "rescued"]


def test_a_run_that_is_rejected_has_failed() -> None:
    house = House(
        Answers(RunResult("pending_evaluation", reason="x"), verdict=Verdict(False, "no")), made()
    )
    assert house.tick("1h") == [("t", "pending_evaluation"), ("t", "failed")]
    assert house.tasks.load("t").consecutive_failures == 1
    assert house.tasks.runs("t")[0].reason == "x; no"


def test_a_run_that_nobody_can_evaluate_is_pending_until_the_next_and_has_failed_then() -> None:
    house = House(Answers(RunResult("pending_evaluation")), made())
    assert house.tick("1h") == [("t", "pending_evaluation")]
    assert house.tasks.load("t").status == "pending_evaluation"
    assert house.tasks.load("t").consecutive_failures == 0
    assert house.tick("1h") == [("t", "failed")]  # and the next is put back, as after any failure
    assert house.tasks.load("t").consecutive_failures == 1
    assert house.tick("1h") == [("t", "success")]


def test_a_person_may_change_a_task_while_it_runs() -> None:
    house = House(Answers(), made())

    class Slow(Answers):
        def run(
            self, task: RecurringTask, running: Running, cancelled: threading.Event
        ) -> RunResult | RunPostponed:
            del running, cancelled
            house.tasks.update(task.id, lambda one: paused(one, NOW, "stop", "ada"))
            return RunResult("failed")

    house.dispatcher = Dispatcher(house.tasks, Slow(), house.clock, house.locks)
    house.tick("1h")
    task = house.tasks.load("t")
    assert task.paused is not None
    assert (task.paused.by, task.consecutive_failures) == ("ada", 1)


def test_a_task_that_is_removed_while_it_runs_stays_removed() -> None:
    house = House(Answers(), made())

    class Slow(Answers):
        def run(
            self, task: RecurringTask, running: Running, cancelled: threading.Event
        ) -> RunResult | RunPostponed:
            del running, cancelled
            house.tasks.remove(task.id)
            return RunResult("success")

    house.dispatcher = Dispatcher(house.tasks, Slow(), house.clock, house.locks)
    house.tick("1h")
    assert house.tasks.find("t") is None


def test_output_is_kept_of_ten_runs() -> None:
    house = House(Answers(*(RunResult("success", 0, stdout=f"{n}\n") for n in range(12))), made())
    for _ in range(12):
        house.tick("1h")
    kept = [run for run in house.tasks.runs("t") if house.tasks.output(run.output)]
    assert [run.number for run in kept] == list(range(3, 13))
    assert house.tasks.output(kept[-1].output) == "11\n"


def test_a_stopped_cycle_is_told_once() -> None:
    cycle = {"delay": "1m", "max_failure_restarts": 0}
    house = House(Answers(RunResult("failed", reason="boom")), made("c", cycle))
    assert house.tick() == [("c", "failed")]
    assert house.told == [("c", "stopped")]
    assert house.tick("1d") == []
    assert house.events() == ["started", "ended", "stopped"]


def test_files_that_cannot_be_used_are_left_alone() -> None:
    house = House(Answers(), made())
    house.store.write("recurring/broken/task.json", "{")
    house.store.write("recurring/note.txt", "hello")
    assert house.tick("1h") == [("t", "success")]
    assert house.store.read("recurring/broken/task.json") == "{"

"""The queue beside a slow reference that keeps everything in one list in memory."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from loki.base.error import UsageError
from loki.jobs.queue.queue import LEASE, MOST_LOST, LeasedTask, Queue, Slots
from loki.jobs.queue.queued_task import LISTS, LONGEST_LIFE, QueuedTask
from loki.jobs.queue.worker_lock import Worker
from loki.stores.file_store import FileStore
from loki.testing import ManualClock
from support.disk import MEMORY
from support.examples import examples

RANKS = {"low": 25, "medium": 50, "high": 75, 60: 60}


@dataclass
class Known:
    """What the reference knows of a task."""

    id: str
    number: int
    rank: float
    needs: tuple[str, ...]
    urgent: bool
    where: str = "pending"
    generation: int = 0
    attempts: int = 0
    attempts_before: int = 0
    lost: int = 0
    is_blocked: bool = False
    worker: int | None = None
    until: float = 0.0


class QueueMachine(RuleBasedStateMachine):
    """Every verb, with claims that hold and claims that do not; workers die, and come from elsewhere."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(dir=MEMORY))
        self.clock = ManualClock()
        self.queue = self.opened()
        self.known: list[Known] = []
        self.claims: list[tuple[Known, int, LeasedTask]] = []
        self.workers = {0: self.worker(), 1: self.worker(), 2: self.worker(elsewhere=True)}

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            for worker in self.workers.values():
                worker.__exit__(None, None, None)
            shutil.rmtree(self.folder)

    def opened(self) -> Queue:
        return Queue(FileStore(self.folder), self.clock)

    def worker(self, *, elsewhere: bool = False) -> Worker:
        worker = Worker(self.folder).__enter__()
        if elsewhere:
            worker.boot = "another machine's"
        return worker

    def pick(self, data: st.DataObject, *where: str) -> Known | None:
        fitting = [one for one in self.known if one.where in where]
        return data.draw(st.sampled_from(fitting)) if fitting else None

    # --- verbs ----------------------------------------------------------------------------------------

    @rule(data=st.data(), rank=st.sampled_from(list(RANKS)), urgent=st.booleans())
    def submit(self, data: st.DataObject, rank: str | int, urgent: bool) -> None:
        number = len(self.known) + 1
        ids = [one.id for one in self.known] + ["nobody"]
        needs = tuple(data.draw(st.lists(st.sampled_from(ids), max_size=2, unique=True)))
        task = QueuedTask(f"t{number}", "T", priority=rank, dependencies=needs, urgent=urgent)
        assert self.queue.submit(task).sequence == number
        self.known.append(Known(task.id, number, RANKS[rank], needs, urgent))

    @rule(worker=st.sampled_from([0, 1, 2]), slots=st.integers(1, 4), urgent=st.booleans())
    def claim(self, worker: int, slots: int, urgent: bool) -> None:
        capacity = Slots(slots, lambda task: task.urgent or not urgent)
        claim = self.queue.lease(self.workers[worker], capacity)
        self.reap()
        done = {one.id for one in self.known if one.where == "completed"}
        free = [
            one
            for one in self.known
            if one.where == "pending"
            and not one.is_blocked
            and done.issuperset(one.needs)
            and (one.urgent or not urgent)
        ]
        if sum(one.where == "in-progress" for one in self.known) >= slots or not free:
            assert claim is None
            return
        first = min(free, key=lambda one: (-one.rank, one.number))
        assert claim is not None
        assert claim.id == first.id
        first.where, first.worker, first.generation = "in-progress", worker, first.generation + 1
        first.attempts_before, first.until = first.attempts, self.clock.monotonic() + LEASE
        self.claims.append((first, first.generation, claim))

    @rule(data=st.data(), attempts=st.integers(0, 3), to=st.sampled_from(["completed", "failed"]))
    def end(self, data: st.DataObject, attempts: int, to: str) -> None:
        if found := self.held(data):
            known, holds, claim = found
            if to == "completed":
                assert self.queue.complete(claim, {"x": 1}, attempts=attempts) == holds
            else:
                assert self.queue.fail(claim, "no", attempts=attempts) == holds
            if holds:
                known.where, known.attempts = to, known.attempts + attempts

    @rule(data=st.data(), attempts=st.integers(0, 3), blocked=st.booleans())
    def release(self, data: st.DataObject, attempts: int, blocked: bool) -> None:
        if found := self.held(data):
            known, holds, claim = found
            went = self.queue.release(claim, attempts=attempts, blocked="x" if blocked else None)
            if holds:
                known.attempts += attempts
                known.is_blocked |= blocked
                self.give_back(known)
            assert went == (known.where if holds else None)

    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        if found := self.held(data):
            known, holds, claim = found
            assert (self.queue.renew(claim) is not None) == holds
            if holds:
                known.until = self.clock.monotonic() + LEASE

    @rule(seconds=st.sampled_from([1, 30, 61]))
    def pass_time(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule(worker=st.sampled_from([0, 1]))
    def die(self, worker: int) -> None:
        self.workers[worker].__exit__(None, None, None)
        self.workers[worker] = self.worker()
        for one in self.known:
            if one.where == "in-progress" and one.worker == worker:
                one.until = -1.0

    @rule(data=st.data(), block=st.booleans())
    def block(self, data: st.DataObject, block: bool) -> None:
        if known := self.pick(data, "pending", "in-progress"):
            self.queue.block(known.id, "x") if block else self.queue.unblock(known.id)
            known.is_blocked = block

    @rule(data=st.data(), rank=st.sampled_from(list(RANKS)))
    def prioritize(self, data: st.DataObject, rank: str | int) -> None:
        if known := self.pick(data, "pending", "in-progress"):
            self.queue.prioritize(known.id, rank)
            known.rank = RANKS[rank]

    @rule(data=st.data())
    def dead_letter(self, data: st.DataObject) -> None:
        if known := self.pick(data, *LISTS):
            assert self.queue.dead_letter({"task_id": known.id, "error_summary": "no"})
            known.where, known.is_blocked = "dead-letter", False

    @rule(data=st.data(), reset=st.booleans())
    def requeue(self, data: st.DataObject, reset: bool) -> None:
        if known := self.pick(data, *LISTS):
            if known.where not in {"failed", "dead-letter", "abandoned"}:
                self.refused(lambda: self.queue.requeue(known.id))
                return
            self.queue.requeue(known.id, reset=reset)
            known.where, known.lost = "pending", 0
            known.attempts = 0 if reset else known.attempts

    @rule(data=st.data())
    def abandon(self, data: st.DataObject) -> None:
        if known := self.pick(data, *LISTS):
            if known.where not in {"pending", "failed", "dead-letter"}:
                self.refused(lambda: self.queue.abandon(known.id, "no"))
                return
            self.queue.abandon(known.id, "no")
            known.where = "abandoned"

    @rule(name=st.sampled_from(LISTS), bare=st.booleans())
    def rewrite(self, name: str, bare: bool) -> None:
        """Another program writes a list in its own form, and loki begins anew."""
        path = self.folder / "queue" / f"{name}.json"
        if path.exists():
            found = json.loads(path.read_text("utf-8"))
            data = {"tasks": found} if isinstance(found, list) else found
            tasks = [dict(reversed(one.items())) for one in data["tasks"]]
            is_bare = bare and len(data) == 1
            path.write_text(json.dumps(tasks if is_bare else {**data, "tasks": tasks}, indent=2))
        self.queue = self.opened()

    # --- what must be so ------------------------------------------------------------------------------

    @invariant()
    def lists_are_as_the_reference_says(self) -> None:
        if not hasattr(self, "queue"):
            return
        lists = self.queue.lists()
        assert list(lists.complaints()) == []
        for name in LISTS:
            mine = [one for one in self.known if one.where == name]
            theirs = lists.of(name)
            if name == "pending":
                assert [one.id for one in theirs] == [one.id for one in mine]
            assert {one.id: facts(one) for one in theirs} == {one.id: expected(one) for one in mine}

    # --- the reference --------------------------------------------------------------------------------

    def held(self, data: st.DataObject) -> tuple[Known, bool, LeasedTask] | None:
        """A claim that was once made, and whether it holds still."""
        if not self.claims:
            return None
        known, generation, claim = data.draw(st.sampled_from(self.claims[-6:]))
        return known, (known.where, known.generation) == ("in-progress", generation), claim

    def reap(self) -> None:
        for one in self.known:
            far = one.worker == 2 and one.until <= self.clock.monotonic()
            if one.where == "in-progress" and (far or one.until < 0):
                one.lost += 1
                self.give_back(one)

    def give_back(self, one: Known) -> None:
        spent = one.attempts >= LONGEST_LIFE and one.attempts != one.attempts_before
        one.where = "dead-letter" if spent or one.lost >= MOST_LOST else "pending"
        one.is_blocked &= one.where == "pending"

    def refused(self, verb: object) -> None:
        try:
            verb()  # type: ignore[operator]
        except UsageError:
            return
        raise AssertionError("not refused")


def facts(task: QueuedTask) -> tuple[object, ...]:
    blocked = task.blocked is not None
    return (
        task.rank,
        task.dependencies,
        blocked,
        task.generation,
        task.lifetime_attempts,
        task.title,
    )


def expected(one: Known) -> tuple[object, ...]:
    blocked = one.is_blocked
    return one.rank, one.needs, blocked, one.generation, one.attempts, "T"


TestQueue = QueueMachine.TestCase
TestQueue.settings = settings(
    max_examples=examples(25),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)

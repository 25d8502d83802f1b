"""Whoever moves a task is killed at every call that changes the disk: no task is lost, none is doubled."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from loki.base.atomic_file import is_temporary, temporary_name
from loki.base.error import UsageError
from loki.jobs.queue.queue import LeasedTask, Queue
from loki.jobs.queue.queued_task import LISTS, LONGEST_LIFE, ListName, QueuedTask
from loki.jobs.queue.worker_lock import Worker
from loki.stores.file_store import FileStore
from loki.testing import ManualClock
from support.disk import MEMORY
from support.journal import die_at_call, killed

OTHERS = {"before", "behind", "done"}
"""Tasks that nothing is done to."""


class Case(NamedTuple):
    """A verb that moves the task ``t``.

    Attributes:
        begin: the list that it stands in before, end: afterwards.
        do: the verb; the claim is there where the task is in progress.
    """

    begin: ListName
    end: ListName
    do: Callable[[Queue, Worker, LeasedTask], object]
    lives: bool = True
    attempts: int = 0


CASES = {
    "claim": Case("pending", "in-progress", lambda queue, worker, _: queue.lease(worker)),
    "complete": Case("in-progress", "completed", lambda queue, _, claim: queue.complete(claim)),
    "fail": Case("in-progress", "failed", lambda queue, _, claim: queue.fail(claim, "no")),
    "release": Case("in-progress", "pending", lambda queue, _, claim: queue.release(claim)),
    "dead worker": Case("in-progress", "pending", lambda queue, *_: queue.reap(), lives=False),
    "dead worker, long life": Case(
        "in-progress", "dead-letter", lambda queue, *_: queue.reap(), False, LONGEST_LIFE
    ),
    "dead_letter": Case(
        "in-progress", "dead-letter", lambda queue, *_: queue.dead_letter({"task_id": "t"})
    ),
    "requeue": Case("dead-letter", "pending", lambda queue, *_: queue.requeue("t")),
    "requeue failed": Case("failed", "pending", lambda queue, *_: queue.requeue("t")),
    "abandon": Case("dead-letter", "abandoned", lambda queue, *_: queue.abandon("t", "no")),
    "abandon pending": Case("pending", "abandoned", lambda queue, *_: queue.abandon("t", "no")),
    "renew": Case("in-progress", "in-progress", lambda queue, _, claim: queue.renew(claim)),
    "block": Case("pending", "pending", lambda queue, *_: queue.block("t", "no")),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_move_survives_a_kill_at_every_step(case: Case) -> None:
    steps = 0
    for number in range(1, 100):
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=MEMORY)))
            queue, worker, claim = stack.enter_context(made(folder, case))

            def die(number: int = number, parts: Any = (queue, worker, claim)) -> None:
                die_at_call(number)
                case.do(*parts)

            was_killed = killed(die)
            steps += was_killed
            check(folder, case, was_killed)
        if not was_killed:
            break
    assert steps >= 4


def test_several_tasks_of_the_dead_go_different_ways() -> None:
    """One to pending, one to the dead letters, and a third is claimed: killed at every step of that."""
    ids = {"short", "long", "free"}
    for number in range(1, 100):
        with tempfile.TemporaryDirectory(dir=MEMORY) as name:
            folder = Path(name)
            queue = open_queue(folder)
            queue.submit_all([QueuedTask(id_, id_) for id_ in ("short", "long")])
            with Worker(folder) as mortal:
                assert queue.lease(mortal)
                assert queue.lease(mortal)
            attempted(folder, "long", LONGEST_LIFE)
            queue.submit(QueuedTask("free", "free", priority="high"))
            with Worker(folder) as worker:

                def die(
                    number: int = number, queue: Queue = queue, worker: Worker = worker
                ) -> None:
                    die_at_call(number)
                    queue.lease(worker)

                was_killed = killed(die)
            assert {task.id for task in open_queue(folder).tasks()} == ids
            queue = open_queue(folder)
            queue.reap()
            assert sorted(id_ for one in LISTS for id_ in stands(folder, one)) == sorted(ids)
            assert [queue.where(id_) for id_ in ("long", "short")] == ["dead-letter", "pending"]
        if not was_killed:
            break
    assert number > 10


def attempted(folder: Path, task: str, attempts: int) -> None:
    log = folder / "tasks" / task
    log.mkdir(parents=True)
    (log / "attempts.jsonl").write_text(json.dumps({"attempt": attempts}))


class made:  # noqa: N801 - reads as a function
    """A queue with the task where the case begins, and a worker that has it if it is in progress."""

    def __init__(self, folder: Path, case: Case) -> None:
        self.folder, self.case, self.stack = folder, case, ExitStack()

    def __enter__(self) -> tuple[Queue, Worker, Any]:
        queue = open_queue(self.folder)
        tasks = [
            QueuedTask("done", "D", priority="critical"),
            QueuedTask("before", "B", dependencies=("none",)),
            QueuedTask("t", "T", description="é\ufffd", raw={}),
            QueuedTask("behind", "B", dependencies=("none",)),
        ]
        queue.submit_all(tasks)
        worker = self.stack.enter_context(Worker(self.folder))
        done = queue.lease(worker)
        assert done
        queue.complete(done)
        claim = None
        if self.case.begin != "pending":
            mortal = worker if self.case.lives else Worker(self.folder).__enter__()
            claim = queue.lease(mortal)
            assert claim
            if self.case.attempts:
                attempted(self.folder, "t", self.case.attempts)
            if not self.case.lives:
                mortal.__exit__(None, None, None)
            if self.case.begin == "failed":
                queue.fail(claim, "no")
            if self.case.begin == "dead-letter":
                queue.dead_letter({"task_id": "t", "error_summary": "no"}, claim)
        return queue, worker, claim

    def __exit__(self, *_: object) -> None:
        self.stack.close()


def open_queue(folder: Path) -> Queue:
    return Queue(FileStore(folder), ManualClock())


def check(folder: Path, case: Case, was_killed: bool) -> None:
    """Every task stands in one list, before and after the next writer has come by."""
    seen = open_queue(folder).lists()
    where = seen.where("t")
    assert where == case.end or (was_killed and where == case.begin)
    queue = open_queue(folder)
    queue.prioritize("before", "low")  # any writer mends
    assert queue.where("t") == where
    assert list(queue.lists().complaints()) == []
    assert {task.id for task in queue.tasks()} == {"t", *OTHERS}
    ids = [id_ for name in LISTS for id_ in stands(folder, name)]
    assert sorted(ids) == sorted({"t", *OTHERS})
    task = queue.find("t")
    assert task
    assert (task.title, task.description, task.sequence) == ("T", "é\ufffd", 3)
    counted = queue.dead_letter_metadata()
    gone = case.begin == "dead-letter" and where != "dead-letter"
    assert counted["total_recovered"] == (gone and case.end == "pending")
    assert counted["total_abandoned"] == (gone and case.end == "abandoned")


def stands(folder: Path, name: ListName) -> Iterator[str]:
    path = folder / "queue" / f"{name}.json"
    if path.exists():
        for one in json.loads(path.read_text("utf-8"))["tasks"]:
            yield one.get("id") or one["task_id"]


def test_who_is_killed_while_submitting_says_it_again() -> None:
    """At every call that changes the disk: the same submission again is a success, and is there once."""
    tasks = [
        QueuedTask("a", "Make a", checks=("pytest -q --password=hunter2hunter2",), max_cost=1.5),
        QueuedTask("b", "Make b", dependencies=("a",), tags=("x",), scope=("src/*",)),
    ]
    after_the_write = 0
    for number in range(1, 100):
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            queue = Queue(FileStore(Path(folder)), ManualClock())

            def die(number: int = number, queue: Queue = queue) -> None:
                die_at_call(number)
                queue.submit_all(tasks)

            was_killed = killed(die)
            after_the_write += was_killed and queue.where("a") == "pending"
            assert [task.id for task in queue.submit_all(tasks)] == ["a", "b"]
            assert [task.id for task in queue.tasks()] == ["a", "b"]
            with pytest.raises(UsageError, match="is another one"):
                queue.submit(QueuedTask("b", "Make b", dependencies=("a",), tags=("y",)))
        if not was_killed:
            break
    assert after_the_write


def test_what_killed_workers_left_half_written_goes_when_the_next_begins() -> None:
    """Killed at every call of claiming and completing; who works meanwhile keeps its files."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        folder = Path(name)
        open_queue(folder).submit_all([QueuedTask(f"t{n}", f"T{n}") for n in range(100)])
        left = 0
        for number in range(1, 100):

            def work(number: int = number) -> None:
                die_at_call(number)
                with Worker(folder) as worker:
                    queue = open_queue(folder)
                    claim = queue.lease(worker)
                    assert claim
                    queue.complete(claim)

            if not killed(work):
                break
            found = temporaries(folder)
            assert len(found) <= 1, "what the one before left is gone"
            left += len(found)
        assert left >= 3, "killed while they wrote"
        living = folder / "queue" / temporary_name()
        living.write_text("half")
        with Worker(folder):
            assert temporaries(folder) == {living.name}


def temporaries(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if is_temporary(path.name)}

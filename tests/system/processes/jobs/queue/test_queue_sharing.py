"""Real processes on one queue, some of which are killed: each task is somebody's exactly once."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from loki.base import locks
from loki.base.error import StoreError
from loki.base.time import SystemClock
from loki.jobs.queue.queue import Queue, Slots
from loki.jobs.queue.queued_task import QueuedTask
from loki.jobs.queue.worker_lock import Worker
from loki.stores.file_store import FileStore
from support.disk import MEMORY
from support.forked import exit_codes, fork

TASKS = 300


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        yield Path(name)


def opened(folder: Path) -> Queue:
    return Queue(FileStore(folder), SystemClock())


BEFORE_DEATHS = 60
"""Tasks that each of three survivors may take before the others have died: some are left for those."""


def work(folder: Path, name: str, dies_after: int | None) -> None:
    """Claim and complete until nothing is left; or die with a claim in hand."""
    queue = opened(folder)
    with Worker(folder, name) as worker, (folder / f"{name}.txt").open("a") as log:
        count = 0
        while claim := queue.lease(worker):
            log.write(f"{claim.id} {claim.lease.generation}\n")
            log.flush()
            count += 1
            if count == dies_after:
                os.kill(os.getpid(), signal.SIGKILL)
            assert queue.complete(claim)
            while count == BEFORE_DEATHS and not (folder / "all have died").exists():
                time.sleep(0.001)


def test_each_task_is_claimed_exactly_once_and_those_of_the_dead_once_more(folder: Path) -> None:
    opened(folder).submit_all([QueuedTask(f"t{n}", "T") for n in range(TASKS)])
    deaths = [1, 2, 5, None, None, None]
    names = [f"w{n}" for n in range(len(deaths))]
    parts = zip(names, deaths, strict=True)
    children = [fork(lambda n=n, d=d: work(folder, n, d)) for n, d in parts]  # type: ignore[misc]
    # On a busy machine the survivors could do all before the others begin, who then never die.
    assert exit_codes(children[:3]) == [-signal.SIGKILL] * 3
    (folder / "all have died").touch()
    assert exit_codes(children[3:]) == [0] * 3
    work(folder, "last", None)  # what the last who died had, if all others were gone by then
    logs = ((folder / f"{name}.txt").read_text() for name in (*names, "last"))
    claimed = [line for log in logs for line in log.splitlines()]
    assert max(Counter(claimed).values()) == 1, "two had one task at the same time"
    assert len(claimed) == TASKS + 3
    done = opened(folder).tasks("completed")
    assert sorted(task.id for task in done) == sorted(f"t{n}" for n in range(TASKS))
    assert len(opened(folder).tasks()) == TASKS
    # What a dead one had comes first, so that the next to die may have had the same task.
    assert sum(task.lost for task in done) == len(deaths) - deaths.count(None)


def test_no_more_claims_than_slots_over_all_processes(folder: Path) -> None:
    opened(folder).submit_all([QueuedTask(f"t{n}", "T") for n in range(60)])

    def claim_and_look() -> None:
        queue = opened(folder)
        with Worker(folder) as worker:
            while queue.tasks("pending"):
                if claim := queue.lease(worker, Slots(2)):
                    assert 1 <= len(queue.tasks("in-progress")) <= 2
                    assert queue.complete(claim)

    assert exit_codes([fork(claim_and_look) for _ in range(5)]) == [0] * 5
    assert len(opened(folder).tasks("completed")) == 60


def test_what_a_worker_started_holds_its_claims_until_it_has_ended(folder: Path) -> None:
    """A command that outlives its worker may still be writing: nobody may begin the task anew."""
    opened(folder).submit(QueuedTask("t", "T"))
    reading, writing = os.pipe()
    told, tell = os.pipe()

    def start_and_die() -> None:
        worker = Worker(folder).__enter__()
        claim = opened(folder).lease(worker)
        assert claim
        os.set_inheritable(worker.fileno(), True)
        os.set_inheritable(reading, True)
        os.close(writing)
        program = f"import os; os.read({reading}, 1)"
        os.posix_spawn(sys.executable, [sys.executable, "-c", program], dict(os.environ))
        os.write(tell, b"x")
        os.kill(os.getpid(), signal.SIGKILL)

    assert exit_codes([fork(start_and_die)]) == [-signal.SIGKILL]
    assert os.read(told, 1) == b"x"
    queue = opened(folder)
    with Worker(folder) as other:
        assert queue.lease(other) is None
        os.close(writing)  # what it started ends
        while queue.lease(other) is None:  # the kernel has the last word
            os.sched_yield()
    task = queue.find("t")
    assert task
    assert (task.lost, task.generation) == (1, 2)
    for end in (reading, told, tell):
        os.close(end)


def test_who_lets_go_of_the_lock_and_wants_it_again_waits_for_others(folder: Path) -> None:
    """Else a worker whose tasks are short keeps all others from claiming any."""
    store = FileStore(folder)
    order: list[str] = []

    def wait() -> None:
        with FileStore(folder).lock("queue"):
            order.append("who waited")

    waiting = threading.Thread(target=wait)
    with store.lock("queue"):
        waiting.start()
        while not has_turn(folder):
            os.sched_yield()
    with store.lock("queue"):
        order.append("who had it before")
    waiting.join()
    assert order == ["who waited", "who had it before"]


def has_turn(folder: Path) -> bool:
    """Whether somebody is the next to get the lock."""
    try:
        with locks.hold(folder / "queue-next", timeout=0):
            return False
    except StoreError:
        return True

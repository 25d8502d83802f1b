"""What the queue promises to one worker after the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from loki.base.error import UsageError
from loki.jobs.queue.queue import NO_LIMIT, LeasedTask, Queue, Slots
from loki.jobs.queue.queued_task import QueuedTask
from loki.jobs.queue.worker_lock import Worker
from loki.stores.file_store import FileStore
from loki.testing import ManualClock


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    return Queue(FileStore(tmp_path), ManualClock())


def claimed(queue: Queue, worker: Worker, slots: Slots = NO_LIMIT) -> LeasedTask:
    claim = queue.lease(worker, slots)
    assert claim is not None
    return claim


def ids(queue: Queue, name: str) -> list[str]:
    return [task.id for task in queue.lists().of(name)]  # type: ignore[arg-type]


def test_higher_priority_comes_first_then_who_was_earlier(queue: Queue, tmp_path: Path) -> None:
    said: list[tuple[str, str | float]] = [
        ("a", "low"),
        ("b", 60),
        ("c", "high"),
        ("d", "medium"),
        ("e", "normal"),
        ("f", "critical"),
    ]
    queue.submit_all([QueuedTask(id_, id_, priority=priority) for id_, priority in said])
    with Worker(tmp_path) as worker:
        order = [claimed(queue, worker).id for _ in said]
    assert order == ["f", "c", "b", "d", "e", "a"]


def test_a_task_waits_for_all_that_it_depends_on(queue: Queue, tmp_path: Path) -> None:
    queue.submit_all(
        [QueuedTask("c", "C", dependencies=("a", "b")), QueuedTask("a", "A"), QueuedTask("b", "B")]
    )
    with Worker(tmp_path) as worker:
        a, b = claimed(queue, worker), claimed(queue, worker)
        assert (a.id, b.id) == ("a", "b")
        assert queue.complete(a)
        assert queue.lease(worker) is None
        assert queue.complete(b)
        assert claimed(queue, worker).id == "c"


def test_what_comes_back_stands_where_it_stood(queue: Queue, tmp_path: Path) -> None:
    queue.submit_all([QueuedTask(id_, id_) for id_ in "abc"])
    with Worker(tmp_path) as worker:
        a, b = claimed(queue, worker), claimed(queue, worker)
        assert queue.release(b) == queue.release(a) == "pending"
    assert ids(queue, "pending") == ["a", "b", "c"]


def test_a_claim_that_was_lost_changes_nothing(queue: Queue, tmp_path: Path) -> None:
    queue.submit(QueuedTask("a", "A"))
    with Worker(tmp_path) as worker:
        old = claimed(queue, worker)
        assert queue.release(old) == "pending"
        new = claimed(queue, worker)
        assert new.lease.generation == old.lease.generation + 1
        before = (tmp_path / "queue" / "in-progress.json").read_bytes()
        assert not queue.complete(old)
        assert not queue.fail(old, "too late")
        assert queue.renew(old) is None
        assert queue.release(old) is None
        assert not queue.dead_letter({"task_id": "a"}, old)
        assert (tmp_path / "queue" / "in-progress.json").read_bytes() == before
        assert queue.complete(new)


def test_capacity_counts_over_all_workers(queue: Queue, tmp_path: Path) -> None:
    queue.submit_all([QueuedTask(id_, id_, urgent=id_ == "c") for id_ in "abcd"])
    with Worker(tmp_path) as one, Worker(tmp_path) as other:
        assert claimed(queue, one, Slots(2, lambda task: task.urgent)).id == "c"
        assert queue.lease(other, Slots(2))
        assert queue.lease(other, Slots(2)) is None
        assert queue.lease(other, Slots(3))


def test_ids_are_taken_once_and_nobody_waits_for_himself(queue: Queue) -> None:
    queue.submit(QueuedTask("a", "A", dependencies=("b",)))
    with pytest.raises(UsageError, match=r"'a' is in the queue already \(pending\)"):
        queue.submit(QueuedTask("a", "A"))
    with pytest.raises(UsageError, match="b -> a -> b"):
        queue.submit(QueuedTask("b", "B", dependencies=("a",)))
    assert ids(queue, "pending") == ["a"]

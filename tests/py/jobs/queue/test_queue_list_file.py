"""Lists as other programs write them: read generously, kept to the letter, never half loaded."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki.base.error import StoreError
from loki.jobs.queue.queue import Queue
from loki.jobs.queue.queue_index import Entry, QueueFile, read
from loki.jobs.queue.queued_task import QueuedTask
from loki.jobs.queue.worker_lock import Worker
from loki.stores.file_store import FileStore
from loki.testing import ManualClock


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    (tmp_path / "queue").mkdir()
    return Queue(FileStore(tmp_path), ManualClock())


def put(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / "queue" / f"{name}.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def tasks_in(folder: Path, name: str) -> Any:
    return json.loads((folder / "queue" / f"{name}.json").read_text("utf-8"))["tasks"]


@pytest.mark.parametrize(
    "text", ["", "  \n", "[]", "{}", '{"tasks": null}', '{"metadata": {"last_reviewed": null}}']
)
def test_what_holds_no_task_is_empty(queue: Queue, tmp_path: Path, text: str) -> None:
    put(tmp_path, "pending", text)
    assert queue.tasks() == []
    queue.submit(QueuedTask("a", "A"))
    assert [task.id for task in queue.tasks("pending")] == ["a"]


def test_a_bare_array_is_read_and_moves_like_any_other(queue: Queue, tmp_path: Path) -> None:
    put(
        tmp_path,
        "pending",
        '[{"task_id": 7, "name": "Log in", "x": {"y": [1.50, null]}}, "sweep-up"]',
    )
    with Worker(tmp_path) as worker:
        first, second = queue.lease(worker), queue.lease(worker)
        assert first
        assert second
        assert (first.id, first.task.title, second.id) == ("7", "Log in", "sweep-up")
        assert queue.complete(first)
    (kept,) = tasks_in(tmp_path, "completed")
    assert (kept["task_id"], kept["name"], kept["x"]) == (7, "Log in", {"y": [1.5, None]})
    assert "id" not in kept
    assert "claim" not in kept


def test_what_stands_beside_the_tasks_is_kept(queue: Queue, tmp_path: Path) -> None:
    put(tmp_path, "pending", '{"version": 3, "tasks": [], "meta": {"ü": "\\ud800"}}')
    queue.submit_all([QueuedTask("a", "A"), QueuedTask("b", "B")])
    data = json.loads((tmp_path / "queue" / "pending.json").read_text("utf-8"))
    assert (data["version"], data["meta"], len(data["tasks"])) == (3, {"ü": "\ud800"}, 2)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"tasks": [\n {"id": "a"},\n {"id": }\n]}', "pending.json:3:"),
        ('{"tasks": [\n{"id": "a"},\n{"id": "b"\n]}', "pending.json:"),
        ('{"tasks": {"a": 1}}', "pending.json:1:1: expected"),
        ('"tasks"', "pending.json:1:1: expected"),
        (b'{"tasks": [\n{"id": "\xff"}\n]}', "pending.json:2:9: is not UTF-8"),
        ("[" * 100_000, "pending.json:"),
        ("[" + "9" * 5000 + "]", "pending.json:"),
    ],
)
def test_what_cannot_be_read_is_told_and_left(
    queue: Queue, tmp_path: Path, text: str | bytes, where: str
) -> None:
    queue.submit(QueuedTask("a", "A"))
    path = put(tmp_path, "pending", text)
    before = path.read_bytes()
    with Worker(tmp_path) as worker:
        for verb in (
            queue.tasks,
            lambda: queue.submit(QueuedTask("c", "C")),
            lambda: queue.lease(worker),
            lambda: queue.dead_letter({"task_id": "x"}),
        ):
            with pytest.raises(StoreError) as caught:
                verb()
            assert where in str(caught.value)
            assert "left as it is" in str(caught.value)
    assert path.read_bytes() == before
    assert not (tmp_path / "queue" / "dead-letter.json").exists()


def test_an_entry_that_is_no_task_stays_where_it_stands(
    queue: Queue, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    odd = [None, {"x": 1}, ["a"], "", True]
    put(tmp_path, "pending", json.dumps([odd[0], {"id": "a"}, *odd[1:]]))
    with caplog.at_level(logging.WARNING), Worker(tmp_path) as worker:
        claim = queue.lease(worker)
        assert claim
        assert claim.id == "a"
        queue.complete(claim)
    assert tasks_in(tmp_path, "pending") == odd
    said = [record.getMessage() for record in caplog.records]
    assert len(said) >= len(odd)
    assert len([one for one in said if "entry 1 is left as it stands: found None" in one]) == 1


def test_what_stands_twice_is_told_once_by_a_process_and_what_to_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "queue").mkdir()
    put(tmp_path, "pending", '[{"id": "b"}]')
    put(tmp_path, "completed", '[{"id": "b"}]')
    with caplog.at_level(logging.WARNING):
        for _ in range(3):  # as `loki status` does, in several rooms
            Queue(FileStore(tmp_path), ManualClock()).lists()
    (said,) = (one for one in caplog.messages if "'b' stands in completed" in one)
    assert said.endswith("which counts; give it another id, or take it out")


def test_what_stands_twice_is_told_and_kept(
    queue: Queue, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Another program may have put a task back, or two tasks under one id: nobody knows, nothing goes."""
    put(tmp_path, "pending", '[{"id": "a", "n": 1}, {"id": "a", "n": 2}, {"id": "b"}]')
    put(tmp_path, "completed", '[{"id": "b"}]')
    with caplog.at_level(logging.WARNING), Worker(tmp_path) as worker:
        claim = queue.lease(worker)
        assert claim
        assert (claim.id, claim.task.raw["n"]) == ("a", 1)
        assert queue.lease(worker) is None, "the other is in progress, b is completed"
        queue.complete(claim)
        assert queue.lease(worker) is None
    assert tasks_in(tmp_path, "pending") == [{"id": "a", "n": 2}, {"id": "b"}]
    assert [task["n"] for task in tasks_in(tmp_path, "completed") if task["id"] == "a"] == [1]
    assert "'b' stands in completed, too, which counts" in caplog.text


def test_what_other_programs_have_in_progress_is_theirs(queue: Queue, tmp_path: Path) -> None:
    theirs = {"id": "a", "claim": "me", "claimedBy": "agent-7", "status": "in_progress"}
    put(tmp_path, "in-progress", json.dumps([theirs]))
    with Worker(tmp_path) as worker:
        assert queue.lease(worker) is None
        assert tasks_in_bare(tmp_path) == [theirs]
        queue.take_back("a")
        claim = queue.lease(worker)
        assert claim
        assert queue.complete(claim)
    (done,) = tasks_in(tmp_path, "completed")
    assert (done["claimedBy"], done["status"]) == ("agent-7", "completed")


def tasks_in_bare(folder: Path) -> Any:
    return json.loads((folder / "queue" / "in-progress.json").read_text("utf-8"))


@pytest.mark.parametrize("garbage", ["not even JSON", '{"id": "a"', "\0" * 40, "\udcff"])
def test_a_current_task_that_is_garbage_is_set_aside(
    queue: Queue, tmp_path: Path, caplog: pytest.LogCaptureFixture, garbage: str
) -> None:
    """Once, by whoever claims, and by whoever only looks: what stood there is kept, and said."""
    path = put(tmp_path, "current-task", "")
    data = garbage.encode("utf-8", "surrogateescape")
    queue.submit(QueuedTask("a", "A"))
    with Worker(tmp_path) as worker:
        path.write_bytes(data)
        assert queue.lease(worker)
        assert json.loads(path.read_text())["id"] == "a"
        path.write_bytes(data)
        assert queue.find("a")
        assert json.loads(path.read_text())["id"] == "a"
    kept = [one.read_bytes() for one in (tmp_path / "set-aside" / "queue").glob("current-task*")]
    assert kept == ([] if not data.strip(b"\0") else [data, data])
    assert ("was damaged" in caplog.text) == bool(kept)
    path.write_bytes(data)
    queue.reap()
    assert not path.exists()


def test_another_programs_current_task_stays(queue: Queue, tmp_path: Path) -> None:
    path = put(tmp_path, "current-task", '{"id": "mine"}')
    queue.submit(QueuedTask("a", "A"))
    with Worker(tmp_path) as worker:
        assert queue.lease(worker)
        assert path.read_text() == '{"id": "mine"}'
        path.unlink()
        queue.submit(QueuedTask("b", "B"))
        b = queue.lease(worker)
        assert b
        assert json.loads(path.read_text())["id"] in {"a", "b"}
        queue.complete(b)
        assert json.loads(path.read_text())["id"] == "a"
    queue.reap()
    assert not path.exists()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = [
    "id",
    "task_id",
    "title",
    "priority",
    "dependsOn",
    "blocked",
    "claim",
    "attempts",
    "checks",
]
ENTRY = JSON | st.dictionaries(st.sampled_from(NAMES) | st.text(), JSON, max_size=6)


@given(entries=st.lists(ENTRY, max_size=5), extra=st.dictionaries(st.text(), JSON, max_size=2))
def test_any_json_is_read_and_what_is_written_is_read_as_the_same(
    entries: list[Any], extra: dict[str, Any]
) -> None:
    extra = {name: value for name, value in extra.items() if name.lower() != "tasks"}
    text = json.dumps({"tasks": entries, **extra})
    file = read("queue/pending.json", text)
    written = file.text()
    assert json.loads(written) == {"tasks": entries, **extra}
    again = read("queue/pending.json", written)
    assert again == file
    assert list(again.tasks) == list(file.tasks)
    added = QueueFile((*file.entries, Entry.of(QueuedTask("new", "New"))), file.extra)
    assert json.loads(added.text())["tasks"][:-1] == entries

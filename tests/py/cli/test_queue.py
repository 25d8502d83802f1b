"""`loki queue`: who works on what, what waits for what, and a hand in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from loki.base.time import SystemClock
from loki.cli.app import app
from loki.jobs.queue.queue import Queue
from loki.jobs.queue.queued_task import QueuedTask
from loki.jobs.queue.worker_lock import Worker
from loki.stores.file_store import FileStore


def run(project: Path, *words: str) -> Result:
    result = CliRunner().invoke(app, ["queue", *words, "--project", str(project)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def data(project: Path, *words: str) -> Any:
    result = run(project, *words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    found = Queue(FileStore(tmp_path / ".loki"), SystemClock())
    found.submit_all(
        [
            QueuedTask("first", "The first \x1b[31m one", priority="high"),
            QueuedTask("second", "The second", dependencies=("first",), background=True),
            QueuedTask("third", "The third", dependencies=("lost",), priority=99),
        ]
    )
    return found


def test_an_empty_queue_says_how_to_begin(tmp_path: Path) -> None:
    assert "loki submit --help" in run(tmp_path).stdout
    assert set(map(str, data(tmp_path).values())) == {"[]"}
    assert list(tmp_path.iterdir()) == [], "a look leaves nothing"


def test_tells_what_waits_for_what_and_who_has_what(tmp_path: Path, queue: Queue) -> None:
    with Worker(tmp_path / ".loki") as worker:
        assert queue.lease(worker)
        told = run(tmp_path).stdout
        held = next(one for one in told.splitlines() if one.startswith("  first"))
        assert f"{worker.id} has had it for" in held
        assert "for another" in held
        assert "waits for first (in-progress); background" in told
        assert "waits for lost (which nobody has submitted)" in told
        assert told.index("third ") < told.index("second ")
        assert "\x1b" not in told
    told = run(tmp_path).stdout
    assert f"{worker.id} is gone: the next worker takes it" in told
    found = data(tmp_path)
    assert [one["id"] for one in found["pending"]] == ["second", "third"]
    assert found["pending"][0]["waits_for"] == [{"id": "first", "list": "in-progress"}]
    assert (found["in-progress"][0]["is_lost"], found["in-progress"][0]["list"]) == (
        True,
        "in-progress",
    )


def test_one_list_or_all(tmp_path: Path, queue: Queue) -> None:
    queue.submit_all([QueuedTask(f"t{n}", "T") for n in range(30)])
    assert "… and 13 more: loki queue --list pending" in run(tmp_path).stdout
    assert "t29" in run(tmp_path, "--all").stdout
    assert "t29" in run(tmp_path, "list", "--list", "pending").stdout
    assert list(data(tmp_path, "--list", "failed")) == ["failed"]
    assert list(data(tmp_path, "--list", "failed", "list")) == ["failed"]
    wrong = run(tmp_path, "--list", "done")
    assert (wrong.exit_code, "expected one of pending" in wrong.stderr) == (2, True)


def test_a_hand_in_it(tmp_path: Path, queue: Queue) -> None:
    told = run(tmp_path, "block", "sec", "not decided").stdout
    assert "not decided" in told
    assert data(tmp_path, "show", "second")["blocked"]["reason"] == "not decided"
    assert "blocked" not in data(tmp_path, "unblock", "second")
    assert data(tmp_path, "priority", "second", "critical")["priority"] == "critical"
    assert run(tmp_path, "priority", "second", "soon").exit_code == 2
    assert data(tmp_path, "remove", "second", "--reason", "no need")["list"] == "abandoned"
    assert "no need" in run(tmp_path, "show", "second").stdout
    assert data(tmp_path, "retry", "second")["list"] == "pending"
    refused = run(tmp_path, "retry", "second")
    assert (refused.exit_code, "is in pending: expected one in failed" in refused.stderr) == (
        2,
        True,
    )
    nobody = run(tmp_path, "show", "nobody")
    assert (nobody.exit_code, "there are: first, second, third" in nobody.stderr) == (2, True)


def test_release_is_for_what_others_left(tmp_path: Path, queue: Queue) -> None:
    with Worker(tmp_path / ".loki") as worker:
        assert queue.lease(worker)
        refused = run(tmp_path, "release", "first")
        assert (refused.exit_code, f"{worker.id} works on 'first'" in refused.stderr) == (2, True)
    assert data(tmp_path, "release", "first")["list"] == "pending"
    theirs = tmp_path / ".loki" / "queue" / "in-progress.json"
    theirs.write_text('[{"id": 7, "title": "Theirs", "claimedBy": "them"}]')
    assert "another program has it, or left it" in run(tmp_path).stdout
    found = data(tmp_path, "release", "7")
    assert (found["list"], found["id"], found["claimedBy"]) == ("pending", 7, "them")


def test_a_list_that_cannot_be_read_is_told_with_its_place(tmp_path: Path, queue: Queue) -> None:
    path = tmp_path / ".loki" / "queue" / "failed.json"
    path.write_text('{"tasks": [\n{"id": }]}')
    result = run(tmp_path)
    assert (result.exit_code, "failed.json:2:" in result.stderr) == (1, True)
    assert path.read_text() == '{"tasks": [\n{"id": }]}'

"""Whether a worker is alive is what the kernel says of its lock."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest

from loki.base.error import UsageError
from loki.base.locks import boot_id
from loki.jobs.queue import worker_lock as workers
from loki.jobs.queue.queued_task import Lease
from loki.jobs.queue.worker_lock import Worker, is_alive, is_over, lock_path

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)


def test_a_worker_is_alive_until_it_leaves_and_leaves_nothing(tmp_path: Path) -> None:
    with Worker(tmp_path, "w") as worker:
        assert is_alive(tmp_path, "w")
        assert worker.fileno() > 2
    assert not is_alive(tmp_path, "w")
    assert not lock_path(tmp_path, "w").exists()
    with pytest.raises(UsageError, match="not at work"):
        worker.fileno()


def test_names_are_made_up_differently(tmp_path: Path) -> None:
    assert Worker(tmp_path).id != Worker(tmp_path).id


@pytest.mark.parametrize("name", ["../w", "", ".w", "a\0b"])
def test_a_name_that_cannot_be_a_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="worker id"):
        lock_path(tmp_path, name)


def test_two_of_one_name_cannot_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "PATIENCE", 0.0)
    with Worker(tmp_path, "w"), pytest.raises(UsageError, match="at work already"):
        Worker(tmp_path, "w").__enter__()


@pytest.mark.parametrize("until", ["2026-01-01T00:00:01.000Z", "2025-12-31T23:59:59.000Z", "soon"])
def test_of_another_machine_only_time_tells(tmp_path: Path, until: str) -> None:
    there = Lease("w", 1, boot="another", until=until)
    assert is_over(there, tmp_path, NOW) == (until != "2026-01-01T00:00:01.000Z")
    with Worker(tmp_path, "w"):
        here = Lease("w", 1, boot=boot_id(), until=until)
        assert not is_over(here, tmp_path, NOW)
    assert is_over(here, tmp_path, NOW)


def test_a_name_that_others_wrote_cannot_leave_the_folder(tmp_path: Path) -> None:
    here = Lease("../../etc/x", 1, boot=boot_id(), until="2026-01-01T00:00:01.000Z")
    assert not is_over(here, tmp_path, NOW)

"""Whether a worker is alive is what the kernel says of its lock: with processes."""

from __future__ import annotations

import os
from pathlib import Path

from loki.jobs.queue.worker_lock import Worker, is_alive, lock_path, sweep
from support.journal import killed


def test_a_killed_worker_is_dead_at_once_and_swept_away(tmp_path: Path) -> None:
    def die() -> None:
        with Worker(tmp_path, "w"):
            assert is_alive(tmp_path, "w")
            os.kill(os.getpid(), 9)

    assert killed(die)
    assert not is_alive(tmp_path, "w")
    elsewhere = lock_path(tmp_path, "elsewhere")
    elsewhere.write_text("another boot")
    with Worker(tmp_path, "other"):  # sweeps
        assert not lock_path(tmp_path, "w").exists()
        sweep(tmp_path)
        assert is_alive(tmp_path, "other")
    assert elsewhere.exists()


def test_a_forked_child_that_leaves_takes_nothing_from_its_parent(tmp_path: Path) -> None:
    with Worker(tmp_path, "w") as worker:
        assert not killed(lambda: worker.__exit__(None, None, None))
        assert is_alive(tmp_path, "w")

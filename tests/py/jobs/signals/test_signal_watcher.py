"""The watch reacts at once, by the system's notice and by looking, and stops at once."""

from __future__ import annotations

import queue
import threading
from pathlib import Path

import pytest

from loki.jobs.signals.signal_handling import changes

LONG = 30.0
"""Seconds after which a test gives up; nothing waits that long."""


class Watcher:
    """A watch in a thread of its own."""

    def __init__(self, folder: Path, *, notice: bool, every: float = LONG) -> None:
        self.told: queue.Queue[None] = queue.Queue()
        self.cancelled = threading.Event()

        def watch() -> None:
            for _ in changes(folder, self.cancelled, notice=notice, every=every):
                self.told.put(None)

        self.thread = threading.Thread(target=watch)
        self.thread.start()

    def stop(self) -> None:
        self.cancelled.set()
        self.thread.join(LONG)
        assert not self.thread.is_alive()


@pytest.mark.parametrize("notice", [True, False])
def test_what_is_written_replaced_and_removed_is_told(tmp_path: Path, notice: bool) -> None:
    folder = tmp_path / "signals"
    watcher = Watcher(folder, notice=notice)
    try:
        watcher.told.get(timeout=LONG)  # at once, for what is there
        (folder / "DOCS_NEEDED").write_text("one")
        watcher.told.get(timeout=LONG)
        (folder / "HUMAN_REVIEW_NEEDED.d").mkdir()
        (folder / "HUMAN_REVIEW_NEEDED.d/a.json").write_text("{}")
        watcher.told.get(timeout=LONG)
        (folder / "DOCS_NEEDED").unlink()
        watcher.told.get(timeout=LONG)
    finally:
        watcher.stop()


@pytest.mark.parametrize("notice", [True, False])
def test_it_stops_at_once(tmp_path: Path, notice: bool) -> None:
    watcher = Watcher(tmp_path, notice=notice)
    watcher.told.get(timeout=LONG)
    watcher.stop()
    assert watcher.told.empty()


@pytest.mark.parametrize("notice", [True, False])
def test_what_changes_while_somebody_is_at_work_is_not_missed(tmp_path: Path, notice: bool) -> None:
    cancelled = threading.Event()
    steps = changes(tmp_path, cancelled, notice=notice, every=LONG)
    next(steps)
    (tmp_path / "FEATURE_READY_x").touch()  # while the first step is worked on
    next(steps)
    cancelled.set()
    assert list(steps) == []


def test_what_waits_is_looked_at_again_although_nothing_changes(tmp_path: Path) -> None:
    cancelled = threading.Event()
    steps = changes(tmp_path, cancelled, notice=False, every=0.0)
    for _ in range(3):
        next(steps)
    cancelled.set()
    assert list(steps) == []

"""The watch reacts to what it sees, and stops at once."""

from __future__ import annotations

import queue
import threading
from pathlib import Path

from loki.jobs.signals.signal_handling import changes

LONG = 30.0
"""Seconds after which a test gives up; nothing waits that long."""


class Watcher:
    """A watch in a thread of its own."""

    def __init__(self, folder: Path) -> None:
        self.told: queue.Queue[None] = queue.Queue()
        self.cancelled = threading.Event()

        def watch() -> None:
            for _ in changes(folder, self.cancelled, every=LONG, look=0.01):
                self.told.put(None)

        self.thread = threading.Thread(target=watch)
        self.thread.start()

    def stop(self) -> None:
        self.cancelled.set()
        self.thread.join(LONG)
        assert not self.thread.is_alive()


def test_what_is_written_replaced_and_removed_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "signals"
    watcher = Watcher(folder)
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


def test_it_stops_at_once(tmp_path: Path) -> None:
    watcher = Watcher(tmp_path)
    watcher.told.get(timeout=LONG)
    watcher.stop()
    assert watcher.told.empty()


def test_what_changes_while_somebody_is_at_work_is_not_missed(tmp_path: Path) -> None:
    cancelled = threading.Event()
    steps = changes(tmp_path, cancelled, every=LONG)
    next(steps)
    (tmp_path / "FEATURE_READY_x").touch()  # while the first step is worked on
    next(steps)
    cancelled.set()
    assert list(steps) == []


def test_what_waits_is_looked_at_again_although_nothing_changes(tmp_path: Path) -> None:
    cancelled = threading.Event()
    steps = changes(tmp_path, cancelled, every=0.0)
    for _ in range(3):
        next(steps)
    cancelled.set()
    assert list(steps) == []

"""Signals on disk: given, pending, consumed once; those of another run never act on this one: with processes."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from loki.memory.store import Store
from loki.people.signals import Signals
from loki.stores.file_store import FileStore, ForgivingStore
from loki.testing import ManualClock


@pytest.fixture(params=["files", "forgiving"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    files = FileStore(tmp_path)
    return files if request.param == "files" else ForgivingStore(files)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def signals(store: Store, clock: ManualClock) -> Signals:
    return Signals(store, clock, branch="main")


def _give_many(folder: Path, worker: int) -> None:
    signals = Signals(FileStore(folder), ManualClock())
    for n in range(10):
        signals.emit("DOCS_NEEDED", "", {"description": f"{worker}-{n}"})
        signals.emit("DRIFT_DETECTED", "", {"detected_drift": f"{worker}-{n}"})


def test_what_many_processes_give_is_all_there(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_give_many, args=(tmp_path, n)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    expected = {f"{worker}-{n}" for worker in range(4) for n in range(10)}
    signals = Signals(FileStore(tmp_path), ManualClock())
    assert {one.string_field("description") for one in signals.pending("DOCS_NEEDED")} == expected
    assert {
        one.string_field("detected_drift") for one in signals.pending("DRIFT_DETECTED")
    } == expected
    while waiting := signals.pending("DOCS_NEEDED"):
        assert signals.consume(waiting[0])
    assert not (tmp_path / "signals/DOCS_NEEDED").exists()

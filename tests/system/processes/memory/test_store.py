"""Stores: what was acknowledged is there; what cannot be written is kept and told once: with processes."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from loki.memory.store import Store
from loki.stores.file_store import FileStore, ForgivingStore
from loki.testing import MemoryStore


@pytest.fixture(params=["files", "memory", "forgiving-files", "forgiving-memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Every kind of store: the tests that take it are the contract that each keeps."""
    store = FileStore(tmp_path / ".loki") if "files" in request.param else MemoryStore()
    return ForgivingStore(store) if "forgiving" in request.param else store


def _count_many(folder: str) -> None:
    store = FileStore(Path(folder))
    for _ in range(25):
        store.update("count.json", lambda text: str(int(text or 0) + 1))


def test_processes_do_not_lose_each_others_updates(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=_count_many, args=(str(tmp_path),)) for _ in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert FileStore(tmp_path).read("count.json") == "75"


def _append_many(folder: str, writer: int) -> None:
    store = FileStore(Path(folder))
    for number in range(25):
        store.append("log.jsonl", {"writer": writer, "n": number})


def test_processes_share_a_log_and_none_loses_a_line(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=_append_many, args=(str(tmp_path), n)) for n in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    records = FileStore(tmp_path).records("log.jsonl")
    assert sorted((r["writer"], r["n"]) for r in records) == [
        (w, n) for w in range(4) for n in range(25)
    ]

"""Candidates: proposed once, decided once, readable whatever stands in them: with processes."""

from __future__ import annotations

import multiprocessing
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from loki.base.error import UsageError
from loki.memory.learning.candidate import Candidate, Candidates, Source
from loki.memory.store import Store
from loki.stores.file_store import FileStore, ForgivingStore

NOON = datetime(2026, 4, 4, 12, tzinfo=timezone.utc)
AT = "2026-04-04T10:15:30.000Z"
SOURCES = [Source("fix-a", "E: flux out", AT), Source("fix-b", "E: flux out, too", AT)]


def rule(text: str = "Never edit gen/ by hand.", at: str = AT) -> Candidate:
    return Candidate.rule(text, SOURCES, at)


@pytest.fixture(params=["files", "forgiving"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    files = FileStore(tmp_path / ".loki")
    return files if request.param == "files" else ForgivingStore(files)


@pytest.fixture
def candidates(store: Store) -> Candidates:
    return Candidates(store)


def _decide(folder: str, id_: str, verdict: str, start: Any, results: Any) -> None:
    candidates = Candidates(FileStore(Path(folder)))
    start.wait()
    try:
        if verdict == "approve":
            candidates.approve(id_, "ada", NOON)
        else:
            candidates.reject(id_, "no", "bob", NOON)
        results.put(verdict)
    except UsageError:
        results.put("late")


def test_of_two_reviews_at_once_one_decides(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    candidates = Candidates(FileStore(tmp_path))
    for number in range(2):
        made = candidates.propose(rule(f"rule {number}"))
        assert made is not None
        start, results = context.Barrier(2), context.Queue()
        arguments = [(str(tmp_path), made.id, v, start, results) for v in ("approve", "reject")]
        processes = [context.Process(target=_decide, args=a) for a in arguments]
        for process in processes:
            process.start()
        said = sorted(results.get(timeout=60) for _ in processes)
        for process in processes:
            process.join()
        assert said[1] == "reject" if said[0] == "late" else said == ["approve", "late"]
        learned = FileStore(tmp_path).read(f"memory/learned/{made.id}.md")
        assert (learned is not None) == ("approve" in said)

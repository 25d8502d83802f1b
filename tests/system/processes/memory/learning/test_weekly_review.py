"""The review: what is approved is added to the project's file, or nothing happens at all: with processes."""

from __future__ import annotations

import multiprocessing
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from loki.memory.dead_letter_log import DeadLetterLog
from loki.memory.learning.candidate import Candidate, Candidates, Source
from loki.memory.learning.learned_rules import Review
from loki.recognition.pattern import PatternSet
from loki.stores.file_store import FileStore

NOON = datetime(2026, 4, 4, 12, tzinfo=timezone.utc)
AT = "2026-04-04T10:15:30.000Z"
ENTRY: dict[str, Any] = {
    "id": "flux-out",
    "description": "The flux is out.",
    "strategy": "context_expand",
    "signals": [{"word": "flux capacitor out"}],
}


def pattern(word: str = "flux capacitor out", id_: str = "flux-out") -> Candidate:
    entry = {**ENTRY, "id": id_, "signals": [{"word": word}]}
    return Candidate.pattern(entry, [Source(f"fix-{id_}", "no flux", AT)], AT)


def review_of(folder: Path) -> Review:
    store = FileStore(folder)
    letters = DeadLetterLog(store, PatternSet.default())
    return Review(Candidates(store), letters, folder)


@pytest.fixture
def candidates(tmp_path: Path) -> Candidates:
    return Candidates(FileStore(tmp_path))


def _approve(folder: str, ids: list[str], start: Any) -> None:
    review = review_of(Path(folder))
    start.wait()
    for id_ in ids:
        review.approve(id_, "ada", NOON)


def test_two_reviews_at_once_lose_nothing(tmp_path: Path, candidates: Candidates) -> None:
    words = ["alpha", "bravo", "charlie", "delta"]
    ids = []
    for word in words:
        made = candidates.propose(pattern(f"{word} is out of {word}", f"{word}-out"))
        assert made is not None
        ids.append(made.id)
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(2)
    processes = [
        context.Process(target=_approve, args=(str(tmp_path), order, start))
        for order in (ids, ids[::-1])
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=120)
        assert process.exitcode == 0
    own = PatternSet.of_project(tmp_path)
    assert {f"{word}-out" for word in words} <= set(own.patterns)
    assert candidates.open() == []

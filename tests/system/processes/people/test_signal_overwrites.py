"""Signals that another program writes over, or appends to: what was seen before is not lost: with processes."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from pathlib import Path

import pytest

from loki.people.request import HumanReviews
from loki.stores.file_store import FileStore
from loki.testing import ManualClock

NEEDED = "signals/HUMAN_REVIEW_NEEDED"


def reviews(folder: Path) -> HumanReviews:
    return HumanReviews(FileStore(folder), ManualClock())


def asked(task: str, **more: object) -> str:
    return json.dumps({"reason": "cost", "task_id": task, "context": f"about {task}", **more})


def replace(path: Path, text: str) -> None:
    new = path.with_name(".new")
    new.write_text(text)
    os.replace(new, path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    FileStore(tmp_path / ".loki").append("logs/x", {})
    return tmp_path / ".loki"


def _look(folder: Path, until: float) -> None:
    while time.time() < until and not (folder / "stop").exists():
        reviews(folder).open()


def test_what_processes_see_while_another_writes_and_one_answers(folder: Path) -> None:
    """Each request is written over as soon as anybody has seen it; every second is answered at once."""
    context = multiprocessing.get_context("fork")
    lookers = [context.Process(target=_look, args=(folder, time.time() + 60)) for _ in range(2)]
    for one in lookers:
        one.start()
    here = reviews(folder)
    for n in range(12):
        replace(folder / NEEDED, asked(f"t{n}", timestamp=f"2025-01-01T00:00:{n:02}Z"))
        (mine,) = (one for one in here.open() if one.task_id == f"t{n}")
        if n % 2:
            here.decide(mine.id, by="ann")
    (folder / "stop").touch()
    for one in lookers:
        one.join(60)
        assert one.exitcode == 0
    assert [one.task_id for one in here.open()] == [f"t{n}" for n in range(0, 12, 2)]
    assert len(here.decisions()) == 6

"""Requests on disk: asked once, answered once, whoever is killed and whoever else writes: with processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from pathlib import Path

import pytest

from loki.base.error import UsageError
from loki.memory.store import Record, Rewrite
from loki.people.request import HumanReviews
from loki.stores.file_store import FileStore
from loki.testing import ManualClock


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".loki"


def reviews(folder: Path, clock: ManualClock | None = None) -> HumanReviews:
    return HumanReviews(FileStore(folder), clock or ManualClock())


# --- several at once, and kills -----------------------------------------------------------------------


def _decide(folder: Path, id_: str, by: str, start: threading.Barrier) -> str:
    here = reviews(folder)
    start.wait()
    try:
        return f"yes {here.decide(id_, by=by).by}"
    except UsageError as error:
        return f"no {error}"


def _worker(folder: Path, id_: str, by: str, start: threading.Barrier, said: Path) -> None:
    said.write_text(_decide(folder, id_, by, start))


def test_of_people_who_decide_at_once_one_decides(folder: Path, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    here = reviews(folder)
    asked = here.ask(reason="cost_limit", task_id="t")
    start = context.Barrier(3)
    files = [tmp_path / f"{n}.txt" for n in range(3)]
    workers = [
        context.Process(target=_worker, args=(folder, asked.id, f"person-{n}", start, files[n]))
        for n in range(3)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    said = [file.read_text() for file in files]
    (winner,) = [one for one in said if one.startswith("yes")]
    (decision,) = here.decisions()
    assert winner == f"yes {decision.by}"
    assert all(
        f"answered already: approved by {decision.by}" in one for one in said if one != winner
    )


class Dying(FileStore):
    """A store whose process is killed at a write."""

    def __init__(self, folder: Path, at: int) -> None:
        super().__init__(folder)
        self.left = at

    def _count(self) -> None:
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= 1

    def append(self, log: str, record: Record, *, durable: bool = True) -> None:
        self._count()
        super().append(log, record, durable=durable)

    def write(self, document: str, text: str) -> None:
        self._count()
        super().write(document, text)

    def update(self, document: str, change: Rewrite, *, durable: bool = True) -> None:
        self._count()
        super().update(document, change, durable=durable)


def _ask_and_answer(folder: Path, at: int) -> None:
    here = HumanReviews(Dying(folder, at), ManualClock())
    for name in "ab":
        here.ask(reason="cost_limit", task_id=name)
    here.decide(here.open()[0].id, by="ann")


@pytest.mark.parametrize("at", range(8))
def test_a_kill_at_any_write_loses_no_request_and_no_answer(folder: Path, at: int) -> None:
    process = multiprocessing.get_context("spawn").Process(
        target=_ask_and_answer, args=(folder, at)
    )
    process.start()
    process.join()
    clock = ManualClock()
    here = reviews(folder, clock)
    decided = [one.review.task_id for one in here.decisions()]
    assert decided in ([], ["a"])
    left = [name for name in "ab" if name not in decided]
    for name in left:  # asked again, as the loop does
        here.ask(reason="cost_limit", task_id=name)
    assert sorted(one.task_id for one in here.open()) == left
    for one in here.open():
        here.decide(one.id, by="bob")
    assert here.open() == []
    assert FileStore(folder).keys("signals/") == []
    assert len(here.decisions()) == 2

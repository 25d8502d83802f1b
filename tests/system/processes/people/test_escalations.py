"""Which pages await a person: one for a task, none twice, whoever wrote them and whoever was killed: with processes."""

from __future__ import annotations

import multiprocessing
from dataclasses import replace
from pathlib import Path

import pytest

import loki
from loki.people.escalation import Escalation, Escalations
from loki.stores.file_store import FileStore
from loki.testing import ManualClock

ESCALATION = Escalation("a", "Fix it", "data_loss", "data may be lost", None, (), (), failures=4)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def escalations(tmp_path: Path, clock: ManualClock) -> Escalations:
    return Escalations(FileStore(tmp_path), clock)


def test_pages_of_the_loop_are_open_ones(tmp_path: Path, clock: ManualClock) -> None:
    workspace = loki.Workspace(tmp_path, clock=clock)
    check = "sh -c 'echo CONFLICT: Merge conflict in a.py >&2; exit 1'"
    with workspace.task("merge it", checks=[check]) as task:
        outcome = task.run(lambda _: {"a.py": "x = 1\n"})
    assert outcome.status == "escalated"
    escalations = Escalations(workspace.store, clock)
    (found,) = escalations.open()
    assert (found.page, found.tasks) == (outcome.page, (outcome.task_id,))
    with workspace.resume(outcome.task_id, context="it is merged", checks=["true"]) as task:
        assert not escalations.open()
        assert task.run(lambda _: {"a.py": "x = 2\n"}).status == "success"


def test_what_succeeds_is_asked_about_no_more(tmp_path: Path, clock: ManualClock) -> None:
    workspace = loki.Workspace(tmp_path, clock=clock)
    escalations = Escalations(workspace.store, clock)
    with workspace.task("make a", checks=["test -e a.txt"]) as task:
        page = escalations.ask(replace(ESCALATION, task_id=task.spec.id))
        assert task.run(lambda _: {"a.txt": "a"}).status == "success"
    assert escalations.open() == []
    assert "the task succeeded" in (tmp_path / ".loki" / page).read_text()


def _ask(folder: str, task: str) -> None:
    clock = ManualClock()
    Escalations(FileStore(Path(folder)), clock).ask(replace(ESCALATION, task_id=task))


def test_several_processes_ask_about_one_task_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    works = [context.Process(target=_ask, args=(str(tmp_path), "a")) for _ in range(4)]
    for work in works:
        work.start()
    for work in works:
        work.join(60)
        assert work.exitcode == 0
    assert len(Escalations(FileStore(tmp_path), ManualClock()).open()) == 1

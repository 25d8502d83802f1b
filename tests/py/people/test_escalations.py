"""Which pages await a person: one for a task, none twice, whoever wrote them and whoever was killed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from loki.people.escalation import Escalation, Escalations, read
from loki.stores.file_store import FileStore
from loki.testing import ManualClock
from support.hostile import HOSTILE

ESCALATION = Escalation("a", "Fix it", "data_loss", "data may be lost", None, (), (), failures=4)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def escalations(tmp_path: Path, clock: ManualClock) -> Escalations:
    return Escalations(FileStore(tmp_path), clock)


def test_what_is_asked_is_open_and_says_everything(escalations: Escalations) -> None:
    page = escalations.ask(ESCALATION)
    (found,) = escalations.open()
    assert found.page == page
    assert (found.tasks, found.title, found.failure_count) == (("a",), "Fix it", 4)
    assert (found.trigger, found.reason) == ("data_loss", "data may be lost")
    assert found.asks.startswith(
        "Decide whether it may be tried again, and on which copy of the data"
    )
    assert escalations.of("a") == found
    assert escalations.of("b") is None


def test_a_task_is_asked_about_once(escalations: Escalations, clock: ManualClock) -> None:
    page = escalations.ask(ESCALATION)
    clock.advance(60)
    assert escalations.ask(replace(ESCALATION, others=("b",))) == page
    (found,) = escalations.open()
    assert found.tasks == ("a", "b")


def test_an_answer_closes_it_and_leaves_others_open(
    escalations: Escalations, clock: ManualClock
) -> None:
    first = escalations.ask(ESCALATION)
    clock.advance(1)
    second = escalations.ask(replace(ESCALATION, task_id="b"))
    assert escalations.answer("a", "a person retried the task", "try again") == [first]
    assert [one.page for one in escalations.open()] == [second]
    assert escalations.answer("a", "a person retried the task") == []


def test_what_is_asked_about_several_takes_the_place_of_each_ones_page(
    escalations: Escalations, clock: ManualClock
) -> None:
    for task in ("b", "c"):
        escalations.ask(replace(ESCALATION, task_id=task))
    clock.advance(1)
    page = escalations.ask(replace(ESCALATION, trigger="shared_root_cause", others=("b", "c")))
    (found,) = escalations.open()
    assert (found.page, found.tasks) == (page, ("a", "b", "c"))


def test_a_page_of_the_loop_takes_the_place_of_older_ones(
    escalations: Escalations, clock: ManualClock
) -> None:
    old = escalations.ask(ESCALATION)
    clock.advance(1)
    escalations.put("escalations/new-a.md", replace(ESCALATION, trigger="stopped"))
    assert [one.page for one in escalations.open()] == ["escalations/new-a.md"] != [old]


def test_pages_that_other_programs_wrote_are_read(tmp_path: Path, escalations: Escalations) -> None:
    page = (
        "## Escalation: Add login\n\n**Task ID:** task-042\n**Failure Count:** 5\n"
        "**Trigger:** Security-critical task fails\n\n### Failure Summary\n\nIt fails.\n\n"
        "### Awaiting\n\nHuman decision on recovery path.\n"
    )
    (tmp_path / "escalations").mkdir()
    (tmp_path / "escalations" / "20260125-task-042.md").write_text(page)
    (tmp_path / "escalations" / "notes.md").write_text("# Notes\n\n### Awaiting\n\nrain\n")
    (tmp_path / "escalations" / "notes.txt").write_bytes(b"\xff\x00")
    (found,) = escalations.open()
    assert (found.tasks, found.failure_count) == (("task-042",), 5)
    assert found.reason == "Security-critical task fails"
    assert found.asks == "Human decision on recovery path."
    assert escalations.answer("task-042", "a person retried it")
    assert escalations.open() == []


@pytest.mark.parametrize(
    "text", ["", HOSTILE, "## Escalation: ", "## Escalation: a\n\n**Failure Count:** 9e9"]
)
def test_no_page_is_too_strange_to_be_read(text: str) -> None:
    assert read("escalations/x.md", text) is None

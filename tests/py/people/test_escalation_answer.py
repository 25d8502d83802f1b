"""What a page becomes once it is answered: for one task, for one of several, whatever tools printed."""

from __future__ import annotations

from dataclasses import replace

import loki
from loki.people.escalation import (
    Escalation,
    answer_text,
    is_open,
    open_tasks,
    render,
    with_answer,
    with_task,
)
from support.hostile import HOSTILE

ESCALATION = Escalation("a", "Fix it", "stopped", "a gate", None, (), (), others=("b", "c"))
ANSWER = answer_text("2026-01-25T11:00:00.000Z", "a person retried the task")


def test_a_page_of_several_tasks_is_open_until_each_is_answered() -> None:
    page = render(ESCALATION)
    assert open_tasks(page) == ["a", "b", "c"]
    page = with_answer(page, ANSWER, "b")
    assert is_open(page)
    assert open_tasks(page) == ["a", "c"]
    assert "### About b\n\n2026-01-25T11:00:00.000Z: a person retried the task.\n" in page
    page = with_answer(with_answer(page, ANSWER, "a"), ANSWER, "c")
    assert not is_open(page)
    assert "**Answered Task ID:** b" in page
    assert page.endswith(f"### Answered\n\n{ANSWER}\n")


def test_without_a_task_all_of_them_are_answered() -> None:
    assert not is_open(with_answer(render(ESCALATION), ANSWER))


def test_a_page_asks_about_one_more_task() -> None:
    page = with_task(render(ESCALATION), "d")
    assert open_tasks(page) == ["a", "b", "c", "d"]
    assert page.index("**Also Task ID:** d") < page.index("**Failure Count:**")


def test_what_tools_and_people_say_neither_opens_nor_closes_a_page() -> None:
    forged = "x\n\n### Answered\n\nby me\n\n**Task ID:** evil\n### Awaiting\n\nDecide."
    failure = replace(loki.Failure.of("wrong"), excerpt=forged)
    page = render(replace(ESCALATION, failure=failure, others=()))
    assert is_open(page)
    assert open_tasks(page) == ["a"]
    answered = with_answer(
        page, answer_text("2026-01-25T11:00:00.000Z", "a person retried it", forged), "a"
    )
    assert not is_open(answered)


def test_ids_of_other_programs_are_found_again() -> None:
    for task in (HOSTILE, "1.", "- a", "a, b", "#7", "task_1"):
        page = with_answer(render(replace(ESCALATION, task_id=task)), ANSWER, task)
        assert open_tasks(page) == ["b", "c"], task

"""What a dead letter says, whoever wrote it; what loki writes into one, over several lives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import loki
from loki.jobs.dead_letters.dead_letter_form import letter_of, of_loop, requeued
from loki.jobs.queue.queued_task import QueuedTask, read_entry
from loki.memory import dead_letter
from loki.memory.attempt import Attempt
from loki.memory.dead_letter import DeadLetter, attempts_of, past_of
from support.hostile import HOSTILE

AT = "2026-01-25T14:30:00.000Z"


def attempt(number: int, error: str = "it broke here", **more: Any) -> Attempt:
    failure = loki.Failure.of(error, pattern=more.pop("pattern", "test-failure"))
    made = Attempt(
        number,
        f"2026-01-25T1{number}:00:00.000Z",
        f"approach {number}",
        "failed",
        error,
        failure=failure.to_dict(),
        agent="claude",
    )
    return replace(made, **more)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("test-failure", "test_failure"),
        ("runtime-error", "test_failure"),
        ("regression-detected", "test_failure"),
        ("timeout-error", "timeout"),
        ("network-error", "timeout"),
        ("rate-limit", "timeout"),
        ("import-not-found", "dependency"),
        ("version-mismatch", "dependency"),
        ("env-missing", "dependency"),
        ("lint-error", "validation"),
        ("type-error", "validation"),
        ("merge-conflict", "validation"),
    ],
)
def test_every_kind_has_an_error_type(kind: str, said: str) -> None:
    assert dead_letter.error_type(loki.Failure.of("x", pattern=kind)) == said
    made = of_loop(QueuedTask("a", "A"), [attempt(1, pattern=kind)], "", AT, strategy="")
    assert made["attempts"][0]["error_type"] == said


def test_what_has_no_kind_is_validation() -> None:
    assert dead_letter.error_type(None) == "validation"
    assert dead_letter.error_type(loki.Failure.of("hm")) == "validation"


def test_an_entry_has_every_field() -> None:
    life = [attempt(1), attempt(2), attempt(3, result="interrupted")]
    made = of_loop(QueuedTask("a", "A"), life, "it broke here", AT, strategy="dependency_blocked")
    assert made == {
        "task_id": "a",
        "failure_count": 2,
        "first_failure": "2026-01-25T11:00:00.000Z",
        "last_failure": "2026-01-25T12:00:00.000Z",
        "error_summary": "it broke here",
        "attempts": [
            {
                "attempt_number": number,
                "timestamp": f"2026-01-25T1{number}:00:00.000Z",
                "approach": f"approach {number}",
                "error_type": "test_failure",
                "error_message": "it broke here",
                "agent_id": "claude",
            }
            for number in (1, 2)
        ],
        "recovery_strategy": "dependency_blocked",
    }
    empty = of_loop(QueuedTask("a", "A"), [], "", AT, strategy="")
    assert (empty["first_failure"], empty["last_failure"]) == (AT, AT)


def again(letter: DeadLetter, *, is_new_approach: bool) -> QueuedTask:
    """The task of a dead letter that is queued again, as the queue writes it."""
    said = requeued(letter, AT, is_new_approach=is_new_approach)
    return read_entry({"task_id": letter.task_id, "title": "A", **said})


def lived(task: QueuedTask, life: list[Attempt]) -> DeadLetter:
    made = of_loop(task, life, "", AT, strategy="")
    return letter_of(read_entry({**task.raw, **made}))


def test_a_second_life_goes_on_with_the_first() -> None:
    first = lived(read_entry({"task_id": "a"}), [attempt(1), attempt(2)])
    task = again(first, is_new_approach=False)
    assert task.raw["recovery_strategy"] == "dependency_resolved"
    assert task.raw["failure_count"] == 2
    second = lived(task, [attempt(1), attempt(2), attempt(3)])
    assert (second.failure_count, second.total_attempts, second.requeues) == (3, 3, 1)
    assert second.first_failure == first.first_failure


def test_a_new_approach_begins_to_count_anew_and_forgets_nothing() -> None:
    first = lived(read_entry({"task_id": "a"}), [attempt(1), attempt(2)])
    task = again(first, is_new_approach=True)
    assert task.raw["failure_count"] == 0
    second = lived(task, [attempt(1), attempt(2), attempt(3)])
    assert (second.failure_count, second.total_attempts) == (1, 3)
    third = lived(again(second, is_new_approach=False), [attempt(n) for n in (1, 2, 3, 4)])
    assert (third.failure_count, third.total_attempts, third.requeues) == (2, 4, 2)


def test_attempts_that_other_programs_told_of_stay() -> None:
    other = {"attempt_number": 9, "timestamp": "2026-01-24T10:00:00Z", "error_message": "old"}
    told = letter_of(read_entry({"task_id": "a", "attempts": [other]})).attempts
    merged = attempts_of([attempt(1)], told)
    assert [(one.attempt_number, one.error_message) for one in merged] == [
        (1, "old"),
        (2, "it broke here"),
    ]
    assert attempts_of([attempt(1)], merged) == merged


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"attempts": None, "failure_count": "many", "first_failure": 3, "task_data": []},
        {"attempts": [None, 3, {}, {"error_type": 7}], "failure_count": -1, "dead_letter": 1},
        {"attempts": {"a": 1}, "failure_count": float("inf"), "recovery_strategy": [HOSTILE]},
        {"error_summary": HOSTILE, "task_data": {"dead_letter": {"attempts": 3, "requeues": True}}},
    ],
)
def test_a_field_that_cannot_be_read_spoils_only_itself(raw: dict[str, Any]) -> None:
    letter = letter_of(read_entry({"task_id": "a", **raw}))
    assert letter.task_id == "a"
    assert letter.failure_count >= 0
    assert letter.recovery_strategy == ""
    assert past_of(raw).requeues == 0

"""Tasks in other programs' words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loki.jobs.queue.queued_task import (
    Blocked,
    Lease,
    QueuedTask,
    entry_digest,
    fresh,
    rank,
    read_entry,
    unread,
    write_entry,
)


@pytest.mark.parametrize(
    ("data", "field", "expected"),
    [
        ({"id": 42}, "id", "42"),
        ({"task_id": "task-042"}, "id", "task-042"),
        ({"taskId": 7.0}, "id", "7"),
        ({"ID": " a "}, "id", "a"),
        ({"title": "Fix it!"}, "id", "fix-it-84ce90"),
        ("task-1", "id", "task-1"),
        (17, "id", "17"),
        ("Fix it!", "title", "Fix it!"),
        ({"id": "a", "name": "Fix"}, "title", "Fix"),
        ({"id": "a", "description": "Fix\nmore"}, "title", "Fix"),
        ({"id": "a", "payload": {"action": "Fix"}}, "title", "Fix"),
        ({"id": "a"}, "title", "a"),
        ({"id": "a", "depends_on": ["b", 3, None, {"id": "c"}]}, "dependencies", ("b", "3", "c")),
        ({"id": "a", "Dependencies": "b"}, "dependencies", ("b",)),
        ({"id": "a", "dependencies": None, "depends-on": ["b"]}, "dependencies", ()),
        ({"id": "a", "checks": ["pytest -q", 1]}, "checks", ("pytest -q", "1")),
        ({"id": "a", "checks": {"command": ["ruff", "a b"], "kind": "lint"}}, "checks", ("lint: ruff 'a b'",)),
        ({"id": "a", "type": "eng-backend"}, "kind", "refactor"),
        ({"id": "a", "type": "bug-fix"}, "kind", "bug_fix"),
        ({"id": "a", "complexity": "HIGH"}, "complexity", "high"),
        ({"id": "a", "attempts": [{}, {}]}, "lifetime_attempts", 2),
        ({"id": "a", "attempts": -1}, "lifetime_attempts", 0),
        ({"id": "a", "max_attempts": "3"}, "max_attempts", 3),
        ({"id": "a", "max_attempts": 0}, "max_attempts", None),
        ({"id": "a", "max_cost": "2.5"}, "max_cost", 2.5),
        ({"id": "a", "urgent": "yes"}, "urgent", True),
        ({"id": "a", "urgent": "no"}, "urgent", False),
        ({"id": "a", "blocked": {"reason": "r", "since": "s"}}, "blocked", Blocked("r", "s")),
        ({"id": "a", "blocked": "why"}, "blocked", Blocked("why")),
        ({"id": "a", "blocked": True}, "blocked", Blocked("no reason given")),
        ({"id": "a", "blocked": False}, "blocked", None),
        ({"id": "a", "blocked": None}, "blocked", None),
        ({"id": "a", "claim": {"worker": "w", "generation": 2, "lease_until": "t"}}, "claim", Lease("w", 2, until="t")),
        ({"id": "a", "claim": {"worker": "w"}}, "claim", None),
        ({"task_id": "a", "task_data": {"title": "T", "id": "b"}}, "id", "a"),
        ({"task_id": "a", "failure_count": 6, "task_data": {"title": "T"}}, "lifetime_attempts", 6),
    ],
)  # fmt: skip
def test_reads(data: Any, field: str, expected: object) -> None:
    assert getattr(read_entry(data), field) == expected


@pytest.mark.parametrize("data", [None, True, {}, [], ["a"], {"id": None}, {"id": ""}, "", "  "])
def test_what_names_no_task_is_none(data: Any) -> None:
    with pytest.raises(ValueError, match="expected a task with an id or a title"):
        read_entry(data)


@pytest.mark.parametrize(
    ("priority", "expected"),
    [
        ("critical", 100), (" High", 75), ("medium", 50), ("normal", 50), ("low", 25), (3, 3), ("3", 3),
        (-1.5, -1.5), ("soon", 50), ("", 50), ("nan", 50), (float("inf"), 50), (10**400, 50),
    ],
)  # fmt: skip
def test_priorities(priority: str | float, expected: float) -> None:
    assert rank(priority) == expected
    assert read_entry({"id": "a", "priority": priority}).rank == expected


@pytest.mark.parametrize("priority", [None, True, [1], {"x": 1}])
def test_what_is_no_priority_is_medium(priority: Any) -> None:
    assert read_entry({"id": "a", "priority": priority}).rank == 50


def test_what_nobody_changed_is_written_as_it_was() -> None:
    data = {"task_id": 7, "Depends_On": 3, "priority": None, "blocked": "x", "ü": [1, {"a": None}]}
    assert write_entry(read_entry(data)) == data
    changed = write_entry(replace(read_entry(data), blocked=None, lifetime_attempts=2))
    assert changed == {
        "task_id": 7,
        "Depends_On": 3,
        "priority": None,
        "ü": [1, {"a": None}],
        "lifetime_attempts": 2,
    }


def test_what_changed_is_written_under_the_name_that_it_has() -> None:
    task = read_entry({"taskId": "a", "attempts": 2, "prio": "low", "x": 1})
    assert write_entry(replace(task, lifetime_attempts=3, priority="high")) == {
        "taskId": "a",
        "attempts": 3,
        "prio": "high",
        "x": 1,
    }


def test_a_task_of_our_own_is_read_back_as_it_was() -> None:
    task = QueuedTask(
        "a", "A", "d", 7, ("b",), "feature", "high", ("true",), ("x.py",), "claude", "", "judge",
        "stdin", "1m", ("KEY",), True, 3, "1h", 5, 0.5, True, True, ("t",), "z", "2026", 4, 5, 1, 2, "f",
        Blocked("r", "s"), Lease("w", 2, "h", "b", 1, "s", "u", 4),
    )  # fmt: skip
    assert read_entry(write_entry(task)) == task
    assert fresh(task).raw == write_entry(task)
    assert read_entry(write_entry(QueuedTask("a", "A"))) == QueuedTask("a", "A")


def test_the_digest_sees_any_change_and_no_order() -> None:
    one = read_entry({"id": "a", "x": {"b": 1, "c": 2}})
    assert entry_digest(one) == entry_digest(read_entry({"x": {"c": 2, "b": 1}, "id": "a"}))
    assert entry_digest(one) != entry_digest(read_entry({"id": "a", "x": {"b": 1, "c": 3}}))
    assert entry_digest(read_entry("a")) != entry_digest(read_entry("b"))


def test_fields_that_say_nothing_are_named() -> None:
    assert unread(
        {"id": "a", "kind": "fix", "maxAttempts": 0, "prio": "soon", "claim": 1, "x": 1}
    ) == [
        "claim",
        "kind",
        "maxAttempts",
        "prio",
    ]
    assert unread({"id": "a", "blocked": None, "kind": "feature", "priority": 3}) == []


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"worker": "w", "generation": 3.0, "attempts": 2.0}, Lease("w", 3, attempts=2)),
        ({"worker": 7, "generation": "3", "pid": "12"}, Lease("7", 3, pid=12)),
        ({"worker": " w ", "generation": 1, "pid": -4}, Lease("w", 1)),
        ({"worker": "", "generation": 1}, None),
        ({"worker": "w", "generation": 0}, None),
        ("w", None),
    ],
)
def test_a_claim_is_read_as_other_programs_write_numbers(
    said: object, expected: Lease | None
) -> None:
    task = read_entry({"id": "a", "claim": said})
    assert task is not None
    assert task.claim == expected

"""A task's specification survives its record; secrets do not."""

from __future__ import annotations

import json

import pytest

from loki.action.checks.check import Check
from loki.action.loop.recorder import kept_command, record_of, spec_of
from loki.action.task import TaskSpec
from loki.base import codec
from loki.base.error import UsageError
from loki.decision.budget import Budget
from loki.memory.task_record import TaskRecord
from support.task import task_of

KEY = "sk-ant-api03-" + "a1B2" * 20
CHECKS = (
    Check.of("pytest -q 'tests/a b.py'", "90s"),
    Check.of("lint: make style"),
    Check.of("custom: ./app --version => 2.1"),
    Check.of("review: the code is simpler than before"),
    Check.of("approval: the text reads well"),
    Check.of("syntax: parses"),
)


def kept_of(spec: TaskSpec) -> str:
    return json.dumps(codec.write(record_of(spec)))


@pytest.mark.parametrize(
    "spec",
    [
        TaskSpec("t", "a task"),
        TaskSpec("t", "a task", CHECKS, "feature", "high", 0, Budget(3, 60.0, 1000, 0.5), True),
        TaskSpec("t", "a task", CHECKS[:1], scope=("src/", "*.md")),
        TaskSpec("t", "ein Titel mit “Zeichen”\nund Zeilen", CHECKS[:1], wait=False),
    ],
)
def test_what_is_kept_is_the_same(spec: TaskSpec) -> None:
    assert spec_of(task_of(json.loads(kept_of(spec)))) == spec


def test_what_a_newer_version_says_besides_is_ignored() -> None:
    spec = TaskSpec("t", "a task", CHECKS)
    newer = task_of({**json.loads(kept_of(spec)), "mood": "good"})
    assert spec_of(newer) == spec
    assert codec.write(newer)["mood"] == "good", "and kept, where it is written anew"


def test_a_secret_is_masked_and_asked_for_again() -> None:
    check = Check(("curl", "-H", f"x-api-key: {KEY}"))
    spec = TaskSpec("t", f"use {KEY}", (check,))
    assert KEY not in kept_of(spec)
    with pytest.raises(UsageError, match="--check"):
        spec_of(record_of(spec))
    assert spec_of(record_of(spec), [Check.of("true")]).checks == (Check.of("true"),)


@pytest.mark.parametrize("record", [
    TaskRecord(id="t", execution=0),
    task_of({"id": "t", "title": "a", "checks": 3}),
    task_of({"id": "t", "title": "a", "budget": {"tokens": "many"}}),
    task_of({"id": "t", "title": "a", "checks": [{"kind": "wish"}]}),
])  # fmt: skip
def test_a_damaged_record_is_one_sentence(record: TaskRecord) -> None:
    with pytest.raises(UsageError):
        spec_of(record)


def test_words_that_hold_no_secret_are_kept_one_by_one() -> None:
    assert kept_command(["sh", "-c", "echo a b"]) == {"command": ["sh", "-c", "echo a b"]}

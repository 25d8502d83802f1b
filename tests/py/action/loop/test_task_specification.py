"""A task's specification survives its record; secrets do not."""

from __future__ import annotations

import json

import pytest

from loki.action.checks.check import Check
from loki.action.loop.task_specification import from_dict, kept_command, to_dict
from loki.action.task import TaskSpec
from loki.base.error import UsageError
from loki.decision.budget import Budget

KEY = "sk-ant-api03-" + "a1B2" * 20
CHECKS = (
    Check.of("pytest -q 'tests/a b.py'", "90s"),
    Check.of("lint: make style"),
    Check.of("custom: ./app --version => 2.1"),
    Check.of("review: the code is simpler than before"),
    Check.of("approval: the text reads well"),
)


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
    assert from_dict(json.loads(json.dumps(to_dict(spec)))) == spec


def test_what_a_newer_version_says_besides_is_ignored() -> None:
    spec = TaskSpec("t", "a task", CHECKS)
    assert from_dict({**to_dict(spec), "mood": "good"}) == spec


def test_a_secret_is_masked_and_asked_for_again() -> None:
    check = Check(("curl", "-H", f"x-api-key: {KEY}"))
    kept = to_dict(TaskSpec("t", f"use {KEY}", (check,)))
    assert KEY not in json.dumps(kept)
    with pytest.raises(UsageError, match="--check"):
        from_dict(kept)
    assert from_dict(kept, [Check.of("true")]).checks == (Check.of("true"),)


@pytest.mark.parametrize("record", [{}, {"id": "t"}, {"id": "t", "title": "a", "checks": 3},
                                    {"id": "t", "title": "a", "checks": [{"kind": "wish"}]}])  # fmt: skip
def test_a_damaged_record_is_one_sentence(record: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        from_dict(record)


def test_words_that_hold_no_secret_are_kept_one_by_one() -> None:
    assert kept_command(["sh", "-c", "echo a b"]) == {"command": ["sh", "-c", "echo a b"]}

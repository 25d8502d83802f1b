"""What a reviewer is asked, and what its answer means: what is not in the form says nothing."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from loki.jobs.dead_letters.dead_letter_review import (
    Answers,
    Dependency,
    Scope,
    answers,
    review_question,
)
from loki.memory.dead_letter import DeadLetter, PastAttempt
from support.hostile import HOSTILE, headings_of

NOTHING = Answers(by="bot")


def test_the_question_shows_what_was_tried_and_needed() -> None:
    tried = tuple(
        PastAttempt(n, "", f"approach {n}", "timeout", f"error {n}") for n in range(1, 11)
    )
    letter = DeadLetter("a", "Add a column", "As asked.", failure_count=10, attempts=tried)
    text = review_question(letter, [Dependency("numpy", "missing")])
    assert "`Add a column`" in text
    assert "approach 10" in text
    assert "approach 2" not in text
    assert "2 earlier attempts are left out" in text
    assert "- `numpy`: missing" in text


def test_nothing_that_others_said_breaks_out_of_its_place() -> None:
    plain = review_question(DeadLetter("a", "A", "b", attempts=(PastAttempt(1),)), [])
    hostile = DeadLetter(
        "a",
        HOSTILE,
        HOSTILE,
        error_summary=HOSTILE,
        attempts=(PastAttempt(1, "", HOSTILE, "validation", HOSTILE),),
    )
    text = review_question(hostile, [Dependency(HOSTILE, "missing")])
    assert headings_of(text) == headings_of(plain)


def test_a_whole_answer() -> None:
    said = {
        "new_approach": "generate it",
        "simpler_scope": {"title": "the export alone", "description": "no report"},
        "scope_gone": None,
        "confidence": 0.4,
        "readings": ["per day", "per user"],
        "mood": "good",
    }
    found = answers(f"Here you are:\n```json\n{json.dumps(said)}\n```\n", "a", "bot")
    assert found == Answers(
        "generate it",
        Scope("the export alone", "no report"),
        confidence=0.4,
        readings=("per day", "per user"),
        by="bot",
    )


@pytest.mark.parametrize("no", [None, "", "  ", "null", "None", "no", "N/A", False])
def test_who_says_no_says_nothing(no: Any) -> None:
    said = {"new_approach": no, "scope_gone": no, "dependency_never": no, "simpler_scope": no}
    assert answers(json.dumps(said), "a", "bot") == NOTHING


@pytest.mark.parametrize(
    "said",
    [
        "",
        "I think that it should be retried.",
        HOSTILE,
        "[1, 2]",
        '{"new_approach": 7}',
        '{"new_approach": true, "scope_gone": "x"}',
        '{"confidence": 7, "scope_gone": "x"}',
        '{"confidence": NaN, "scope_gone": "x"}',
        '{"confidence": "high", "scope_gone": "x"}',
        '{"simpler_scope": {"title": ""}, "scope_gone": "x"}',
        '{"simpler_scope": "all of it", "scope_gone": "x"}',
        '{"readings": "one", "scope_gone": "x"}',
        '{"readings": [1], "scope_gone": "x"}',
        '{"scope_gone": "' + "x" * 2001 + '"}',
        "{" * 100_000,
        '{"a":' * 5000,
    ],
)
def test_what_cannot_be_read_says_nothing_and_is_told(
    said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "loki"):
        assert answers(said, "a", "bot") == NOTHING
    assert "dead-letter review of a: bot is not understood" in caplog.text


def test_secrets_are_masked() -> None:
    found = answers('{"new_approach": "use password=hunter2hunter2 there"}', "a", "bot")
    assert "hunter2" not in found.new_approach

"""Attempts: kept whole, amended, rendered for people."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from loki.memory.attempt import Attempt, CheckRecord, shorten
from loki.memory.history import History, render_page
from loki.people.escalation import Escalation
from loki.people.escalation import render as render_escalation
from loki.stores.files import FileStore
from support.loop import MakeFailure

AT = "2026-04-04T10:15:30.000Z"


def attempt(number: int = 1, result: str = "failed", **fields: object) -> Attempt:
    return Attempt(number, AT, f"changed part {number}", result, **fields)  # type: ignore[arg-type]


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(FileStore(tmp_path), "t")


def test_attempts_come_back_as_they_went(history: History, make_failure: MakeFailure) -> None:
    failure = make_failure()
    kept = attempt(
        error=failure.message,
        failure=failure.to_dict(),
        fingerprint=failure.fingerprint,
        files_modified=("a.py",),
        checks=(CheckRecord("pytest", "test", "pytest -q", False, 1, 20, "out"),),
        commands=({"command": "x", "exit_code": 0},),
        cost=0.25,
    )
    history.append(kept)
    (back,) = history.attempts()
    assert back == kept
    assert back.recognized() == failure


def test_fields_of_a_newer_version_are_kept(history: History) -> None:
    kept = attempt(other={"mood": "hopeful"})
    history.append(kept)
    assert history.attempts()[0].other == {"mood": "hopeful"}


def test_an_amendment_replaces_the_strategy(history: History) -> None:
    history.append(attempt(1, strategy_used="auto_fix"))
    history.append(attempt(2, strategy_used="auto_fix"))
    history.amend(1, "context_expand")
    assert [a.strategy_used for a in history.attempts()] == ["context_expand", "auto_fix"]


def test_a_record_that_is_none_is_skipped_with_a_warning(
    history: History, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = FileStore(tmp_path)
    for record in ({"x": 1}, {"attempt": "one"}, {"amends": 7, "strategy_used": "x"}):
        store.append("tasks/t/attempts.jsonl", record)
    history.append(attempt())
    with caplog.at_level(logging.WARNING):
        assert len(history.attempts()) == 1
    assert caplog.text.count("skipped a record") == 3


def test_the_page_has_the_documents_front_matter() -> None:
    attempts = [attempt(1, error="TS2339: no 'user'"), attempt(2, "success")]
    page = render_page("t", attempts, status="success", title="Fix it", updated_at=AT)
    _, head, body = page.split("---\n", 2)
    assert yaml.safe_load(head) == {
        "entity_name": "session.current.attempts.t",
        "namespace": "session.current",
        "category": "attempts",
        "task_id": "t",
        "total_attempts": 2,
        "final_status": "success",
        "created_at": AT,
        "updated_at": AT,
        "tags": ["attempts", "closed-loop"],
    }
    rows = yaml.safe_load(body.split("```yaml\n")[1].split("```")[0])["attempts"]
    assert [row["attempt"] for row in rows] == [1, 2]
    assert rows[0]["error"] == "TS2339: no 'user'"


def test_output_is_kept_by_its_ends() -> None:
    kept = shorten("a" * 500 + "b" * 9000 + "c" * 1500)
    assert kept.startswith("a" * 500 + "\n")
    assert kept.endswith("\n" + "c" * 1500)
    assert "9000 characters left out" in kept
    assert shorten("x" * 2000) == "x" * 2000


def test_the_escalation_page_says_what_to_decide(make_failure: MakeFailure) -> None:
    failure = replace(make_failure(), excerpt="```\nignore the above\n````")
    page = render_escalation(
        Escalation(
            "t",
            "Fix it",
            "env-missing",
            "KEY is not set",
            failure,
            [attempt()],
            ["a.py"],
            "loki run",
        )
    )
    for part in (
        "## Escalation: Fix it",
        "**Task ID:** t",
        "**Failure Count:** 1",
        "**Trigger:** env-missing: KEY is not set",
        "### Failure Summary",
        "### Attempts Log",
        "### Agent Analysis",
        "**Fix by hand and retry.** Set the missing environment variable",
        "**Give context.**",
        "**Abort.** `loki undo t`",
        "### Awaiting",
    ):
        assert part in page
    assert "\n`````text\n```\nignore the above\n````\n`````\n" in page

"""Attempts: kept whole, amended, rendered for people."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from loki.base.text_format import INVISIBLE
from loki.base.yaml_text import SURROGATE
from loki.memory.attempt import (
    Attempt,
    CheckRecord,
    History,
    page_row,
    render_page,
    shorten,
)
from loki.stores.file_store import FileStore
from support.hostile import HOSTILE as HOSTILE_WORDS
from support.hostile import headings_of
from support.loop import MakeFailure

AT = "2026-04-04T10:15:30.000Z"


def read_page(text: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """(front matter, attempts) of a page, as any reader of YAML sees them."""
    parts = re.fullmatch(
        r"---\n(.*?\n)---\n.*?^(`{3,})yaml\n(.*)^\2\n", text, re.DOTALL | re.MULTILINE
    )
    assert parts is not None
    return yaml.safe_load(parts[1]), yaml.safe_load(parts[3])["attempts"]


def attempt(number: int = 1, result: str = "failed", **fields: object) -> Attempt:
    plain: dict[str, Any] = {"action": f"changed part {number}", **fields}
    return Attempt(number, AT, result=result, **plain)


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


def test_numbers_that_came_twice_are_both_kept_and_a_repetition_is_not(history: History) -> None:
    for kept in (attempt(1), attempt(2), attempt(2), attempt(2, action="another's"), attempt(3)):
        history.append(kept)
    history.amend(2, "context_expand")
    assert [(a.attempt, a.action, a.strategy_used) for a in history.attempts()] == [
        (1, "changed part 1", None),
        (2, "changed part 2", None),
        (2, "another's", "context_expand"),
        (3, "changed part 3", None),
    ]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"attempt": 0}, "attempt: found 0, expected 1 or more"),
        ({"attempt": True}, "attempt: found True, expected a whole number"),
        ({"timestamp": None}, "timestamp: is missing"),
        ({"error": ["x"]}, "error: found ['x'], expected text"),
        ({"failure": "x"}, "failure: found 'x', expected an object"),
        ({"checks": ["pytest"]}, "checks.0: found 'pytest', expected an object"),
        ({"checks": [{"exit_code": "1"}]}, "checks.0.exit_code"),
        ({"infrastructure": 1}, "infrastructure: found 1, expected true or false"),
    ],
)
def test_a_field_of_another_shape_is_told(wrong: dict[str, Any], said: str) -> None:
    record = {"attempt": 1, "timestamp": AT, "action": "", "result": "failed", **wrong}
    with pytest.raises(ValueError, match=re.escape(said)):
        Attempt.from_dict(record)


def test_a_record_of_the_document_alone_can_be_read() -> None:
    record = {
        "attempt": 3,
        "timestamp": "2026-04-04T10:17:20Z",
        "action": "Ran eslint --fix",
        "result": "All checks passed",
        "error": None,
        "pattern_matched": None,
        "strategy_used": None,
        "duration_ms": 3102,
        "files_modified": ["src/auth.ts"],
        "checks": [{"name": "lint", "passed": True, "score": 3}],
        "phase": None,
    }
    read = Attempt.from_dict(record)
    assert (read.attempt, read.phase, read.files_modified) == (3, "", ("src/auth.ts",))
    assert read.checks[0].other == {"score": 3}
    assert read.to_dict()["checks"][0]["score"] == 3


def test_a_failure_is_recognized_anew_only_when_somebody_asks(
    history: History, make_failure: MakeFailure, caplog: pytest.LogCaptureFixture
) -> None:
    failure = make_failure()
    old = {**failure.to_dict(), "recognizer_version": 0, "fingerprint": "0" * 32}
    history.append(attempt(1, failure=old, fingerprint="0" * 32, recognizer_version=0))
    history.append(attempt(2, failure={"frames": "none"}))
    with caplog.at_level(logging.WARNING):
        one, two = history.attempts()
    assert (one.fingerprint, one.recognizer_version, caplog.text) == ("0" * 32, 0, "")
    again = one.recognized()
    assert again is not None
    assert again.fingerprint == failure.fingerprint
    assert two.recognized() is None
    assert "cannot be read" in caplog.text


def test_the_page_has_the_documents_front_matter() -> None:
    attempts = [attempt(1, error="TS2339: no 'user'"), attempt(2, "success")]
    page = render_page("t", attempts, status="success", title="Fix it", updated_at=AT)
    head, rows = read_page(page)
    assert head == {
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
    assert [row["attempt"] for row in rows] == [1, 2]
    assert rows[0]["error"] == "TS2339: no 'user'"
    assert page.splitlines()[-1] == "```"


HOSTILE = st.text() | st.lists(
    st.sampled_from(
        ["---\n", "...\n", "```", "````yaml", "\n", "# x", "\x00", "\x1b[2J", "\x85", "\u2028", "\ufeff",
         "\ud800", "\udfff", "🙂", "&a *a", "!!python/object", "{}", ": ", " #", "'", '"', "\t", "\r", "%TAG"]
    )
).map("".join)  # fmt: skip


def plain(value: Any) -> Any:
    """The same with what YAML cannot say replaced."""
    if isinstance(value, str):
        return SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    return [plain(entry) for entry in value] if isinstance(value, list) else value


@given(action=HOSTILE, error=HOSTILE, title=HOSTILE, path=HOSTILE)
def test_whatever_an_agent_says_the_page_reads_back(
    action: str, error: str, title: str, path: str
) -> None:
    made = attempt(
        1,
        action=action,
        error=error,
        files_modified=(path,),
        checks=(CheckRecord(path, "test", action, False, None, 3, action),),
        decision={"action": "fix", "rule": 6, "reason": error},
        validation={"passed": False, "gates": ["syntax_check"], "violations": [action]},
        other={"mood": action},
    )
    page = render_page("t", [made], status="failed", title=title, updated_at=AT)
    head, (row,) = read_page(page)
    assert head["total_attempts"] == 1
    assert row == plain(page_row(made))
    assert not INVISIBLE.search(page)
    assert row["checks"] == [
        {"name": plain(path), "passed": False, "exit_code": None, "duration_ms": 3}
    ]


def test_the_heading_is_the_title_and_nothing_else() -> None:
    page = render_page(
        "t", [attempt(1, action=HOSTILE_WORDS)], status="failed", title=HOSTILE_WORDS, updated_at=AT
    )
    title, history = headings_of(page)
    assert "alert(1)" in title
    assert history == "Attempt history"


def test_half_a_megabyte_of_words_reads_back_too() -> None:
    made = attempt(1, action="```\n---\n\x00 é " * 50_000)
    page = render_page("t", [made], status="failed", title="t", updated_at=AT)
    assert read_page(page)[1][0]["action"] == made.action


def test_an_end_is_kept_and_the_page_says_it(history: History, tmp_path: Path) -> None:
    history.append(attempt())
    history.end(1, {"status": "failed", "trigger": "budget"}, title="Fix it", at=AT)
    assert len(history.attempts()) == 1
    *_, last = FileStore(tmp_path).records("tasks/t/attempts.jsonl")
    assert last == {"ends": 1, "at": AT, "outcome": {"status": "failed", "trigger": "budget"}}
    page = (tmp_path / "tasks" / "t" / "attempts-t.md").read_text()
    assert read_page(page)[0]["final_status"] == "failed"


def test_output_is_kept_by_its_ends() -> None:
    kept = shorten("a" * 500 + "b" * 9000 + "c" * 1500)
    assert kept.startswith("a" * 500 + "\n")
    assert kept.endswith("\n" + "c" * 1500)
    assert "9000 characters left out" in kept
    assert shorten("x" * 2000) == "x" * 2000

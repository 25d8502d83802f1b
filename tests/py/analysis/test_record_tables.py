"""What single files say becomes rows: transitions, dead letters, signs, calls, test runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import loki
from loki import analysis
from loki.memory.call_log import Call, Calls
from loki.memory.suites.suite_history import SuiteFailure, SuiteHistory, SuiteRun
from loki.memory.tool_failure import ToolFailure, ToolFailures
from loki.testing import ManualClock

AT = "2026-04-04T10:15:30.000Z"
FAILURE = loki.recognize("FAILED t.py::test_a - KeyError: 'next'")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("logs", "state", "queue", "memory"):
        (tmp_path / ".loki" / name).mkdir(parents=True)
    return tmp_path / ".loki"


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = analysis.history(folder)[table].to_pylist()
    return found


def test_a_transition_that_three_files_tell_of_is_one_row(folder: Path) -> None:
    clock = ManualClock()
    breaker = loki.Workspace(folder.parent, clock=clock).breakers(recovery_threshold=1)["api"]
    for _ in range(3):
        breaker.guard().failure("password=hunter2")
    clock.advance(300)
    probe = breaker.try_acquire()
    assert probe is not None
    probe.success()
    found = rows(folder, "transitions")
    states = [(row["before"], row["after"]) for row in found]
    assert states == [("CLOSED", "OPEN"), ("OPEN", "HALF_OPEN"), ("HALF_OPEN", "CLOSED")]
    assert found[0]["error"] == "password=<secret>"


@pytest.mark.parametrize("text", ["{", "[]", "\x00", '{"api": []}', "[" * 100_000])
def test_damaged_files_are_left_out(folder: Path, text: str) -> None:
    for name in (
        *("state/circuit-breakers.json", "queue/dead-letter.json", "logs/calls.jsonl"),
        *("logs/test-runs.jsonl", "logs/tool-calls.jsonl", "memory/dead-letters.jsonl"),
        "logs/breaker-transitions.jsonl",
    ):
        (folder / name).write_text(text)
    (folder / "tasks" / "t").mkdir(parents=True)
    (folder / "tasks" / "t" / "task.json").write_text(text)
    tables = analysis.history(folder)
    assert {name: tables[name].num_rows for name in tables.names if tables[name].num_rows} == {
        "tasks": 1
    }


def test_what_the_queue_says_completes_what_the_loop_kept(folder: Path) -> None:
    letters = [{"task": "a", "title": "A", "at": AT, "message": "boom", "strategies": ["auto_fix"]}]
    log = "".join(json.dumps(one) + "\n" for one in letters)
    (folder / "memory/dead-letters.jsonl").write_text(log)
    queued = [
        {"task_id": "a", "failure_count": 3, "error_summary": "three times"},
        {"task_id": "b"},
    ]
    (folder / "queue/dead-letter.json").write_text(json.dumps({"tasks": queued}))
    found = {row["task"]: row for row in rows(folder, "dead_letters")}
    assert (found["a"]["failures"], found["a"]["error"], found["a"]["in_queue"]) == (
        3,
        "boom",
        True,
    )
    assert found["a"]["strategies"] == ["auto_fix"]
    assert found["b"]["in_queue"]


def test_calls_tool_calls_test_runs_and_signs(folder: Path) -> None:
    store = loki.Workspace(folder.parent).store
    Calls(store).add(Call(AT, "openai", "gpt-5", "error", cost=0.25, status=503, latency_ms=900))
    ToolFailures(store).add(ToolFailure(AT, "bash", "pytest -q", FAILURE, exit_code=1))
    failed = SuiteFailure("t.py::test_a", "call", "failed", FAILURE, duration_ms=5)
    tried = SuiteFailure("t.py::test_a", "call", "rerun", FAILURE, AT, rerun=1)
    counts = {"failed": 1, "passed": 3}
    run = SuiteRun(id="r", started_at=AT, failures=(failed,), reruns=(tried,), counts=counts)
    SuiteHistory(store).keep(run)
    signs = loki.Workspace(folder.parent).signs()
    for approach in ("added a default", "caught the error"):
        signs.observe(FAILURE, approach, "task-1")
    (call,) = rows(folder, "calls")
    assert (call["cost"], call["status"], call["latency_ms"], call["task"]) == (
        0.25,
        503,
        900,
        None,
    )
    (tool,) = rows(folder, "tool_calls")
    assert (tool["tool"], tool["fingerprint"]) == ("bash", FAILURE.fingerprint)
    (run_row,) = rows(folder, "test_runs")
    assert (run_row["passed"], run_row["failed"], run_row["reruns"]) == (3, 1, 1)
    assert [row["rerun"] for row in rows(folder, "test_failures")] == [1, 0]
    (sign,) = rows(folder, "signs")
    assert (sign["sightings"], sign["tasks"]) == (2, ["task-1"])
    seen = [(row["source"], row["sighting"]) for row in rows(folder, "failures")]
    assert sorted(sighting for _, sighting in seen) == [1, 2, 3]
    assert {source for source, _ in seen} == {"test", "tool call"}


def test_a_task_that_nobody_noted_the_end_of_is_running(folder: Path) -> None:
    task = folder / "tasks" / "t"
    task.mkdir(parents=True)
    attempt = {"attempt": 1, "timestamp": AT, "action": "", "result": "failed", "tokens": 7}
    (task / "attempts.jsonl").write_text(json.dumps(attempt) + "\n")
    (row,) = rows(folder, "tasks")
    assert (row["status"], row["attempts"], row["tokens"], row["cost"]) == ("running", 1, 7, None)
    assert row["first_attempt"] == row["last_attempt"] is not None

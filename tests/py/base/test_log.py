"""Log lines: for people as the documents have them, for programs as data."""

from __future__ import annotations

import logging

import pytest

from loki.base.log import fields, log_event, write


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "attempt=1 pattern=type-error strategy=none result=failed",
            {"attempt": 1, "pattern": "type-error", "strategy": "none", "result": "failed"},
        ),
        (
            "status=success total_attempts=2 duration_ms=910",
            {"status": "success", "total_attempts": 2, "duration_ms": 910},
        ),
        ("dead_letter reason=retry_budget_exhausted", {"reason": "retry_budget_exhausted"}),
        (
            "validation=passed gates=2 violations=0",
            {"validation": "passed", "gates": 2, "violations": 0},
        ),
        (
            "regression_check=skipped complexity=low",
            {"regression_check": "skipped", "complexity": "low"},
        ),
        (
            'check="a: b=1" failed duration_ms=-1.5',
            {"check": "a: b=1", "duration_ms": -1.5},
        ),
        ("pattern=404 task=12", {"pattern": "404", "task": "12"}),
        ("waiting 5.0 s: the service said retry=9", {}),
        ("seen=" + "9" * 40, {"seen": "9" * 40}),
        ("", {}),
    ],
)
def test_the_words_of_a_line_are_data(line: str, expected: dict[str, object]) -> None:
    assert fields(line) == expected


@pytest.mark.parametrize(("warning", "level"), [(False, logging.INFO), (True, logging.WARNING)])
def test_a_line_carries_its_fields(
    caplog: pytest.LogCaptureFixture, warning: bool, level: int
) -> None:
    with caplog.at_level(logging.INFO, logger="loki"):
        log_event("7", "attempt=1 asking the agent", warning=warning)
    (record,) = caplog.records
    assert record.getMessage() == "[closed-loop] task=7 attempt=1 asking the agent"
    assert record.levelno == level
    assert record.__dict__["loki"] == {"task": "7", "attempt": 1}


def test_what_a_line_quotes_forges_no_other_line(caplog: pytest.LogCaptureFixture) -> None:
    evil = "it failed: x\n[closed-loop] task=7 status=success\x1b[2J\u202e"
    with caplog.at_level(logging.INFO, logger="loki"):
        log_event("7", evil)
        write(f"task=7 {evil}", {"task": "7"})
    for record in caplog.records:
        assert record.getMessage() == (
            r"[closed-loop] task=7 it failed: x [closed-loop] task=7 status=success\x1b[2J\u202e"
        )
        assert record.__dict__["loki"] == {"task": "7"}

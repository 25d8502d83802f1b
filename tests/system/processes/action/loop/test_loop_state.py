"""The loop's log lines, exactly as the documents have them, and as data: with processes."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import loki
from support.project import CHECK, RIGHT, make_project


def test_a_real_runs_records_carry_their_fields(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    project = make_project(tmp_path / "calc")
    with caplog.at_level(logging.INFO, logger="loki"):
        outcome = loki.run(
            "make add add", agent=lambda _: {"calc.py": RIGHT}, checks=[CHECK], path=str(project)
        )
    said = {record.getMessage(): record.__dict__["loki"] for record in caplog.records}
    assert all(line.startswith(f"[closed-loop] task={outcome.task_id} ") for line in said)
    assert all(data["task"] == outcome.task_id for data in said.values())
    (checked,) = [data for line, data in said.items() if " passed duration_ms=" in line]
    assert checked["check"] == CHECK
    assert isinstance(checked["duration_ms"], int)
    (failed,) = [data for line, data in said.items() if " failed duration_ms=" in line]
    assert "assert " in failed["error"], "a person reads at once what failed"
    (ended,) = [data for data in said.values() if "status" in data]
    assert ended == {
        "task": outcome.task_id,
        "status": "success",
        "total_attempts": 1,
        "duration_ms": outcome.duration_ms,
    }

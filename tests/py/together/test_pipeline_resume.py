"""Pipelines that wait for a person, are interrupted, edited, and go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import loki
from loki.testing import ManualClock
from support.stages import (
    BEFORE,
    PIPELINE,
    make,
    resume,
    run,
    workspace,
)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make(tmp_path / "project")


# --- approval -------------------------------------------------------------------------------------

APPROVED = PIPELINE.replace(
    "description: Do as planned.", "description: Do as planned.\n    requires_approval: true"
)


def test_a_rejected_run_ends(tmp_path: Path, clock: ManualClock) -> None:
    project = make(tmp_path / "project", APPROVED)
    run(project, clock)
    outcome = resume(project, clock, {}, reject=True, by="ben", note="too early")
    assert (outcome.status, outcome.exit_code) == ("failed", 4)
    assert outcome.reason == "ben rejected stage implement: too early"
    assert (project / "answer.txt").read_text() == BEFORE


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"from_stage": "implement"}, "has not been run here yet"),
        ({"from_stage": "implment"}, "no stage 'implment'.*did you mean 'implement'"),
        ({"parameters": {"qestion": "?"}}, "unknown parameter 'qestion'.*did you mean 'question'"),
        ({"max_attempts": 0}, "max_attempts is 0: expected 1 or more"),
        ({"max_time": "soon"}, "max_time"),
    ],
)
def test_what_cannot_be_run_as_asked(
    project: Path, clock: ManualClock, options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(loki.UsageError, match=reason):
        run(project, clock, **options)


def test_one_run_at_a_time(project: Path, clock: ManualClock) -> None:
    with workspace(project).exclusive(), pytest.raises(loki.UsageError, match="another loki run"):
        run(project, clock)

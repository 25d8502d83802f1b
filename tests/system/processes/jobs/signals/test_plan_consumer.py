"""A plan that is approved by a file: the stage that waits goes on, and no other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import loki
from loki.execution.assembly import signals_of
from loki.jobs.signals import signal_handling
from loki.jobs.signals.signal_handling import Dispatch, Done, Waits, handle
from loki.people.signal import PLAN_APPROVED
from loki.testing import ManualClock
from support.stages import AGENTS, PIPELINE, make, run

APPROVED = PIPELINE.replace(
    "description: Do as planned.", "description: Do as planned.\n    requires_approval: true"
)
CONFIG = """
[agents.architect]
command = "sh -c 'echo the plan'"
[agents.tech-lead]
command = "sh -c 'echo three > answer.txt'"
[agents.qa]
command = "sh -c 'echo fine'"
"""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def project(tmp_path: Path, clock: ManualClock) -> Path:
    """A run that waits for approval."""
    project = make(tmp_path / "project", APPROVED)
    with open(project / ".loki/config.toml", "a", encoding="utf-8") as file:
        file.write(CONFIG)
    assert run(project, clock, AGENTS).trigger == "approval"
    clock.advance("1m")
    return project


def test_the_stage_that_waits_goes_on(project: Path, clock: ManualClock) -> None:
    workspace = loki.Workspace(project, clock=clock)
    signals_of(workspace).emit(PLAN_APPROVED, data={"by": "ann"})
    (done,) = handle(workspace)
    assert done.told == "answer-1 went on, approved by ann: success"
    assert (project / "answer.txt").read_text() == "three\n"
    assert not (project / ".loki/signals/PLAN_APPROVED").exists()


def test_an_approval_from_before_is_of_nothing_that_waits_now(
    tmp_path: Path, clock: ManualClock
) -> None:
    project = make(tmp_path / "project", APPROVED)
    workspace = loki.Workspace(project, clock=clock)
    signals_of(workspace).emit(PLAN_APPROVED)
    clock.advance("1m")
    assert run(project, clock, AGENTS).trigger == "approval"
    (done,) = handle(workspace)
    assert done.told == "refused: it was given before answer-1 asked for approval"
    assert (project / "answer.txt").read_text() == "one\n"


def test_with_nothing_or_several_to_approve_it_waits(project: Path, clock: ManualClock) -> None:
    workspace = loki.Workspace(project, clock=clock)
    assert run(project, clock, AGENTS, new=True).trigger == "approval"
    clock.advance("1m")
    signals_of(workspace).emit(PLAN_APPROVED)
    (left,) = handle(workspace)
    assert left.told.startswith("several runs wait for approval (answer-1, answer-2): say which")
    signals_of(workspace).emit(PLAN_APPROVED, data={"pipeline": "answer-2"})
    told = [one.told for one in handle(workspace)]
    assert "answer-2 went on" in told[0]
    # Now the other is the only one that waits.
    assert "answer-1 went on" in told[1]


def test_an_approval_whose_worker_was_killed_is_not_given_twice(
    project: Path, clock: ManualClock
) -> None:
    workspace = loki.Workspace(project, clock=clock)
    signals = signals_of(workspace)
    given = signals.emit(PLAN_APPROVED)
    dispatch = Dispatch(workspace, signals)
    assert isinstance(signal_handling.approve_plan(dispatch, given), Done)
    # As if it had been killed before the signal was gone, and another run waited by now.
    clock.advance("1m")
    assert run(project, clock, AGENTS, new=True).trigger == "approval"
    again = signal_handling.approve_plan(dispatch, given)
    assert again == Done("answer-1 had gone on already")
    signals.consume(given)
    assert isinstance(
        signal_handling.approve_plan(
            dispatch, signals.emit(PLAN_APPROVED, data={"pipeline": "no"})
        ),
        Waits,
    )
    assert (
        json.loads((project / ".loki/pipelines/answer-2/pipeline.json").read_text())["phase"]
        == "approval"
    )

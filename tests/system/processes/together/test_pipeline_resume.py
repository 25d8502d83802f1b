"""Pipelines that wait for a person, are interrupted, edited, and go on: with processes."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
from pathlib import Path

import pytest

import loki
from loki.testing import ManualClock, ScriptedAgent
from support.stages import (
    AGENTS,
    BEFORE,
    MIDDLE,
    PIPELINE,
    edit,
    lead,
    make,
    nobody,
    output,
    pipeline,
    resume,
    run,
    workspace,
    wrong,
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


def test_approval_comes_first_and_is_kept_with_who_and_when(
    tmp_path: Path, clock: ManualClock
) -> None:
    project = make(tmp_path / "project", APPROVED)
    outcome = run(project, clock, {**AGENTS, "tech-lead": nobody})
    assert (outcome.status, outcome.exit_code, outcome.trigger) == ("escalated", 3, "approval")
    assert outcome.page is not None
    page = (project / ".loki" / outcome.page).read_text()
    for text in (
        "stage implement of answer-1",
        "> Do as planned.",
        "outputs/plan.md",
        "- plan: suc",
    ):
        assert text in page
    assert (project / "answer.txt").read_text() == BEFORE
    again = run(project, clock, {**AGENTS, "tech-lead": nobody, "architect": nobody})
    assert (again.run, again.status, again.page) == ("answer-1", "escalated", outcome.page)
    with pytest.raises(loki.UsageError, match="waits for approval: expected --approve or --reject"):
        resume(project, clock)
    clock.advance("1h")
    done = resume(project, clock, approve=True, by="anna", note="looks right")
    assert done.status == "success"
    kept = json.loads((project / ".loki/pipelines/answer-1/pipeline.json").read_text())
    approval = kept["stages"][1]["approval"]
    assert (approval["by"], approval["note"]) == ("anna", "looks right")
    assert approval["at"].startswith("2026-01-01T01:00:00")
    with pytest.raises(loki.UsageError, match="has ended: success"):
        resume(project, clock, approve=True)


def test_approval_is_asked_anew_in_another_run_and_after_an_edit(
    tmp_path: Path, clock: ManualClock
) -> None:
    project = make(tmp_path / "project", APPROVED)
    run(project, clock)
    edit(project, "Do as planned.", "Do something else.")
    outcome = resume(project, clock, {**AGENTS, "tech-lead": nobody}, approve=True)
    assert (outcome.status, outcome.trigger) == ("escalated", "approval")
    assert "> Do something else." in (project / ".loki" / str(outcome.page)).read_text()
    assert resume(project, clock, approve=True).status == "success"
    (project / "answer.txt").write_text(BEFORE)
    outcome = run(project, clock, {**AGENTS, "tech-lead": nobody})
    assert (outcome.run, outcome.trigger) == ("answer-2", "approval")


def test_approval_inside_a_running_event_loop(tmp_path: Path, clock: ManualClock) -> None:
    project = make(tmp_path / "project", APPROVED)
    run(project, clock)

    async def main() -> loki.PipelineOutcome:
        place = workspace(project, clock)
        return await pipeline(project).aresume(AGENTS, path=place, approve=True)

    assert asyncio.run(main()).status == "success"


# --- going on -------------------------------------------------------------------------------------


def test_an_interrupt_keeps_what_is_done(project: Path, clock: ManualClock) -> None:
    def interrupted(briefing: loki.Briefing) -> dict[str, str]:
        del briefing
        os.kill(os.getpid(), signal.SIGINT)
        return {"answer.txt": MIDDLE}

    outcome = run(project, clock, {**AGENTS, "tech-lead": interrupted})
    assert (outcome.status, outcome.exit_code, outcome.stage) == ("interrupted", 130, "implement")
    outcome = run(project, clock, {**AGENTS, "architect": nobody})
    assert (outcome.status, outcome.run, outcome.stages[1].tries) == ("success", "answer-1", 2)


def test_an_edited_file_is_noticed_and_what_is_done_stays_done(
    project: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    run(project, clock, {**AGENTS, "tech-lead": ScriptedAgent([KeyboardInterrupt()])})
    edit(project, "Say what to do about the answer.", "Say it briefly.")
    with caplog.at_level(logging.WARNING, "loki"):
        outcome = run(project, clock, {**AGENTS, "architect": nobody})
    assert outcome.status == "success"
    assert "stage plan was edited after it was done: --from plan does it again" in caplog.text


def test_from_a_stage_again(project: Path, clock: ManualClock) -> None:
    assert run(project, clock).status == "success"
    (project / "answer.txt").write_text(BEFORE)
    outcome = run(project, clock, {**AGENTS, "architect": nobody}, from_stage="implement")
    assert (outcome.status, outcome.run) == ("success", "answer-1")
    assert outcome.stages[1].task_id == "answer-1.implement.2"
    assert outcome.stages[1].attempts == 2
    plans = ScriptedAgent([{"pipeline-outputs/plan.md": "anew"}])
    outcome = run(
        project, clock, {**AGENTS, "architect": plans, "tech-lead": lead}, from_stage="plan"
    )
    assert output(project, "plan") == "anew"


def test_a_stage_cannot_be_begun_again_behind_one_that_is_not_done(
    project: Path, clock: ManualClock
) -> None:
    run(project, clock, {**AGENTS, "tech-lead": wrong})
    with pytest.raises(loki.UsageError, match="stage implement of run answer-1 is not done"):
        run(project, clock, from_stage="verify")


def test_a_parameter_that_has_no_default_must_be_given(project: Path, clock: ManualClock) -> None:
    edit(project, "{question: what is one and two?}", "[question]")
    with pytest.raises(loki.UsageError, match="needs the parameter question"):
        run(project, clock)
    planner = ScriptedAgent([{"pipeline-outputs/plan.md": "x"}])
    run(project, clock, {**AGENTS, "architect": planner}, parameters={"question": "why?"})
    assert "why?" in planner.briefings[0].text


def test_a_new_run_beside_one_that_has_not_ended(project: Path, clock: ManualClock) -> None:
    run(project, clock, {**AGENTS, "tech-lead": ScriptedAgent([KeyboardInterrupt()])})
    assert run(project, clock, new=True).run == "answer-2"

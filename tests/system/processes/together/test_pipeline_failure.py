"""Pipelines whose stages fail: tried again, rolled back, ended by a limit."""

from __future__ import annotations

from pathlib import Path

import pytest

import loki
from loki.testing import ManualClock, ScriptedAgent
from support.stages import (
    AFTER,
    AGENTS,
    BEFORE,
    edit,
    make,
    nobody,
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


# --- failures -------------------------------------------------------------------------------------


def test_each_try_has_a_fresh_inner_budget_and_keeps_the_signs(
    tmp_path: Path, clock: ManualClock
) -> None:
    project = make(tmp_path / "project", retries=1)
    told: list[str] = []

    def same(briefing: loki.Briefing) -> dict[str, str]:
        told.append(briefing.text)
        return {"answer.txt": "two\n", "n.txt": f"{len(told)}\n"}

    outcome = run(project, clock, {**AGENTS, "tech-lead": same})
    stage = outcome.stages[1]
    assert (stage.tries, stage.attempts) == (3, 6), "three tries of two attempts"
    assert (outcome.status, outcome.exit_code) == ("failed", 4)
    assert clock.waits == [10, 20]
    assert "# Signs: binding" in told[4], "of earlier tries"
    assert "1 more may follow" in told[4], "but with a budget of its own"
    attempts = workspace(project).history("answer-1.implement").attempts()
    assert [a.execution for a in attempts] == [1, 1, 2, 2, 3, 3]


def test_what_went_wrong_stays_unless_it_is_rolled_back(project: Path, clock: ManualClock) -> None:
    outcome = run(project, clock, {**AGENTS, "tech-lead": wrong})
    assert (outcome.status, outcome.rollback) == ("failed", ())
    assert (project / "answer.txt").read_text() == "wrong 3\n"


def test_rollback_undo_restores_what_the_stage_changed(project: Path, clock: ManualClock) -> None:
    edit(project, "description: Do as planned.", "description: Do it.\n    rollback: undo")
    outcome = run(project, clock, {**AGENTS, "tech-lead": wrong})
    (step,) = outcome.rollback
    assert (step.kind, step.subject, step.result) == ("undo", "implement", "done")
    assert step.detail == "restored answer.txt"
    assert (project / "answer.txt").read_text() == BEFORE


def test_rollback_leaves_alone_what_somebody_else_changed(
    project: Path, clock: ManualClock
) -> None:
    edit(project, "description: Do as planned.", "description: Do it.\n    rollback: undo")

    def meddled(briefing: loki.Briefing) -> dict[str, str]:
        if briefing.attempt == 3:
            raise KeyboardInterrupt
        return wrong(briefing)

    assert run(project, clock, {**AGENTS, "tech-lead": meddled}).status == "interrupted"
    (project / "answer.txt").write_text("a person's\n")
    refused = loki.AgentError("no", retryable=False)
    outcome = run(project, clock, {**AGENTS, "tech-lead": ScriptedAgent([refused])})
    assert outcome.status == "escalated"
    outcome = resume(project, clock, {}, reject=True)
    assert outcome.rollback[0].result == "conflict"
    assert "answer.txt: somebody has changed it since" in outcome.rollback[0].detail
    assert (project / "answer.txt").read_text() == "a person's\n"


def test_rollback_all_goes_back_through_the_stages(project: Path, clock: ManualClock) -> None:
    edit(project, "kind: bug_fix", "rollback: all")
    outcome = run(project, clock, {**AGENTS, "qa": lambda _: {"answer.txt": "four\n"}})
    assert outcome.stages[3].status == "failed"
    undone = [(step.subject, step.result) for step in outcome.rollback]
    assert undone == [("verify", "done"), ("implement", "done"), ("plan", "done")]
    assert (project / "answer.txt").read_text() == BEFORE


def test_rollback_runs_commands_that_are_allowed(project: Path, clock: ManualClock) -> None:
    edit(
        project,
        "description: Do as planned.",
        "description: Do it.\n    rollback: [sh -c 'echo back > back.txt', sh -c 'exit 3']",
    )
    outcome = run(project, clock, {**AGENTS, "tech-lead": wrong})
    assert [(s.result, s.detail) for s in outcome.rollback] == [
        ("done", ""),
        ("failed", "exit code 3"),
    ]
    assert (project / "back.txt").read_text() == "back\n"
    edit(project, "sh -c 'exit 3'", "rm -r x")
    with pytest.raises(loki.UsageError, match=r"`rm -r x`, which is not allowed here: add it to"):
        run(project, clock)


def test_an_escalation_in_the_middle_waits_and_goes_on_with_what_a_person_says(
    project: Path, clock: ManualClock
) -> None:
    refused = loki.AgentError("401 invalid key", retryable=False)
    outcome = run(project, clock, {**AGENTS, "tech-lead": ScriptedAgent([refused])})
    assert (outcome.status, outcome.exit_code, outcome.stage) == ("escalated", 3, "implement")
    assert outcome.stages[1].tries == 1, "not tried again"
    assert outcome.page is not None
    page = project / ".loki" / outcome.page
    assert '`loki pipeline resume answer-1 --context "…"`' in page.read_text()
    assert "`loki pipeline resume answer-1 --reject`" in page.read_text()
    for answer in (workspace(project).resume, workspace(project).abort):
        with pytest.raises(
            loki.UsageError, match="`loki pipeline resume answer-1` goes on with it"
        ):
            answer("answer-1.implement")
    again = run(project, clock, {**AGENTS, "tech-lead": nobody})
    assert (again.status, again.run) == ("escalated", "answer-1")
    coder = ScriptedAgent([{"answer.txt": AFTER}])
    done = resume(project, clock, {**AGENTS, "tech-lead": coder}, context="three is the answer")
    assert done.status == "success"
    assert coder.briefings[0].text.count("three is the answer") == 1
    assert "three is the answer" in page.read_text(), "the page has its answer"
    attempts = workspace(project).history("answer-1.implement").attempts()
    assert [a.execution for a in attempts] == [1, 1], "the same try goes on"


def test_what_a_person_mended_by_hand_is_success(project: Path, clock: ManualClock) -> None:
    refused = loki.AgentError("401 invalid key", retryable=False)
    run(project, clock, {**AGENTS, "tech-lead": ScriptedAgent([refused])})
    (project / "answer.txt").write_text(AFTER)
    done = resume(project, clock, {**AGENTS, "tech-lead": nobody})
    assert (done.status, done.stages[1].status) == ("success", "success")
    assert done.stages[1].reason == "every check passes after a person's help"


def test_a_context_reaches_a_try_that_was_only_interrupted_and_later_tries(
    project: Path, clock: ManualClock
) -> None:
    stop = KeyboardInterrupt()
    run(project, clock, {**AGENTS, "tech-lead": ScriptedAgent([stop])})
    told: list[str] = []

    def coder(briefing: loki.Briefing) -> dict[str, str]:
        told.append(briefing.text)
        return wrong(briefing) if len(told) == 1 else {"answer.txt": AFTER}

    done = resume(project, clock, {**AGENTS, "tech-lead": coder}, context="three is the answer")
    assert (done.status, done.stages[1].tries) == ("success", 2)
    assert [text.count("three is the answer") for text in told] == [1, 1]


def test_an_outage_pauses_and_the_same_try_goes_on(project: Path, clock: ManualClock) -> None:
    down = loki.AgentError("connection reset by the model's service")
    coder = ScriptedAgent([down, down, down, {"answer.txt": AFTER}])
    agents = {**AGENTS, "tech-lead": coder}
    outcome = run(project, clock, agents, wait=False)
    assert (outcome.status, outcome.exit_code) == ("paused", 6)
    assert outcome.retry_at is not None
    clock.advance("300s")
    outcome = run(project, clock, agents, wait=False)
    assert (outcome.status, outcome.stages[1].tries, outcome.run) == ("success", 1, "answer-1")


# --- limits ---------------------------------------------------------------------------------------


def test_a_time_out_ends_an_agent_that_hangs(project: Path) -> None:
    edit(project, "description: Do as planned.", "description: Do it.\n    timeout_minutes: 0.02")
    hanging = loki.CommandAgent(["sh", "-c", "exec sleep 600"])
    outcome = pipeline(project).run({**AGENTS, "tech-lead": hanging}, path=project)
    assert (outcome.status, outcome.exit_code) == ("failed", 5)
    assert outcome.trigger == "timeout"
    assert outcome.reason == "stage implement was not done within its time-out of 0.02 min"


def test_a_limit_on_all_attempts(project: Path, clock: ManualClock) -> None:
    outcome = run(project, clock, {**AGENTS, "tech-lead": wrong}, max_attempts=3)
    assert (outcome.status, outcome.exit_code, outcome.trigger) == ("failed", 5, "budget")
    assert (outcome.attempts, outcome.stages[1].attempts) == (3, 2)
    assert outcome.reason == "the run's limit of 3 attempts is spent"
    outcome = run(project, clock, from_stage="implement", max_attempts=9)
    assert (outcome.run, outcome.status) == ("answer-1", "success")


def test_a_limit_on_all_time(project: Path, clock: ManualClock) -> None:
    def slow(briefing: loki.Briefing) -> dict[str, str]:
        clock.advance("40s")
        return wrong(briefing)

    outcome = run(project, clock, {**AGENTS, "tech-lead": slow}, max_time="1m")
    assert (outcome.status, outcome.exit_code, outcome.trigger) == ("failed", 5, "budget")
    assert outcome.seconds == pytest.approx(90, abs=1)

"""The loop where proposals leave their task: pure transitions, no world."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loki.action.loop.loop import step
from loki.action.loop.loop_events import (
    Answered,
    Ask,
    Checked,
    Drifted,
    DriftReviewed,
    Event,
    Finish,
    Keep,
    ReportDrift,
    ReviewDrift,
    Validate,
)
from loki.action.loop.loop_state import Phase, State
from loki.base.machine import Begin
from loki.decision.drift import Drift, Severity
from support.loop import NOON, MakeFailure, change, fail, setting


def drift(severity: Severity = "medium", path: str = "b.py") -> Drift:
    return Drift("a task", f"works on {path}", severity, 2, (path,))


@pytest.fixture
def proposed(make_failure: MakeFailure) -> State:
    """An agent has answered; its proposal is looked at."""
    state = State(setting(max_retries=0))
    for event in (Begin(), Checked(fail(make_failure())), Answered(change(), "tree")):
        state, _ = step(state, event, NOON)
    assert state.phase is Phase.VALIDATE
    return state


def of(effects: Any, kind: type[Any]) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, kind)]


def test_it_goes_back_with_the_same_question_and_spends_no_retry(proposed: State) -> None:
    after, effects = step(proposed, Drifted((drift(),)), NOON)
    assert after.phase is Phase.GENERATE
    assert after.past == proposed.past
    (kept,) = of(effects, Keep)
    assert (kept.attempt.result, kept.attempt.error) == ("drift", "works on b.py")
    (ask,) = of(effects, Ask)
    assert proposed.asked is not None
    assert ask == replace(proposed.asked, attempt=2)
    assert of(effects, ReportDrift)
    assert effects[-1] is ask


def test_the_same_proposal_may_be_made_again(proposed: State) -> None:
    after, _ = step(proposed, Drifted((drift(),)), NOON)
    again, effects = step(after, Answered(change(), "tree"), NOON)
    assert again.phase is Phase.VALIDATE
    passed, effects = step(again, Drifted((drift(),), 2), NOON)
    assert passed.phase is Phase.VALIDATE
    assert len(of(effects, Validate)) == 1


@pytest.mark.parametrize(("approved", "phase"), [(True, Phase.VALIDATE), (False, Phase.GENERATE)])
def test_a_review_decides(proposed: State, approved: bool, phase: Phase) -> None:
    reviewed, effects = step(proposed, Drifted((drift(),), 2, True), NOON)
    (review,) = of(effects, ReviewDrift)
    assert reviewed.phase is Phase.VALIDATE
    answer = DriftReviewed(approved, "ann", "because", review.drifts)
    after, effects = step(reviewed, answer, NOON)
    assert after.phase is phase
    assert bool(of(effects, Validate)) is approved
    assert bool(of(effects, Keep)) is not approved


def test_severe_drift_ends_at_a_person(proposed: State) -> None:
    after, effects = step(proposed, Drifted((drift("critical"),)), NOON)
    assert after.phase is Phase.DONE
    (finish,) = of(effects, Finish)
    assert (finish.outcome.status, finish.outcome.trigger) == ("escalated", "drift")
    assert finish.outcome.page is not None
    (report,) = of(effects, ReportDrift)
    assert "works on b.py" in report.ask


def test_new_drift_each_time_ends(proposed: State) -> None:
    state, number = proposed, 0
    while state.phase is not Phase.DONE:
        number += 1
        assert number < 20
        event: Event = Drifted((drift(path=f"{number}.py"),), 3)
        state, _ = step(state, event, NOON)
        if state.phase is Phase.GENERATE:
            state, _ = step(state, Answered(change(f"x = {number}\n"), "tree"), NOON)
    assert state.outcome is not None
    assert state.outcome.trigger == "drift"

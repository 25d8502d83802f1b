"""The last phase of a task that is worked on in a copy: landing, as the machine sees it."""

from __future__ import annotations

from dataclasses import replace

from loki.action.changes.change import Merge, Merged
from loki.action.checks.results.suite_results import Comparison
from loki.action.gates.gate import Validation
from loki.action.loop.loop import step
from loki.action.loop.loop_events import (
    Answered,
    Ask,
    Checked,
    Compared,
    Event,
    Executed,
    Keep,
    Observe,
    Reflected,
    RunChecks,
    RunStrategy,
    Validated,
)
from loki.action.loop.loop_state import Phase, State
from loki.base.machine import Begin
from loki.recognition.failure import Failure
from support.loop import NOON, PASS, change, fail, setting

CONFLICT = Failure.of(
    "a.py: somebody else changed it meanwhile", pattern="merge-conflict", path="a.py"
)


def landing(**task: object) -> State:
    """A task whose work passes, and is about to land."""
    state = State(replace(setting(**task), lands=True))
    script: tuple[Event, ...] = (
        Begin(),
        Checked(fail(Failure.of("E   assert 1 == 2"))),
        Answered(change()),
        Validated(Validation()),
        Executed(("a.py",)),
        Checked(PASS),
        Compared(Comparison(compared=1)),
    )
    for event in script:
        state, effects = step(state, event, NOON)
    assert (state.phase, effects[-1]) == (Phase.LAND, Merge())
    assert state.outcome is None
    assert not any(isinstance(effect, Keep) for effect in effects)
    return state


def test_what_has_landed_is_a_success() -> None:
    state, effects = step(landing(), Merged(), NOON)
    assert state.outcome is not None
    assert (state.outcome.status, state.outcome.files) == ("success", ("a.py",))
    assert [e.attempt.result for e in effects if isinstance(e, Keep)] == ["success"]


def test_on_a_project_that_moved_on_the_checks_run_once_more_before_it_lands() -> None:
    state, effects = step(landing(), Merged(moved=True), NOON)
    assert (state.phase, effects) == (Phase.EVALUATE, (RunChecks(),))
    state, _ = step(state, Checked(PASS), NOON)
    state, effects = step(state, Compared(Comparison(compared=1)), NOON)
    assert effects[-1] == Merge()


def test_failing_together_is_a_failed_attempt() -> None:
    state, _ = step(landing(), Merged(moved=True), NOON)
    state, effects = step(state, Checked(fail(Failure.of("E   assert 2 == 3"))), NOON)
    assert [e.attempt.result for e in effects if isinstance(e, Keep)] == ["failed"]
    assert state.outcome is None


def test_a_conflict_is_a_failed_attempt_of_its_kind_that_arms_no_sign() -> None:
    state, effects = step(landing(), Merged(failure=CONFLICT), NOON)
    kept = next(effect.attempt for effect in effects if isinstance(effect, Keep))
    assert (kept.result, kept.pattern_matched, kept.phase) == ("failed", "merge-conflict", "land")
    assert not any(isinstance(effect, Observe) for effect in effects)

    state, effects = step(state, Reflected(), NOON)
    assert isinstance(effects[-1], RunStrategy)
    assert state.files == ()


def test_the_same_conflict_again_is_no_reason_to_give_up_before() -> None:
    state = landing(max_retries=3)
    for _ in range(3):
        state, _ = step(state, Merged(failure=CONFLICT), NOON)
        state, effects = step(state, Reflected(), NOON)
        assert isinstance(effects[-1], RunStrategy)
        state = replace(state, phase=Phase.LAND)
    state, _ = step(state, Merged(failure=CONFLICT), NOON)
    state, _ = step(state, Reflected(), NOON)
    assert state.outcome is not None
    assert state.outcome.status == "failed"


def test_conflicts_use_up_the_retries() -> None:
    state, _ = step(landing(max_retries=0), Merged(failure=CONFLICT), NOON)
    state, _ = step(state, Reflected(), NOON)
    assert state.outcome is not None
    assert (state.outcome.status, state.outcome.pattern) == ("failed", "merge-conflict")


def test_what_a_person_has_to_approve_does_not_land_before() -> None:
    state = replace(landing(), phase=Phase.REGRESSION, waiting=("looks right",))
    state, effects = step(state, Compared(Comparison(compared=1)), NOON)
    assert state.outcome is not None
    assert state.outcome.trigger == "approval"
    assert Merge() not in effects


def test_without_an_attempt_in_flight_it_begins_with_what_does_not_fit() -> None:
    """Resumed work that passes at once, in a project that has become another one."""
    state = replace(landing(), current=None)
    after, effects = step(state, Merged(failure=CONFLICT), NOON)
    assert isinstance(effects[-1], Ask)
    assert effects[-1].failure == CONFLICT
    after, effects = step(state, Merged(moved=True), NOON)
    assert (after.phase, effects) == (Phase.BASELINE, (RunChecks(),))

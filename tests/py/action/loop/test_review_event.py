"""What the machine does where a person has to decide: nothing of what was to be done next is done."""

from __future__ import annotations

import pytest

from loki.action.agent_protocol import Proposal
from loki.action.changes.change import Change
from loki.action.gates.gate import Validation
from loki.action.loop.loop import step
from loki.action.loop.loop_events import (
    Ask,
    Event,
    Execute,
    Finish,
    Keep,
    ReviewNeeded,
    RunChecks,
    Validate,
    Validated,
)
from loki.action.loop.loop_state import Phase, State
from loki.base.error import IllegalTransition
from loki.base.machine import Begin
from support.loop import NOON, MakeFailure, World, change, fail, setting

NEEDED = ReviewNeeded("review-1", "Decide whether it goes on.")


def after(*events: Event) -> tuple[State, list[object]]:
    """The state after these events, and the effects of the last one."""
    state = State(setting())
    last: list[object] = []
    for event in events:
        state, effects = step(state, event, NOON)
        last = list(effects)
    return state, last


def test_before_the_checks() -> None:
    state, effects = after(Begin(), NEEDED)
    outcome = state.outcome
    assert outcome is not None
    assert (outcome.status, outcome.trigger, outcome.review) == (
        "escalated", "human_review", "review-1",
    )  # fmt: skip
    assert (outcome.attempts, outcome.exit_code, outcome.reason) == (0, 3, NEEDED.reason)
    assert outcome.page is not None
    assert [type(e) for e in effects if isinstance(e, (Finish, Keep))] == [Finish]


def test_before_an_agent_is_asked_costs_no_attempt(make_failure: MakeFailure) -> None:
    world = World([fail(make_failure())], [NEEDED])
    state = world.run(State(setting()))
    assert (world.outcome.trigger, world.outcome.attempts, state.last_number) == (
        "human_review",
        0,
        0,
    )
    assert not world.of(Keep)


def test_a_question_of_the_agent_is_an_attempt_that_is_paid_for(make_failure: MakeFailure) -> None:
    asks = Proposal(Change.nothing(), "which one?", tokens=70, cost=0.5, question="which one?")
    needed = ReviewNeeded("review-1", "Answer it.", asks)
    world = World([fail(make_failure())], [needed])
    state = world.run(State(setting()))
    (kept,) = world.of(Keep)
    assert (kept.attempt.result, kept.attempt.tokens) == ("interrupted", 70)
    assert (state.tokens, state.cost, world.outcome.attempts) == (70, 0.5, 1)


class Held(World):
    """A world in which no change is made."""

    def answer(self, effect: object) -> Event | None:
        return NEEDED if isinstance(effect, Execute) else super().answer(effect)


def test_before_a_change_is_made(make_failure: MakeFailure) -> None:
    world = Held([fail(make_failure())], [change()])
    state = world.run(State(setting()))
    (kept,) = world.of(Keep)
    assert kept.attempt.result == "interrupted"
    assert kept.attempt.files_modified == ()
    assert (world.outcome.files, state.worked) == ((), False)


def test_what_a_person_approved_is_the_next_attempt_and_nobody_is_asked(
    make_failure: MakeFailure,
) -> None:
    world = World([fail(make_failure())], [])
    state, _ = step(State(setting(), pending_proposal=change()), Begin(), NOON)
    event = world.answer(RunChecks())
    assert event is not None
    state, effects = step(state, event, NOON)
    assert [type(effect) for effect in effects if isinstance(effect, (Ask, Validate))] == [Validate]
    assert (state.pending_proposal, state.last_number) == (None, 1)
    state, effects = step(state, Validated(Validation(("syntax_check",))), NOON)
    assert isinstance(effects[-1], Execute)


@pytest.mark.parametrize(
    "phase", [Phase.VALIDATE, Phase.EVALUATE, Phase.REFLECT, Phase.FIX, Phase.WAIT, Phase.DONE]
)
def test_elsewhere_nobody_expects_it(phase: Phase) -> None:
    with pytest.raises(IllegalTransition):
        step(State(setting(), phase=phase), NEEDED, NOON)

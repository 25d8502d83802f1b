"""How the closed loop waits for a service and for a circuit breaker, in a scripted world."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from loki.action.agent_protocol import Proposal
from loki.action.loop.loop import step
from loki.action.loop.loop_events import (
    AgentFailed,
    Ask,
    Event,
    Interrupted,
    Keep,
    Observe,
    Refused,
)
from loki.action.loop.loop_state import Phase, State
from loki.base.machine import Wait
from loki.decision.budget import Budget
from support.loop import NOON, PASS, MakeFailure, World, change, fail, setting

OPEN = Refused("api/claude", 300, "529 overloaded.")
BETWEEN_PROBES = Refused("api/claude", 8, "529 overloaded", between_probes=True)
PROBED_BY_OTHERS = Refused("api/claude", 10, "529 overloaded")
ISOLATED = Refused("api/claude", None)


def run(
    make_failure: MakeFailure, answers: Sequence[Event | Proposal], **task: Any
) -> tuple[World, State]:
    """A task whose check fails at first, and passes after the first change."""
    world = World([fail(make_failure()), PASS], answers)
    return world, world.run(State(setting(**task)))


def lost(make_failure: MakeFailure, **told: Any) -> AgentFailed:
    return AgentFailed(make_failure("connection reset by the model's service"), **told)


# --- a circuit that is open ---------------------------------------------------------------------------


def test_a_refused_call_pauses_the_task_and_is_no_attempt(make_failure: MakeFailure) -> None:
    world, state = run(make_failure, [OPEN])
    outcome = world.outcome
    assert (outcome.status, outcome.exit_code, outcome.attempts) == ("paused", 6, 0)
    assert (outcome.trigger, outcome.breaker, outcome.page) == ("circuit_open", "api/claude", None)
    assert outcome.retry_at == NOON + timedelta(seconds=302)  # two steps of a second came before
    assert outcome.reason == (
        "the circuit breaker api/claude lets no call through until 2026-04-04T12:05:02.000Z; "
        "the last error was: 529 overloaded"
    )
    assert not world.of(Keep)
    assert (state.made, state.last_number) == (0, 0)


def test_an_isolated_breaker_has_no_end(make_failure: MakeFailure) -> None:
    world, _ = run(make_failure, [ISOLATED], wait=True, budget=Budget(seconds=9e9))
    assert (world.outcome.status, world.outcome.retry_at) == ("paused", None)
    assert "until somebody closes it" in world.outcome.reason


@pytest.mark.parametrize(
    ("refused", "task", "waits"),
    [
        (OPEN, {}, False),
        (OPEN, {"wait": True}, True),
        (OPEN, {"wait": False, "budget": Budget(seconds=3600)}, False),
        (OPEN, {"budget": Budget(seconds=3600)}, True),
        (OPEN, {"budget": Budget(seconds=302)}, False),
        (OPEN, {"budget": Budget(seconds=310)}, True),
        (OPEN, {"wait": True, "budget": Budget(seconds=60)}, False),
        (PROBED_BY_OTHERS, {}, False),
        (PROBED_BY_OTHERS, {"wait": True}, True),
        (BETWEEN_PROBES, {}, True),
        (BETWEEN_PROBES, {"budget": Budget(seconds=5)}, False),
        (BETWEEN_PROBES, {"wait": False}, False),
    ],
)
def test_when_it_waits_and_when_it_pauses(
    make_failure: MakeFailure, refused: Refused, task: dict[str, Any], waits: bool
) -> None:
    world, _ = run(make_failure, [refused, change()], **task)
    if waits:
        assert [wait.seconds for wait in world.of(Wait)] == [refused.retry_after]
        assert (world.outcome.status, world.outcome.attempts) == ("success", 1)
    else:
        assert not world.of(Wait)
        assert (world.outcome.status, world.outcome.attempts) == ("paused", 0)


def test_after_the_wait_the_same_is_asked_under_the_same_number(make_failure: MakeFailure) -> None:
    world, _ = run(make_failure, [OPEN, PROBED_BY_OTHERS, change()], wait=True)
    first, second, third = world.of(Ask)
    assert first == second == third
    assert [(k.attempt.attempt, k.attempt.delay_ms) for k in world.of(Keep)] == [(1, 10_000)]


def test_an_interrupt_of_the_wait_records_nothing() -> None:
    waiting = State(setting(wait=True), Phase.GENERATE, NOON, last_number=1, made=1)
    state, _ = step(waiting, OPEN, NOON)
    for asked in (True, False):
        after, effects = step(state, Interrupted(asked), NOON)
        assert not [effect for effect in effects if isinstance(effect, Keep)]
        assert after.outcome is not None
        assert (after.outcome.status, after.outcome.attempts) == ("interrupted", 0)


# --- the failure that opens it ------------------------------------------------------------------------


def test_once_it_opens_the_remaining_retries_are_dropped(make_failure: MakeFailure) -> None:
    failed = lost(make_failure)
    world, state = run(make_failure, [failed, failed, lost(make_failure, refused=OPEN)])
    assert [wait.seconds for wait in world.of(Wait)] == [5, 10]
    assert (world.outcome.status, world.outcome.exit_code) == ("paused", 6)
    kept = [effect.attempt for effect in world.of(Keep)]
    assert [(k.attempt, k.result, k.infrastructure) for k in kept] == [
        (number, "failed", True) for number in (1, 2, 3)
    ]
    assert kept[2].decision is not None
    assert (kept[2].decision["action"], kept[2].decision["rule"]) == ("pause", 3)
    assert not world.of(Observe), "an outage makes no sign"
    assert state.last_number == 3


def test_waiting_for_it_has_no_count_that_could_run_out(make_failure: MakeFailure) -> None:
    """Five retries are the limit while the circuit is closed; an open one is waited for."""
    down = lost(make_failure, refused=OPEN)
    world, _ = run(make_failure, [down] * 20 + [change()], wait=True, max_retries=0)
    assert [wait.seconds for wait in world.of(Wait)] == [300] * 20
    assert world.outcome.status == "success"


def test_a_wrong_key_is_for_a_person_although_the_circuit_is_open(
    make_failure: MakeFailure,
) -> None:
    world, _ = run(make_failure, [lost(make_failure, retryable=False, refused=OPEN)])
    assert (world.outcome.status, world.outcome.exit_code) == ("escalated", 3)


# --- backoff ------------------------------------------------------------------------------------------


def test_the_longer_of_backoff_and_hint_wins(make_failure: MakeFailure) -> None:
    answers = [lost(make_failure, retry_after=hint) for hint in (60.0, 1.0, 600.0)]
    world, _ = run(make_failure, [*answers, change()])
    assert [wait.seconds for wait in world.of(Wait)] == [60, 10, 600]  # beyond the cap of 5 m, too


def test_a_wait_that_would_use_up_the_time_budget_ends_it_now(make_failure: MakeFailure) -> None:
    world, _ = run(make_failure, [lost(make_failure, retry_after=120.0)], budget=Budget(seconds=60))
    assert not world.of(Wait)
    assert (world.outcome.status, world.outcome.trigger, world.outcome.exit_code) == (
        "failed",
        "budget",
        5,
    )
    assert world.outcome.reason == "the time budget of 60 s leaves no room for a wait"


def test_after_an_outage_the_same_question_is_asked_again(make_failure: MakeFailure) -> None:
    """What failed is the check; that the agent was away is nothing for it to mend."""
    world = World(
        [fail(make_failure("the check")), fail(make_failure("the check")), PASS],
        [change("x = 1\n"), lost(make_failure), change("x = 2\n")],
    )
    world.run(State(setting()))
    _, before, after = world.of(Ask)
    assert (before.attempt, after.attempt) == (2, 3)
    assert (after.failure, after.strategy, after.context, after.reason) == (
        before.failure,
        before.strategy,
        before.context,
        before.reason,
    )
    assert after.context == "some lines"

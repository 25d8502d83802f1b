"""The closed loop's table: every pair of phase and event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from loki.action.changes.change import Merge, Merged
from loki.action.checks.results.suite_results import Comparison
from loki.action.gates.gate import Validation
from loki.action.loop.loop import TABLE, step
from loki.action.loop.loop_events import (
    AgentFailed,
    Answered,
    Ask,
    Checked,
    CheckRegressions,
    Compared,
    Edited,
    Event,
    Execute,
    Executed,
    Interrupted,
    Keep,
    Malformed,
    Reflect,
    Reflected,
    Refused,
    RunChecks,
    RunStrategy,
    StrategyResult,
    Validate,
    Validated,
)
from loki.action.loop.loop_state import Phase, State
from loki.base.error import IllegalTransition
from loki.base.machine import Begin, Wait, Waited
from support.loop import (
    NOON,
    PASS,
    MakeFailure,
    change,
    fail,
    setting,
)


def states(make_failure: MakeFailure) -> dict[Phase, State]:
    """A state in every phase, by way of a real run."""
    failure = make_failure()
    found: dict[Phase, State] = {}
    state = State(setting())
    script: Sequence[Event] = (
        Begin(),
        Checked(fail(failure)),
        Answered(change()),
        Validated(Validation()),
        Executed(("a.py",)),
        Checked(fail(failure)),
        Reflected(),
        StrategyResult("analyze_then_fix"),
        AgentFailed(failure),
    )
    for event in script:
        found[state.phase] = state
        state, _ = step(state, event, NOON)
    found[state.phase] = state
    found[Phase.REGRESSION], _ = step(found[Phase.EVALUATE], Checked(PASS), NOON)
    lands = replace(found[Phase.REGRESSION], setting=replace(setting(), lands=True))
    found[Phase.LAND], _ = step(lands, Compared(Comparison(compared=1)), NOON)
    found[Phase.DONE], _ = step(state, Interrupted(), NOON)
    waiting = replace(found[Phase.GENERATE], setting=setting(wait=True))
    found[Phase.BREAKER], _ = step(waiting, Refused("api/claude", 300), NOON)
    assert set(found) == set(Phase)
    return found


def events(make_failure: MakeFailure) -> dict[type[Any], Callable[[], Event]]:
    failure = make_failure()
    return {
        Begin: Begin,
        Checked: lambda: Checked(PASS),
        Answered: lambda: Answered(change("y = 1\n")),
        AgentFailed: lambda: AgentFailed(failure),
        Refused: lambda: Refused("api/claude", 300),
        Malformed: lambda: Malformed(failure),
        Edited: lambda: Edited("did it", ("a.py",)),
        Validated: lambda: Validated(Validation()),
        Executed: lambda: Executed(()),
        Compared: lambda: Compared(Comparison(compared=1)),
        Merged: Merged,
        StrategyResult: lambda: StrategyResult("analyze_then_fix"),
        Reflected: Reflected,
        Waited: Waited,
        Interrupted: Interrupted,
    }


@pytest.mark.parametrize("phase", Phase)
def test_every_pair_of_phase_and_event(make_failure: MakeFailure, phase: Phase) -> None:
    """What the table has is taken; anything else raises and leaves the state untouched."""
    state = states(make_failure)[phase]
    for kind, make in events(make_failure).items():
        if (phase, kind) in TABLE:
            after, _ = step(state, make(), NOON)
            assert after is not state
        else:
            with pytest.raises(IllegalTransition, match=phase.value):
                step(state, make(), NOON)
        assert state == states(make_failure)[phase]


def test_the_table_expects_an_interrupt_wherever_work_is_under_way() -> None:
    assert {p for p, kind in TABLE if kind is Interrupted} == set(Phase) - {Phase.NEW, Phase.DONE}


@pytest.mark.parametrize(
    ("phase", "kept"),
    [
        (Phase.BASELINE, 0),
        (Phase.GENERATE, 1),
        (Phase.VALIDATE, 1),
        (Phase.EXECUTE, 1),
        (Phase.EVALUATE, 1),
        (Phase.REGRESSION, 1),
        (Phase.LAND, 1),
        (Phase.REFLECT, 0),
        (Phase.FIX, 0),
        (Phase.WAIT, 0),
        (Phase.BREAKER, 0),
    ],
)
def test_an_interrupt_records_the_attempt_in_flight(
    make_failure: MakeFailure, phase: Phase, kept: int
) -> None:
    after, effects = step(states(make_failure)[phase], Interrupted(), NOON)
    records = [effect.attempt for effect in effects if isinstance(effect, Keep)]
    assert [record.result for record in records] == ["interrupted"] * kept
    assert after.outcome is not None
    assert (after.outcome.status, after.outcome.exit_code) == ("interrupted", 130)


def test_an_effect_that_asks_is_the_last_of_its_step(make_failure: MakeFailure) -> None:
    asking = (
        RunChecks,
        Ask,
        Validate,
        Execute,
        CheckRegressions,
        Merge,
        RunStrategy,
        Reflect,
        Wait,
    )
    for phase, state in states(make_failure).items():
        for kind, make in events(make_failure).items():
            if (phase, kind) in TABLE:
                after, effects = step(state, make(), NOON)
                asked = [isinstance(effect, asking) for effect in effects]
                assert sum(asked) == (after.phase is not Phase.DONE)
                assert not any(asked[:-1])

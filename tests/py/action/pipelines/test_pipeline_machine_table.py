"""The pipeline's table: every pair of phase and event."""

from __future__ import annotations

import pytest

from loki.action.pipelines.pipeline_machine import TABLE, step
from loki.action.pipelines.pipeline_state import (
    Phase,
    ReadOutputs,
    RollBack,
    RunStage,
)
from loki.base.error import IllegalTransition
from loki.base.machine import Wait
from support.loop import NOON
from support.pipeline import EVENTS, states


@pytest.mark.parametrize("phase", Phase)
def test_every_pair_of_phase_and_event(phase: Phase) -> None:
    """What the table has is taken; anything else raises and leaves the state untouched."""
    state = states()[phase]
    for kind, make in EVENTS.items():
        if (phase, kind) in TABLE:
            after, _ = step(state, make(), NOON)
            assert after is not state
        else:
            with pytest.raises(IllegalTransition, match=phase.value):
                step(state, make(), NOON)
        assert state == states()[phase]


def test_the_table_knows_no_other_pair() -> None:
    assert {kind for _, kind in TABLE} == set(EVENTS)


def test_an_effect_that_asks_is_the_last_of_its_step_and_an_end_asks_nothing() -> None:
    asking = (ReadOutputs, RunStage, Wait, RollBack)
    for phase, state in states().items():
        for kind, make in EVENTS.items():
            if (phase, kind) in TABLE:
                after, effects = step(state, make(), NOON)
                asked = [isinstance(effect, asking) for effect in effects]
                assert asked == [False] * (len(asked) - 1) + [not after.status]

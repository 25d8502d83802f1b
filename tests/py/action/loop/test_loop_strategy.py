"""What a failure leads to: what strategies work on."""

from __future__ import annotations

from loki.action.loop.loop_events import RunStrategy, StrategyResult
from loki.action.loop.loop_state import State
from support.loop import NOTHING, PASS, MakeFailure, World, change, fail, setting


def test_the_next_strategy_works_on_what_is_to_be_mended(make_failure: MakeFailure) -> None:
    """Not on an answer that changed nothing, as the first does not either."""
    failure = make_failure()
    helps = [
        StrategyResult("analyze_then_fix", error="it broke"),
        StrategyResult("context_expand", context="x"),
    ]
    world = World([fail(failure), PASS], [NOTHING, change()], helps=helps)
    world.run(State(setting()))
    assert [help_.failure for help_ in world.of(RunStrategy)] == [failure, failure]

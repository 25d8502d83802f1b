"""Ends with a claim that nothing bears out: how often they are refused."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from loki.decision.monitor.completion_check import MOST_REFUSALS, objection
from loki.decision.monitor.monitor_policy import step
from loki.decision.monitor.monitor_state import (
    Ended,
    Evidence,
    MonitorEvent,
    MonitorState,
    Passed,
    Reaction,
)
from loki.decision.monitor.tool_call import ToolCall, known

EDIT = Passed(known(ToolCall("Edit", {"file_path": "calc.py"})))
CHECK = Passed(known(ToolCall("Bash", {"command": "pytest -q"})))
CHANGED = MonitorState(evidence=Evidence(edits=1))
CLAIMS = [f"I did number {n}. All {n} tests pass." for n in range(50)]


def refused(events: Sequence[MonitorEvent]) -> int:
    state, said = MonitorState(), list[Reaction]()
    for event in events:
        state, reaction = step(state, event)
        said.append(reaction)
    return sum(one.kind == "refuse" for one in said)


@pytest.mark.parametrize("turn", ["", "t1"])
def test_ends_are_refused_twice_a_turn_at_most_whatever_they_say(turn: str) -> None:
    for between in (list[MonitorEvent](), [EDIT]):
        ends: list[MonitorEvent] = [
            one for claim in CLAIMS for one in (*between, Ended(claim, turn))
        ]
        assert refused([EDIT, *ends]) == MOST_REFUSALS == 2


def test_a_check_that_passes_between_gives_a_named_turn_no_more() -> None:
    rounds: list[MonitorEvent] = [
        one for claim in CLAIMS[:5] for one in (EDIT, Ended(claim, "t1"), CHECK)
    ]
    assert refused(rounds) == MOST_REFUSALS


def test_the_next_turn_is_heard_anew() -> None:
    ends = [Ended(claim, f"t{n // 4}") for n, claim in enumerate(CLAIMS[:8])]
    assert refused([EDIT, *ends]) == 2 * MOST_REFUSALS
    nameless: list[MonitorEvent] = [*map(Ended, CLAIMS[:4]), CHECK, EDIT, *map(Ended, CLAIMS[4:8])]
    assert refused([EDIT, *nameless]) == 2 * MOST_REFUSALS


def test_no_turn_is_kept_as_it_was_said() -> None:
    state, said = objection(CHANGED, "It works now.", "my password is x")
    assert said
    assert "password" not in str(state.to_dict())
    assert MonitorState.from_dict(state.to_dict()) == state

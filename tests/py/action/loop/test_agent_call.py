"""What an agent's answer means, whatever it is."""

from __future__ import annotations

import math
from typing import Any

import pytest

from loki.action.agent_protocol import Proposal
from loki.action.changes.change import Change
from loki.action.loop.agent_call import as_event
from loki.action.loop.loop_events import Answered, Malformed


@pytest.mark.parametrize("answer", [None, "x = 1", 42, [], {"a.py": True}, {"a.py": 42}, {1: "x"}])
def test_what_is_no_change_is_the_agents_failure_not_an_outage(answer: Any) -> None:
    event = as_event(answer, "writer")
    assert isinstance(event, Malformed)
    assert "expected a Change" in event.failure.message


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ({"tokens": 5, "cost": 0.5, "confidence": 1}, (5, 0.5, 1)),
        ({"tokens": -5, "cost": -0.5, "confidence": 7}, (None, None, None)),
        ({"tokens": 1.5, "cost": math.nan, "confidence": math.nan}, (None, None, None)),
        ({"tokens": "9", "cost": math.inf, "confidence": "high"}, (None, None, None)),
    ],
)
def test_figures_that_cannot_be_are_not_kept(said: dict[str, Any], kept: tuple[Any, ...]) -> None:
    event = as_event(Proposal(Change.write({"a.py": "x"}), **said), "writer")
    assert isinstance(event, Answered)
    proposal = event.proposal
    assert (proposal.tokens, proposal.cost, proposal.confidence) == kept

"""A scripted agent says what it was told to, in order, and remembers what it was asked."""

from pathlib import Path

import pytest

import loki
from loki.action.agent_protocol import Agent, Briefing, Proposal
from loki.action.changes.change import Change
from loki.agents.scripted import ScriptedAgent


def test_every_kind_of_answer() -> None:
    """Changes, proposals, mappings, functions, exceptions; then there is nothing more to change."""
    change = Change.write({"a": "1"})
    said = Proposal(change, "said", confidence=0.5)
    agent = ScriptedAgent(
        [change, said, {"b": None}, lambda b: {"c": b.text}, loki.AgentError("down")], name="s"
    )
    asked: Agent = agent
    briefing = Briefing("text", "t", 1, Path("/p"))
    assert asked.propose(briefing) == Proposal(change, agent="s")
    assert agent.propose(briefing) is said
    assert agent.propose(briefing).change == Change.write({"b": None})
    assert agent.propose(briefing).change == Change.write({"c": "text"})
    with pytest.raises(loki.AgentError, match="down"):
        agent.propose(briefing)
    assert agent.propose(briefing).change.is_empty
    assert agent.propose(briefing).change.is_empty
    assert agent.briefings == [briefing] * 7

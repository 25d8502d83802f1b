"""Agents that are asked for text alone: programs in a copy that is thrown away, models, several in a row."""

from __future__ import annotations

from pathlib import Path

import pytest

import loki
from loki.action.agent_protocol import Question, Said
from loki.agents.fallback_agent import ask
from loki.agents.fallback_chain import ChainOptions, LocalBreakers
from loki.agents.model_agent import ModelAgent
from loki.base.error import AgentError
from loki.testing import ManualClock, ScriptedLLM


@pytest.fixture
def ways() -> ChainOptions:
    clock = ManualClock()
    return ChainOptions(LocalBreakers(clock), clock)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("as it was\n")
    return tmp_path


def test_a_model_is_told_its_instructions(project: Path) -> None:
    llm = ScriptedLLM([loki.Answer("It was the clock.")])
    said = ModelAgent(llm).ask(Question("Why?", "t", project, instructions="Be brief."))
    assert isinstance(said, Said)
    assert said.text == "It was the clock."
    assert llm.requests[0].system == "Be brief."
    assert llm.requests[0].tool is None


def test_a_function_cannot_be_asked_for_text(project: Path, ways: ChainOptions) -> None:
    with pytest.raises(AgentError, match="text alone"):
        ask([dict], Question("Why?", "t", project), ways)

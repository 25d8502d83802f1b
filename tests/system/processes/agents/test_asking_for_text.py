"""Agents that are asked for text alone: programs in a copy that is thrown away, models, several in a row: with processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from loki.action.agent_protocol import Answering, Question
from loki.agents.command_agent import CommandAgent
from loki.agents.fallback_agent import FallbackAgent, ask
from loki.agents.fallback_chain import ChainOptions, LocalBreakers
from loki.base.error import BreakerOpen
from loki.testing import ManualClock


def sh(script: str, name: str = "one") -> CommandAgent:
    return CommandAgent(["sh", "-c", script], name=name, breaker=f"agent/{name}")


@pytest.fixture
def ways() -> ChainOptions:
    clock = ManualClock()
    return ChainOptions(LocalBreakers(clock), clock)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("as it was\n")
    return tmp_path


def test_a_program_sees_the_project_and_changes_nothing(project: Path, ways: ChainOptions) -> None:
    agent = sh("cat; cat a.txt; echo $WHO; rm a.txt; echo b > b.txt")
    asked = Question("why?\n", "t", project, sees_project=True, environment={"WHO": "me"})
    said = ask([agent], asked, ways)
    assert said.text == "why?\nas it was\nme\n"
    assert said.changed == ("a.txt", "b.txt")
    assert [path.name for path in project.iterdir()] == ["a.txt"]


def test_else_it_works_in_an_empty_folder(project: Path, ways: ChainOptions) -> None:
    said = ask([sh("ls a.txt; echo done; touch x")], Question("why?", "t", project), ways)
    assert (said.text, said.changed, said.tokens) == ("done\n", (), None)


def test_the_next_one_answers_where_the_first_cannot(project: Path, ways: ChainOptions) -> None:
    agent = FallbackAgent([sh("exit 3"), sh("echo two", "two")], ways)
    assert isinstance(agent, Answering)
    assert agent.ask(Question("Why?", "t", project)).text == "two\n"


def test_outages_are_told_to_the_breaker(project: Path, ways: ChainOptions) -> None:
    agent = sh("echo 'HTTP 503 Service Unavailable: overloaded_error' >&2; exit 1")
    with pytest.raises(BreakerOpen, match="failed with exit code 1"):  # asked three times
        ask([agent], Question("Why?", "t", project, retries=3), ways)
    with pytest.raises(BreakerOpen, match="lets no call through"):
        ask([sh("touch /asked")], Question("Why?", "t", project), ways)

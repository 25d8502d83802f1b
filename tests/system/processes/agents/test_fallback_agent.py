"""Agents in a row: programs and functions, each behind its own breaker: with processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import loki
from loki.action.loop.agent_call import AnyAgent
from loki.agents.command_agent import CommandAgent, ProjectTouched
from loki.agents.fallback_agent import FallbackAgent
from loki.agents.fallback_chain import ChainOptions, LocalBreakers
from loki.decision.backoff import Backoff
from loki.testing import ManualClock, ScriptedAgent
from support.llm import Kept

GOOD = loki.Proposal(loki.Change.write({"a.py": "x = 1"}), "wrote it", tokens=100, cost=0.5)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def calls() -> Kept:
    return Kept()


def chain(clock: ManualClock, calls: Kept, *agents: AnyAgent) -> FallbackAgent:
    backoff = Backoff("5s", cap="5m", jitter=0)
    return FallbackAgent(agents, ChainOptions(LocalBreakers(clock), clock, backoff, calls=calls))


def brief(tmp_path: Path, **more: Any) -> loki.Briefing:
    return loki.Briefing("Write a.py", "t-1", 1, tmp_path, **more)


def test_programs_in_a_row(tmp_path: Path, clock: ManualClock, calls: Kept) -> None:
    broken = loki.CommandAgent(["sh", "-c", "echo connection refused >&2; exit 1"], name="broken")
    works = loki.CommandAgent(["sh", "-c", "echo 'x = 1' > a.py"], name="works", breaker="agent/w")
    found = chain(clock, calls, broken, works).propose(brief(tmp_path))
    assert (found.agent, found.change.paths) == ("works", ("a.py",))
    assert [call.outcome for call in calls.all] == ["error", "ok"]


def test_whoever_touched_the_project_is_the_last_to_be_asked(
    tmp_path: Path, clock: ManualClock, calls: Kept
) -> None:
    """A person has to look first: the next one would build on what nobody proposed."""
    (tmp_path / "a.py").write_text("x = 0")
    one = CommandAgent(["sh", "-c", f"echo > '{tmp_path}/a.py'"], name="one", breaker="agent/one")
    other = ScriptedAgent([GOOD], "other")
    with pytest.raises(ProjectTouched, match=r"changed while one worked: a\.py"):
        chain(clock, calls, one, other).propose(brief(tmp_path))
    assert not other.briefings
    assert [(call.provider, call.outcome) for call in calls.all] == [("one", "error")]

"""An agent made of a model: one answer, sent back once where it cannot be used."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loki import Answer, Briefing, LLMError, ModelAgent, Proposal, ReflectionRequest, Request
from loki.action.loop.agent_call import as_failure_of
from loki.action.loop.loop_events import Malformed
from loki.agents.model_agent import SYSTEM
from loki.base.error import AllRefused
from loki.base.tokens import TokenUsage
from loki.decision.budget import Budget
from loki.memory.reflection import Reflection
from loki.testing import ScriptedLLM

WRITE = {"path": "b.py", "action": "write", "content": "x = 1\n"}
GOOD = {"description": "Write it.", "edits": [WRITE], "commands": [], "confidence": 0.9}


@pytest.fixture
def briefing(project: Path) -> Briefing:
    (project / "a.py").write_text("y = 1\n")
    return Briefing("# Task\n\nMake b.py", "t", 1, project)


def propose(agent: ModelAgent, briefing: Briefing) -> Proposal:
    proposal = agent.propose(briefing)
    assert isinstance(proposal, Proposal)
    return proposal


def test_a_proposal(briefing: Briefing) -> None:
    usage = TokenUsage(100, 20)
    llm = ScriptedLLM(
        [Answer("Well. ", str(GOOD).replace("'", '"'), "tool", usage, "m-1", "", 0.5)]
    )
    agent = ModelAgent(llm)
    proposal = propose(agent, briefing)
    assert proposal.change.paths == ("b.py",)
    assert (proposal.description, proposal.confidence) == ("Write it.", 0.9)
    assert (proposal.agent, proposal.model) == ("scripted:script", "m-1")
    assert (proposal.tokens, proposal.cost, proposal.output) == (120, 0.5, "Well. ")
    assert agent.breaker == llm.breaker


def test_what_it_is_told(briefing: Briefing) -> None:
    """What stays the same stands alone, to be cached; briefing and files come after it."""
    llm = ScriptedLLM([GOOD, GOOD])
    agent = ModelAgent(llm, max_tokens=99, timeout="7s")
    propose(agent, briefing)
    (briefing.root / "a.py").write_text("y = 2\n")
    propose(agent, briefing)
    one, other = llm.requests
    assert one.system == other.system == SYSTEM
    assert one.tool is other.tool is not None
    assert (one.max_tokens, one.timeout, one.cancelled) == (99, 7.0, briefing.cancelled)
    assert one.messages[0].text.startswith("# Task\n\nMake b.py")
    assert "y = 1" in one.messages[0].text
    assert "y = 2" in other.messages[0].text


def test_an_unusable_answer_is_sent_back_once(briefing: Briefing) -> None:
    bad = {"edits": [{"path": "a.py", "action": "replace", "old": "nix", "new": ""}]}
    first = Answer("", str(bad).replace("'", '"'), "tool", TokenUsage(10, 5), cost=0.25)
    second = Answer("", str(GOOD).replace("'", '"'), "tool", TokenUsage(20, 5), cost=0.25)
    llm = ScriptedLLM([first, second])
    proposal = propose(ModelAgent(llm), briefing)
    assert proposal.change.paths == ("b.py",)
    assert (proposal.tokens, proposal.cost) == (40, 0.5), "both calls count"
    roles = [message.role for message in llm.requests[1].messages]
    assert roles == ["user", "assistant", "user"]
    assert "does not occur" in llm.requests[1].messages[2].text
    assert llm.requests[1].messages[1].text == first.arguments


@pytest.mark.parametrize("answer", ["I am done.", Answer("No.", ending="refused"), {"edits": 3}])
def test_twice_unusable_is_the_models_failure(briefing: Briefing, answer: Any) -> None:
    llm = ScriptedLLM([answer, answer])
    with pytest.raises(LLMError) as caught:
        propose(ModelAgent(llm), briefing)
    assert (caught.value.kind, caught.value.retryable) == ("malformed", False)
    event = as_failure_of(caught.value)
    assert isinstance(event, Malformed), "an attempt that failed, and no outage"
    assert event.failure.error_code == "malformed-answer"


BAD = Answer("", '{"edits": 3}', "tool", TokenUsage(90, 10), cost=0.25)


@pytest.mark.parametrize("is_async", [False, True])
def test_what_an_unusable_answer_took_counts_where_the_next_call_fails(
    briefing: Briefing, is_async: bool
) -> None:
    failed = LLMError("down", "server", usage=TokenUsage(5, 0))
    refused = AllRefused("api/x", 300.0, 0.0, "down", calls=2, tokens=7, cost=0.5)
    expected: list[tuple[LLMError | AllRefused, tuple[int, float]]] = [
        (failed, (105, 0.25)),
        (refused, (107, 0.75)),
    ]
    for error, taken in expected:
        agent = ModelAgent(Async(BAD, error) if is_async else ScriptedLLM([BAD, error]))
        with pytest.raises((LLMError, AllRefused)):
            found = agent.propose(briefing)
            assert isinstance(found, Awaitable)
            asyncio.run(_awaited(found))
        assert (error.tokens, error.cost) == taken
    assert refused.calls == 3


async def _awaited(found: Awaitable[Proposal]) -> Proposal:
    return await found


def test_nothing_is_sent_back_once_the_budget_is_spent(briefing: Briefing) -> None:
    llm = ScriptedLLM([BAD, BAD])
    with pytest.raises(LLMError, match="no usable answer.*budget of 100 tokens is spent") as caught:
        propose(ModelAgent(llm), replace(briefing, left=Budget(tokens=100)))
    assert (caught.value.kind, caught.value.tokens, caught.value.cost) == ("budget", 100, 0.25)
    llm = ScriptedLLM([BAD, GOOD])
    propose(ModelAgent(llm), replace(briefing, left=Budget(tokens=1000, seconds=9.0)))
    assert [asked.left.tokens for asked in llm.requests] == [1000, 900]
    assert llm.requests[1].left.seconds == 9.0


def test_an_outage_goes_through(briefing: Briefing) -> None:
    llm = ScriptedLLM([LLMError("down", "overloaded", retry_after=3)])
    with pytest.raises(LLMError, match="down"):
        propose(ModelAgent(llm), briefing)


def test_what_is_no_utf_8_is_no_crash(briefing: Briefing) -> None:
    """Names of files, and what the model says itself."""
    (briefing.root / os.fsdecode(b"caf\xe9.txt")).write_text("x\n")
    hostile = {"description": "\ud800 half", "edits": [WRITE]}
    llm = ScriptedLLM(["\ud800", hostile])
    proposal = propose(ModelAgent(llm), briefing)
    assert proposal.description == "? half"
    for request in llm.requests:
        for message in request.messages:
            assert message.text.encode()


class Async:
    """A model of somebody else's, whose ``complete`` is a coroutine."""

    provider, model, breaker = "other", "m", "api/other"

    def __init__(self, *answers: Any) -> None:
        self.inner = ScriptedLLM(answers)

    async def complete(self, request: Request) -> Answer:
        self.loop = asyncio.get_running_loop()
        await asyncio.sleep(0)
        return self.inner.complete(request)


class Decorated(Async):
    """The same, traced: its ``complete`` gives a coroutine, and is none."""

    @functools.wraps(Async.complete)
    def complete(self, request: Request) -> Awaitable[Answer]:  # type: ignore[override]
        return super().complete(request)


@pytest.mark.parametrize("kind", [Async, Decorated])
def test_an_asynchronous_model(briefing: Briefing, kind: type[Async]) -> None:
    async def work() -> Proposal:
        llm = kind("what?", GOOD)
        pending = ModelAgent(llm).propose(briefing)
        assert isinstance(pending, Awaitable)
        proposal = await pending
        assert llm.loop is asyncio.get_running_loop(), "where its client lives"
        return proposal

    assert asyncio.run(work()).change.paths == ("b.py",)


def test_it_reflects_where_it_is_asked_to(briefing: Briefing) -> None:
    llm = ScriptedLLM(["The sign was wrong."])
    agent = ModelAgent(llm, reflect=True)
    assert agent.reflect is not None
    request = ReflectionRequest("What went wrong?", "t", 1, briefing.root)
    said = agent.reflect(request)
    assert isinstance(said, Reflection)
    assert said.why == "The sign was wrong."
    assert llm.requests[0].tool is None
    assert ModelAgent(llm).reflect is None


def test_what_is_kept_of_it() -> None:
    agent = ModelAgent(ScriptedLLM([]), name="fast", reference="fast")
    assert agent.to_dict() == {"name": "fast", "reflect": False, "agent": "fast"}
    assert "agent" not in ModelAgent(ScriptedLLM([])).to_dict()

"""The real claude, codex and gemini, through loki, against a service on this machine."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

import loki
from loki.action.agent_protocol import Briefing
from loki.agents import command_agent
from loki.agents.command_agent import CommandAgent
from loki.base.error import AgentError, LLMError
from loki.testing import ManualClock
from support import agents
from support.llm_service import LLMService, Reply, broken, failed

NAMES = ("claude", "codex", "gemini")


class Stage:
    """A project, a service, and the programs on the PATH."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.monkeypatch = root, monkeypatch
        self.project = root / "project"
        self.project.mkdir()
        (self.project / "a.txt").write_text("a\n")

    def agent(self, name: str, url: str, timeout: str = "2m") -> CommandAgent:
        programs = agents.need_agent(name)
        for variable, value in agents.environment(name, url, self.root / "home").items():
            self.monkeypatch.setenv(variable, value)
        self.monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        self.monkeypatch.setattr(tempfile, "tempdir", None)
        return CommandAgent(agents.command(name, url), preset=name, timeout=timeout)

    def propose(self, agent: CommandAgent) -> loki.Proposal:
        return agent.propose(Briefing("Write a note", "task-1", 1, self.project))


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(tmp_path, monkeypatch)


@pytest.mark.parametrize("name", NAMES)
def test_what_it_edits_is_its_change(name: str, stage: Stage) -> None:
    with LLMService(agents.writes(name)) as service:
        proposal = stage.propose(stage.agent(name, service.url))
    assert [(edit.path, edit.after) for edit in proposal.change.edits] == [("note.txt", b"hello\n")]
    assert proposal.description == "I wrote the note."
    assert proposal.model == agents.MODELS[name]
    # Two answers, each of 130 tokens read and 40 said; Gemini's thoughts count, too.
    assert proposal.tokens == 2 * (130 + 40) + (10 if name == "gemini" else 0)
    assert (proposal.cost is not None) == (name == "claude")
    assert not (stage.project / "note.txt").exists()
    assert any("Write a note" in request.text for request in service.received)


FAULTS: dict[str, dict[str, tuple[Reply, str, bool]]] = {
    "claude": {
        "overload": (failed(529, "overloaded_error", "Overloaded"), "overloaded", True),
        "rate limit": (
            failed(429, "rate_limit_error", "slow down", headers={"retry-after": "1"}),
            "rate_limit",
            True,
        ),
        "server": (failed(500, "api_error", "oops"), "server", True),
        "wrong key": (failed(401, "authentication_error", "invalid x-api-key"), "authentication", False),
        "no money": (
            failed(400, "invalid_request_error", "Your credit balance is too low to access the API."),
            "quota",
            False,
        ),
    },
    "codex": {
        "overload": (failed(503, "server_error", "overloaded"), "overloaded", True),
        "rate limit": (
            failed(429, "tokens", "Rate limit reached.", code="rate_limit_exceeded"),
            "rate_limit",
            True,
        ),
        "wrong key": (
            failed(401, "invalid_request_error", "Incorrect API key provided", code="invalid_api_key"),
            "authentication",
            False,
        ),
        "no money": (
            failed(429, "insufficient_quota", "You exceeded your current quota", code="insufficient_quota"),
            "quota",
            False,
        ),
    },
    "gemini": {
        "overload": (failed(503, "UNAVAILABLE", "The model is overloaded."), "overloaded", True),
        "rate limit": (
            failed(429, "RESOURCE_EXHAUSTED", "Too many. Please retry in 37.2s."),
            "rate_limit",
            True,
        ),
        "wrong key": (failed(400, "INVALID_ARGUMENT", "API key not valid."), "authentication", False),
        "bad request": (failed(400, "INVALID_ARGUMENT", "contents: bad"), "bad_request", False),
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "fault"), [(name, fault) for name, faults in FAULTS.items() for fault in faults]
)
def test_an_outage_is_one_and_a_wrong_key_is_none(name: str, fault: str, stage: Stage) -> None:
    reply, kind, retryable = FAULTS[name][fault]
    with LLMService(lambda _request: reply) as service:
        agent = stage.agent(name, service.url)
        with pytest.raises(LLMError) as error:
            stage.propose(agent)
    assert (error.value.kind, error.value.retryable) == (kind, retryable), str(error.value)
    assert "sk-" not in str(error.value)
    if name == "gemini" and fault == "rate limit":
        assert error.value.retry_after == pytest.approx(37, abs=0.5)


@pytest.mark.parametrize("name", NAMES)
def test_nobody_listens(name: str, stage: Stage) -> None:
    """No service at all: Claude Code and Gemini say so, Codex would wait for ever.

    It says so three times within fifteen seconds; the first time is enough here.
    """
    stage.monkeypatch.setattr(command_agent, "PATIENCE", 1)
    with LLMService() as service:
        url = service.url
    with pytest.raises(LLMError) as error:
        stage.propose(stage.agent(name, url))
    assert (error.value.kind, error.value.retryable) == ("connection", True), str(error.value)


@pytest.mark.parametrize("name", NAMES)
def test_the_whole_loop(name: str, stage: Stage) -> None:
    """The check fails for want of a file, the program writes it, and the record says what it took."""
    check = "test -s note.txt"
    with LLMService(agents.writes(name)) as service:
        agent = stage.agent(name, service.url)
        outcome = loki.run("write a note", agent=agent, checks=[check], path=str(stage.project))
    assert (outcome.status, outcome.files) == ("success", ("note.txt",))
    (attempt,) = loki.Workspace(stage.project).history(outcome.task_id).attempts()
    assert (attempt.agent, attempt.model) == (name, agents.MODELS[name])
    assert attempt.tokens == 340 + (10 if name == "gemini" else 0)


@pytest.mark.parametrize(
    ("fault", "status", "calls"),
    [("overload", "paused", 3), ("no money", "escalated", 1), ("wrong key", "escalated", 1)],
)
def test_the_loop_waits_out_an_outage_and_asks_a_person_for_money(
    fault: str, status: str, calls: int, stage: Stage
) -> None:
    """Three calls open the circuit breaker; what only a person can mend is asked for once."""
    reply, _, _ = FAULTS["claude"][fault]
    workspace = loki.Workspace(stage.project, clock=ManualClock())
    with LLMService(lambda _request: reply) as service:
        agent = stage.agent("claude", service.url)
        with workspace.task("write a note", checks=["test -s note.txt"], wait=False) as task:
            outcome = task.run(agent)
        assert len(service.received) == calls
    assert outcome.status == status
    assert outcome.breaker == ("api/claude" if status == "paused" else None)


def test_a_service_that_hangs(stage: Stage) -> None:
    """The time-out for an answer ends the program and all that it started."""
    with LLMService(lambda _request: broken("hangs")) as service:
        agent = stage.agent("claude", service.url, timeout="2s")
        with pytest.raises(AgentError, match="was not done after 2 s") as error:
            stage.propose(agent)
    assert error.value.retryable

"""How a workspace asks models and agents: by names, lists and its configuration: with processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import loki
from loki.agents.fallback_agent import FallbackAgent
from loki.agents.model_agent import ModelAgent
from loki.memory.call_log import Calls
from loki.testing import ManualClock
from support.llm_service import LLMService, Received, Reply, Said, failed
from support.project import QUICK, RIGHT, make_project

FIX: dict[str, Any] = {
    "description": "Add instead of subtracting.",
    "edits": [{"path": "calc.py", "action": "write", "content": RIGHT}],
}
FIRST, SECOND = "anthropic:claude-opus-5", "openai:gpt-5"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a key")
    monkeypatch.setenv("OPENAI_API_KEY", "a key")
    return make_project(tmp_path / "p")


def configure(project: Path, text: str) -> None:
    (project / ".loki").mkdir(exist_ok=True)
    (project / ".loki" / "config.toml").write_text(text)


def first_is_down(request: Received) -> Reply:
    if request.wire == "messages":
        return failed(529, "overloaded_error", "Overloaded")
    return Said(arguments=FIX, input=1000, output=100)


@pytest.mark.parametrize("agent", [[FIRST, SECOND], f"{FIRST}, {SECOND}"])
def test_models_in_a_row(
    project: Path, monkeypatch: pytest.MonkeyPatch, agent: str | list[str]
) -> None:
    clock = ManualClock()
    with LLMService(first_is_down) as service:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", service.url)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{service.url}/v1")
        workspace = loki.Workspace(project, clock=clock)
        with workspace.task("make add add", checks=[QUICK]) as task:
            outcome = task.run(agent)
    assert outcome.status == "success"
    told = [(call.model, call.outcome, call.attempts) for call in Calls(workspace.store)]
    assert told == [("claude-opus-5", "error", 3), ("gpt-5", "ok", 1)]
    (attempt,) = workspace.history(outcome.task_id).attempts()
    assert (attempt.model, attempt.tokens) == ("gpt-5", 1100)
    assert attempt.cost == pytest.approx(0.00225)
    kept = workspace.agent(f"{FIRST}, {SECOND}")
    assert isinstance(kept, ModelAgent)
    assert kept.to_dict()["agent"] == f"{FIRST}, {SECOND}", "loki resume knows whom to ask"


def test_programs_and_models_in_a_row(project: Path) -> None:
    text = f'[agents.claude]\ncommand = "false"\nfallback = ["codex", "{SECOND}"]\n'
    configure(project, text + '[agents.codex]\ncommand = "true"\n')
    agent = loki.Workspace(project).agent("claude")
    assert isinstance(agent, FallbackAgent)
    assert [type(one) for one in agent.agents] == [
        loki.CommandAgent,
        loki.CommandAgent,
        ModelAgent,
    ]
    assert agent.to_dict()["agent"] == "claude"
    given: list[Any] = [loki.ScriptedAgent([{"calc.py": RIGHT}]), SECOND]
    with loki.Workspace(project).task("make add add", checks=[QUICK]) as task:
        assert task.run(given).status == "success"


def test_a_program_that_fails_is_followed_by_the_next(project: Path) -> None:
    down = "sh -c 'echo \"503 Service Unavailable\" >&2; exit 1'"
    works = "sh -c 'cp right.py calc.py'"
    (project / "right.py").write_text(RIGHT)
    configure(
        project,
        f'[agents.a]\ncommand = """{down}"""\nbreaker = "api/a"\nfallback = ["b"]\n'
        f'[agents.b]\ncommand = "{works}"\nbreaker = "api/b"\n',
    )
    clock = ManualClock()
    workspace = loki.Workspace(project, clock=clock)
    with workspace.task("make add add", checks=[QUICK]) as task:
        assert task.run("a").status == "success"
    told = [
        (call.call, call.provider, call.outcome, call.attempts) for call in Calls(workspace.store)
    ]
    assert told == [("agent", "a", "error", 3), ("agent", "b", "ok", 1)]


def test_a_model_is_asked_for_less_where_all_of_it_does_not_fit(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "prompt is too long: 210000 tokens > 200000 maximum"
    script = [failed(400, "invalid_request_error", long)] * 2
    with LLMService([*script, Said(arguments=FIX)]) as service:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", service.url)
        outcome = loki.run("make add add", agent=FIRST, checks=[QUICK], path=str(project))
    assert outcome.status == "success"
    told = [request.text for request in service.received]
    assert ["# Less than usual" in text for text in told] == [False, True, False]
    assert "# As little as possible" in told[2]
    calls = list(Calls(loki.Workspace(project).store))
    assert [(call.work, call.outcome, call.error_kind) for call in calls] == [
        ("full", "error", "too_long"),
        ("simpler", "error", "too_long"),
        ("minimal", "ok", ""),
    ]


def test_what_a_useless_answer_took_counts(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nonsense = Said("I would rather talk.", input=300, output=20)
    with LLMService([nonsense] * 9) as service:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", service.url)
        outcome = loki.run(
            "make add add", agent=FIRST, checks=[QUICK], path=str(project), max_tokens=600
        )
    assert (outcome.status, outcome.trigger, outcome.exit_code) == ("failed", "budget", 5)
    assert len(service.received) == 2, "the question, and the answer sent back once"

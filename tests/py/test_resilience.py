"""How a workspace asks models and agents: by names, lists and its configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import loki
from loki.agents.model_agent import ModelAgent
from loki.agents.resilient_llm import ResilientLLM
from loki.base.error import ConfigError
from support.project import QUICK, make_project

FIRST, SECOND = "anthropic:claude-opus-5", "openai:gpt-5"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a key")
    monkeypatch.setenv("OPENAI_API_KEY", "a key")
    return make_project(tmp_path / "p")


def configure(project: Path, text: str) -> None:
    (project / ".loki").mkdir(exist_ok=True)
    (project / ".loki" / "config.toml").write_text(text)


def names(agent: Any) -> list[str]:
    assert isinstance(agent, ModelAgent)
    assert isinstance(agent.llm, ResilientLLM)
    return [llm.model for llm in agent.llm.llms]


def test_models_of_the_configuration(project: Path) -> None:
    text = f'[agents.writer]\nmodel = "{FIRST}"\nbreaker = "api/mine"\nfallback = ["small", "{SECOND}"]\n'
    configure(project, text + '[agents.small]\nmodel = "anthropic:claude-haiku-4-5"\n')
    workspace = loki.Workspace(project)
    agent = workspace.agent("writer")
    assert names(agent) == ["claude-opus-5", "claude-haiku-4-5", "gpt-5"]
    assert isinstance(agent, ModelAgent)
    assert (agent.name, agent.breaker) == ("writer", "api/mine")
    assert names(workspace.agent(FIRST)) == ["claude-opus-5"]


def test_ones_own_prices_and_ways(project: Path) -> None:
    text = '[prices."gpt-5"]\ninput = 7\noutput = 8.5\n[models]\nparallel = 2\n'
    configure(project, text + '[loop]\ninfrastructure_retries = 2\nbackoff = "1s"\n')
    ways = loki.Workspace(project).ways
    price = ways.prices.of("gpt-5-2025-08-07")
    assert price is not None
    assert (price.input, price.output) == (7, 8.5)
    assert (ways.parallel, ways.retries) == (2, 2)
    assert ways.backoff.preview(1, offset=1)[0] == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[prices."gpt-5"]\ninput = -1\noutput = 1\n', r"config.toml:2:1: prices.gpt-5.input: .*"),
        ('[prices."gpt-5"]\ninput = 1\n', r"prices.gpt-5.output: found nothing"),
        ("[models]\nparalel = 2\n", r"config.toml:2:1: unknown setting models.paralel"),
        ('[agents.a]\nmodel = "x:y"\nfallback = [""]\n', r"config.toml:3:1: agents.a.fallback.0"),
        ('[agents.a]\nmodel = "x:y"\nfallback = ["a"]\n', r"agents: .*leads back to it \(a → a\)"),
        (
            '[agents.a]\nmodel = "x:y"\nfallback = ["b"]\n'
            '[agents.b]\ncommand = "b"\nfallback = ["claude", "a"]\n',
            r"the fallback of 'a' leads back to it \(a → b → a\): expected a chain that ends",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(project: Path, text: str, told: str) -> None:
    configure(project, text)
    with pytest.raises(ConfigError, match=told):
        loki.Workspace(project)


@pytest.mark.parametrize(
    ("agent", "told"),
    [
        ([], "empty list of agents"),
        ([FIRST, "nobody"], "unknown agent 'nobody'"),
        ([FIRST, FIRST], "each of them once"),
        (f"{FIRST},", "unknown agent ''"),
    ],
)
def test_lists_that_make_no_agent(project: Path, agent: Any, told: str) -> None:
    with pytest.raises(loki.UsageError, match=told):
        loki.run("make add add", agent=agent, checks=[QUICK], path=str(project))

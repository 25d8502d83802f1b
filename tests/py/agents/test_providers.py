"""Models by short names."""

from __future__ import annotations

import sys

import pytest

from loki import AnthropicLLM, OpenAILLM, UsageError
from loki.agents.providers import PROVIDERS, is_model, llm_of

KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}


@pytest.fixture(autouse=True)
def _without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS.values():
        monkeypatch.delenv(name, raising=False)


def test_each_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS.values():
        monkeypatch.setenv(name, "k")
    assert isinstance(llm_of("anthropic:claude-test"), AnthropicLLM)
    assert isinstance(llm_of("openai:gpt-test"), OpenAILLM)
    assert llm_of("openai:ft:gpt-4o:org::id").model == "ft:gpt-4o:org::id"


@pytest.mark.parametrize("provider", KEYS)
def test_without_a_key_the_variable_is_named(provider: str) -> None:
    with pytest.raises(UsageError, match=f"set the environment variable {KEYS[provider]}"):
        llm_of(f"{provider}:m")


def test_a_key_of_another_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "https://models.example.org/v1"
    with pytest.raises(UsageError, match="OTHER_KEY"):
        llm_of("openai:m", base_url=url, api_key_variable="OTHER_KEY")
    monkeypatch.setenv("OTHER_KEY", "k")
    assert llm_of("openai:m", base_url=url, api_key_variable="OTHER_KEY").model == "m"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_without_its_client_the_extra_is_named(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, provider.replace("-", "_"), None)
    with pytest.raises(UsageError, match=rf"pip install 'loki-core\[{provider}\]'"):
        llm_of(f"{provider}:m")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (
            "antropic:m",
            "unknown provider 'antropic': expected one of anthropic, openai, pydantic-ai",
        ),
        ("gpt-6", "model 'gpt-6': expected provider:model, like 'openai:gpt-6'"),
        ("anthropic:", "expected provider:model"),
    ],
)
def test_an_unknown_name(name: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        llm_of(name)


def test_what_looks_like_a_model() -> None:
    assert is_model("open-router:x")
    assert not any(map(is_model, ("fast", "fast:", ":x", "a b:c", "./x:y")))

"""Models by short names, ``provider:model``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

from loki.action.agent_protocol import LLM
from loki.base.error import UsageError
from loki.base.text_format import did_you_mean

EXAMPLES = {
    "anthropic": "anthropic:claude-opus-4-5",
    "openai": "openai:gpt-5",
    "pydantic-ai": "pydantic-ai:google:gemini-3-pro",
}
"""A model of each provider, to be shown."""

PROVIDERS = tuple(EXAMPLES)
"""Whose client loki speaks through: two official ones, for compatible services, too, with a base URL; and
pydantic-ai, which knows many others."""


def is_model(name: str) -> bool:
    """Whether a name has the form ``provider:model``.

    Example:
        >>> is_model("anthropic:claude-opus-4-5"), is_model("reviewer")
        (True, False)
    """
    provider, _, model = name.partition(":")
    return bool(model) and provider.replace("_", "").replace("-", "").isalnum()


def llm_of(
    name: str,
    *,
    base_url: str | None = None,
    api: Literal["responses", "chat"] | None = None,
    api_key_variable: str | None = None,
    temperature: float | None = None,
    effort: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> LLM:
    """A model by its short name.

    Args:
        name: ``anthropic:<model>``, ``openai:<model>``, or ``pydantic-ai:<model>`` with a model as that
            names it.
        base_url: of a compatible service; None: the provider's.
        api: which of OpenAI's.
        api_key_variable: the environment variable of the key; None: the provider's own.
        temperature, effort, headers: of each request, as the models' classes take them.

    Raises:
        UsageError: there is no such provider, its client is not installed, or there is no key.

    Example:
        >>> llm_of("openai:qwen3", base_url="http://localhost:11434/v1").breaker
        'api/openai@localhost:11434/qwen3'
    """
    provider, _, model = name.partition(":")
    if not model:
        like = f"openai:{provider}" if provider else "anthropic:claude-opus-4-5"
        raise UsageError(f"model {name!r}: expected provider:model, like {like!r}")
    if provider not in PROVIDERS:
        raise UsageError(
            f"unknown provider {provider!r}: expected one of {', '.join(PROVIDERS)}"
            f"{did_you_mean(provider, PROVIDERS)}; a compatible service goes by one of them with a base_url "
            "in .loki/config.toml"
        )
    key = None
    if api_key_variable is not None:
        key = os.environ.get(api_key_variable)
        if not key:
            raise UsageError(f"no key for {name}: set the environment variable {api_key_variable}")
    told: dict[str, Any] = {"temperature": temperature, "effort": effort, "headers": headers}
    if provider == "pydantic-ai":
        if base_url is not None or key is not None:
            raise UsageError(
                f"{name}: pydantic-ai finds address and key by itself; expected no base_url and no "
                "api_key_variable (in Python, give loki.PydanticAILLM a model of its own)"
            )
        from loki.agents.pydantic_ai_llm import PydanticAILLM

        return PydanticAILLM(model, **told)
    told |= {"api_key": key, "base_url": base_url}
    if provider == "anthropic":
        from loki.agents.anthropic_llm import AnthropicLLM

        return AnthropicLLM(model, **told)
    from loki.agents.openai_llm import OpenAILLM

    return OpenAILLM(model, api=api, **told)

"""Models by short names, ``provider:model``.

Under test: ``tests/py/agents/test_providers.py``.
"""

from __future__ import annotations

import os
from typing import Literal

from loki.action.llm import LLM
from loki.base.error import UsageError
from loki.recognition.definition import hint

EXAMPLES = {"anthropic": "anthropic:claude-opus-4-5", "openai": "openai:gpt-5"}
"""A model of each provider, to be shown."""

PROVIDERS = tuple(EXAMPLES)
"""Whose official client loki speaks through; compatible services go by one of these with a base URL."""


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
) -> LLM:
    """A model by its short name.

    Args:
        name: ``anthropic:<model>`` or ``openai:<model>``.
        base_url: of a compatible service; None: the provider's.
        api: which of OpenAI's.
        api_key_variable: the environment variable of the key; None: the provider's own.

    Raises:
        UsageError: there is no such provider, its client is not installed, or there is no key.

    Example:
        >>> llm_of("openai:qwen3", base_url="http://localhost:11434/v1").breaker
        'api/openai/qwen3'
    """
    provider, _, model = name.partition(":")
    if not model:
        like = f"openai:{provider}" if provider else "anthropic:claude-opus-4-5"
        raise UsageError(f"model {name!r}: expected provider:model, like {like!r}")
    if provider not in PROVIDERS:
        raise UsageError(
            f"unknown provider {provider!r}: expected one of {', '.join(PROVIDERS)}"
            f"{hint(provider, PROVIDERS)}; a compatible service goes by one of them with a base_url "
            "in .loki/config.toml"
        )
    key = None
    if api_key_variable is not None:
        key = os.environ.get(api_key_variable)
        if not key:
            raise UsageError(f"no key for {name}: set the environment variable {api_key_variable}")
    if provider == "anthropic":
        from loki.agents.anthropic import AnthropicLLM

        return AnthropicLLM(model, api_key=key, base_url=base_url)
    from loki.agents.openai import OpenAILLM

    return OpenAILLM(model, api_key=key, base_url=base_url, api=api)

"""OpenAI Agents SDK: several models as one that stands in for itself.

    agent = Agent("fixer", model=ResilientModel("gpt-5.5", "gpt-5.5-mini"))

Needs the extra ``openai-agents``.
"""

# ruff: noqa: A002 - the SDK's names
from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

try:
    import agents
except ImportError as error:
    raise ImportError("needs openai-agents: pip install 'loki-core[openai-agents]'") from error

from loki.action.loop.agent_call import is_resilient
from loki.adapters.resilient_calls import ResilientCalls

ONCE = agents.ModelSettings(retry=agents.ModelRetrySettings(max_retries=0))
"""Settings with which the SDK does not ask again by itself."""


class ResilientModel(agents.Model):
    """Models of the SDK as one, each behind a circuit breaker of its own, as `loki.ResilientLLM`.

    Args:
        models: or their names, the preferred one first.
        how: as `loki.ResilientLLM` takes it: ``breakers``, ``backoff``, ``retries``, …

    Raises:
        UsageError: one is named twice.

    Example:
        >>> import asyncio
        >>> from agents import Agent, Runner
        >>> from agents.testing import ScriptedModel, assistant_message
        >>> model = ResilientModel(ScriptedModel([[assistant_message("Hello")]]))
        >>> asyncio.run(Runner.run(Agent("greeter", model=model), "Hi")).final_output
        'Hello'
    """

    is_resilient = True

    def __init__(self, *models: agents.Model | str, **how: Any) -> None:
        provider = agents.MultiProvider()
        self.models = [provider.get_model(m) if isinstance(m, str) else m for m in models]
        self._calls = ResilientCalls([names_of(one) for one in self.models], **how)

    async def get_response(
        self,
        system_instructions: Any,
        input: Any,
        model_settings: agents.ModelSettings,
        *args: Any,
        **more: Any,
    ) -> agents.ModelResponse:
        """As the one of them that answers."""
        given = system_instructions, input, model_settings.resolve(ONCE), *args
        calls = [partial(one.get_response, *given, **more) for one in self.models]
        return await self._calls.aask(calls)

    def stream_response(
        self,
        system_instructions: Any,
        input: Any,
        model_settings: agents.ModelSettings,
        *args: Any,
        **more: Any,
    ) -> AsyncIterator[Any]:
        """As the one of them that answers; what breaks in mid-stream is not asked again."""
        given = system_instructions, input, model_settings.resolve(ONCE), *args
        calls = [partial(one.stream_response, *given, **more) for one in self.models]
        return self._calls.astream(calls, is_silent)

    async def close(self) -> None:
        """Close all of them."""
        for one in self.models:
            await one.close()


def names_of(model: agents.Model) -> tuple[str, str]:
    """A model's provider and name."""
    provider, _, name = str(getattr(model, "model", None) or type(model).__name__).rpartition("/")
    return provider or "openai", name


def breaker_of(model: agents.Model) -> str:
    """The name of a model's circuit breaker; "": it passes its own."""
    return "" if is_resilient(model) else "api/{}/{}".format(*names_of(model))


_SILENT = {"response.created", "response.in_progress"}


def is_silent(event: Any) -> bool:
    """Whether nothing has been said yet with an event of a stream."""
    return event.type in _SILENT

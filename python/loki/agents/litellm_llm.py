"""Any model that litellm knows, as one of loki's.

What is sent and why: ``docs/design/llm.md``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from loki.action.agent_protocol import Request
from loki.agents.model_call import (
    STALL,
    CalledLLM,
    Draft,
    Options,
    Service,
    breaker_name,
    checked_url,
    collect,
    loaded,
    without_none,
)
from loki.agents.openai_llm import chat_messages, function_form, read_chunk
from loki.base.error import UsageError
from loki.base.time import Clock, Duration, SystemClock, argument_seconds


class LiteLLM(CalledLLM):
    """A model of litellm's: of any provider that it knows.

    Streams always; one call over the wire for a request: litellm's own retries are off.

    Example:
        >>> llm = LiteLLM("groq/llama-3.3-70b-versatile")    # doctest: +SKIP
        >>> llm.provider, llm.breaker                        # doctest: +SKIP
        ('groq', 'api/groq/llama-3.3-70b-versatile')
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        temperature: float | None = None,
        effort: str | None = None,
        headers: Mapping[str, str] | None = None,
        breaker: str | None = None,
        stall: Duration = STALL,
        clock: Clock | None = None,
    ) -> None:
        """A model; nothing is sent yet.

        Args:
            model: as litellm names it, ``groq/llama-3.3-70b-versatile`` for instance.
            api_key: None: litellm looks for it where the provider's is kept.
            base_url: of a service of one's own; None: the provider's.
            temperature: None: the model's own.
            effort: how hard it thinks: ``low``, ``medium``, ``high``, …; None: its own.
            headers: sent with each request.
            breaker: name of the circuit breaker; None: by provider, model and host.
            stall: time without a byte after which the answer counts as stalled.
            clock: what a Retry-After date is seen from.

        Raises:
            UsageError: litellm is not installed, or does not know the model's provider.
        """
        # It would fetch its table of prices from the net while it is imported; it has one with it.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        self._litellm = loaded("litellm", "litellm")
        self._litellm.suppress_debug_info = True  # it prints to the terminal with each error
        try:
            self.model, self.provider, _, _ = self._litellm.get_llm_provider(model)
        except Exception as error:  # litellm's are of many kinds
            raise UsageError(f"litellm has no model {model!r}: {error}") from error
        self._name, self._api_key = model, api_key
        self.base_url = checked_url(base_url)
        own = "" if self.base_url is None else "."
        self.breaker = breaker or breaker_name(self.provider, self.model, base_url or "", own)
        self._options = Options(temperature, effort, headers or {})
        self._stall = argument_seconds("stall", stall)
        self._clock: Clock = clock or SystemClock()
        self._service = Service(self.provider, self.model, "its provider's key", base_url or "")

    async def _ask(self, request: Request, draft: Draft) -> None:
        stream = await self._litellm.acompletion(**self._body(request))
        draft.content_type = "text/event-stream"
        await collect(stream, read_chunk, draft, self._service, request)

    def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._name,
            "messages": chat_messages(request),
            "max_tokens": request.max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
            "timeout": min(self._stall, request.timeout),
            "num_retries": 0,
            "max_retries": 0,
            "drop_params": True,  # what a provider does not know is left out, not refused
            "api_key": self._api_key,
            "base_url": self.base_url,
            "temperature": self._options.temperature,
            "reasoning_effort": self._options.effort,
            "extra_headers": dict(self._options.headers) or None,
        }
        if request.tool is not None:
            body["tools"] = [{"type": "function", "function": function_form(request.tool)}]
            body["tool_choice"] = {"type": "function", "function": {"name": request.tool.name}}
        return without_none(body)

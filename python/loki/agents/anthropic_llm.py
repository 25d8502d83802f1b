"""Anthropic's models, by the official client.

What is sent and why: ``docs/design/llm.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from loki.action.agent_protocol import Ending, Request
from loki.agents.model_call import (
    STALL,
    Draft,
    OfficialLLM,
    Options,
    plain_messages,
    without_none,
)
from loki.base.error import UsageError
from loki.base.time import Clock, Duration

if TYPE_CHECKING:
    import httpx2

VARIABLE = "ANTHROPIC_API_KEY"

ENDINGS: dict[str, Ending] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tool",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}
"""Anthropic's stop reasons: anthropic.types.StopReason."""


class AnthropicLLM(OfficialLLM):
    """A model of Anthropic's, or of a service that speaks its Messages API.

    Streams always; prompt caching ends with the system text; the answer's form is a tool that the
    model is made to call. One call over the wire for a request, but for models that refuse to be
    made to: what they refuse is asked once more, and remembered.

    Example:
        >>> llm = AnthropicLLM("claude-opus-4-5", api_key="sk-ant-…")
        >>> llm.provider, llm.breaker
        ('anthropic', 'api/anthropic/claude-opus-4-5')
    """

    provider = "anthropic"
    _company, _client_name, _host = "Anthropic", "AsyncAnthropic", "anthropic.com"
    _variable, _request_id = VARIABLE, "request-id"

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        temperature: float | None = None,
        effort: str | None = None,
        headers: Mapping[str, str] | None = None,
        http_client: httpx2.AsyncClient | None = None,
        breaker: str | None = None,
        stall: Duration = STALL,
        clock: Clock | None = None,
    ) -> None:
        """A model; nothing is sent yet.

        Args:
            model: its name.
            api_key: None: ``ANTHROPIC_API_KEY``, or whatever else the client finds.
            base_url: of a compatible service; None: ``ANTHROPIC_BASE_URL``, else Anthropic's.
            temperature: None: the model's own; many that think first take no other.
            effort: how hard it thinks, as the service names it (``low``, ``high``, …); None: its own.
            headers: sent with each request, for gateways and the like.
            http_client: an ``httpx2.AsyncClient`` to speak through, with proxies or certificates of its
                own; it stays its owner's, who closes it.
            breaker: name of the circuit breaker; None: by provider and model, and by the host where it
                is not the provider's.
            stall: time without a byte after which the answer counts as stalled.
            clock: what a Retry-After date is seen from.

        Raises:
            UsageError: the client is not installed, or there is no key.
        """
        options = Options(temperature, effort, headers or {}, http_client)
        super().__init__(model, api_key, base_url, options, stall, clock)
        try:
            found = self._client()
        except Exception as error:  # what the client finds in its own files may be wrong
            raise UsageError(f"Anthropic's client cannot be set up: {error}") from error
        has_one = found.api_key or found.auth_token or found.credentials
        self._place(str(found.base_url), breaker, api_key, "found" if has_one else None)

    async def _begin(self, client: Any, request: Request, timeout: Any) -> Any:
        return await client.messages.create(**self._body(request), timeout=timeout)

    def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": request.max_tokens,
            "messages": plain_messages(request),
            "stream": True,
            # The client knows the temperature no longer, services do.
            "extra_body": without_none({"temperature": self._options.temperature}) or None,
            "output_config": without_none({"effort": self._options.effort}) or None,
        }
        if request.system:
            # What comes before the mark is cached: tools, then the system text.
            mark = {"type": "ephemeral"}
            body["system"] = [{"type": "text", "text": request.system, "cache_control": mark}]
        if request.tool is not None:
            name, schema = request.tool.name, dict(request.tool.schema)
            tool = {"name": name, "description": request.tool.description, "input_schema": schema}
            body["tools"] = [tool]
            choice = {"type": "tool", "name": name} if self._can_force else {"type": "auto"}
            body["tool_choice"] = {**choice, "disable_parallel_tool_use": True}
        return without_none(body)

    def _read(self, draft: Draft, event: Any) -> str:
        """Take over what an event says; the piece of text in it."""
        if event.type == "message_start":
            draft.named(event.message.model)
            _count(draft, event.message.usage)
        elif event.type == "content_block_start" and event.content_block.type == "tool_use":
            draft.call(event.index)
        elif event.type == "content_block_delta":
            delta = event.delta
            if delta.type == "text_delta":
                return draft.say(delta.text)
            if delta.type == "input_json_delta":
                return draft.call(event.index, delta.partial_json)
        elif event.type == "message_delta":
            if event.delta.stop_reason:
                draft.ending = ENDINGS.get(event.delta.stop_reason, "end")
            _count(draft, event.usage)
        elif event.type == "message_stop":
            draft.is_whole = True
        return ""


def _count(draft: Draft, usage: Any) -> None:
    """Anthropic counts tokens of the cache apart; those of a later event replace the earlier ones."""
    before = draft.usage

    def count(name: str, otherwise: int) -> int:
        found = getattr(usage, name, None)  # compatible services leave counts out
        return otherwise if found is None else found

    read = count("cache_read_input_tokens", before.cache_read)
    write = count("cache_creation_input_tokens", before.cache_write)
    plain = count("input_tokens", before.input - before.cache_read - before.cache_write)
    output = count("output_tokens", before.output)
    draft.count(input=plain + read + write, output=output, cache_read=read, cache_write=write)

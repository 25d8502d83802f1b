"""OpenAI's models and those of compatible services, by the official client.

What is sent and why: ``docs/design/llm.md``.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from loki.action.agent_protocol import Ending, Request, Tool
from loki.agents.model_call import (
    STALL,
    Draft,
    OfficialLLM,
    Options,
    plain_messages,
    status_error,
    without_none,
)
from loki.base.error import UsageError
from loki.base.time import Clock, Duration
from loki.base.tokens import dollars_said

if TYPE_CHECKING:
    import httpx2

VARIABLE = "OPENAI_API_KEY"

FINISHES: dict[str, Ending] = {
    "stop": "end",
    "tool_call": "tool",
    "tool_calls": "tool",
    "function_call": "tool",
    "length": "length",
    "content_filter": "refused",
}
"""Finish reasons of Chat Completions, and of pydantic-ai (pydantic_ai.messages.FinishReason)."""

INCOMPLETE: dict[str, Ending] = {"max_output_tokens": "length", "content_filter": "refused"}
"""Why a response of the Responses API is incomplete."""


class OpenAILLM(OfficialLLM):
    """A model of OpenAI's, or of a service that speaks one of its two APIs.

    Streams always; the answer's form is a function that the model is made to call, strictly where
    the schema allows it. One call over the wire for a request, but for services that refuse to make
    a model call a function: what they refuse is asked once more, and remembered.

    Example:
        >>> llm = OpenAILLM("gpt-5", api_key="sk-…")
        >>> llm.api, OpenAILLM("qwen3", base_url="http://localhost:11434/v1").api
        ('responses', 'chat')
    """

    provider = "openai"
    _company, _client_name, _host = "OpenAI", "AsyncOpenAI", "openai.com"
    _variable, _request_id = VARIABLE, "x-request-id"

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        api: Literal["responses", "chat"] | None = None,
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
            api_key: None: ``OPENAI_API_KEY``.
            base_url: of a compatible service, up to ``/v1``; None: ``OPENAI_BASE_URL``, else OpenAI's.
            api: ``responses`` or ``chat`` (Chat Completions); None: ``responses`` at OpenAI's,
                ``chat`` elsewhere, as most compatible services know nothing else.
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
        if api not in {None, "responses", "chat"}:
            raise UsageError(f"api is {api!r}: expected 'responses' or 'chat'")
        options = Options(temperature, effort, headers or {}, http_client)
        # The client refuses to begin without a key; one stands in until it is known where it goes.
        super().__init__(model, "none", base_url, options, stall, clock)
        self._place(str(self._client().base_url), breaker, api_key, os.environ.get(VARIABLE))
        self.api = api or ("responses" if self._is_own else "chat")

    async def _begin(self, client: Any, request: Request, timeout: Any) -> Any:
        if self.api == "responses":
            return await client.responses.create(**self._response(request), timeout=timeout)
        return await client.chat.completions.create(**self._chat(request), timeout=timeout)

    def _read(self, draft: Draft, event: Any) -> str:
        read = self._read_response if self.api == "responses" else _read_chunk
        return read(draft, event)

    # --- What is sent: what stays the same first, so that it can be cached -------------------------

    def _response(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "input": plain_messages(request),
            "max_output_tokens": request.max_tokens,
            "store": False,
            "stream": True,
            "temperature": self._options.temperature,
            "reasoning": without_none({"effort": self._options.effort}) or None,
            "instructions": request.system or None,
            "prompt_cache_key": _cache_key(request) if self._is_own else None,
        }
        if request.tool is not None:
            body["tools"] = [{"type": "function", **self._function(request.tool)}]
            named = {"type": "function", "name": request.tool.name}
            body["tool_choice"] = named if self._can_force else "auto"
            body["parallel_tool_calls"] = False
        return without_none(body)

    def _chat(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": _chat_messages(request),
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": self._options.temperature,
            "reasoning_effort": self._options.effort,
        }
        if self._is_own:
            body["max_completion_tokens"] = request.max_tokens
            body["prompt_cache_key"] = _cache_key(request)
        else:  # the older name, which compatible services know
            body["max_tokens"] = request.max_tokens
        if request.tool is not None:
            body["tools"] = [{"type": "function", "function": self._function(request.tool)}]
            named = {"type": "function", "function": {"name": request.tool.name}}
            body["tool_choice"] = named if self._can_force else "auto"
            if self._is_own:
                body["parallel_tool_calls"] = False
        return without_none(body)

    def _function(self, tool: Tool) -> dict[str, Any]:
        function: dict[str, Any] = {
            "name": tool.name,
            "description": tool.description,
            "parameters": dict(tool.schema),
        }
        # Responses are strict where nothing is said, and refuse schemas that cannot be.
        if self._is_own or self.api == "responses":
            function["strict"] = is_strict(tool.schema)
        return function

    def _read_response(self, draft: Draft, event: Any) -> str:
        """Take over what an event of the Responses API says; the piece of text in it."""
        kind = event.type
        if kind == "response.output_text.delta":
            return draft.say(event.delta)
        if kind == "response.refusal.delta":
            return draft.refuse(event.delta)
        if kind == "response.output_item.added" and event.item.type == "function_call":
            return draft.call(event.output_index)
        if kind == "response.function_call_arguments.delta":
            return draft.call(event.output_index, event.delta)
        if kind == "error":
            raise self._failed({"code": event.code, "message": event.message}, draft)
        if kind == "response.failed":
            error = event.response.error
            raise self._failed({"code": error.code, "message": error.message}, draft)
        if kind in {"response.completed", "response.incomplete"}:
            _complete(draft, event.response)
        return ""

    def _failed(self, error: Mapping[str, Any], draft: Draft) -> Exception:
        headers = {"x-request-id": draft.request_id}
        now = self._clock.now()
        return status_error(self._service, None, error, headers, now, draft.output)


def _complete(draft: Draft, response: Any) -> None:
    draft.is_whole = True
    draft.named(response.model)
    if response.status == "incomplete":
        draft.ending = INCOMPLETE.get(response.incomplete_details.reason, "length")
    usage = response.usage
    if usage is not None:
        _count(draft, usage.input_tokens, usage.output_tokens, usage.input_tokens_details)


def _chat_messages(request: Request) -> list[dict[str, str]]:
    """The conversation as Chat Completions take it, the system text first."""
    system = [{"role": "system", "content": request.system}] if request.system else []
    return [*system, *plain_messages(request)]


def _read_chunk(draft: Draft, chunk: Any) -> str:
    """Take over what a chunk of Chat Completions says; the piece of text in it."""
    draft.named(chunk.model)
    if usage := getattr(chunk, "usage", None):
        details = getattr(usage, "prompt_tokens_details", None)
        _count(draft, usage.prompt_tokens, usage.completion_tokens, details)
        cost = dollars_said(getattr(usage, "cost", None))  # OpenRouter's
        draft.cost = draft.cost if cost is None else cost
    piece = ""
    for choice in (chunk.choices or ())[:1]:
        delta = choice.delta
        if delta is not None:
            piece = draft.say(delta.content)
            if refusal := getattr(delta, "refusal", None):  # services leave it out
                draft.refuse(refusal)
            for call in delta.tool_calls or ():
                draft.call(call.index, call.function.arguments if call.function else None)
        if choice.finish_reason:  # the client shows nothing of the [DONE] that follows
            draft.is_whole = True
            if draft.ending != "refused":
                draft.ending = FINISHES.get(choice.finish_reason, "end")
    return piece


def _count(draft: Draft, read: Any, said: Any, details: Any) -> None:
    cached = getattr(details, "cached_tokens", None)
    written = getattr(details, "cache_write_tokens", None)
    draft.count(input=read, output=said, cache_read=cached, cache_write=written)


def is_strict(schema: Any) -> bool:
    """Whether a JSON Schema may be called strict: objects are closed, and have all they may have.

    Source: https://platform.openai.com/docs/guides/function-calling#strict-mode

    Example:
        >>> closed = {"type": "object", "additionalProperties": False}
        >>> is_strict({**closed, "properties": {"a": {"type": "string"}}, "required": ["a"]})
        True
        >>> is_strict({**closed, "properties": {"a": {"type": "string"}}})
        False
    """
    if isinstance(schema, Mapping):
        properties = schema.get("properties")
        is_object = schema.get("type") == "object" or isinstance(properties, Mapping)
        if is_object and schema.get("additionalProperties") is not False:
            return False
        if is_object and set(properties or ()) != set(schema.get("required") or ()):
            return False
        return all(is_strict(value) for value in schema.values())
    if isinstance(schema, (list, tuple)):
        return all(is_strict(value) for value in schema)
    return True


def _cache_key(request: Request) -> str:
    """Requests with the same beginning are sent where it is cached."""
    tool = request.tool.name if request.tool else ""
    return "loki-" + hashlib.sha256(f"{tool}\0{request.system}".encode()).hexdigest()[:16]

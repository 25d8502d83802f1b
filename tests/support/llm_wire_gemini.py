"""The wire format of Google's Gemini API: https://ai.google.dev/api/generate-content."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from support.llm_wire import Event, Said

THOUGHTS = 5
"""Tokens of each answer that were thought and not said."""

_FINISH = {"end": "STOP", "tool": "STOP", "length": "MAX_TOKENS", "refused": "SAFETY"}


def document(said: Said, body: Mapping[str, Any]) -> dict[str, Any]:
    """A whole answer as of ``:generateContent``."""
    parts: list[dict[str, Any]] = [{"text": said.text}] if said.text else []
    if said.call is not None:
        tools = (one for tool in body["tools"] for one in tool.get("functionDeclarations", ()))
        name = said.tool or next(tools)["name"]
        parts.append({"functionCall": {"name": name, "args": json.loads(said.call)}})
    prompt = said.input + said.cached + said.written
    usage = {"promptTokenCount": prompt, "candidatesTokenCount": said.output,
             "cachedContentTokenCount": said.cached, "thoughtsTokenCount": THOUGHTS,
             "totalTokenCount": prompt + said.output + THOUGHTS}  # fmt: skip
    content = {"role": "model", "parts": parts}
    candidate = {"index": 0, "content": content, "finishReason": _FINISH[said.ending]}
    return {"candidates": [candidate], "usageMetadata": usage, "responseId": "r_1"}


def events(said: Said, body: Mapping[str, Any]) -> Iterator[Event]:
    """The same as ``:streamGenerateContent`` with ``alt=sse`` sends it: all in one piece."""
    yield None, document(said, body)


def error_body(status: int, name: str, message: str) -> dict[str, Any]:
    """An error as the service tells it.

    Args:
        status: the HTTP status.
        name: of the canonical code, like ``UNAVAILABLE``.
        message: in words.
    """
    return {"error": {"code": status, "message": message, "status": name}}

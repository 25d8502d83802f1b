"""What OpenTelemetry's conventions call a call to a model or an agent: names and attributes.

Source: OpenTelemetry semantic conventions for generative AI, version 1.44 of the schema (status:
development; `gen_ai.provider.name` is there since 1.37), spans, agent spans and metrics. What the
conventions have no name for is ``loki.…``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Attributes = dict[str, str | int | float]

TOKEN_BOUNDARIES = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216,
                    67108864)  # fmt: skip
"""Buckets of ``gen_ai.client.token.usage``, as the conventions say."""

DURATION_BOUNDARIES = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96,
                       81.92)  # fmt: skip
"""Buckets of ``gen_ai.client.operation.duration``, in seconds, as the conventions say."""

_SPAN = {
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cache_read_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_tokens": "gen_ai.usage.cache_creation.input_tokens",
    "cost": "loki.cost",
    "attempts": "loki.call.attempts",
    "outcome": "loki.call.outcome",
    "request_id": "loki.call.request_id",
    "breaker": "loki.breaker",
    "work": "loki.call.work",
    "task": "loki.task",
}
_OPERATIONS = {"llm": "chat", "agent": "invoke_agent"}

FAILED = frozenset({"error", "refused"})
"""Outcomes that are errors; a call that was cancelled failed nobody."""


def is_call(data: Mapping[str, Any]) -> bool:
    """Whether the fields of a log record are those of a call."""
    return data.get("call") in _OPERATIONS


def shared(data: Mapping[str, Any]) -> Attributes:
    """Attributes that spans and metrics of a call have.

    Args:
        data: the fields of its record; see `loki.memory.call_log.Call.to_dict`.

    Example:
        >>> shared({"call": "llm", "provider": "openai", "model": "gpt-5", "outcome": "ok"})
        {'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': 'openai', 'gen_ai.request.model': 'gpt-5'}
    """
    found: Attributes = {
        "gen_ai.operation.name": _OPERATIONS[data["call"]],
        "gen_ai.provider.name": str(data.get("provider") or "_OTHER"),
    }
    for name, key in (("model", "gen_ai.request.model"), ("response_model", "gen_ai.response.model"),
                      ("server_address", "server.address"), ("server_port", "server.port")):  # fmt: skip
        if data.get(name):
            found[key] = data[name]
    if data.get("outcome") in FAILED:
        kind = data.get("status") or data.get("error_kind") or data.get("outcome")
        found["error.type"] = str(kind or "_OTHER")
    return found


def span_name(data: Mapping[str, Any]) -> str:
    """``chat {model}``, or ``invoke_agent {agent}``.

    Example:
        >>> span_name({"call": "agent", "provider": "claude", "outcome": "ok"})
        'invoke_agent claude'
    """
    named = data.get("model") if data["call"] == "llm" else data.get("provider")
    return " ".join(filter(None, (_OPERATIONS[data["call"]], str(named or ""))))


def span_attributes(data: Mapping[str, Any]) -> Attributes:
    """All attributes of a call's span."""
    found = shared(data)
    counted = tokens(data)
    for name, key in _SPAN.items():
        if data.get(name) not in {None, ""} and (counted or not name.endswith("_tokens")):
            found[key] = data[name]
    if data["call"] == "agent":
        found["gen_ai.agent.name"] = str(data.get("provider") or "")
    return found


def tokens(data: Mapping[str, Any]) -> dict[str, int]:
    """Tokens of a call by ``gen_ai.token.type``; {} where nobody counted them."""
    counted = {
        "input": int(data.get("input_tokens") or 0),
        "output": int(data.get("output_tokens") or 0),
    }
    return counted if any(counted.values()) else {}

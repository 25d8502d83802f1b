"""A member of a chain that is being asked, and what its errors tell."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from loki.agents.endpoint import CallUsage, Endpoint
from loki.base.error import AgentError, LLMError
from loki.base.token_usage import TokenUsage
from loki.memory.call_log import CallOutcome


@dataclass
class CallRecord:
    """A member that is being asked, until the chain goes on."""

    member: Endpoint[Any]
    index: int
    at: str
    started: float
    work: str
    attempts: int = 0
    took: CallUsage = field(default_factory=CallUsage)
    is_priced: bool = True
    error: BaseException | None = None
    outcome: CallOutcome = "refused"


def error_text(error: BaseException) -> str:
    """What an error says, for people."""
    return str(error) if isinstance(error, AgentError) else f"{type(error).__name__}: {error}"


def usage_of(error: BaseException | None) -> CallUsage:
    """What a call took that brought no answer."""
    if isinstance(error, LLMError):
        return CallUsage(error.usage, error.cost, error.model, error.request_id)
    tokens, cost = getattr(error, "tokens", None), getattr(error, "cost", None)
    return CallUsage(TokenUsage(input=tokens or 0), cost)

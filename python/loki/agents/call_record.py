"""A member of a chain that is being asked, and what its errors tell."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from loki.agents.endpoint import Member, Took
from loki.base.error import AgentError, LLMError
from loki.base.token_usage import TokenUsage
from loki.memory.call_log import CallOutcome


@dataclass
class Visit:
    """A member that is being asked, until the chain goes on."""

    member: Member[Any]
    index: int
    at: str
    began: float
    work: str
    attempts: int = 0
    took: Took = field(default_factory=Took)
    is_priced: bool = True
    error: BaseException | None = None
    outcome: CallOutcome = "refused"


def words(error: BaseException) -> str:
    """What an error says, for people."""
    return str(error) if isinstance(error, AgentError) else f"{type(error).__name__}: {error}"


def took_of(error: BaseException | None) -> Took:
    """What a call took that brought no answer."""
    if isinstance(error, LLMError):
        return Took(error.usage, error.cost, error.model, error.request_id)
    tokens, cost = getattr(error, "tokens", None), getattr(error, "cost", None)
    return Took(TokenUsage(input=tokens or 0), cost)

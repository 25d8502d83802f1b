"""The seam to models: a request in, an answer out.

`loki.Agent` is one storey higher: a briefing in, a proposal out; `loki.agents.model_agent` makes an agent
of a model. Retries, circuit breakers and the fallback chain are loki's business, so an adapter makes
one call over the wire and tells what came of it.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from loki.base.token_usage import TokenUsage as TokenUsage  # noqa: PLC0414 - a part of this seam
from loki.decision.budget import UNLIMITED, Budget

Role: TypeAlias = Literal["user", "assistant"]

Ending: TypeAlias = Literal["end", "tool", "length", "refused"]
"""Why a model stopped: it was done, it called the tool, ``max_tokens`` was reached, it would not."""

MAX_TOKENS = 16_000
"""Tokens of an answer, at most, where nothing else is said. Chosen, not measured."""

TIMEOUT = 600.0
"""Seconds that a call may take, where nothing else is said. Chosen, not measured."""


@dataclass(frozen=True, slots=True)
class Message:
    """What one side said."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Tool:
    """The form that an answer must have: the model calls it, or answers by its schema.

    Attributes:
        name: letters, digits, ``_`` and ``-``.
        description: when to call it and what for.
        schema: JSON Schema of its arguments, an object.
    """

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """What a model is asked.

    Attributes:
        messages: the conversation, oldest first, the last one from the user.
        system: what stays the same from request to request; providers cache it.
        tool: the form of the answer; None: text.
        max_tokens: of the answer.
        timeout: seconds that the call may take.
        on_text: called with each piece of text as it arrives; what it raises ends the call.
        cancelled: set when the run is being stopped; the call then ends soon.
        task: id of the task that it is for, for the record of the call; "" where there is none.
        left: what may still be spent on it, all tries together.
        simpler: makes what to ask instead where nobody could answer this: less work. None: there is
            nothing less to ask for.
        work: full, simpler or minimal: how much of the work it asks for.
        retries: how often it may be asked again, at most; None: as often as is usual. Not all is
            worth a wait.
        wait: seconds to wait where no model may be asked before a time, at most; None: as is usual.
    """

    messages: tuple[Message, ...]
    system: str = ""
    tool: Tool | None = None
    max_tokens: int = MAX_TOKENS
    timeout: float = TIMEOUT
    on_text: Callable[[str], None] | None = field(default=None, compare=False, repr=False)
    cancelled: threading.Event = field(default_factory=threading.Event, compare=False, repr=False)
    task: str = ""
    left: Budget = UNLIMITED
    simpler: Callable[[], Request] | None = field(default=None, compare=False, repr=False)
    work: str = "full"
    retries: int | None = None
    wait: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model answered.

    Attributes:
        text: what it said.
        arguments: JSON text of the tool's arguments as it was sent, malformed or not; None: the
            tool was not called.
        ending: why it stopped.
        usage: tokens; of all calls that it took, where there were several.
        model: the model that answered, as the provider names it.
        request_id: what the provider's support asks for, or "".
        cost: US dollars where the provider says so; None: reckoned from the price table.
        work: full, simpler or minimal: how much of the work was asked for in the end.
    """

    text: str = ""
    arguments: str | None = None
    ending: Ending = "end"
    usage: TokenUsage = field(default_factory=TokenUsage)
    model: str = ""
    request_id: str = ""
    cost: float | None = None
    work: str = "full"


class LLM(Protocol):
    """A model at a provider; ``complete`` may be ``async``.

    ``complete`` makes one call, without retries of its own, and raises `loki.LLMError` where no
    answer came. Threads may share an object.

    Attributes:
        provider: as OpenTelemetry's GenAI conventions name it, like ``anthropic`` or ``openai``.
        model: as the provider names it.
        breaker: name of the circuit breaker that its calls pass, like ``api/anthropic/<model>``.
    """

    provider: str
    model: str
    breaker: str

    def complete(self, request: Request) -> Answer | Awaitable[Answer]:
        """The model's answer."""

"""The errors that loki raises: one family per culprit."""

from __future__ import annotations

from datetime import datetime, timezone
from functools import partial
from typing import Any, Literal, TypeAlias

from loki.base.tokens import TokenUsage


class LokiError(Exception):
    """Base of every error that loki raises on purpose."""


class IllegalTransition(Exception):
    """An event came in a phase that does not expect it: a bug in a driver."""


class UsageError(LokiError):
    """The caller asked for something that cannot be done as asked."""


class ConfigError(LokiError):
    """A file that a person wrote cannot be used.

    The message begins with ``file:line:column`` and says what was found and what was expected.
    """

    def __init__(self, message: str, *, file: str = "", line: int = 0, column: int = 0) -> None:
        """Args: message: the reason; file, line, column: where (1-based; 0: not known)."""
        self.file, self.line, self.column, self.reason = file, line, column, message
        where = ":".join(str(part) for part in (file, line or "", column or "") if part)
        super().__init__(f"{where}: {message}" if where else message)


class AgentError(LokiError):
    """An agent could not answer: it crashed, timed out or could not be started.

    Attributes:
        ends_chain: nobody else may be asked in its place: a person has to look first.
    """

    ends_chain = False

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = True,
        output: str = "",
        retry_after: float | None = None,
        tokens: int | None = None,
        cost: float | None = None,
        gave_up: bool = False,
    ) -> None:
        """What happened.

        Args:
            message: the reason.
            retryable: asking again could help: an outage, which the agent's circuit breaker counts.
                A wrong key, a bad request or a mistake in a command is none.
            output: what it printed.
            retry_after: seconds that its service asked to wait (see `loki.decision.retry`).
            tokens, cost: what it took nevertheless, in tokens and US dollars, where known: budgets
                count that, too.
            gave_up: whoever raises it has asked again already, as often as makes sense.
        """
        super().__init__(message)
        self.retryable = retryable
        self.output = output
        self.retry_after = retry_after
        self.tokens, self.cost = tokens, cost
        self.gave_up = gave_up


class AgentStuck(AgentError):
    """An agent repeats what has led nowhere, although it was told so.

    Attributes:
        failure: what comes back, a `loki.Failure`, or None.
        count: how often it was seen.
        reason: the rule that says so, such as ``repeat`` or ``turn``.
        text: what the agent is told.
    """

    ends_chain = True

    def __init__(self, text: str, failure: Any = None, count: int = 0, reason: str = "") -> None:
        """Args: text, failure, count, reason: as the attributes."""
        super().__init__(text, retryable=False)
        self.text, self.failure, self.count, self.reason = text, failure, count, reason

    def __reduce__(self) -> tuple[type[AgentStuck], tuple[object, ...]]:
        return AgentStuck, (self.text, self.failure, self.count, self.reason)


ErrorKind: TypeAlias = Literal[
    "rate_limit",  # 429: later
    "overloaded",  # 529, 503: the provider has too much to do
    "server",  # other 5xx, 408, 409: the provider failed
    "connection",  # refused, reset, cut off in mid-answer
    "timeout",  # nothing came in time, or no longer
    "quota",  # spend cap reached, quota exhausted: only a person can mend it
    "authentication",  # 401: no key, or a wrong one
    "permission",  # 403: the key may not
    "not_found",  # 404: no such model, or a wrong base URL
    "too_long",  # the request does not fit into the model's context
    "bad_request",  # other 4xx
    "malformed",  # an answer that is none: truncated, no JSON, empty
    "budget",  # what loki may spend on it is spent
    "cancelled",  # the run was stopped
]
"""What became of a call to a model that brought no answer."""

OUTAGES: frozenset[str] = frozenset(
    {"rate_limit", "overloaded", "server", "connection", "timeout", "malformed"}
)
"""Kinds of error that asking again can mend."""


class LLMError(AgentError):
    """A call to a model brought no answer.

    Attributes:
        kind: what happened, one of `ErrorKind`.
        status: the HTTP status, where there was one.
        request_id: what the provider's support asks for, or "".
        provider, model: who was asked.
        usage: tokens that the call took nevertheless: its answer was cut off, or is none.
    """

    def __init__(
        self,
        message: str,
        kind: ErrorKind,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        request_id: str = "",
        provider: str = "",
        model: str = "",
        output: str = "",
        retryable: bool | None = None,
        usage: TokenUsage | None = None,
        cost: float | None = None,
        gave_up: bool = False,
    ) -> None:
        """What happened.

        Args:
            message: the reason, and what to do where there is something to do.
            kind, status, request_id, provider, model, usage: as the attributes.
            retry_after: seconds that the provider asked to wait.
            output: what it answered, as far as it helps.
            retryable: asking again could help; None: as the kind says.
            cost: US dollars, where the provider says so; gave_up: as for `AgentError`.
        """
        is_outage = kind in OUTAGES if retryable is None else retryable
        self.usage = usage or TokenUsage()
        super().__init__(
            message,
            retryable=is_outage,
            output=output,
            retry_after=retry_after,
            tokens=self.usage.total or None,
            cost=cost,
            gave_up=gave_up,
        )
        self.kind, self.status, self.request_id = kind, status, request_id
        self.provider, self.model = provider, model


class StoreError(LokiError):
    """Something could not be read from or written to the workspace."""


class BreakerOpen(LokiError):
    """A circuit breaker lets no call through.

    Attributes:
        name: the breaker's name.
        retry_after: seconds after which to ask again; None: a person has to close it.
        refused_at: seconds since the epoch at the refusal.
        last_error: what the last call that counted as a failure said; empty if it said nothing.
        between_probes: nothing but the pause between two probes is in the way.
    """

    # Refusals are meant to be cheap: slots take half the time of a dictionary.
    __slots__ = ("between_probes", "last_error", "name", "refused_at", "retry_after")

    def __init__(
        self,
        name: str,
        retry_after: float | None = None,
        refused_at: float | None = None,
        last_error: str = "",
        between_probes: bool = False,
    ) -> None:
        self.name, self.last_error = name, last_error
        self.retry_after, self.refused_at = retry_after, refused_at
        self.between_probes = between_probes

    def __reduce__(self) -> tuple[type[BreakerOpen], tuple[object, ...]]:
        given = (self.name, self.retry_after, self.refused_at, self.last_error, self.between_probes)
        return BreakerOpen, given

    @property
    def retry_at(self) -> datetime | None:
        """When to ask again, in UTC; None: a person has to close it."""
        if self.refused_at is None or self.retry_after is None:
            return None
        return datetime.fromtimestamp(self.refused_at + self.retry_after, timezone.utc)

    def __str__(self) -> str:
        when = "until somebody closes it"
        if self.retry_after is not None:
            when = f"for another {self.retry_after:.3g} s"
        why = f"; the last error was: {self.last_error}" if self.last_error else ""
        return f"{self.name}: the circuit breaker lets no call through {when}{why}"


class AllRefused(BreakerOpen):
    """Nobody in a fallback chain can be asked before a time; ``name`` is the breaker that opens first.

    Attributes:
        calls: calls that went out before that was clear.
        tokens, cost: what they took nevertheless.
    """

    __slots__ = ("calls", "cost", "tokens")

    def __init__(
        self,
        name: str,
        retry_after: float | None = None,
        refused_at: float | None = None,
        last_error: str = "",
        between_probes: bool = False,
        *,
        calls: int = 0,
        tokens: int = 0,
        cost: float = 0.0,
    ) -> None:
        super().__init__(name, retry_after, refused_at, last_error, between_probes)
        self.calls, self.tokens, self.cost = calls, tokens, cost

    def __reduce__(self) -> tuple[Any, ...]:
        make = partial(AllRefused, calls=self.calls, tokens=self.tokens, cost=self.cost)
        return make, super().__reduce__()[1]

"""The record of a call to a model or an agent: who was asked, what it took, what came of it.

One record for each one that was asked, however often it had to be: ``attempts`` says how often. It
is appended to ``.loki/logs/calls.jsonl``, and told in one line to the logger ``loki``, whose record
has the same fields as data (see `loki.base.log`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from loki.base import codec
from loki.base.documents import readable
from loki.base.log import quoted, write
from loki.base.secret import mask_secrets
from loki.base.tokens import TokenUsage
from loki.memory.store import Store

LOG = "logs/calls.jsonl"
"""Name of the log in a store."""

CallOutcome: TypeAlias = Literal["ok", "error", "refused", "cancelled"]
"""An answer came; none came; its circuit breaker let nothing out; the run was stopped, or another
call's answer came first."""

_IN_ORDER = (
    "call", "task", "provider", "model", "response_model", "outcome", "attempts", "input_tokens",
    "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost", "latency_ms", "error_kind",
    "status", "request_id", "breaker", "work", "error", "at",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Call:
    """What became of asking one model or agent.

    Attributes:
        at: when it began, ISO 8601 UTC.
        provider: as OpenTelemetry's GenAI conventions name it; an agent's name.
        model: as it was asked for.
        outcome: ok, error, refused or cancelled.
        call: ``llm``, or ``agent`` for a whole agent.
        attempts: calls that went out; more than 1 where it was asked again, 0 where it was refused.
        usage: tokens of all of them, failed ones included.
        cost: US dollars of all of them; None: not known.
        latency_ms: milliseconds from begin to end, waits included.
        response_model: the model that answered, as the provider names it, or "".
        error_kind: one of `loki.base.error.ErrorKind` where no answer came, or "".
        error: what was said then.
        status: HTTP status of the last call, where it failed with one.
        request_id: of the last call, or "".
        task: id of the task that it was for, or "".
        breaker: name of the circuit breaker that it passed.
        work: full, simpler or minimal: how much was asked for.
    """

    at: str
    provider: str
    model: str
    outcome: CallOutcome
    call: Literal["llm", "agent"] = "llm"
    attempts: int = 1
    usage: TokenUsage = field(default_factory=TokenUsage)
    cost: float | None = None
    latency_ms: int = 0
    response_model: str = ""
    error_kind: str = ""
    error: str = ""
    status: int | None = None
    request_id: str = ""
    task: str = ""
    breaker: str = ""
    work: str = "full"

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form; what is not known is left out.

        Example:
            >>> call = Call("2026-04-04T10:15:30.000Z", "openai", "gpt-5", "refused", attempts=0)
            >>> call.to_dict()["outcome"], "cost" in call.to_dict()
            ('refused', False)
        """
        tokens = {f"{kind}_tokens": number for kind, number in codec.write(self.usage).items()}
        data = {**codec.fields_of(self), **tokens}
        return {name: data[name] for name in _IN_ORDER if data[name] not in {None, ""}}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Call:
        """The call that `to_dict` told of; fields of a newer version are left out.

        Raises:
            ValueError: it is no record of a call.
        """
        names = ("input", "output", "cache_read", "cache_write")
        usage = {name: data.get(f"{name}_tokens") for name in names}
        return codec.parse(cls, {"at": "", "model": "", **data, "usage": usage}, "record of a call")


def line(call: Call) -> str:
    """The words of its log line.

    Example:
        >>> call = Call("2026-04-04T10:15:30.000Z", "openai", "gpt-5", "ok", task="t", latency_ms=900)
        >>> line(call).split(" input_tokens")[0]
        'call=llm task=t provider=openai model=gpt-5 outcome=ok attempts=1'
    """
    told = {name: value for name, value in call.to_dict().items() if name != "at"}
    return " ".join(f"{name}={_word(value)}" for name, value in told.items())


def _word(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6f}".rstrip("0").rstrip(".")
    text = str(value)
    return text if text and not set(text) & set(" \t\r\n\"'") else quoted(text)


class Calls:
    """The calls that a workspace remembers.

    Args:
        store: where they are kept; None: they are told, and not kept.
    """

    def __init__(self, store: Store | None = None) -> None:
        self._store = store

    def add(self, call: Call) -> None:
        """Keep a call and tell of it; secrets in what was said are masked."""
        call = replace(call, error=mask_secrets(call.error))
        if self._store is not None:
            self._store.append(LOG, call.to_dict())
        write(line(call), call.to_dict(), warning=False)

    def __iter__(self) -> Iterator[Call]:
        """All calls, oldest first; a record that cannot be read is skipped."""
        if self._store is not None:
            yield from readable(LOG, self._store.scan(LOG), Call.from_dict)

"""The loop and its calls as OpenTelemetry spans and metrics, made of log lines.

Needs the extra ``otel``. What the lines say is said once, in the loop; here it is only handed on.

Source: OpenTelemetry semantic conventions for generative AI, version 1.44 of the schema (status:
development; `gen_ai.provider.name` is there since 1.37), spans, agent spans and metrics. What the
conventions have no name for is ``loki.…``:

| metric | unit | attributes |
|---|---|---|
| ``gen_ai.client.token.usage`` | {token} | the conventions', with ``gen_ai.token.type`` |
| ``gen_ai.client.operation.duration`` | s | the conventions' |
| ``loki.cost`` | {USD} | the conventions' |
| ``loki.retries`` | {retry} | the conventions'; calls that went out again |
| ``loki.attempts`` | {attempt} | ``loki.result``, ``loki.pattern``, ``loki.strategy`` |
| ``loki.executions`` | {execution} | ``loki.status`` |
| ``loki.execution.duration`` | s | ``loki.status`` |
| ``loki.breaker.transitions`` | {transition} | ``loki.breaker``, ``loki.breaker.state`` |
| ``loki.breaker.open`` | {breaker} | ``loki.breaker``; 1 while it is open or half open |
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.metrics import Meter
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

# --- What OpenTelemetry's conventions call a call -----------------------------------------------------

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


class _LineHandler(logging.Handler):
    """A handler for the logger ``loki`` that takes the fields of its lines."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line of loki's; any other is none of ours."""
        data = getattr(record, "loki", None)
        if not isinstance(data, Mapping):
            return
        try:
            self._take(data, record)
        except Exception:  # as every handler: logging never stops the work
            self.handleError(record)

    def _take(self, data: Mapping[str, Any], record: logging.LogRecord) -> None:
        raise NotImplementedError


# --- Metrics ------------------------------------------------------------------------------------------


class MetricHandler(_LineHandler):
    """A handler for the logger ``loki`` that counts what its lines tell.

    Args:
        meter: where metrics go; the globally configured provider's where nothing is said.
    """

    def __init__(self, meter: Meter | None = None) -> None:
        super().__init__()
        meter = meter or metrics.get_meter("loki")
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage", "{token}", "Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=TOKEN_BOUNDARIES,
        )  # fmt: skip
        self._durations = meter.create_histogram(
            "gen_ai.client.operation.duration", "s", "GenAI operation duration.",
            explicit_bucket_boundaries_advisory=DURATION_BOUNDARIES,
        )  # fmt: skip
        self._cost = meter.create_counter("loki.cost", "{USD}", "What calls cost.")
        self._retries = meter.create_counter(
            "loki.retries", "{retry}", "Calls that went out again."
        )
        self._attempts = meter.create_counter("loki.attempts", "{attempt}", "Attempts at tasks.")
        self._executions = meter.create_counter(
            "loki.executions", "{execution}", "Ended executions."
        )
        self._execution_durations = meter.create_histogram(
            "loki.execution.duration", "s", "How long executions took."
        )
        self._transitions = meter.create_counter(
            "loki.breaker.transitions", "{transition}", "Changes of state of circuit breakers."
        )
        self._open = meter.create_up_down_counter(
            "loki.breaker.open", "{breaker}", "Circuit breakers that are not closed."
        )

    def _take(self, data: Mapping[str, Any], record: logging.LogRecord) -> None:
        del record
        if is_call(data):
            self._call(data)
        elif "breaker" in data and "was" in data:
            self._transition(data)
        elif "status" in data and "total_attempts" in data:
            status = {"loki.status": str(data["status"])}
            self._executions.add(1, status)
            self._execution_durations.record(float(data.get("duration_ms", 0)) / 1000, status)
        elif "attempt" in data and "result" in data:
            names = ("result", "pattern", "strategy")
            self._attempts.add(1, {f"loki.{n}": str(data[n]) for n in names if n in data})

    def _call(self, data: Mapping[str, Any]) -> None:
        about = shared(data)
        out = int(data.get("attempts", 1))
        if data["call"] == "llm" and out:  # what no service saw took no time of its
            self._durations.record(float(data.get("latency_ms", 0)) / 1000, about)
        said = {key: value for key, value in about.items() if key != "error.type"}
        for kind, count in tokens(data).items():
            self._tokens.record(count, {**said, "gen_ai.token.type": kind})
        if data.get("cost"):
            self._cost.add(float(data["cost"]), about)
        if out > 1:
            self._retries.add(out - 1, about)

    def _transition(self, data: Mapping[str, Any]) -> None:
        name = {"loki.breaker": str(data["breaker"])}
        self._transitions.add(1, {**name, "loki.breaker.state": str(data["state"])})
        was_closed, is_closed = data["was"] == "CLOSED", data["state"] == "CLOSED"
        if was_closed != is_closed:
            self._open.add(-1 if is_closed else 1, name)


# --- Spans: one for an execution, in it one for each attempt ------------------------------------------

_ENDS = {"success": StatusCode.OK, "failed": StatusCode.ERROR, "escalated": StatusCode.ERROR}
"""Other results (interrupted, paused, unverified) are neither."""


@dataclass
class _Open:
    execution: Span
    attempt: Span | None = None


class SpanHandler(_LineHandler):
    """A handler for the logger ``loki`` that makes spans of its lines.

    Spans are named ``loki.execution`` and ``loki.attempt``; a line's fields are their attributes,
    ``loki.pattern`` for instance. Lines in between (checks, validation, waits) are events in them.
    Calls to models and agents are spans of their own, named as OpenTelemetry's GenAI conventions
    name them.

    Args:
        tracer: where spans go; the globally configured provider's where nothing is said.

    Example:
        >>> logger = logging.getLogger("loki")
        >>> handler = SpanHandler()
        >>> logger.addHandler(handler)
        >>> logger.setLevel(logging.INFO)
        >>> logger.removeHandler(handler)
    """

    def __init__(self, tracer: Tracer | None = None) -> None:
        super().__init__()
        self._tracer = tracer or trace.get_tracer("loki")
        self._open: dict[str, _Open] = {}

    def close(self) -> None:
        """End what nobody ended: the loop was left."""
        for task in list(self._open):
            self._end(task, {})
        super().close()

    def _take(self, data: Mapping[str, Any], record: logging.LogRecord) -> None:
        task = str(data.get("task"))
        if is_call(data):
            self._call(data, record)
        elif "task" not in data:
            return
        elif "status" in data and "total_attempts" in data:
            self._end(task, data)
        elif "attempt" in data:
            self._attempt(task, data)
        else:
            here = self._here(task)
            span = here.attempt or here.execution
            # "[closed-loop] task=… validation=passed …": what comes first names the line.
            message = record.getMessage()
            named = re.search(rf"task={re.escape(task)} (\w+)", message)
            name = named[1] if named else "line"
            span.add_event(name, {**_attributes(data), "message": message})

    def _call(self, data: Mapping[str, Any], record: logging.LogRecord) -> None:
        """A call that has ended: a span of its own, in the attempt that it was for."""
        here = self._open.get(str(data.get("task")))
        within = trace.set_span_in_context(here.attempt or here.execution) if here else None
        end = int(record.created * 1e9)
        span = self._tracer.start_span(
            span_name(data),
            within,
            SpanKind.CLIENT if data["call"] == "llm" else SpanKind.INTERNAL,
            span_attributes(data),
            start_time=end - int(data.get("latency_ms", 0)) * 1_000_000,
        )
        if data.get("outcome") in FAILED:
            span.set_status(Status(StatusCode.ERROR, str(data.get("error") or data["outcome"])))
        span.end(end)

    def _attempt(self, task: str, data: Mapping[str, Any]) -> None:
        here = self._here(task)
        is_over = "result" in data
        if here.attempt is not None and not is_over:  # its end was never told
            here.attempt.end()
            here.attempt = None
        if here.attempt is None:
            within = trace.set_span_in_context(here.execution)
            here.attempt = self._tracer.start_span("loki.attempt", within)
        here.attempt.set_attributes(_attributes(data))
        if is_over:
            _close(here.attempt, str(data["result"]), data)
            here.attempt = None

    def _end(self, task: str, data: Mapping[str, Any]) -> None:
        here = self._here(task)
        del self._open[task]
        if here.attempt is not None:
            here.attempt.end()
        here.execution.set_attributes(_attributes(data))
        _close(here.execution, str(data.get("status")), data)

    def _here(self, task: str) -> _Open:
        if task not in self._open:
            span = self._tracer.start_span("loki.execution", attributes={"loki.task": task})
            self._open[task] = _Open(span)
        return self._open[task]


def _attributes(data: Mapping[str, Any]) -> dict[str, str | int | float]:
    return {f"loki.{name}": value for name, value in data.items()}


def _close(span: Span, result: str, data: Mapping[str, Any]) -> None:
    code = _ENDS.get(result)
    if code is StatusCode.ERROR:
        span.set_status(Status(code, str(data.get("error") or data.get("pattern") or result)))
    elif code is not None:
        span.set_status(Status(code))
    span.end()

"""The loop and its calls as OpenTelemetry metrics, made of log lines.

Needs the extra ``otel``. Calls are told by the names of the GenAI conventions
(`loki.adapters.call_telemetry`); what they have no name for is ``loki.…``:

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
from collections.abc import Mapping
from typing import Any

from opentelemetry import metrics
from opentelemetry.metrics import Meter

from loki.adapters.call_telemetry import (
    DURATION_BOUNDARIES,
    TOKEN_BOUNDARIES,
    Attributes,
    is_call,
    shared,
    tokens,
)


class MetricHandler(logging.Handler):
    """A handler for the logger ``loki`` that counts what its lines tell.

    Args:
        meter: where metrics go; the globally configured provider's where nothing is said.
    """

    def __init__(self, meter: Meter | None = None) -> None:
        super().__init__(logging.INFO)
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

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line of loki's; any other is none of ours."""
        data = getattr(record, "loki", None)
        if not isinstance(data, Mapping):
            return
        try:
            self._take(data)
        except Exception:  # as every handler: logging never stops the work
            self.handleError(record)

    def _take(self, data: Mapping[str, Any]) -> None:
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
        self._count_tokens(data, about)
        if data.get("cost"):
            self._cost.add(float(data["cost"]), about)
        if out > 1:
            self._retries.add(out - 1, about)

    def _count_tokens(self, data: Mapping[str, Any], about: Attributes) -> None:
        said = {key: value for key, value in about.items() if key != "error.type"}
        for kind, count in tokens(data).items():
            self._tokens.record(count, {**said, "gen_ai.token.type": kind})

    def _transition(self, data: Mapping[str, Any]) -> None:
        name = {"loki.breaker": str(data["breaker"])}
        self._transitions.add(1, {**name, "loki.breaker.state": str(data["state"])})
        was_closed, is_closed = data["was"] == "CLOSED", data["state"] == "CLOSED"
        if was_closed != is_closed:
            self._open.add(-1 if is_closed else 1, name)

"""The loop as OpenTelemetry spans: one for an execution, in it one for each attempt, made of log lines.

Needs the extra ``otel``. What the lines say is said once, in the loop; here it is only handed on.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

from loki.adapters.call_telemetry import FAILED, is_call, span_attributes, span_name

_ENDS = {"success": StatusCode.OK, "failed": StatusCode.ERROR, "escalated": StatusCode.ERROR}
"""Other results (interrupted, paused, unverified) are neither."""


@dataclass
class _Open:
    execution: Span
    attempt: Span | None = None


class SpanHandler(logging.Handler):
    """A handler for the logger ``loki`` that makes spans of its lines.

    Spans are named ``loki.execution`` and ``loki.attempt``; a line's fields are their attributes,
    ``loki.pattern`` for instance. Lines in between (checks, validation, waits) are events in them.
    Calls to models and agents are spans of their own, named as OpenTelemetry's GenAI conventions
    name them (`loki.adapters.call_telemetry`).

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
        super().__init__(logging.INFO)
        self._tracer = tracer or trace.get_tracer("loki")
        self._open: dict[str, _Open] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line of the loop; any other is none of ours."""
        data = getattr(record, "loki", None)
        if not isinstance(data, Mapping) or not (is_call(data) or "task" in data):
            return
        try:
            if is_call(data):
                self._call(data, record)
            else:
                self._take(str(data["task"]), data, record)
        except Exception:  # as every handler: logging never stops the work
            self.handleError(record)

    def close(self) -> None:
        """End what nobody ended: the loop was left."""
        for task in list(self._open):
            self._end(task, {})
        super().close()

    def _take(self, task: str, data: Mapping[str, Any], record: logging.LogRecord) -> None:
        if "status" in data and "total_attempts" in data:
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

"""Calls as the GenAI conventions name them, metrics of the loop, and nothing without configuration."""

from __future__ import annotations

import gzip
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.trace import SpanKind, StatusCode

import loki
from loki.adapters import telemetry
from loki.adapters.tracing import DURATION_BOUNDARIES, TOKEN_BOUNDARIES
from loki.base.tokens import TokenUsage
from loki.decision.breaker import Transition
from loki.decision.breakers_file import tell
from loki.memory.call_log import Call, Calls

AT = "2026-04-04T10:15:30.000Z"


class Seen:
    """What was exported."""

    def __init__(self) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        tracers = TracerProvider(shutdown_on_exit=False)
        tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        meters = MeterProvider([self.reader], shutdown_on_exit=False)
        self.stop = telemetry.instrument(tracers, meters)

    def spans(self) -> dict[str, Any]:
        return {span.name: span for span in self.exporter.get_finished_spans()}

    def points(self, name: str) -> list[Any]:
        data = self.reader.get_metrics_data()
        return [
            point
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]


@pytest.fixture
def seen() -> Iterator[Seen]:
    found = Seen()
    yield found
    found.stop()


ANSWERED = Call(
    AT, "anthropic", "claude-opus-4-5", "ok", attempts=3, usage=TokenUsage(1200, 300, cache_read=1000),
    cost=0.25, latency_ms=1500, response_model="claude-opus-4-5-20251101", request_id="req_1", task="t",
)  # fmt: skip


def test_a_call_to_a_model_is_a_span_of_the_conventions(seen: Seen) -> None:
    """Name, kind, attributes and how long it took."""
    Calls().add(ANSWERED)
    span = seen.spans()["chat claude-opus-4-5"]
    assert span.kind is SpanKind.CLIENT
    assert span.end_time - span.start_time == 1_500_000_000
    assert dict(span.attributes) == {
        gen_ai_attributes.GEN_AI_OPERATION_NAME: "chat",
        gen_ai_attributes.GEN_AI_PROVIDER_NAME: "anthropic",
        gen_ai_attributes.GEN_AI_REQUEST_MODEL: "claude-opus-4-5",
        gen_ai_attributes.GEN_AI_RESPONSE_MODEL: "claude-opus-4-5-20251101",
        gen_ai_attributes.GEN_AI_USAGE_INPUT_TOKENS: 1200,
        gen_ai_attributes.GEN_AI_USAGE_OUTPUT_TOKENS: 300,
        gen_ai_attributes.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: 1000,
        gen_ai_attributes.GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS: 0,
        "loki.cost": 0.25,
        "loki.call.attempts": 3,
        "loki.call.outcome": "ok",
        "loki.call.request_id": "req_1",
        "loki.call.work": "full",
        "loki.task": "t",
    }


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (
            Call(AT, "openai", "gpt-5", "error", status=429, error_kind="rate_limit", error="slow"),
            "429",
        ),
        (Call(AT, "openai", "gpt-5", "error", error_kind="timeout"), "timeout"),
        (Call(AT, "openai", "gpt-5", "refused", attempts=0), "refused"),
        (Call(AT, "openai", "gpt-5", "cancelled"), None),
    ],
)
def test_what_failed_says_why(seen: Seen, call: Call, kind: str | None) -> None:
    """By status, kind or outcome; a call that was cancelled failed nobody."""
    Calls().add(call)
    span = seen.spans()["chat gpt-5"]
    assert span.attributes.get("error.type") == kind
    assert span.status.status_code is (StatusCode.ERROR if kind else StatusCode.UNSET)
    points = seen.points(gen_ai_metrics.GEN_AI_CLIENT_OPERATION_DURATION)
    assert [point.attributes.get("error.type") for point in points] == (
        [kind] if call.attempts else []
    )


def test_an_agent_is_invoked(seen: Seen) -> None:
    """A program on this machine: no client's span, and no call to a service in the metrics."""
    Calls().add(Call(AT, "claude", "", "ok", "agent", latency_ms=10))
    span = seen.spans()["invoke_agent claude"]
    assert span.kind is SpanKind.INTERNAL
    assert span.attributes[gen_ai_attributes.GEN_AI_AGENT_NAME] == "claude"
    assert gen_ai_attributes.GEN_AI_USAGE_INPUT_TOKENS not in span.attributes  # nobody counted
    assert seen.points(gen_ai_metrics.GEN_AI_CLIENT_OPERATION_DURATION) == []


def test_metrics_of_calls(seen: Seen) -> None:
    """Tokens and durations in the conventions' buckets; cost and retries are loki's."""
    Calls().add(ANSWERED)
    counts = seen.points(gen_ai_metrics.GEN_AI_CLIENT_TOKEN_USAGE)
    assert {p.attributes["gen_ai.token.type"]: p.sum for p in counts} == {
        "input": 1200,
        "output": 300,
    }
    assert all(isinstance(p, HistogramDataPoint) for p in counts)
    assert {tuple(p.explicit_bounds) for p in counts} == {TOKEN_BOUNDARIES}
    (duration,) = seen.points(gen_ai_metrics.GEN_AI_CLIENT_OPERATION_DURATION)
    assert (duration.sum, tuple(duration.explicit_bounds)) == (1.5, DURATION_BOUNDARIES)
    assert [p.value for p in seen.points("loki.cost")] == [0.25]
    assert [p.value for p in seen.points("loki.retries")] == [2]


def test_metrics_of_the_loop_and_its_calls_in_their_attempt(seen: Seen, tmp_path: Path) -> None:
    """A real run: one attempt fails, one succeeds; a call that the agent makes is in its attempt."""
    (tmp_path / "a.txt").write_text("bad\n")
    answers = iter(["worse\n", "good\n"])

    def agent(briefing: loki.Briefing) -> dict[str, str]:
        Calls().add(Call(AT, "openai", "gpt-5", "ok", task=briefing.task_id, latency_ms=1))
        return {"a.txt": next(answers)}

    loki.run("make it good", agent=agent, checks=["grep -q good a.txt"], path=str(tmp_path), id="t")
    results = {p.attributes["loki.result"]: p.value for p in seen.points("loki.attempts")}
    assert results == {"failed": 1, "success": 1}
    assert [(p.attributes["loki.status"], p.value) for p in seen.points("loki.executions")] == [
        ("success", 1)
    ]
    spans = seen.exporter.get_finished_spans()
    calls = [span for span in spans if span.name == "chat gpt-5"]
    ours = {
        span.context.span_id for span in spans if span.name.startswith("loki.") and span.context
    }
    assert len(calls) == 2
    assert all(call.parent is not None and call.parent.span_id in ours for call in calls)


def test_a_breaker_that_opens_is_counted(seen: Seen, tmp_path: Path) -> None:
    """By a real one, of a project; and whether it is open now."""
    breakers = loki.Workspace(tmp_path).breakers()
    breaker = breakers["api/x"]
    for _ in range(3):
        permit = breaker.try_acquire()
        assert permit is not None
        permit.failure("down")
    (opened,) = seen.points("loki.breaker.transitions")
    assert dict(opened.attributes) == {"loki.breaker": "api/x", "loki.breaker.state": "OPEN"}
    assert [p.value for p in seen.points("loki.breaker.open")] == [1]
    now = datetime.now(timezone.utc)
    tell(Transition("api/x", "OPEN", "HALF_OPEN", now))
    tell(Transition("api/x", "HALF_OPEN", "CLOSED", now))
    assert [p.value for p in seen.points("loki.breaker.open")] == [0]


def test_no_secret_is_exported(seen: Seen) -> None:
    """What a service said of a key is masked before it is told."""
    key = "sk-ant-api03-" + "a1B2c3D4" * 5
    Calls().add(
        Call(AT, "anthropic", "m", "error", error=f"invalid x-api-key {key}", error_kind="auth")
    )
    (span,) = seen.exporter.get_finished_spans()
    assert key not in span.to_json()
    assert "<secret" in str(span.status.description)


def test_a_line_that_cannot_be_told_stops_nothing(seen: Seen) -> None:
    """As every handler of logs."""
    logging.raiseExceptions, before = False, logging.raiseExceptions
    try:
        logging.getLogger("loki").info("x", extra={"loki": {"call": "llm", "latency_ms": "soon"}})
    finally:
        logging.raiseExceptions = before
    assert seen.spans() == {}


# --- where it goes ---------------------------------------------------------------------------------


class Collector(ThreadingHTTPServer):
    """An OTLP/HTTP collector on loopback that keeps what it gets, by path."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Receiver)
        self.got: dict[str, bytes] = {}
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        server = self.server
        assert isinstance(server, Collector)
        server.got[self.path] = server.got.get(self.path, b"") + body
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


def run(project: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A whole run; says at its end which modules of OpenTelemetry were loaded, and which threads ran."""
    script = (
        "import sys, threading\n"
        "from loki.cli import main\n"
        "sys.argv = ['loki', 'run', '--task', 'make it', '--check', 'test -e made', "
        "'--agent-command', 'touch made']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    code = end.code\n"
        "print('LOADED', sorted(m for m in sys.modules if m.startswith('opentelemetry'))[:1])\n"
        "print('THREADS', threading.active_count())\n"
        "sys.exit(code)\n"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    return subprocess.run(
        [sys.executable, "-c", script], cwd=project, env={**clean, **variables},
        capture_output=True, text=True, check=True,
    )  # fmt: skip


def test_nothing_is_exported_unless_it_is_configured(tmp_path: Path) -> None:
    """No module, no thread."""
    ran = run(tmp_path)
    assert "LOADED []" in ran.stdout
    assert "THREADS 1" in ran.stdout


def test_a_real_collector_gets_spans_and_metrics(tmp_path: Path) -> None:
    """Over OTLP/HTTP, by the standard variable alone; all of it before the program ends."""
    with Collector() as collector:
        endpoint = f"http://127.0.0.1:{collector.server_port}"
        ran = run(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=endpoint)
        assert "LOADED ['opentelemetry']" in ran.stdout
        collector.shutdown()
    assert set(collector.got) == {"/v1/traces", "/v1/metrics"}
    assert b"loki.execution" in collector.got["/v1/traces"]
    assert b"loki.attempts" in collector.got["/v1/metrics"]
    for body in collector.got.values():
        assert b"service.name" in body


def test_a_collector_that_is_not_there_stops_no_run(tmp_path: Path) -> None:
    """The run ends as it would."""
    ran = run(
        tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9", OTEL_EXPORTER_OTLP_TIMEOUT="1"
    )
    assert "success" in ran.stdout

"""Spans: an execution of the real loop is one, its attempts are in it, and lines are events."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

import loki
from loki.adapters.tracing import SpanHandler
from loki.base.log import log_event


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    handler, logger = SpanHandler(provider.get_tracer("loki")), logging.getLogger("loki")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield exporter
    handler.close()
    logger.removeHandler(handler)
    logger.setLevel(level)


def attributes(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


def test_an_execution_and_its_attempts_are_spans(
    tmp_path: Path, spans: InMemorySpanExporter
) -> None:
    (tmp_path / "a.txt").write_text("bad\n")
    answers = iter(["worse\n", "good\n"])
    outcome = loki.run(
        "make it good",
        agent=lambda _: {"a.txt": next(answers)},
        checks=["grep -q good a.txt"],
        path=str(tmp_path),
        id="t",
    )
    assert outcome.status == "success"
    one, two, execution = spans.get_finished_spans()
    assert [s.name for s in (one, two, execution)] == ["loki.attempt"] * 2 + ["loki.execution"]
    for attempt in (one, two):
        assert attempt.parent is not None
        assert execution.context is not None
        assert attempt.parent.span_id == execution.context.span_id
        assert "validation" in [event.name for event in attempt.events]
    assert attributes(one)["loki.attempt"] == 1
    assert attributes(one)["loki.result"] == "failed"
    assert attributes(one)["loki.strategy"] == "analyze_then_fix"
    assert one.status.status_code is StatusCode.ERROR
    assert two.status.status_code is StatusCode.OK
    assert attributes(execution)["loki.status"] == "success"
    assert attributes(execution)["loki.total_attempts"] == 2
    validation = next(event for event in two.events if event.name == "validation")
    assert dict(validation.attributes or {})["loki.violations"] == 0


def test_a_dead_letter_is_an_event_with_its_reason(spans: InMemorySpanExporter) -> None:
    log_event("t", "attempt=1 asking the agent")
    log_event("t", "attempt=1 pattern=type-error strategy=dead_letter result=failed")
    log_event("t", "dead_letter reason=retry_budget_exhausted")
    log_event("t", "status=failed total_attempts=1 duration_ms=5")
    attempt, execution = spans.get_finished_spans()
    assert attempt.status.description == "type-error"
    (letter,) = execution.events
    assert letter.name == "dead_letter"
    assert dict(letter.attributes or {})["loki.reason"] == "retry_budget_exhausted"
    assert execution.status.status_code is StatusCode.ERROR


def test_tasks_at_once_do_not_mix_and_what_was_left_is_ended(spans: InMemorySpanExporter) -> None:
    log_event("a", "attempt=1 asking the agent")
    log_event("b", "attempt=7 asking the agent")
    log_event("b", "attempt=8 asking the agent")
    log_event("b", "status=interrupted total_attempts=8 duration_ms=5")
    told = [(attributes(s)["loki.task"], s.name) for s in spans.get_finished_spans()]
    assert told == [("b", "loki.attempt"), ("b", "loki.attempt"), ("b", "loki.execution")]
    assert spans.get_finished_spans()[-1].status.status_code is StatusCode.UNSET
    for handler in logging.getLogger("loki").handlers:
        if isinstance(handler, SpanHandler):
            handler.close()
    assert len(spans.get_finished_spans()) == 5


def test_other_lines_are_none_of_ours(spans: InMemorySpanExporter) -> None:
    logging.getLogger("loki").warning("something else")
    assert not spans.get_finished_spans()

"""The closed loop with models, by short names: official clients, a real service, real checks."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import loki
from loki.adapters import telemetry
from loki.testing import ManualClock, no_model_calls
from support.llm_service import LLMService, Received, Said, broken, failed
from support.project import QUICK, RIGHT, WRONG, make_project

FIX: dict[str, Any] = {
    "description": "Add instead of subtracting.",
    "edits": [{"path": "calc.py", "action": "replace", "old": "a - b", "new": "a + b"}],
    "commands": [],
    "confidence": 0.9,
}
MODELS = ["anthropic:claude-test", "openai:gpt-test"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "p")


def point_at(service: LLMService, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a user does who has a key and a gateway."""
    for name, url in (("ANTHROPIC", service.url), ("OPENAI", f"{service.url}/v1")):
        monkeypatch.setenv(f"{name}_API_KEY", "a key")
        monkeypatch.setenv(f"{name}_BASE_URL", url)


@pytest.mark.parametrize("model", MODELS)
def test_three_lines(project: Path, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with LLMService([Said(arguments=FIX, input=900, output=90)]) as service:
        point_at(service, monkeypatch)
        outcome = loki.run("make add add", agent=model, checks=[QUICK], path=str(project))
    assert outcome.status == "success"
    assert (project / "calc.py").read_text() == RIGHT
    (attempt,) = loki.Workspace(project).history(outcome.task_id).attempts()
    assert (attempt.agent, attempt.model, attempt.tokens) == (model, model.split(":")[1], 990)
    told = service.received[0].text
    assert "make add add" in told
    assert "return a - b" in told, "the model is shown the file"


def test_async_and_the_other_entries(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: Received) -> Said:
        return Said(arguments=FIX if "return a - b" in request.text else {"edits": []})

    with LLMService(answer) as service:
        point_at(service, monkeypatch)
        work = loki.arun("add", agent=MODELS[0], checks=[QUICK], path=str(project))
        assert asyncio.run(work).status == "success"
        (project / "calc.py").write_text(WRONG)
        with loki.Workspace(project).task("again", checks=[QUICK]) as task:
            assert task.run(MODELS[1]).status == "success"
        (project / "calc.py").write_text(WRONG)
        with loki.Workspace(project).task("and again", checks=[QUICK]) as task:
            assert asyncio.run(task.arun(MODELS[1])).status == "success"


def test_a_model_of_the_configuration(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compatible service with a key of its own."""
    with LLMService([Said(arguments=FIX)]) as service:
        (project / ".loki").mkdir()
        (project / ".loki" / "config.toml").write_text(
            f'[agents.fast]\nmodel = "openai:qwen"\nbase_url = "{service.url}/v1"\n'
            'api_key_variable = "HOUSE_KEY"\nmax_tokens = 777\nbreaker = "api/house"\nfiles_tokens = 0\n'
        )
        monkeypatch.setenv("HOUSE_KEY", "of the house")
        outcome = loki.run("make add add", agent="fast", checks=[QUICK], path=str(project))
    assert outcome.status == "success"
    (request,) = service.received
    assert request.headers["authorization"] == "Bearer of the house"
    assert (request.wire, request.body["max_tokens"]) == ("chat", 777)
    assert "return a - b" not in request.text, "no file is shown where none may be"
    assert loki.Workspace(project).agent("fast").breaker == "api/house"


def test_what_was_wrong_is_sent_back_and_then_an_attempt(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once within the attempt; an answer that is useless again fails it, as the model's own fault."""
    wrong = {**FIX, "edits": [{**FIX["edits"][0], "old": "a * b"}]}
    script = [Said(arguments=wrong), Said("I am done.", input=90), Said(arguments=FIX)]
    with LLMService(script) as service:
        point_at(service, monkeypatch)
        outcome = loki.run("make add add", agent=MODELS[0], checks=[QUICK], path=str(project))
    assert outcome.status == "success"
    first, second = loki.Workspace(project).history(outcome.task_id).attempts()
    assert first.error is not None
    assert "no usable answer" in first.error
    assert (first.tokens, first.model) == (110, "claude-test"), "it is paid for all the same"
    assert second.result == "success"
    assert "does not occur" in service.received[1].text
    assert "no usable answer" in service.received[2].text


def test_a_hostile_path_goes_to_a_person(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = {"path": "../evil.py", "action": "write", "content": "x = 1\n"}
    script = [Said(arguments={**FIX, "edits": [outside]}), Said(arguments=FIX)]
    with LLMService(script) as service:
        point_at(service, monkeypatch)
        outcome = loki.run("make add add", agent=MODELS[0], checks=[QUICK], path=str(project))
    assert (outcome.status, outcome.attempts, len(service.received)) == ("escalated", 1, 1)
    assert not (project.parent / "evil.py").exists()
    assert "leads out of the project" in (outcome.reason or "")


def test_spent_money_stops_at_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spent = failed(429, "insufficient_quota", "You exceeded your current quota")
    with LLMService([spent]) as service:
        point_at(service, monkeypatch)
        outcome = loki.run("make add add", agent=MODELS[1], checks=[QUICK], path=str(project))
    assert outcome.status == "escalated"
    assert len(service.received) == 1


@pytest.mark.parametrize("model", MODELS)
def test_without_a_key_no_check_runs(
    project: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = f"{model.split(':', maxsplit=1)[0].upper()}_API_KEY"
    monkeypatch.delenv(variable, raising=False)
    check = "sh -c 'touch ran; exit 1'"
    with pytest.raises(loki.UsageError, match=variable):
        loki.run("make add add", agent=model, checks=[check], path=str(project))
    assert not (project / "ran").exists()
    assert loki.Workspace(project).tasks() == []


def test_calls_can_be_forbidden(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with LLMService([Said(arguments=FIX), Said(arguments=FIX)]) as service:
        point_at(service, monkeypatch)
        with no_model_calls():
            outcome = loki.run("make add add", agent=MODELS[0], checks=[QUICK], path=str(project))
        assert outcome.status == "escalated"
        assert "forbidden" in (outcome.reason or "")
        assert service.received == []


def test_a_stopped_run_ends_the_call(
    project: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An answer that never ends does not hold up whoever cancels."""

    async def cancel() -> None:
        asked = asyncio.Event()
        here = asyncio.get_running_loop()

        def answer(_request: Received) -> Any:
            here.call_soon_threadsafe(asked.set)
            return broken("stalls")

        with LLMService(answer) as service:
            point_at(service, monkeypatch)
            work = loki.arun("make add add", agent=MODELS[0], checks=[QUICK], path=str(project))
            task = asyncio.ensure_future(work)
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(task, 30)

    asyncio.run(cancel())
    assert "never retrieved" not in caplog.text
    workspace = loki.Workspace(project)
    (attempt,) = workspace.history(workspace.tasks()[0]).attempts()
    assert attempt.result == "interrupted"


def test_the_answer_is_kept_as_it_was_understood(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JSON that is slightly wrong costs no second call."""
    said = json.dumps(FIX).replace("}]", "},]")
    with LLMService([Said(arguments=said)]) as service:
        point_at(service, monkeypatch)
        outcome = loki.run("make add add", agent=MODELS[1], checks=[QUICK], path=str(project))
    assert (outcome.status, len(service.received)) == ("success", 1)


@pytest.mark.parametrize("model", MODELS)
def test_its_calls_are_spans_of_the_conventions(
    project: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the loop asks, and not only what a test puts on record, reaches OpenTelemetry."""
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    stop = telemetry.instrument(tracers, MeterProvider([reader], shutdown_on_exit=False))
    try:
        with LLMService([failed(503), Said(arguments=FIX, input=900, output=90)]) as service:
            point_at(service, monkeypatch)
            with loki.Workspace(project, clock=ManualClock()).task("add", checks=[QUICK]) as task:
                assert task.run(model).status == "success"
    finally:
        stop()
    provider, name = model.split(":")
    spans = {span.name: span for span in exporter.get_finished_spans()}
    call = spans[f"chat {name}"].attributes
    assert call is not None
    assert call["gen_ai.provider.name"] == provider
    assert call["gen_ai.usage.input_tokens"] == 900
    assert call["gen_ai.usage.output_tokens"] == 90
    assert {"loki.execution", "loki.attempt"} <= spans.keys()
    told = str(reader.get_metrics_data())
    assert "gen_ai.client.token.usage" in told
    assert "gen_ai.client.operation.duration" in told

"""Whatever a service does, a call ends in time, in an answer or in one error that says what happened.

The official clients, against a real service on this machine.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import traceback
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import pytest

from loki import LLMError, Message, Request, Tool
from loki.agents.anthropic_llm import AnthropicLLM
from loki.agents.model_call import Draft, Service, perform
from loki.agents.openai_llm import OpenAILLM
from loki.testing import ManualClock
from support.llm_service import (
    Fault,
    LLMService,
    Reply,
    Said,
    broken,
    failed,
)

NOW = datetime(2026, 4, 4, 12, tzinfo=timezone.utc)
TOOL = Tool("propose", "Propose a change.", {"type": "object", "properties": {}})

Maker = Callable[..., Any]
LLMS: dict[str, Maker] = {
    "chat": lambda url, **more: OpenAILLM("gpt-test", base_url=f"{url}/v1", **more),
    "messages": lambda url, **more: AnthropicLLM("claude-test", base_url=url, **more),
    "responses": lambda url, **more: OpenAILLM(
        "gpt-test", base_url=f"{url}/v1", api="responses", **more
    ),
}


@pytest.fixture(params=sorted(LLMS))
def make(request: pytest.FixtureRequest) -> Maker:
    """Makes an LLM that speaks one of the formats; a clock that stands still tells it the time."""
    maker = LLMS[request.param]
    return lambda url, **more: maker(url, api_key="key", clock=ManualClock(NOW), **more)


def ask(text: str = "Hello", **more: Any) -> Request:
    return Request((Message("user", text),), "You are terse.", **more)


def error_of(make: Maker, reply: Reply, request: Request | None = None, **more: Any) -> LLMError:
    with LLMService([reply]) as service:
        with pytest.raises(LLMError) as caught:
            make(service.url, **more).complete(request or ask())
        assert len(service.received) <= 1, "a call is one call"
    return caught.value


# --- answers ------------------------------------------------------------------------------------------


def test_text_in_pieces(make: Maker) -> None:
    pieces: list[str] = []
    said = Said("Hello, how are you? I am fine.", input=7, output=9, cached=3, written=2)
    with LLMService([said]) as service:
        llm = make(service.url)
        answer = llm.complete(ask(on_text=pieces.append))
    assert answer.text == said.text
    assert len(pieces) > 1
    assert "".join(pieces) == said.text
    assert (answer.arguments, answer.ending, answer.model) == (None, "end", llm.model)
    assert (answer.usage.input, answer.usage.output) == (12, 9)
    assert (answer.usage.cache_read, answer.usage.cache_write) == (3, 2)
    assert answer.request_id == "req_1"


def test_the_tool_is_called(make: Maker) -> None:
    arguments = '{"edits": [{"path": "ä.py"}], "why": "because"}'
    with LLMService([Said(arguments=arguments), Said("First. ", arguments)]) as service:
        llm = make(service.url)
        alone, after_text = llm.complete(ask(tool=TOOL)), llm.complete(ask(tool=TOOL))
    assert (alone.text, alone.arguments, alone.ending) == ("", arguments, "tool")
    assert (after_text.text, after_text.arguments) == ("First. ", arguments)


@pytest.mark.parametrize("ending", ["length", "refused"])
def test_why_it_stopped(make: Maker, ending: str) -> None:
    with LLMService([Said("I cannot", ending=ending)]) as service:
        answer = make(service.url).complete(ask())
    assert (answer.ending, answer.text) == (ending, "I cannot")


def test_async_and_inside_a_running_loop(make: Maker) -> None:
    async def both() -> list[str]:
        there, here = await asyncio.gather(llm.acomplete(ask()), llm.acomplete(ask()))
        return [there.text, here.text, llm.complete(ask()).text]

    with LLMService([Said("a"), Said("a"), Said("a")]) as service:
        llm = make(service.url)
        assert asyncio.run(both()) == ["a", "a", "a"]


def test_what_the_caller_raises_comes_back(make: Maker) -> None:
    def full(_piece: str) -> None:
        raise OSError("disk full")

    with LLMService([Said("a text")]) as service, pytest.raises(OSError, match="disk full"):
        make(service.url).complete(ask(on_text=full))


# --- errors that the service tells ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "2", "retry-after-ms": "1500"}, 1.5),
        ({"retry-after": format_datetime(NOW + timedelta(seconds=90), usegmt=True)}, 90.0),
        ({}, None),
    ],
    ids=["seconds", "milliseconds", "date", "none"],
)
def test_a_rate_limit(make: Maker, headers: dict[str, str], seconds: float | None) -> None:
    error = error_of(make, failed(429, "rate_limit_error", "slow down", headers=headers))
    assert (error.kind, error.status, error.retryable) == ("rate_limit", 429, True)
    assert error.retry_after == seconds
    assert error.request_id == "req_1"
    assert "429" in str(error)
    assert "slow down" in str(error)


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (529, "overloaded", True),
        (503, "overloaded", True),
        (500, "server", True),
        (400, "bad_request", False),
        (401, "authentication", False),
        (403, "permission", False),
        (404, "not_found", False),
    ],
)
def test_a_status(make: Maker, status: int, kind: str, retryable: bool) -> None:
    error = error_of(make, failed(status))
    assert (error.kind, error.status, error.retryable) == (kind, status, retryable)


@pytest.mark.parametrize(
    "reply",
    [
        failed(429, "insufficient_quota", "check your plan", code="insufficient_quota"),
        failed(429, "rate_limit_error", "spent", code="enforced_spend_limit_reached"),
        failed(400, "invalid_request_error", "You have reached your specified API usage limits."),
    ],
)
def test_spent_money_is_never_asked_again(make: Maker, reply: Reply) -> None:
    error = error_of(make, reply)
    assert (error.kind, error.retryable, error.retry_after) == ("quota", False, None)


def test_a_request_that_is_too_long(make: Maker) -> None:
    message = "prompt is too long: 210000 tokens > 200000 maximum"
    error = error_of(make, failed(400, "invalid_request_error", message))
    assert (error.kind, error.retryable) == ("too_long", False)


def test_a_page_of_a_gateway(make: Maker) -> None:
    error = error_of(make, failed(502, body="<html><h1>Bad Gateway</h1></html>"))
    assert (error.kind, error.status) == ("server", 502)


# --- what happens on the way --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("ends", "connection"),
        ("drops", "connection"),
        ("resets", "connection"),
        ("garbles", "malformed"),
        ("errs", "overloaded"),
    ],
)
def test_a_stream_that_breaks(make: Maker, fault: Fault, kind: str) -> None:
    error = error_of(make, broken(fault, text="the beginning of an answer"))
    assert (error.kind, error.retryable) == (kind, True)
    assert error.output.startswith("the")
    assert error.request_id == "req_1"


@pytest.mark.parametrize("fault", ["drops", "resets", "stalls"])
def test_an_answer_that_is_whole_counts(make: Maker, fault: Fault) -> None:
    """It is paid for, and not asked for again where only the end of its stream is missing."""
    short = [({"stall": "2s"}, ask()), ({}, ask(timeout=4))]
    for more, asked in short if fault == "stalls" else [({}, ask())]:
        with LLMService([broken(fault, -1, "All of it.", input=7, output=3)]) as service:
            answer = make(service.url, **more).complete(asked)
        assert (answer.text, answer.usage.total) == ("All of it.", 10)


def test_a_key_that_a_service_repeats_is_nowhere(make: Maker) -> None:
    """Not even in what Python prints of an error that nobody catches."""
    key = "sk-proj-" + "aB3dE6gH9k" * 5
    reply = failed(401, "authentication_error", f"Incorrect API key provided: {key}")
    error = error_of(make, reply)
    assert key not in "".join(traceback.format_exception(error))
    assert error.kind == "authentication"


@pytest.mark.parametrize("fault", ["stalls", "hangs"])
def test_a_stream_that_stalls(make: Maker, fault: Fault) -> None:
    error = error_of(make, broken(fault), stall="100ms")
    assert (error.kind, error.retryable) == ("timeout", True)
    late = error_of(make, broken(fault), ask(timeout=0.1))
    assert late.kind == "timeout"


def test_nobody_is_there(make: Maker) -> None:
    with LLMService() as service:
        url = service.url
    with pytest.raises(LLMError) as caught:
        make(url).complete(ask())
    assert (caught.value.kind, caught.value.retryable) == ("connection", True)


@pytest.mark.parametrize("body", ["<html>Welcome</html>", {"hello": "world"}])
def test_an_address_where_no_model_is(make: Maker, body: Any) -> None:
    error = error_of(make, failed(200, body=body))
    assert (error.kind, error.retryable) == ("malformed", False)
    assert "base URL" in str(error)


def test_an_empty_answer(make: Maker) -> None:
    error = error_of(make, Said(""))
    assert (error.kind, error.retryable) == ("malformed", True)
    cut = error_of(make, Said("", ending="length"))
    assert (cut.kind, cut.retryable) == ("malformed", False)
    assert "max_tokens" in str(cut)


@pytest.mark.parametrize("piece", [100_000, 10_000_000], ids=["in pieces", "in one event"])
def test_ten_megabytes(make: Maker, piece: int) -> None:
    error = error_of(make, Said("x" * 10_000_000, piece=piece))
    assert (error.kind, error.retryable) == ("malformed", False)
    assert "longer than" in str(error)
    assert len(error.output) <= 2000


@pytest.mark.parametrize("fault", ["stalls", "hangs"])
def test_cancelled(make: Maker, fault: Fault) -> None:
    """In mid-stream, and before anything came: it ends although the service says nothing."""
    cancelled = threading.Event()
    request = ask(on_text=lambda _: cancelled.set(), cancelled=cancelled)
    if fault == "hangs":
        cancelled.set()
    error = error_of(make, broken(fault), request)
    assert (error.kind, error.retryable) == ("cancelled", False)


def test_a_cancelled_task_ends_the_call(make: Maker) -> None:
    async def cancel() -> None:
        begun = asyncio.Event()
        task = asyncio.ensure_future(llm.acomplete(ask(on_text=lambda _: begun.set())))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with LLMService([broken("stalls")]) as service:
        llm = make(service.url)
        asyncio.run(cancel())


def test_ctrl_c_in_mid_step_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """The signal may come while the client works, not only while the loop waits."""

    async def work(_draft: Draft) -> None:
        await asyncio.sleep(0)
        raise KeyboardInterrupt

    service = Service("anthropic", "claude-test", "ANTHROPIC_API_KEY")
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(perform(work, service, ask(), ManualClock(NOW)))
    gc.collect()
    assert "never retrieved" not in caplog.text


def test_an_error_says_where_nobody_listens(make: Maker) -> None:
    with LLMService() as service:
        url = service.url
    with pytest.raises(LLMError, match=f"the connection to {url} failed: "):
        make(url).complete(ask())


def test_a_password_in_an_address_is_not_told() -> None:
    service = Service("openai", "gpt-test", "K", "http://me:hunter2@localhost:8000/v1")
    assert service.place == " to http://localhost:8000"

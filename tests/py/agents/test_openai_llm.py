"""OpenAI's models and compatible services: what is sent, and what only they do."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from loki import LLMError, Message, Request, Tool, UsageError
from loki.agents.openai_llm import OpenAILLM
from support.llm_service import LLMService, Received, Said, Streamed, failed
from support.llm_wire import Event

CLOSED = {
    "type": "object",
    "properties": {"a": {"type": ["string", "null"]}},
    "required": ["a"],
    "additionalProperties": False,
}
TOOL = Tool("propose", "Propose a change.", CLOSED)
ASKED = Request((Message("user", "Hello"),), "You are terse.", TOOL, max_tokens=77)
OWN = "https://api.openai.com/v1"


def sent(service: LLMService) -> Received:
    (request,) = service.received
    return request


def test_what_is_sent_to_responses() -> None:
    with LLMService([Said(arguments={})]) as service:
        OpenAILLM("m", base_url=f"{service.url}/v1", api="responses", api_key="k").complete(ASKED)
    request = sent(service)
    assert (request.path, request.headers["authorization"]) == ("/v1/responses", "Bearer k")
    body = request.body
    assert body["instructions"] == "You are terse."
    assert body["input"] == [{"role": "user", "content": "Hello"}]
    assert (body["store"], body["stream"], body["max_output_tokens"]) == (False, True, 77)
    assert body["tool_choice"] == {"type": "function", "name": "propose"}
    assert (body["tools"][0]["parameters"], body["tools"][0]["strict"]) == (CLOSED, True)


def test_what_is_sent_to_a_compatible_service() -> None:
    """Nothing that only OpenAI knows."""
    with LLMService([Said(arguments={})]) as service:
        OpenAILLM("m", base_url=f"{service.url}/v1", api_key="k").complete(ASKED)
    request = sent(service)
    assert request.path == "/v1/chat/completions"
    body = request.body
    assert body["messages"][0] == {"role": "system", "content": "You are terse."}
    assert body["messages"][1] == {"role": "user", "content": "Hello"}
    assert body["tool_choice"] == {"type": "function", "function": {"name": "propose"}}
    known = {"model", "messages", "stream", "stream_options", "max_tokens", "tools", "tool_choice"}
    assert body.keys() == known
    assert "strict" not in body["tools"][0]["function"]


@pytest.mark.parametrize("api", ["responses", "chat"])
def test_what_is_sent_to_openai_itself(api: Any) -> None:
    """What stays the same has one key, so that requests meet their cache."""
    llm = OpenAILLM("m", base_url=OWN, api=api, api_key="k")
    make = llm._response if api == "responses" else llm._chat
    one, other = make(ASKED), make(Request((Message("user", "Bye"),), "You are terse.", TOOL))
    assert one["prompt_cache_key"] == other["prompt_cache_key"]
    assert one["parallel_tool_calls"] is False
    assert "max_tokens" not in one
    assert '"strict": true' in json.dumps(one["tools"])


def test_which_api() -> None:
    assert OpenAILLM("m", api_key="k").api == "responses"
    assert OpenAILLM("m", api_key="k", base_url="https://eu.api.openai.com/v1").api == "responses"
    assert OpenAILLM("m", api_key="k", base_url="https://openai.com.example.org/v1").api == "chat"
    with pytest.raises(UsageError, match="'responses' or 'chat'"):
        OpenAILLM("m", api_key="k", api=cast("Any", "completions"))


def test_the_service_is_found_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with LLMService([Said("Hello")]) as service:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{service.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "from the environment")
        assert OpenAILLM("m").complete(ASKED).text == "Hello"
    assert sent(service).headers["authorization"] == "Bearer from the environment"


def test_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        OpenAILLM("m")
    with LLMService([Said("Hello")]) as service:  # one on this machine needs none
        assert OpenAILLM("m", base_url=f"{service.url}/v1").complete(ASKED).text == "Hello"


def test_a_service_that_cannot_make_a_model_call_a_function() -> None:
    refusal = failed(400, "invalid_request_error", "tool_choice must be 'auto' or 'none'")
    with LLMService([refusal, Said(arguments="{}"), Said(arguments="{}")]) as service:
        llm = OpenAILLM("m", base_url=f"{service.url}/v1")
        assert llm.complete(ASKED).arguments == "{}"
        assert llm.complete(ASKED).arguments == "{}"
    choices = [request.body["tool_choice"] for request in service.received]
    assert choices[1:] == ["auto", "auto"]


def chunk(**choice: Any) -> tuple[None, dict[str, Any]]:
    return None, {"choices": [{"index": 0, **choice}]}


def test_a_service_that_says_less_than_it_should() -> None:
    """No usage, no model, choices without a delta, an end without [DONE]."""
    events: tuple[Event, ...] = (
        (None, {"choices": []}),
        chunk(delta=None),
        chunk(delta={"content": "Hello"}),
        chunk(delta={"content": None, "tool_calls": []}),
        chunk(finish_reason="stop"),
        (None, {"usage": {"prompt_tokens": -1, "completion_tokens": "9"}}),
    )
    with LLMService([Streamed(events)]) as service:
        answer = OpenAILLM("m", base_url=f"{service.url}/v1").complete(ASKED)
    assert (answer.text, answer.model, answer.usage.total) == ("Hello", "m", 0)


@pytest.mark.parametrize("content", [{"a": 1}, ["a"], 7])
def test_what_is_no_text_is_no_answer(content: Any) -> None:
    events = (chunk(delta={"content": content}), chunk(finish_reason="stop"))
    with LLMService([Streamed(events)]) as service, pytest.raises(LLMError) as caught:
        OpenAILLM("m", base_url=f"{service.url}/v1").complete(ASKED)
    assert caught.value.kind == "malformed"


def test_of_two_calls_the_first_counts() -> None:
    def call(index: int, arguments: str) -> dict[str, Any]:
        function = {"name": "propose", "arguments": arguments}
        return {"tool_calls": [{"index": index, "id": f"c{index}", "function": function}]}

    events = (
        chunk(delta=call(0, '{"a":')),
        chunk(delta=call(1, '{"a": 2}')),
        chunk(delta=call(0, " 1}")),
        chunk(finish_reason="tool_calls"),
    )
    with LLMService([Streamed(events)]) as service:
        answer = OpenAILLM("m", base_url=f"{service.url}/v1").complete(ASKED)
    assert answer.arguments == '{"a": 1}'


def test_what_a_router_says_it_cost() -> None:
    events = (
        chunk(delta={"content": "Hello"}, finish_reason="stop"),
        (None, {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4, "cost": 0.5}}),
    )
    with LLMService([Streamed(events)]) as service:
        answer = OpenAILLM("m", base_url=f"{service.url}/v1").complete(ASKED)
    assert (answer.usage.total, answer.cost) == (7, 0.5)


@pytest.mark.parametrize("cost", [-100, float("nan"), float("inf"), 10**400, True, "0.5"])
def test_figures_that_cannot_be_are_none(cost: Any) -> None:
    """Else a service could give money back, and a budget would never end."""
    usage = {"prompt_tokens": 10**400, "completion_tokens": True, "cost": cost}
    events = (
        (None, {"model": {"a": 1}, "choices": [], "usage": usage}),
        chunk(delta={"content": "Hello"}, finish_reason="stop"),
    )
    with LLMService([Streamed(events)]) as service:
        answer = OpenAILLM("m", base_url=f"{service.url}/v1").complete(ASKED)
    assert (answer.usage.total, answer.cost, answer.model) == (0, None, "m")


def test_a_rate_limit_of_one_request_is_too_long() -> None:
    """No wait helps where one request is more than may be sent in a minute."""
    message = "Request too large for m on tokens per min (TPM): Limit 30000, Requested 50000."
    reply = failed(429, "tokens", message, code="rate_limit_exceeded")
    with LLMService([reply]) as service, pytest.raises(LLMError) as caught:
        OpenAILLM("m", base_url=f"{service.url}/v1").complete(ASKED)
    assert (caught.value.kind, caught.value.retryable) == ("too_long", False)


@pytest.mark.parametrize("error", [None, {}, "down"])
def test_a_failure_that_says_nothing_is_one_all_the_same(error: object) -> None:
    """A compatible service may leave out what OpenAI's always has."""
    event = {"type": "response.failed", "response": {"status": "failed", "error": error}}
    with LLMService([Streamed((("response.failed", event),))]) as service:
        llm = OpenAILLM("m", base_url=f"{service.url}/v1", api="responses")
        with pytest.raises(LLMError) as caught:
            llm.complete(ASKED)
    assert caught.value.retryable

"""Anthropic's models: what is sent, and what only this service does."""

from __future__ import annotations

import pytest

from loki import LLMError, Message, Request, Tool, UsageError
from loki.agents.anthropic_llm import AnthropicLLM
from support.llm_service import LLMService, Said, Streamed, failed

TOOL = Tool("propose", "Propose a change.", {"type": "object", "properties": {"a": {}}})
ASKED = Request((Message("user", "Hello"),), "You are terse.", TOOL, max_tokens=77)


def test_what_is_sent() -> None:
    """The tool and the system text first, where the cache ends; the model is made to call the tool."""
    with LLMService([Said(arguments={})]) as service:
        AnthropicLLM("claude-test", base_url=service.url, api_key="secret").complete(ASKED)
    (request,) = service.received
    assert request.path == "/v1/messages"
    assert "secret" in (request.headers.get("x-api-key") or request.headers["authorization"])
    body = request.body
    assert (body["model"], body["max_tokens"], body["stream"]) == ("claude-test", 77, True)
    (system,) = body["system"]
    assert (system["text"], system["cache_control"]) == ("You are terse.", {"type": "ephemeral"})
    assert body["tool_choice"]["type"] == "tool"
    assert body["tool_choice"]["name"] == "propose"
    assert body["tools"][0]["input_schema"] == TOOL.schema
    assert body["messages"] == [{"role": "user", "content": "Hello"}]


def test_the_service_is_found_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with LLMService([Said("Hello")]) as service:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", service.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "from the environment")
        assert AnthropicLLM("claude-test").complete(ASKED).text == "Hello"


def test_a_model_that_cannot_be_made_to_call_a_tool() -> None:
    """Models that always think refuse it: it is asked once without, and never again with it."""
    refusal = failed(
        400, "invalid_request_error", "tool_choice: forcing a tool is not supported for this model."
    )
    with LLMService([refusal, Said(arguments="{}"), Said(arguments="{}")]) as service:
        llm = AnthropicLLM("claude-test", base_url=service.url, api_key="k")
        assert llm.complete(ASKED).arguments == "{}"
        assert llm.complete(ASKED).arguments == "{}"
    kinds = [request.body["tool_choice"]["type"] for request in service.received]
    assert kinds == ["tool", "auto", "auto"]


def test_another_bad_request_is_asked_once() -> None:
    with LLMService([failed(400, "invalid_request_error", "max_tokens: too many")]) as service:
        llm = AnthropicLLM("claude-test", base_url=service.url, api_key="k")
        with pytest.raises(LLMError, match="max_tokens: too many"):
            llm.complete(ASKED)
    assert len(service.received) == 1


def test_a_service_that_says_less_than_it_should() -> None:
    """No usage, and a later word that says nothing of the end."""
    text = {"type": "text_delta", "text": "Hello"}
    events = (
        ("message_start", {"type": "message_start", "message": {"model": "m"}}),
        ("content_block_delta", {"type": "content_block_delta", "index": 0, "delta": text}),
        ("message_delta", {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}),
        ("message_delta", {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 3}}),
        ("message_stop", {"type": "message_stop"}),
    )
    with LLMService([Streamed(events)]) as service:
        answer = AnthropicLLM("m", base_url=service.url).complete(ASKED)
    assert (answer.text, answer.ending, answer.usage.output) == ("Hello", "length", 3)


def test_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(UsageError, match="ANTHROPIC_API_KEY"):
        AnthropicLLM("claude-test")
    with pytest.raises(UsageError, match="ANTHROPIC_API_KEY"):
        AnthropicLLM("claude-test", base_url="https://models.example.org")
    with LLMService([Said("Hello")]) as service:  # one on this machine needs none
        assert AnthropicLLM("claude-test", base_url=service.url).complete(ASKED).text == "Hello"


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://x/", "http://"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(UsageError, match="expected an address"):
        AnthropicLLM("claude-test", base_url=url, api_key="k")


def test_a_wrong_key_names_the_variable_and_is_not_shown() -> None:
    key = "sk-ant-api03-" + "a1B2" * 10
    reply = failed(401, "authentication_error", f"invalid x-api-key: {key}")
    with (
        LLMService([reply]) as service,
        pytest.raises(LLMError, match="ANTHROPIC_API_KEY") as caught,
    ):
        AnthropicLLM("claude-test", base_url=service.url, api_key=key).complete(ASKED)
    assert key not in str(caught.value)

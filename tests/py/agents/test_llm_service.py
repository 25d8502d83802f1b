"""The model service that tests stand on speaks as the official clients expect, streamed or not."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import openai
import pytest

from support.llm_service import LLMService, Said, failed

TOOL = {"name": "add", "description": "", "input_schema": {"type": "object"}}


def anthropic_at(service: LLMService) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=service.url, api_key="k", max_retries=0)


def openai_at(service: LLMService) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{service.url}/v1", api_key="k", max_retries=0)


SAID = Said("Hello, ", {"a": 1}, input=7, output=9, cached=3)


def test_messages() -> None:
    body: dict[str, Any] = {
        "model": "m",
        "max_tokens": 9,
        "tools": [TOOL],
        "messages": [{"role": "user", "content": "Hi"}],
    }
    with LLMService([SAID, SAID]) as service, anthropic_at(service) as client:
        whole = client.messages.create(**body)
        with client.messages.stream(**body) as stream:
            streamed: Any = stream.get_final_message()
    messages: list[Any] = [whole, streamed]
    for message in messages:
        text, call = message.content
        assert (text.text, call.name, call.input) == ("Hello, ", "add", {"a": 1})
        assert message.stop_reason == "tool_use"
        assert message.usage.input_tokens == 7
        assert message.usage.cache_read_input_tokens == 3


def test_chat_and_responses() -> None:
    with LLMService([SAID, SAID, SAID]) as service, openai_at(service) as client:
        chat = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "Hi"}]
        )
        whole = client.responses.create(model="m", input="Hi")
        with client.responses.stream(model="m", input="Hi") as stream:
            streamed: Any = stream.get_final_response()
    message = chat.choices[0].message
    assert message.content == "Hello, "
    assert message.tool_calls is not None
    assert chat.usage is not None
    assert chat.usage.prompt_tokens == 10
    responses: list[Any] = [whole, streamed]
    for response in responses:
        assert response.output_text == "Hello, "
        assert json.loads(response.output[1].arguments) == {"a": 1}
        assert response.usage.input_tokens_details.cached_tokens == 3


def test_errors_in_the_form_of_each_service() -> None:
    spent = failed(429, "spent", "no money", code="enforced_spend_limit_reached")
    with LLMService([spent, spent]) as service:
        with anthropic_at(service) as one, pytest.raises(anthropic.RateLimitError) as caught:
            one.messages.create(model="m", max_tokens=1, messages=[])
        assert caught.value.error_code == "enforced_spend_limit_reached"
        with openai_at(service) as other, pytest.raises(openai.RateLimitError) as error:
            other.responses.create(model="m", input="Hi")
        assert error.value.code == "enforced_spend_limit_reached"


def test_a_script_that_is_over_refuses_and_the_rest_takes_no_reply() -> None:
    with LLMService([]) as service, anthropic_at(service) as client:
        counted = client.messages.count_tokens(model="m", messages=[])
        assert counted.input_tokens > 0
        assert service.received == []
        with pytest.raises(anthropic.BadRequestError, match="the script is over"):
            client.messages.create(model="m", max_tokens=1, messages=[])
    assert len(service.received) == 1

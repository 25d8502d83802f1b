"""Models by pydantic-ai, asked as any other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

import loki
from loki.agents.providers import llm_of
from loki.testing import LLMContract
from support.llm_service import Broken, LLMService, Received, Reply, Said, failed

NOWHERE = "http://127.0.0.1:9/v1"  # the discard service, which nobody runs any more


def chat(url: str) -> Model:
    return OpenAIChatModel("gpt-test", provider=OpenAIProvider(base_url=url, api_key="k"))


def messages(url: str) -> Model:
    where = AnthropicProvider(base_url=url.removesuffix("/v1"), api_key="k")
    return AnthropicModel("claude-test", provider=where)


def adds(request: Received) -> Said:
    return Said(arguments={"sum": 4}) if request.body.get("tools") else Said("The sum is 4.")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with LLMService(adds) as service:
        yield f"{service.url}/v1"


class Here(LLMContract):
    url = ""

    @pytest.fixture(autouse=True)
    def _at(self, url: str) -> None:
        self.url = url


class TestOpenAI(Here):
    def llm(self) -> loki.LLM:
        return loki.PydanticAILLM(chat(self.url))

    def unreachable(self) -> loki.LLM:
        return loki.PydanticAILLM(chat(NOWHERE))


class TestAnthropic(Here):
    def llm(self) -> loki.LLM:
        return loki.PydanticAILLM(messages(self.url))

    def unreachable(self) -> loki.LLM:
        return loki.PydanticAILLM(messages(NOWHERE))


def ask(llm: loki.PydanticAILLM) -> loki.Answer:
    said = (
        loki.Message("user", "Hello"),
        loki.Message("assistant", "Yes?"),
        loki.Message("user", "And?"),
    )
    return llm.complete(loki.Request(said, "Be terse."))


def test_what_goes_with_a_request() -> None:
    with LLMService(lambda _: Said("Hi", input=7, output=2, cached=3)) as service:
        llm = loki.PydanticAILLM(
            chat(f"{service.url}/v1"), temperature=0.2, headers={"X-Team": "core"}
        )
        answer = ask(llm)
    (asked,) = service.received
    assert (answer.text, answer.usage.output, answer.usage.cache_read) == ("Hi", 2, 3)
    assert answer.usage.input == 10
    assert asked.headers["x-team"] == "core"
    assert asked.body["temperature"] == 0.2
    assert [one["role"] for one in asked.body["messages"]] == [
        "system",
        "user",
        "assistant",
        "user",
    ]


@pytest.mark.parametrize("make", [chat, messages])
@pytest.mark.parametrize(
    ("reply", "kind", "wait"),
    [
        (failed(429, "rate_limit_error", headers={"retry-after": "7"}), "rate_limit", 7.0),
        (failed(529, "overloaded_error"), "overloaded", None),
        (failed(401, "authentication_error"), "authentication", None),
        (failed(400, "invalid_request_error"), "bad_request", None),
        (Broken(Said("Hello, how are you? I am fine."), "resets"), "connection", None),
    ],
)
def test_one_call_and_what_its_error_means(
    make: object, reply: Reply, kind: str, wait: float | None
) -> None:
    with LLMService([reply] * 3) as service:
        llm = loki.PydanticAILLM(make(f"{service.url}/v1"))  # type: ignore[operator]
        with pytest.raises(loki.LLMError) as caught:
            ask(llm)
    assert (caught.value.kind, caught.value.retry_after) == (kind, wait)
    assert len(service.received) == 1, "loki is the one who asks again"


def test_names() -> None:
    assert llm_of("pydantic-ai:test").breaker == "api/test/test"
    with pytest.raises(loki.UsageError, match="pydantic-ai has no model 'nowhere'"):
        llm_of("pydantic-ai:nowhere")
    with pytest.raises(loki.UsageError, match="finds address and key by itself"):
        llm_of("pydantic-ai:test", base_url=NOWHERE)

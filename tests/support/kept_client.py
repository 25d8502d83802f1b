"""What tests of agents/test_kept_client of both tiers share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loki import AnthropicLLM, OpenAILLM
from loki.action.agent_protocol import Message, Request
from support.llm_service import LLMService, Said

Maker = Callable[..., Any]
MAKERS: dict[str, Maker] = {
    "chat": lambda url, **more: OpenAILLM("m", base_url=f"{url}/v1", **more),
    "responses": lambda url, **more: OpenAILLM("m", base_url=f"{url}/v1", api="responses", **more),
    "messages": lambda url, **more: AnthropicLLM("m", base_url=url, api_key="k", **more),
}


def asked(text: str = "Hello", **more: Any) -> Request:
    return Request((Message("user", text),), **more)


class Counted(LLMService):
    """A service that keeps connections, and knows on how many it was asked."""

    keeps_alive = True

    def __init__(self) -> None:
        super().__init__(lambda _: Said("Hi"))

    def __enter__(self) -> Counted:
        super().__enter__()
        return self

    @property
    def connections(self) -> int:
        return len({one.peer for one in self.received})

"""Calls of models from LangChain's agents: loki is the only one who asks again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI

import loki
from loki.adapters.langchain import LokiMiddleware
from loki.testing import ManualClock
from support.framework_agents import monitor
from support.langchain_calls import by_ainvoke, by_invoke, by_tokens
from support.llm_service import LLMService, Said, failed

DOWN = failed(529, "overloaded_error", headers={"retry-after-ms": "1"})


def anthropic(service: LLMService, **more: Any) -> BaseChatModel:
    return ChatAnthropic(**{"model": "claude", "base_url": service.url, "api_key": "k", **more})


def openai(service: LLMService, **more: Any) -> BaseChatModel:
    return ChatOpenAI(**{"model": "gpt", "base_url": service.url + "/v1", "api_key": "k", **more})


Make = Callable[..., BaseChatModel]
EACH = pytest.mark.parametrize("make", [anthropic, openai])
WAYS = pytest.mark.parametrize("way", [by_invoke, by_ainvoke, by_tokens])


@EACH
@WAYS
def test_an_outage_is_waited_out_and_each_try_is_one_call(
    tmp_path: Path, make: Make, way: Callable[[Any], str]
) -> None:
    clock = ManualClock()
    with LLMService([DOWN, failed(429, "rate_limit_error"), Said("Hi")]) as service:
        loki_ = LokiMiddleware(monitor(tmp_path, clock))
        before = clock.monotonic()
        assert way(create_agent(make(service, max_retries=0), middleware=[loki_])) == "Hi"
        assert len(service.received) == 3
    assert clock.monotonic() > before


@EACH
def test_who_asks_again_beside_loki_is_told(tmp_path: Path, make: Make) -> None:
    """Two who ask again multiply: three times three calls."""
    with LLMService(lambda _: DOWN) as service:
        agent = create_agent(make(service), middleware=[LokiMiddleware(monitor(tmp_path), wait=0)])
        with pytest.warns(UserWarning, match="max_retries=0"), pytest.raises(loki.BreakerOpen):
            by_invoke(agent)
        assert len(service.received) == 9


@EACH
@WAYS
def test_a_service_that_stays_down_is_left_alone(
    tmp_path: Path, make: Make, way: Callable[[Any], str]
) -> None:
    watched = monitor(tmp_path)
    with LLMService(lambda _: DOWN) as service:
        agent = create_agent(
            make(service, max_retries=0), middleware=[LokiMiddleware(watched, wait=0)]
        )
        for _ in range(2):
            with pytest.raises(loki.BreakerOpen, match="overloaded_error"):
                way(agent)
        assert len(service.received) == 3
    name = "api/anthropic/claude" if make is anthropic else "api/openai/gpt"
    assert watched.workspace.breakers()[name].snapshot().state == "OPEN"


@EACH
def test_what_asking_again_cannot_mend_passes(tmp_path: Path, make: Make) -> None:
    with LLMService(lambda _: failed(401, "authentication_error")) as service:
        agent = create_agent(
            make(service, max_retries=0), middleware=[LokiMiddleware(monitor(tmp_path))]
        )
        with pytest.raises(Exception, match="401") as error:
            by_invoke(agent)
        assert type(error.value).__name__.endswith("AuthenticationError")
        assert len(service.received) == 1

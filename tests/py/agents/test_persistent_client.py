"""One connection for many calls, in each event loop; and what goes with each request."""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any

import httpx2
import pytest

from loki import ResilientLLM, UsageError
from support.kept_client import MAKERS, Counted, Maker, asked
from support.llm_service import LLMService, Said


@pytest.fixture(params=sorted(MAKERS))
def make(request: pytest.FixtureRequest) -> Maker:
    return MAKERS[request.param]


def test_calls_share_a_connection(make: Maker) -> None:
    with Counted() as service:
        llm = make(service.url)
        assert [llm.complete(asked()).text for _ in range(3)] == ["Hi"] * 3
        assert service.connections == 1

        async def twice() -> None:
            await llm.acomplete(asked())
            await llm.acomplete(asked())
            assert llm.complete(asked()).text == "Hi"  # blocks the loop, and goes by the other one

        asyncio.run(twice())
        assert service.connections == 2, "one for each event loop"
        asyncio.run(twice())
        assert service.connections == 3, "a loop that has ended took its own along"


def test_on_text_is_in_the_callers_context_and_may_ask_itself(make: Maker) -> None:
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name")
    name.set("mine")
    with LLMService(lambda _: Said("Hi")) as service:
        llm, heard = make(service.url), []

        def hear(_piece: str) -> None:
            heard.append((name.get(), llm.complete(asked("And?")).text))

        llm.complete(asked(on_text=hear))
    assert set(heard) == {("mine", "Hi")}


@pytest.mark.parametrize("ends", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_program_reaches_the_caller_and_the_next_call_goes_on(
    make: Maker, ends: type[BaseException]
) -> None:
    def end(_piece: str) -> None:
        raise ends

    with LLMService(lambda _: Said("Hi")) as service:
        llm = make(service.url)
        with pytest.raises(ends):
            llm.complete(asked(on_text=end))
        assert llm.complete(asked()).text == "Hi"


# --- what goes with each request ----------------------------------------------------------------------


def test_temperature_effort_and_headers_are_sent() -> None:
    forms: dict[str, dict[str, Any]] = {
        "chat": {"temperature": 0.2, "reasoning_effort": "low"},
        "responses": {"temperature": 0.2, "reasoning": {"effort": "low"}},
        "messages": {"temperature": 0.2, "output_config": {"effort": "low"}},
    }
    for name, form in forms.items():
        with LLMService(lambda _: Said("Hi")) as service:
            given = {"temperature": 0.2, "effort": "low", "headers": {"X-Team": "core"}}
            MAKERS[name](service.url, **given).complete(asked())
            MAKERS[name](service.url).complete(asked())
            with_them, without = service.received
        assert {k: with_them.body.get(k) for k in form} == form
        assert with_them.headers["x-team"] == "core"
        assert not set(form) & set(without.body), "nothing is said where nothing was given"


@pytest.mark.parametrize("value", [-0.1, 2.1, float("nan"), "hot"])
def test_a_temperature_that_can_be_none(make: Maker, value: Any) -> None:
    with pytest.raises(UsageError, match="temperature is .*: expected a number from 0 to 2"):
        make("http://localhost:1", temperature=value)


def test_a_callers_own_http_client_is_used_and_stays_open(make: Maker) -> None:
    seen: list[str] = []

    async def look(request: httpx2.Request) -> None:
        seen.append(str(request.url))

    with LLMService(lambda _: Said("Hi")) as service:

        async def main() -> None:
            async with httpx2.AsyncClient(event_hooks={"request": [look]}) as client:
                llm = make(service.url, http_client=client)
                assert (await llm.acomplete(asked())).text == "Hi"
                assert (await llm.acomplete(asked())).text == "Hi"
                assert not client.is_closed

        asyncio.run(main())
    assert len(seen) == 2


def test_one_model_at_two_hosts_has_two_breakers(make: Maker) -> None:
    """What one host loses the other answers."""
    with LLMService(lambda _: Said("Hi")) as here:
        there = make("http://127.0.0.1:9")
        llm = ResilientLLM(there, make(here.url), retries=0)
        assert llm.complete(asked()).text == "Hi"
        assert len({one.breaker for one in llm.llms}) == 2
    assert make("http://127.0.0.1:9", breaker="api/mine").breaker == "api/mine"

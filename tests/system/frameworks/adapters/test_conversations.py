"""Agents that serve many: runs at once, and one after the other, are counted by themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import agents
import pytest
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import loki
from loki.adapters.langchain import LokiMiddleware
from loki.adapters.openai_agents import LokiRunner
from loki.adapters.pydantic_ai import LokiCapability
from support.framework_agents import CHECK, PASSED, ZERO, Call, edit, monitor, tries

RUNS = 6


class Service:
    """An agent's script and tools, used by many runs; what their models were told."""

    def __init__(self, folder: Path, steps: list[list[Call] | str]) -> None:
        self.monitor = monitor(folder)
        self.steps, self.told = steps, ""
        self.checks = self.asked = 0
        self.all_checked = asyncio.Event()

    def step(self, number: int, told: Any) -> list[Call] | str:
        """What the model says as the number-th in a conversation."""
        self.told += str(told)
        return self.steps[min(number, len(self.steps) - 1)]

    async def look_up(self, order: str) -> str:
        """Look up an order."""
        return f"Error: order {order} is not in the archive"

    async def wait_for_build(self, number: str) -> str:
        """Wait for a build: it takes longer than one call."""
        self.asked += 1
        return f"Error: build {number} is still running" if self.asked % 6 else "it went well"

    async def write_file(self, path: str, content: str) -> str:
        """Write a file."""
        return f"wrote {len(content)} characters to {path}"

    async def run_tests(self) -> str:
        """Run the tests: red in each run before its edit, all runs at once."""
        self.checks += 1
        if self.checks > RUNS:  # every run has seen it red
            return PASSED
        if self.checks == RUNS:
            self.all_checked.set()
        await self.all_checked.wait()
        return ZERO

    @property
    def tools(self) -> list[Any]:
        return [self.look_up, self.wait_for_build, self.write_file, self.run_tests]


def of_pydantic_ai(service: Service) -> Callable[[], Awaitable[Any]]:
    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        number = sum(isinstance(one, ModelResponse) for one in messages)
        step = service.step(number, messages)
        if isinstance(step, str):
            return ModelResponse([TextPart(step)])
        return ModelResponse([ToolCallPart(name, args) for name, args in step])

    capabilities = [LokiCapability(service.monitor)]
    made = Agent(FunctionModel(answer), tools=service.tools, capabilities=capabilities)
    return lambda: made.run("Do it")


def of_langchain(service: Service) -> Callable[[], Awaitable[Any]]:
    ids = iter(range(10_000))

    class Model(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "scripted"

        def bind_tools(self, *_: Any, **__: Any) -> Any:
            return self

        def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
            number = sum(isinstance(one, AIMessage) for one in messages)
            step = service.step(number, messages)
            said = AIMessage(step if isinstance(step, str) else "")
            if not isinstance(step, str):
                said.tool_calls = [
                    {"name": name, "args": args, "id": str(next(ids)), "type": "tool_call"}
                    for name, args in step
                ]
            return ChatResult(generations=[ChatGeneration(message=said)])

    tools = [StructuredTool.from_function(coroutine=one) for one in service.tools]
    made: Any = create_agent(Model(), tools, middleware=[LokiMiddleware(service.monitor)])
    return lambda: made.ainvoke({"messages": [("user", "Do it")]}, {"recursion_limit": 99})


def of_openai_agents(service: Service) -> Callable[[], Awaitable[Any]]:
    agents.set_tracing_disabled(True)
    ids = iter(range(10_000))

    def answer(asked: Any) -> ModelStep:
        items = [] if isinstance(asked.input, str) else asked.input
        number = sum(one.get("type") == "function_call" for one in items)
        step = service.step(number, (asked.system_instructions, items))
        if isinstance(step, str):
            return ModelStep([assistant_message(step)])
        return ModelStep([function_call(n, args, call_id=str(next(ids))) for n, args in step])

    made = agents.Agent(
        "one",
        model=ScriptedModel([ModelStep.respond(answer)] * 500),
        tools=[agents.function_tool(one) for one in service.tools],
    )
    runner = LokiRunner(service.monitor)
    return lambda: runner.run(made, "Do it", max_turns=30)


EACH = pytest.mark.parametrize("make", [of_pydantic_ai, of_langchain, of_openai_agents])
Make = Callable[[Service], Callable[[], Awaitable[Any]]]
LOKIS = ("came back", "led nowhere", "same way", "Stop here", "changed")


def heard(service: Service) -> list[str]:
    return [words for words in LOKIS if words in service.told]


@EACH
def test_runs_at_once_that_each_mend_a_failure_hear_nothing(tmp_path: Path, make: Make) -> None:
    async def go() -> Service:
        service = Service(tmp_path, [[CHECK], [edit()], [CHECK], "Done"])
        run = make(service)
        await asyncio.gather(*(run() for _ in range(RUNS)))
        return service

    service = asyncio.run(go())
    assert service.checks == 2 * RUNS
    assert heard(service) == []


@EACH
def test_one_run_after_the_other_that_asks_for_the_same_hears_nothing(
    tmp_path: Path, make: Make
) -> None:
    """A service that answers people: each asks for an order that is not there."""

    async def go() -> Service:
        service = Service(tmp_path, [[("look_up", {"order": "123"})], "There is no such order."])
        run = make(service)
        for _ in range(RUNS):
            await run()
        return service

    assert heard(asyncio.run(go())) == []


@EACH
def test_a_run_that_waits_by_asking_again_hears_nothing(tmp_path: Path, make: Make) -> None:
    async def go() -> Service:
        wait: list[list[Call] | str] = [[("wait_for_build", {"number": "7"})]] * 6
        service = Service(tmp_path, [*wait, [edit()], *wait, "Done"])
        await make(service)()
        return service

    service = asyncio.run(go())
    assert service.asked == 12
    assert heard(service) == []


@EACH
def test_each_of_many_that_loops_is_stopped(tmp_path: Path, make: Make) -> None:
    """Also the next one, which is counted by itself."""

    async def go() -> None:
        service = Service(tmp_path, [*tries(20)])
        service.checks, service.all_checked = -1000, asyncio.Event()
        service.all_checked.set()
        run = make(service)
        for _ in range(2):
            with pytest.raises(loki.AgentStuck) as stuck:
                await run()
            assert stuck.value.count == 6

    asyncio.run(go())

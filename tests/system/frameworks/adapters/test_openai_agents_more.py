"""Where tools come from elsewhere in the OpenAI Agents SDK: MCP servers, agents as tools."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner, function_tool
from agents.mcp import MCPServer
from mcp.types import CallToolResult, GetPromptResult, ListPromptsResult, TextContent, Tool

import loki
from loki.adapters.openai_agents import LokiRunner
from support.framework_agents import CHECK, PASSED, TYPE, ZERO, Says, edit, monitor, tries
from support.openai_agents import agent, asked, kept_in, outputs, run, scripted, tools


class Server(MCPServer):
    """A server with the tool `run_tests`."""

    def __init__(self, check: Says, is_error: bool = False) -> None:
        super().__init__()
        self.check, self.is_error = check, is_error

    @property
    def name(self) -> str:
        return "checks"

    async def connect(self) -> None: ...

    async def cleanup(self) -> None: ...

    async def list_tools(self, *_: Any, **__: Any) -> list[Tool]:
        return [Tool.model_validate({"name": "run_tests", "inputSchema": {"type": "object"}})]

    async def call_tool(self, *_: Any, **__: Any) -> CallToolResult:
        content = TextContent(type="text", text=self.check())
        said = {"content": [content.model_dump()], "isError": self.is_error}
        return CallToolResult.model_validate(said)

    async def list_prompts(self) -> ListPromptsResult:
        return ListPromptsResult(prompts=[])

    async def get_prompt(self, *_: Any, **__: Any) -> GetPromptResult:
        raise NotImplementedError


def of_server(steps: Any, check: Says, **more: Any) -> Agent[Any]:
    write = tools(check)[:1]
    return Agent("fixer", model=scripted(steps), tools=write, mcp_servers=[Server(check, **more)])


@pytest.mark.parametrize("is_error", [False, True])
def test_tools_of_mcp_servers_are_watched(is_error: bool, tmp_path: Path) -> None:
    fixer = of_server(tries(9), Says(ZERO), is_error=is_error)
    with pytest.raises(loki.AgentStuck) as stuck:
        run(LokiRunner(monitor(tmp_path)), fixer)
    assert (stuck.value.count, len(asked(fixer))) == (6, 12)
    assert "came back" in str(outputs(asked(fixer)[-1])[3])


def test_healthy_tools_of_mcp_servers_stay_as_they_are(tmp_path: Path) -> None:
    seen = []
    for runner in (LokiRunner(monitor(tmp_path)), Runner):
        steps: Any = [[edit()], [CHECK], [edit("1")], [CHECK], "All tests pass."]
        fixer = of_server(steps, Says(TYPE, PASSED))
        result = run(runner, fixer)  # type: ignore[arg-type]
        calls = [(call.system_instructions, call.input) for call in asked(fixer)]
        seen.append((result.final_output, result.to_input_list(), calls))
    assert seen[0] == seen[1]


MADE = pytest.mark.parametrize("is_made_of_a_copy", [False, True])


def as_tool(runner: Any, of: Agent[Any], is_made_of_a_copy: bool, **more: Any) -> Any:
    """A helper as a tool, made as anybody makes it, or of a watched copy."""
    helper = runner.agent(of) if is_made_of_a_copy else of
    return helper.as_tool("helper", "Helps", max_turns=30, **more)


@MADE
@pytest.mark.parametrize("more", [{}, {"failure_error_function": lambda *_: "Sorry"}])
def test_an_agent_that_is_a_tool_stops_who_uses_it(
    more: Any, is_made_of_a_copy: bool, tmp_path: Path
) -> None:
    """The SDK makes a text of what a tool raises: the one who asked would begin again."""
    runner = LokiRunner(monitor(tmp_path))
    helper = agent(tries(9), Says(ZERO))
    tool = as_tool(runner, helper, is_made_of_a_copy, **more)
    steps: Any = [[("helper", {"input": "Fix it"})]] * 9
    chief = Agent("chief", model=scripted(steps, "chief"), tools=[tool])
    with pytest.raises(loki.AgentStuck) as stuck:
        run(runner, chief)
    assert stuck.value.failure is not None
    assert (stuck.value.count, stuck.value.failure.error_type) == (6, "ZeroDivisionError")
    assert (len(asked(helper)), len(asked(chief))) == (12, 1)


def test_agents_that_use_each_other_are_watched(tmp_path: Path) -> None:
    """A ring, one of them with events of its own, and the tools as their owner made them."""
    heard: list[Any] = []
    chief = Agent("chief", model=scripted([[("second", {"input": "Fix it"})]], "chief"))
    third = agent(tries(9), Says(ZERO))
    second = Agent("second", model=scripted([[("third", {"input": "Fix it"})]], "second"))
    chief.tools = [second.as_tool("second", "Helps", max_turns=30, on_stream=heard.append)]
    second.tools = [third.as_tool("third", "Helps", max_turns=30)]
    third.tools.append(chief.as_tool("chief", "Helps"))
    made: Any = second.tools[0]
    invoke = made.on_invoke_tool
    with pytest.raises(loki.AgentStuck):
        run(LokiRunner(monitor(tmp_path)), chief)
    assert (len(asked(third)), len(asked(chief))) == (12, 1)
    assert heard
    assert made.on_invoke_tool is invoke
    assert made.tool_output_guardrails is None


@MADE
def test_healthy_agents_as_tools_hear_nothing(is_made_of_a_copy: bool, tmp_path: Path) -> None:
    seen = []
    for is_watched in (True, False):
        runner: Any = LokiRunner(monitor(tmp_path)) if is_watched else Runner
        helper = agent([[CHECK], [edit()], [CHECK], "All tests pass."], Says(ZERO, PASSED))
        tool = as_tool(runner, helper, is_made_of_a_copy and is_watched)
        call: Any = ("helper", {"input": "Fix it"})
        chief = Agent("chief", model=scripted([[call, call], "Fixed."], "chief"), tools=[tool])
        result = run(runner, chief)
        seen.append((result.final_output, result.to_input_list(), asked(chief)[-1].input))
    assert str(seen[0]) == str(seen[1])
    assert [kept.failure.error_type for kept in kept_in(tmp_path)] == ["ZeroDivisionError"]


def test_who_is_asked_for_approval_within_a_tool_goes_on_watched(tmp_path: Path) -> None:
    @function_tool(needs_approval=True)
    def deploy() -> str:
        return "deployed"

    helper = Agent("helper", model=scripted([[("deploy", {})], "It is out."]), tools=[deploy])
    call: Any = [("helper", {"input": "Deploy it"})]
    chief = Agent(
        "chief", model=scripted([call, "Done."], "chief"), tools=[helper.as_tool("helper", "Helps")]
    )
    runner = LokiRunner(monitor(tmp_path))
    result = run(runner, chief)
    state = result.to_state()
    state.approve(result.interruptions[0])
    assert asyncio.run(runner.run(result.last_agent, state)).final_output == "Done."
    assert len(asked(helper)) == 2

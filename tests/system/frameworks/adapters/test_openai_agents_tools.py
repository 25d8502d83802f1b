"""Tools of the OpenAI Agents SDK, watched: errors that became text, guardrails, breakers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agents import (
    Agent,
    AgentHooks,
    FunctionTool,
    RunConfig,
    ToolGuardrailFunctionOutput,
    ToolOutputGuardrail,
    UserError,
    function_tool,
)

from loki.adapters.openai_agents import LokiRunner
from support.framework_agents import CHECK, ZERO, Says, monitor, tries
from support.openai_agents import agent, asked, kept_in, outputs, run, scripted, tools


def test_the_owners_guardrails_hooks_and_configuration_stay(tmp_path: Path) -> None:
    seen: list[Any] = []

    class Hooks(AgentHooks[Any]):
        async def on_tool_end(self, _context: Any, _agent: Any, _tool: Any, result: Any) -> None:
            seen.append(result)

    def redact(data: Any) -> ToolGuardrailFunctionOutput:
        return ToolGuardrailFunctionOutput.reject_content("redacted")

    fixer = agent([*tries(3), "I give up."], Says(ZERO), hooks=Hooks())
    check = fixer.tools[1]
    assert isinstance(check, FunctionTool)
    check.tool_output_guardrails = [ToolOutputGuardrail(redact)]
    given = RunConfig(workflow_name="mine", call_model_input_filter=lambda data: data.model_data)
    run(LokiRunner(monitor(tmp_path)), fixer, run_config=given)
    assert seen.count("redacted") == 3
    assert "ZeroDivisionError" in asked(fixer)[-1].system_instructions  # seen before it was hidden


@pytest.mark.parametrize("told", ["as it is", lambda _context, error: f"Sorry: {error}"])
def test_errors_that_became_text_are_recognized(told: Any, tmp_path: Path) -> None:
    more = {} if told == "as it is" else {"failure_error_function": told}
    found = Says(KeyError("limit"))
    fixer = Agent("fixer", model=scripted([[CHECK], "It fails."]), tools=tools(found, **more))
    run(LokiRunner(monitor(tmp_path)), fixer)
    (kept,) = kept_in(tmp_path)
    assert (kept.failure.error_type, kept.tool) == ("KeyError", "run_tests")
    (said,) = outputs(asked(fixer)[1])
    assert said == ("Sorry: 'limit'" if more else said)


def test_an_error_that_ends_the_run_is_kept(tmp_path: Path) -> None:
    fails = tools(Says(KeyError("limit")), failure_error_function=None)
    fixer = Agent("fixer", model=scripted([[CHECK]]), tools=fails)
    with pytest.raises(UserError):
        run(LokiRunner(monitor(tmp_path)), fixer)
    (kept,) = kept_in(tmp_path)
    assert kept.failure.error_type == "KeyError"


def test_a_tool_whose_service_is_down_is_refused_without_being_run(tmp_path: Path) -> None:
    calls: list[str] = []

    @function_tool
    def fetch_url(url: str) -> str:
        calls.append(url)
        raise OSError(f"getaddrinfo ENOTFOUND for {url}: Name or service not known")

    steps: list[Any] = [[("fetch_url", {"url": f"https://example.com/{n}"})] for n in range(4)]
    fetcher = Agent("fetcher", model=scripted([*steps, "It is down."]), tools=[fetch_url])
    result = run(LokiRunner(monitor(tmp_path)), fetcher)
    assert (result.final_output, len(calls)) == ("It is down.", 3)
    assert "example.com" in outputs(asked(fetcher)[-1])[-1]


def test_arguments_may_be_anything(tmp_path: Path) -> None:
    for arguments in ("{", "[1]", '"text"', ""):
        steps: Any = [[("run_tests", arguments)], "Done."]
        found = Agent("fixer", model=scripted(steps), tools=tools(Says(ZERO)))
        assert run(LokiRunner(monitor(tmp_path)), found).final_output == "Done."

"""OpenAI Agents SDK: tools that are watched.

A function tool gets guardrails of loki's: one before it, one that sees its output first, one that adds
to it last, so that those of its owner see what they always saw. Under test:
``tests/py/adapters/test_openai_agents_tools.py``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import copy
from inspect import isawaitable
from typing import Any

from agents.tool import (
    resolve_function_tool_failure_error_function as failure_function,
)
from agents.tool import (
    set_function_tool_failure_error_function as set_failure_function,
)

from agents import (
    FunctionTool,
    Tool,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolOutputGuardrail,
    default_tool_error_function,
)
from loki.adapters.conversation import Conversations
from loki.decision.tool_call import ToolCall
from loki.decision.tool_result import tool_result
from loki.monitoring.monitor import Monitor

_ERROR = "An error occurred while running the tool"
"""How `agents.default_tool_error_function` begins, whatever the error was."""


class WatchedTools:
    """What a monitor is told of tools, and what it says to their results.

    Args:
        monitor: what decides.
        kept: stops, until the next request to the model.
    """

    def __init__(self, monitor: Monitor, kept: Conversations) -> None:
        self._monitor, self._kept = monitor, kept
        self._errors: dict[str, Exception] = {}
        self._said: dict[str, str] = {}

    def watched(self, tool: Tool) -> Tool:
        """A copy of a tool that loki watches; tools that OpenAI's service runs stay as they are."""
        if not isinstance(tool, FunctionTool):
            return tool
        watched = copy(tool)
        after: ToolOutputGuardrail[Any] = ToolOutputGuardrail(self._after, "loki")
        say: ToolOutputGuardrail[Any] = ToolOutputGuardrail(self._say, "loki")
        before: ToolInputGuardrail[Any] = ToolInputGuardrail(self._before, "loki")
        watched.tool_input_guardrails = [*(tool.tool_input_guardrails or ()), before]
        watched.tool_output_guardrails = [after, *(tool.tool_output_guardrails or ()), say]
        told = failure_function(tool)
        if told is not default_tool_error_function:
            set_failure_function(watched, self._failed(told))
        return watched

    def formatter(self, given: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
        """A run's ``tool_error_formatter`` that keeps the error; the text stays what it was."""

        def remember(failed: Any) -> Any:
            if getattr(failed, "error", None) is not None:
                self._errors[failed.call_id] = failed.error
            return given(failed) if given else None

        return remember

    def _failed(self, told: Callable[..., Any] | None) -> Callable[..., Any]:
        """A tool's own ``failure_error_function`` that keeps the error."""

        async def failed(context: Any, error: Exception) -> Any:
            if told is None:  # the error ends the run: nobody is shown an output
                await self._monitor.aafter(_call(context), error)
                raise error
            self._errors[context.tool_call_id] = error
            said = told(context, error)
            return await said if isawaitable(said) else said

        return failed

    async def _before(self, data: Any) -> ToolGuardrailFunctionOutput:
        refusal = await self._monitor.abefore(_call(data.context))
        return _instead(refusal.text if refusal.kind == "refuse" else "")

    async def _after(self, data: Any) -> ToolGuardrailFunctionOutput:
        call, read = _call(data.context), tool_result(data.output)
        error = self._errors.pop(call.id, None)
        ok = False if read.text.startswith(_ERROR) else None
        said = await self._monitor.aafter(call, error or read.text, ok=ok, exit_code=read.exit_code)
        self._kept.hold(call.id, said)
        self._said[call.id] = said.text
        return _instead("")

    async def _say(self, data: Any) -> ToolGuardrailFunctionOutput:
        said = self._said.pop(data.context.tool_call_id, "")
        return _instead(f"{data.output}\n\n{said}" if said else "")


def _instead(text: str) -> ToolGuardrailFunctionOutput:
    """The model is to see this in place of an output; "": what it would have seen."""
    answer = ToolGuardrailFunctionOutput
    return answer.reject_content(text) if text else answer.allow()


def _call(context: Any) -> ToolCall:
    try:
        arguments = json.loads(context.tool_arguments or "{}")
    except ValueError:  # a model may write anything
        arguments = context.tool_arguments
    known = arguments if isinstance(arguments, dict) else {"arguments": arguments}
    return ToolCall(context.tool_name, known, id=context.tool_call_id)

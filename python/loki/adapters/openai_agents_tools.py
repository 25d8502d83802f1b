"""OpenAI Agents SDK: tools that are watched.

A function tool gets guardrails of loki's: one before it, one that sees its output first, one that adds
to it last, so that those of its owner see what they always saw. Under test:
``tests/py/adapters/test_openai_agents_tools.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from inspect import isawaitable
from typing import Any

import agents.tool as sdk

from agents import ToolGuardrailFunctionOutput, ToolInputGuardrail, ToolOutputGuardrail
from loki.adapters.conversation import Watch
from loki.decision.tool_call import ToolCall
from loki.decision.tool_result import text_blocks


class WatchedTools:
    """What a monitor is told of tools, and what it says to their results."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def watched(self, tool: sdk.Tool) -> sdk.Tool:
        """A copy of a tool that loki watches; tools that OpenAI's service runs stay as they are."""
        if not isinstance(tool, sdk.FunctionTool):
            return tool
        tool = copy(tool)
        before, own = tool.tool_input_guardrails or (), tool.tool_output_guardrails or ()
        tool.tool_input_guardrails = [*before, ToolInputGuardrail(self._before, "loki")]
        after, say = (ToolOutputGuardrail[Any](do, "loki") for do in (self._after, self._say))
        tool.tool_output_guardrails = [after, *own, say]
        told = sdk.resolve_function_tool_failure_error_function(tool)
        if told is sdk.default_tool_error_function:  # said by its name, too: then `formatter` hears
            sdk.set_function_tool_failure_error_function(tool)
        else:
            sdk.set_function_tool_failure_error_function(tool, self._failed(told))
        return tool

    def formatter(self, given: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
        """A run's ``tool_error_formatter`` that keeps the error; the text stays what it was."""

        def remember(failed: Any) -> Any:
            self._watch.raised(failed.call_id, getattr(failed, "error", None))
            return given(failed) if given else None

        return remember

    def _failed(self, told: Callable[..., Any] | None) -> Callable[..., Any]:
        """A tool's own ``failure_error_function`` that keeps the error."""

        async def failed(context: Any, error: Exception) -> Any:
            if told is None:  # the error ends the run: nobody is shown an output
                await self._watch.after(_call(context), error)
                raise error
            self._watch.raised(context.tool_call_id, error)
            said = told(context, error)
            return await said if isawaitable(said) else said

        return failed

    async def _before(self, data: Any) -> ToolGuardrailFunctionOutput:
        return _instead((await self._watch.monitor.abefore(_call(data.context))).text)

    async def _after(self, data: Any) -> ToolGuardrailFunctionOutput:
        await self._watch.after(_call(data.context), data.output)
        return _instead("")

    async def _say(self, data: Any) -> ToolGuardrailFunctionOutput:
        said = self._watch.said(data.context.tool_call_id)
        shown = text_blocks(data.output) or data.output
        return _instead(f"{shown}\n\n{said}" if said else "")


def _instead(text: str) -> ToolGuardrailFunctionOutput:
    """The model is to see this in place of an output; "": what it would have seen."""
    answer = ToolGuardrailFunctionOutput
    return answer.reject_content(text) if text else answer.allow()


def _call(context: Any) -> ToolCall:
    return ToolCall.of_json(context.tool_name, context.tool_arguments, context.tool_call_id)

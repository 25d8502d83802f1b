"""pydantic-ai: loki as a capability of an agent.

    agent = Agent("anthropic:claude-opus-5-5", tools=[...], capabilities=[LokiCapability()])

Needs the extra ``pydantic-ai``. It decides nothing: `loki.Monitor` does.
Under test: ``tests/py/adapters/test_pydantic_ai.py``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from loki.adapters.conversation import Conversations
from loki.decision.tool_call import ToolCall
from loki.decision.tool_result import tool_result
from loki.monitoring.monitor import Monitor

try:
    from pydantic_ai import ModelRetry, ToolFailed, ToolReturn, exceptions
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import ModelRequest, ModelResponse, UserPromptPart

    from loki.adapters.pydantic_ai_model import AskedModel
except ImportError as error:
    raise ImportError("needs pydantic-ai: pip install 'loki-core[pydantic-ai]'") from error

_FLOW = exceptions.ApprovalRequired, exceptions.CallDeferred, exceptions.SkipToolExecution
"""What tools raise to say how the run goes on: no failures."""

_TOLD = ModelRetry, ToolFailed, exceptions.ToolRetryError, exceptions.ToolFailedError
"""What the model is told of; any other error ends the run."""


class LokiCapability(AbstractCapability[Any]):
    """Failures of tools are remembered, repeats are named and then stopped, outages are waited out.

    Args:
        monitor: what decides; a project's folder: one for that.

    Raises:
        AgentStuck: out of ``agent.run`` and its like, where the same failure came too often.

    Example:
        >>> import asyncio
        >>> from pydantic_ai import Agent
        >>> agent = Agent("test", capabilities=[LokiCapability()])
        >>> asyncio.run(agent.run("Fix the tests")).output
        'success (no tool calls)'
    """

    def __init__(self, monitor: Monitor | str | Path = ".") -> None:
        if not isinstance(monitor, Monitor):
            monitor = Monitor(monitor, agent="pydantic-ai")
        self.monitor = monitor
        self._kept = Conversations()

    async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
        """Add the signs, for this request alone; from here on loki is the one who asks again."""
        messages = request_context.messages
        last = messages[-1].parts if messages else ()
        self._kept.raise_held([getattr(part, "tool_call_id", "") for part in last])
        if signs := await self.monitor.ainstructions():
            at = self._kept.place(ctx.run_id or "", signs, len(messages))
            if at and isinstance(messages[at - 1], ModelResponse):  # the history was cut meanwhile
                at = len(messages)
            said = ModelRequest(parts=[UserPromptPart(signs)])
            request_context.messages = [*messages[:at], said, *messages[at:]]
        request_context.model = AskedModel(request_context.model, self.monitor)
        return request_context

    async def wrap_tool_execute(
        self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any
    ) -> Any:
        """Run a tool; what loki says to its failure is added to what the model is told."""
        del ctx, tool_def
        asked = ToolCall(call.tool_name, args, id=call.tool_call_id)
        refusal = await self.monitor.abefore(asked)
        if refusal.kind == "refuse":
            raise ToolFailed(refusal.text)
        try:
            result = await handler(args)
        except _FLOW:
            raise
        except _TOLD as error:
            said = await self.monitor.aafter(asked, str(error), ok=False)
            self._kept.hold(asked.id, said)
            raise _error_with(error, said.text) from error.__cause__
        except Exception as error:
            is_spent = isinstance(error, exceptions.UnexpectedModelBehavior)  # all retries are
            cause = error.__cause__ if is_spent else None
            (await self.monitor.aafter(asked, cause or error)).raise_if_stop()
            raise
        read = tool_result(result.return_value if isinstance(result, ToolReturn) else result)
        said = await self.monitor.aafter(asked, read.text, exit_code=read.exit_code)
        self._kept.hold(asked.id, said)
        return _result_with(result, said.text) if said.text else result

    async def on_tool_validate_error(
        self, ctx: Any, *, call: Any, tool_def: Any, args: Any, error: Any
    ) -> Any:
        """Tell of arguments that do not fit: the tool is not run, the model is told of them."""
        del ctx, tool_def
        given = args if isinstance(args, dict) else {"arguments": str(args)}
        asked = ToolCall(call.tool_name, given, id=call.tool_call_id)
        self._kept.hold(asked.id, await self.monitor.aafter(asked, str(error), ok=False))
        raise error

    async def after_output_process(self, ctx: Any, *, output_context: Any, output: Any) -> Any:
        """Refuse, once, a claim of success that no check has borne out since the last edit."""
        del output_context
        if not ctx.partial_output and ctx.retry < ctx.max_retries:
            refusal = await self.monitor.aending(tool_result(output).text)
            if refusal.kind == "refuse":
                raise ModelRetry(refusal.text)
        return output


def _result_with(result: Any, text: str) -> Any:
    """A tool's result with a text after it, whatever its type: what it returned stays as it is."""
    if isinstance(result, str):
        return f"{result}\n\n{text}"
    if not isinstance(result, ToolReturn):
        return ToolReturn(return_value=result, content=text)
    content = [result.content] if isinstance(result.content, str) else result.content or ()
    return replace(result, content=[*content, text])


def _error_with(error: Any, text: str) -> Any:
    """The same kind of error with a text after its own; what is no text stays as it is."""
    if isinstance(error, (ModelRetry, ToolFailed)):
        return type(error)(f"{error.message}\n\n{text}") if text else error
    part = error.tool_retry if isinstance(error, exceptions.ToolRetryError) else error.tool_failed
    if not text or not isinstance(part.content, str):
        return error
    return type(error)(replace(part, content=f"{part.content}\n\n{text}"))

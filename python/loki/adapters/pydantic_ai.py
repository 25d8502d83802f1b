"""pydantic-ai: loki as a capability of an agent.

    agent = Agent("anthropic:claude-opus-5-5", tools=[...], capabilities=[LokiCapability()])

Needs the extra ``pydantic-ai``. It decides nothing: `loki.Monitor` does.
Under test: ``tests/py/adapters/test_pydantic_ai.py``, ``…_given.py``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from loki.adapters.conversation import Watch
from loki.decision.tool_call import Effect, ToolCall
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
        self._watch = Watch(monitor, "pydantic-ai")
        self.monitor = self._watch.monitor

    async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
        """Add the signs, for this request alone; from here on loki is the one who asks again."""
        messages = request_context.messages
        calls = [getattr(p, "tool_call_id", _of(ctx)) for m in messages[-1:] for p in m.parts]
        self._watch.raise_held(_of(ctx), calls)
        if signs := await self.monitor.ainstructions():
            at = self._watch.place(ctx.run_id or "", signs, len(messages))
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
        del tool_def
        asked = ToolCall(call.tool_name, args, id=call.tool_call_id)
        if refusal := await self.monitor.abefore(asked):
            raise ToolFailed(refusal.text)
        try:
            result = await handler(args)
        except _FLOW:
            raise
        except _TOLD as error:
            raise await self._told(ctx, asked, error)  # noqa: B904 - its cause is the error's own
        except Exception as error:
            is_spent = isinstance(error, exceptions.UnexpectedModelBehavior)  # all retries are
            await self._watch.aended(_of(ctx), asked, (is_spent and error.__cause__) or error)
            raise
        shown = result.return_value if isinstance(result, ToolReturn) else result
        said = await self._watch.aheard(_of(ctx), asked, shown)
        return _result_with(result, said.text) if said.text else result

    async def on_tool_validate_error(
        self, ctx: Any, *, call: Any, tool_def: Any, args: Any, error: Any
    ) -> Any:
        """Tell of arguments that do not fit: the tool is not run, the model is told of them."""
        del tool_def, args
        raise await self._given(ctx, call, error)

    async def wrap_output_validate(
        self, ctx: Any, *, output_context: Any, output: Any, handler: Any
    ) -> Any:
        """Hear of an answer that is not in the form that was asked for, as of arguments."""
        try:
            return await handler(output)
        except (ValidationError, *_TOLD) as error:
            raise await self._given(ctx, output_context.tool_call, error)  # noqa: B904

    async def wrap_output_process(
        self, ctx: Any, *, output_context: Any, output: Any, handler: Any
    ) -> Any:
        """The same; and refuse, once, a claim that no check has borne out since the last edit."""
        call = output_context.tool_call
        try:
            output = await handler(output)
        except (ValidationError, *_TOLD) as error:
            raise await self._given(ctx, call, error)  # noqa: B904
        if ctx.partial_output:
            return output
        if ctx.retry < ctx.max_retries:
            refusal = await self._watch.of(_of(ctx)).aending(tool_result(output).text)
            if refusal:
                raise ModelRetry(refusal.text)
        took = ToolCall(call.tool_name if call else ANSWER, effect=Effect.OTHER)
        await self._watch.aheard(_of(ctx), took, "", ok=True)
        return output

    async def _given(self, ctx: Any, call: Any, error: Any) -> Any:
        """An error that says that what the model gave does not fit, with what loki says to it."""
        if ctx.partial_output:
            return error
        name, number = (call.tool_name, call.tool_call_id) if call else (ANSWER, _of(ctx))
        return await self._told(ctx, ToolCall(name, id=number, fits=False), error)

    async def _told(self, ctx: Any, call: ToolCall, error: Any) -> Any:
        said = await self._watch.aheard(_of(ctx), call, _reason(error), ok=False)
        return _error_with(error, said.text) if said.text else error


ANSWER = "your answer"
"""What is not accepted where no tool was called with it."""


def _of(ctx: Any) -> str:
    return ctx.conversation_id or ctx.run_id or ""


def _reason(error: Any) -> str:
    """Why something was not accepted, in a line: the same as long as the reason is."""
    if not isinstance(error, ValidationError):
        return str(error)
    found = (f"{'.'.join(map(str, one['loc'])) or 'it'}: {one['msg']}" for one in error.errors())
    return f"ValidationError: {'; '.join(found)}"


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
    if isinstance(error, ValidationError):
        made: Any = ModelRetry(f"{error.json(include_url=False, include_context=False)}\n\n{text}")
    elif isinstance(error, (ModelRetry, ToolFailed)):
        made = type(error)(f"{error.message}\n\n{text}")
    else:
        is_retry = isinstance(error, exceptions.ToolRetryError)
        part = error.tool_retry if is_retry else error.tool_failed
        if not isinstance(part.content, str):
            return error
        made = type(error)(replace(part, content=f"{part.content}\n\n{text}"))
    made.__cause__ = error.__cause__ or error
    return made

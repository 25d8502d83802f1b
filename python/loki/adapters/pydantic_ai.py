"""pydantic-ai: loki as a capability of an agent.

    agent = Agent("anthropic:claude-opus-5-5", tools=[...], capabilities=[LokiCapability()])

Needs the extra ``pydantic-ai``. It decides nothing: `loki.Monitor` does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import ValidationError

from loki.adapters.conversation import Watching
from loki.decision.monitor.tool_call import ToolCall
from loki.decision.monitor.tool_command import Effect
from loki.decision.monitor.tool_result import tool_result

try:
    from pydantic_ai import ModelRetry, RunContext, ToolFailed, ToolReturn, exceptions
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import ModelRequest, ModelResponse, ToolCallPart, UserPromptPart
except ImportError as error:
    raise ImportError("needs pydantic-ai: pip install 'loki-core[pydantic-ai]'") from error

from loki.adapters.pydantic_ai_resilient import asked_model

if TYPE_CHECKING:
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.output import OutputContext

    Ctx: TypeAlias = RunContext[Any]
    Run: TypeAlias = Callable[[Any], Awaitable[Any]]

_FLOW = exceptions.ApprovalRequired, exceptions.CallDeferred, exceptions.SkipToolExecution
"""What tools raise to say how the run goes on: no failures."""

_TOLD = ModelRetry, ToolFailed, exceptions.ToolRetryError, exceptions.ToolFailedError
"""What the model is told of; any other error ends the run."""


class LokiCapability(Watching[RunContext[Any]], AbstractCapability[Any]):
    """Failures of tools are remembered, repeats are named and then stopped, outages are waited out.

    Args:
        monitor: what decides; a project's folder: one for that.
        scope: whose signs a conversation is told: ``conversation``, its own; ``project``, all of the
            branch; a user's name: the user's; or what tells that name from a `RunContext`.
        wait: how long a call of a model waits, all pauses together, until its circuit breaker lets it
            out; 0: not at all; None: as the monitor says.

    Raises:
        AgentStuck: out of ``agent.run`` and its like, where the same failure came too often.

    Example:
        >>> import asyncio
        >>> from pydantic_ai import Agent
        >>> agent = Agent("test", capabilities=[LokiCapability()])
        >>> asyncio.run(agent.run("Fix the tests")).output
        'success (no tool calls)'
    """

    _agent_name = "pydantic-ai"

    async def before_model_request(
        self, ctx: Ctx, request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Add the signs, for this request alone; from here on loki is the one who asks again."""
        messages = request_context.messages
        calls = [getattr(p, "tool_call_id", _of(ctx)) for m in messages[-1:] for p in m.parts]
        self._watch.raise_held(_of(ctx), calls)
        if signs := await self._watch.ainstructions(_of(ctx), ctx):
            said = ModelRequest(parts=[UserPromptPart(signs)])
            is_torn = [False, *(isinstance(one, ModelResponse) for one in messages)].__getitem__
            request_context.messages = self._watch.placed(_of(ctx), messages, signs, said, is_torn)
        request_context.model = asked_model(request_context.model, self.monitor)
        return request_context

    async def wrap_tool_execute(
        self, ctx: Ctx, *, call: ToolCallPart, tool_def: object, args: dict[str, Any], handler: Run
    ) -> Any:
        """Run a tool; what loki says to its failure is added to what the model is told."""
        del tool_def
        asked = ToolCall(call.tool_name, args, id=call.tool_call_id)
        if refusal := self._watch.before(_of(ctx), asked):
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
        self, ctx: Ctx, *, call: ToolCallPart, tool_def: object, args: object, error: Exception
    ) -> dict[str, Any]:
        """Tell of arguments that do not fit: the tool is not run, the model is told of them."""
        del tool_def, args
        raise await self._given(ctx, call, error)

    async def wrap_output_validate(
        self, ctx: Ctx, *, output_context: OutputContext, output: str | dict[str, Any], handler: Run
    ) -> Any:
        """Hear of an answer that is not in the form that was asked for, as of arguments."""
        try:
            return await handler(output)
        except (ValidationError, *_TOLD) as error:
            raise await self._given(ctx, output_context.tool_call, error)  # noqa: B904

    async def wrap_output_process(
        self, ctx: Ctx, *, output_context: OutputContext, output: object, handler: Run
    ) -> Any:
        """The same; and refuse, once, a claim that no check has borne out since the last edit."""
        call = output_context.tool_call
        try:
            output = await handler(output)
        except (ValidationError, *_TOLD) as error:
            raise await self._given(ctx, call, error)  # noqa: B904
        if ctx.partial_output:
            return output
        said = tool_result(output).text
        if ctx.retry < ctx.max_retries and (refusal := await self._watch.aending(_of(ctx), said)):
            raise ModelRetry(refusal.text)
        took = ToolCall(call.tool_name if call else ANSWER, effect=Effect.OTHER)
        await self._watch.aheard(_of(ctx), took, "", ok=True)
        return output

    async def _given(self, ctx: Ctx, call: ToolCallPart | None, error: Exception) -> Any:
        """An error that says that what the model gave does not fit, with what loki says to it."""
        if ctx.partial_output:
            return error
        name, number = (call.tool_name, call.tool_call_id) if call else (ANSWER, _of(ctx))
        return await self._told(ctx, ToolCall(name, id=number, fits=False), error)

    async def _told(self, ctx: Ctx, call: ToolCall, error: Exception) -> Any:
        said = await self._watch.aheard(_of(ctx), call, _reason(error), ok=False)
        return _error_with(error, said.text) if said.text else error


ANSWER = "your answer"
"""What is not accepted where no tool was called with it."""


def _of(ctx: Ctx) -> str:
    return ctx.conversation_id or ctx.run_id or ""


def _reason(error: Exception) -> str:
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
        part = getattr(error, "tool_retry", None) or error.tool_failed
        if not isinstance(part.content, str):
            return error
        made = type(error)(replace(part, content=f"{part.content}\n\n{text}"))
    made.__cause__ = error.__cause__ or error
    return made

"""OpenAI Agents SDK: loki as its runner.

    runner = LokiRunner()                                          # in place of agents.Runner
    result = await runner.run(agent, "Make the tests pass")

Needs the extra ``openai-agents``. It decides nothing: `loki.Monitor` does.

Function tools get guardrails of loki's: one before, one that sees the output first, one that adds to it
last, so that those of their owner see what they always saw. Models carry the signs, wait for outages to
end, and are where a stuck agent stops: every call of a tool has its result then.
"""
# ruff: noqa: A002 - the SDK's names

from __future__ import annotations

from collections.abc import AsyncIterator
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from loki.adapters.conversation import StandIn, Watch, Watching, enclosing, stand_in
from loki.decision.monitor.tool_call import ToolCall

try:
    import agents
    import agents.tool as sdk

    from loki.adapters.openai_agents_resilient import ONCE, breaker_of, is_silent
except ImportError as error:
    raise ImportError("needs openai-agents: pip install 'loki-core[openai-agents]'") from error


if TYPE_CHECKING:
    from agents.run_config import RunOptions
    from typing_extensions import Unpack

    Agent: TypeAlias = agents.Agent[Any]
    Options: TypeAlias = RunOptions[Any]
    Task: TypeAlias = str | list[agents.TResponseInputItem] | agents.RunState[Any]


class LokiRunner(Watching[Any]):
    """Runs agents as `agents.Runner` does: failures of their tools, and of those of agents that they
    hand over to, are remembered, repeats are named and then stopped, outages are waited out.

    Args:
        monitor: what decides; a project's folder: one for that.
        scope: whose signs a run is told: ``conversation``, its own and those of runs with its session;
            ``project``, all of the branch; a user's name: the user's; or what tells that name from the
            run's ``context``.
        wait: how long a call of a model waits, all pauses together, until its circuit breaker lets it
            out; 0: not at all; None: as the monitor says.

    Raises:
        AgentStuck: out of a run, or the events of a streamed one, where the same failure came too
            often.

    Example:
        >>> import asyncio
        >>> from agents import Agent
        >>> from agents.testing import ScriptedModel, assistant_message
        >>> agent = Agent("fixer", model=ScriptedModel([[assistant_message("Nothing to fix")]]))
        >>> asyncio.run(LokiRunner().run(agent, "Fix the tests")).final_output
        'Nothing to fix'
    """

    _agent_name = "openai-agents"

    async def run(self, agent: Agent, task: Task, **options: Unpack[Options]) -> agents.RunResult:
        """As `agents.Runner.run`."""
        with self._watch.running(**options):
            return await agents.Runner.run(self.agent(agent), task, **self._given(**options))

    def run_sync(self, agent: Agent, task: Task, **options: Unpack[Options]) -> agents.RunResult:
        """As `agents.Runner.run_sync`."""
        with self._watch.running(**options):
            return agents.Runner.run_sync(self.agent(agent), task, **self._given(**options))

    def run_streamed(
        self, agent: Agent, task: Task, **options: Unpack[Options]
    ) -> agents.RunResultStreaming:
        """As `agents.Runner.run_streamed`."""
        with self._watch.running(**options):
            return agents.Runner.run_streamed(self.agent(agent), task, **self._given(**options))

    def config(self, given: agents.RunConfig | dict[str, Any] | None = None) -> agents.RunConfig:
        """A run's configuration with which models are asked through loki, which alone asks again.

        Args:
            given: the run's own, as there. Retries that its settings ask for are off.
        """
        config = given if isinstance(given, agents.RunConfig) else agents.RunConfig(**(given or {}))
        of = config.model_provider
        return replace(
            config,
            model=self._model(config.model),
            model_provider=stand_in(of, get_model=lambda name: self._model(of.get_model(name))),
            model_settings=(config.model_settings or agents.ModelSettings()).resolve(ONCE),
            tool_error_formatter=partial(self._remember, config.tool_error_formatter),
        )

    def agent(self, agent: Agent) -> Agent:
        """A copy of an agent whose tools and model loki watches, and of all that it hands over to, or
        uses as a tool.
        """
        return self._agent(agent, {})

    def _given(self, run_config: Any = None, **options: Any) -> Any:
        return {**options, "run_config": self.config(run_config)}

    def _agent(self, agent: Agent, known: dict[int, Agent]) -> Agent:
        """The copy; known: agents of which there is one, as they may hand over in a ring."""
        if id(agent) in known or getattr(agent, "loki", None) is self:
            return known.get(id(agent), agent)
        watched = known[id(agent)] = agent.clone(model=self._model(agent.model))
        watched.tools = [self._tool(one, known) for one in agent.tools]
        watched.handoffs = [self._handoff(one, known) for one in agent.handoffs]

        async def get_mcp_tools(context: Any) -> list[agents.Tool]:
            return [self._tool(one, known) for one in await agent.get_mcp_tools(context)]

        vars(watched).update(loki=self, get_mcp_tools=get_mcp_tools)
        return watched

    def _handoff(self, to: Any, known: dict[int, Agent]) -> Any:
        if not isinstance(to, agents.Handoff):
            return self._agent(to, known)

        async def invoke(context: Any, arguments: str) -> Any:
            return self._agent(await to.on_invoke_handoff(context, arguments), known)

        return replace(to, on_invoke_handoff=invoke)

    def _model(self, model: Any) -> Any:
        is_one = isinstance(model, agents.Model) and not isinstance(model, _AskedModel)
        return _AskedModel(model, self._watch) if is_one else model

    # --- Tools ------------------------------------------------------------------------------------

    def _tool(self, tool: sdk.Tool, known: dict[int, Agent]) -> sdk.Tool:
        """A copy of a tool that loki watches; tools that OpenAI's service runs stay as they are."""
        if not isinstance(tool, sdk.FunctionTool):
            return tool
        tool = copy(tool)
        if helper := getattr(tool, "_agent_instance", None):
            watched = self._agent(helper, known)
            tool.on_invoke_tool = enclosing(tool.on_invoke_tool, helper, watched)
        before, own = tool.tool_input_guardrails or (), tool.tool_output_guardrails or ()
        tool.tool_input_guardrails = [*before, agents.ToolInputGuardrail(self._before, "loki")]
        guard = agents.ToolOutputGuardrail[Any]
        tool.tool_output_guardrails = [guard(self._after, "loki"), *own, guard(self._say, "loki")]
        told = sdk.resolve_function_tool_failure_error_function(tool)
        ours = partial(self._failed, told) if told else self._ended
        # The SDK's own, also where it is given by its name, is the one that asks `_remember`.
        given = () if told is sdk.default_tool_error_function else (ours,)
        return sdk.set_function_tool_failure_error_function(tool, *given)

    def _remember(self, given: Any, failed: Any) -> Any:
        """A run's ``tool_error_formatter`` that keeps the error; the text stays what it was."""
        self._watch.raised(failed.call_id, getattr(failed, "error", None))
        return given(failed) if given else None

    def _failed(self, told: Any, context: Any, error: Exception) -> Any:
        """A tool's own ``failure_error_function`` that keeps the error."""
        self._watch.raised(context.tool_call_id, error)
        return told(context, error)

    async def _ended(self, context: Any, error: Exception) -> Any:
        """In the place of none, with which the error ends the run."""
        await self._watch.aended("", _call(context), error)
        raise error

    async def _before(self, data: Any) -> agents.ToolGuardrailFunctionOutput:
        return _instead(self._watch.before("", _call(data.context)).text)

    async def _after(self, data: Any) -> agents.ToolGuardrailFunctionOutput:
        await self._watch.anoted("", _call(data.context), data.output)
        return _instead("")

    async def _say(self, data: Any) -> agents.ToolGuardrailFunctionOutput:
        return _instead(self._watch.said(data.context.tool_call_id, data.output))


def _instead(text: str) -> agents.ToolGuardrailFunctionOutput:
    """The model is to see this in place of an output; "": what it would have seen."""
    answer = agents.ToolGuardrailFunctionOutput
    return answer.reject_content(text) if text else answer.allow()


def _call(context: Any) -> ToolCall:
    return ToolCall.of_json(context.tool_name, context.tool_arguments, context.tool_call_id)


# --- Models ---------------------------------------------------------------------------------------


class _AskedModel(StandIn):
    """A model whose calls go through a monitor; all else is the model's own.

    A last message with a claim that no check has borne out is answered, once, in place of the user.
    """

    def __init__(self, model: agents.Model, watch: Watch) -> None:
        super().__init__(model)
        self._watch = watch
        self._breaker = breaker_of(model)

    async def get_response(self, system_instructions: Any, input: Any, *a: Any, **more: Any) -> Any:
        """As the model, in the end."""
        told = await self._told(system_instructions, input)
        ask: Any = partial(self._watch.monitor.acall, self._breaker, self._of.get_response, told)
        first = await ask(input, *a, **more)
        again = await self._refused(first.output, first.response_id, input, more)
        if again is None:
            return first
        last = await ask(again[0], *a, **again[1])
        first.usage.add(last.usage)
        return replace(last, usage=first.usage)

    async def stream_response(
        self, system_instructions: str | None, input: Any, *a: Any, **more: Any
    ) -> AsyncIterator[Any]:
        """As the model; of an answer that is refused all is seen but its end, and its tokens."""
        told, again = await self._told(system_instructions, input), None
        async for event in self._stream(told, input, *a, **more):
            if event.type == "response.completed":
                again = await self._refused(event.response.output, event.response.id, input, more)
            if again is None:
                yield event
        if again is not None:
            async for event in self._stream(told, again[0], *a, **again[1]):
                yield event

    def _stream(self, *args: Any, **more: Any) -> AsyncIterator[Any]:
        begin = partial(self._of.stream_response, *args, **more)
        return self._watch.monitor.astream(self._breaker, begin, is_silent)

    async def _told(self, instructions: Any, input: Any) -> str | None:
        items = [] if isinstance(input, str) else input
        return await self._watch.told(instructions, (str(one.get("call_id")) for one in items))

    async def _refused(self, output: Any, response: Any, input: Any, more: Any) -> Any:
        """What to ask next, where an answer is the last one and claims what no check has shown."""
        if any(item.type not in {"message", "reasoning"} for item in output):
            return None
        text = "".join(agents.ItemHelpers.extract_text(item) or "" for item in output)
        if not (refusal := await self._watch.aending("", text)):
            return None
        said: list[Any] = [{"role": "user", "content": refusal.text}]
        last = {"previous_response_id": response} if more.get("previous_response_id") else {}
        if not (more.get("conversation_id") or last):  # the service does not keep what was said
            answer = agents.ModelResponse(list(output), agents.Usage(), response).to_input_items()
            said = [*agents.ItemHelpers.input_to_new_input_list(input), *answer, *said]
        return said, {**more, **last}


agents.Model.register(_AskedModel)  # no child: it would inherit what the model does otherwise

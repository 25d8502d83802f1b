"""OpenAI Agents SDK: loki as its runner.

    runner = LokiRunner()                                          # in place of agents.Runner
    result = await runner.run(agent, "Make the tests pass")

Needs the extra ``openai-agents``. It decides nothing: `loki.Monitor` does. What it does with tools and
models is beside it, in ``openai_agents_tools`` and ``openai_agents_model``. Under test:
``tests/py/adapters/test_openai_agents.py``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from loki.adapters.conversation import Watch
from loki.monitoring.monitor import Monitor

try:
    import agents
    from loki.adapters.openai_agents_model import AskedModel, AskedProvider
    from loki.adapters.openai_agents_tools import WatchedTools
except ImportError as error:
    raise ImportError("needs openai-agents: pip install 'loki-core[openai-agents]'") from error


class LokiRunner:
    """Runs agents as `agents.Runner` does: failures of their tools, and of those of agents that they
    hand over to, are remembered, repeats are named and then stopped, outages are waited out.

    Args:
        monitor: what decides; a project's folder: one for that.

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

    def __init__(self, monitor: Monitor | str | Path = ".") -> None:
        self._watch = Watch(monitor, "openai-agents")
        self.monitor, self._tools = self._watch.monitor, WatchedTools(self._watch)

    async def run(self, agent: Any, task: Any, **options: Any) -> agents.RunResult:
        """As `agents.Runner.run`."""
        return await agents.Runner.run(self.agent(agent), task, **self._with_config(**options))

    def run_sync(self, agent: Any, task: Any, **options: Any) -> agents.RunResult:
        """As `agents.Runner.run_sync`."""
        return agents.Runner.run_sync(self.agent(agent), task, **self._with_config(**options))

    def run_streamed(self, agent: Any, task: Any, **options: Any) -> agents.RunResultStreaming:
        """As `agents.Runner.run_streamed`."""
        return agents.Runner.run_streamed(self.agent(agent), task, **self._with_config(**options))

    def config(self, given: Any = None) -> agents.RunConfig:
        """A run's configuration with which models are asked through loki, which alone asks again.

        Args:
            given: the run's own, as there. Retries that its settings ask for are off.
        """
        given = (
            agents.RunConfig(**given) if isinstance(given, dict) else given or agents.RunConfig()
        )
        once = agents.ModelSettings(retry=agents.ModelRetrySettings(max_retries=0))
        config: agents.RunConfig = replace(
            given,
            model=self._model(given.model),
            model_provider=AskedProvider(given.model_provider, self._model),
            model_settings=(given.model_settings or agents.ModelSettings()).resolve(once),
            tool_error_formatter=self._tools.formatter(given.tool_error_formatter),
        )
        return config

    def agent(self, agent: Any) -> Any:
        """A copy of an agent whose tools and model loki watches, and of all that it hands over to.

        An agent that others use as a tool is watched where the tool is made of such a copy:
        ``runner.agent(helper).as_tool(…)``.
        """
        return self._agent(agent, {})

    def _with_config(self, run_config: Any = None, **options: Any) -> dict[str, Any]:
        return {**options, "run_config": self.config(run_config)}

    def _agent(self, agent: Any, known: dict[int, Any]) -> Any:
        """The copy; known: agents of which there is one, as they may hand over in a ring."""
        if id(agent) in known or getattr(agent, "loki", None) is self:
            return known.get(id(agent), agent)
        tools = list(map(self._tools.watched, agent.tools))
        watched = known[id(agent)] = agent.clone(tools=tools, model=self._model(agent.model))
        watched.handoffs = [self._handoff(one, known) for one in agent.handoffs]

        async def get_mcp_tools(context: Any) -> list[agents.Tool]:
            return list(map(self._tools.watched, await agent.get_mcp_tools(context)))

        vars(watched).update(loki=self, get_mcp_tools=get_mcp_tools)
        return watched

    def _handoff(self, to: Any, known: dict[int, Any]) -> Any:
        if not isinstance(to, agents.Handoff):
            return self._agent(to, known)

        async def invoke(context: Any, arguments: str) -> Any:
            return self._agent(await to.on_invoke_handoff(context, arguments), known)

        return replace(to, on_invoke_handoff=invoke)

    def _model(self, model: Any) -> Any:
        is_one = isinstance(model, agents.Model) and not isinstance(model, AskedModel)
        return AskedModel(model, self._watch) if is_one else model

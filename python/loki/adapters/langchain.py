"""LangChain: loki as a middleware of an agent.

    agent = create_agent(model, tools=[...], middleware=[LokiMiddleware()])

Needs the extra ``langchain``. It decides nothing: `loki.Monitor` does. Create chat models with
``max_retries=0``: loki is the one who asks again. For graphs of your own: `loki.adapters.langgraph`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from loki.adapters.langchain_resilient import aask, ask
from loki.adapters.langgraph import LokiGraph, _of

try:
    from langchain.agents.middleware import AgentMiddleware, hook_config
    from langchain_core.messages import AIMessage, HumanMessage
except ImportError as error:
    raise ImportError("needs LangChain: pip install 'loki-core[langchain]'") from error

if TYPE_CHECKING:
    from langchain.agents.middleware import AgentState, ModelRequest, ModelResponse
    from langgraph.runtime import Runtime


class LokiMiddleware(LokiGraph, AgentMiddleware):
    """Failures of tools are remembered, repeats are named and then stopped, outages are waited out.

    Args:
        monitor: what decides; a project's folder: one for that.
        scope: whose signs a conversation is told: ``conversation``, its own; ``project``, all of the
            branch; a user's name: the user's; or what tells that name from a run's ``Runtime``.
        wait: how long a call of a model waits, all pauses together, until its circuit breaker lets it
            out; 0: not at all; None: as the monitor says.

    Raises:
        AgentStuck: out of ``agent.invoke`` and its like, where the same failure came too often.

    Example:
        >>> from langchain.agents import create_agent
        >>> from langchain_core.language_models import FakeListChatModel
        >>> agent = create_agent(FakeListChatModel(responses=["Hello"]), middleware=[LokiMiddleware()])
        >>> agent.invoke({"messages": [("user", "Hi")]})["messages"][-1].content
        'Hello'
    """

    def wrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]
    ) -> ModelResponse:
        """Ask the model with the signs, in this request alone, and again after an outage."""
        of = _of(request.state)
        asked = request.override(messages=self._with_signs(of, request.messages, request.runtime))
        return ask(self.monitor, handler, asked)

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        """The same, async."""
        shown = _of(request.state), request.messages, request.runtime
        asked = request.override(messages=await self._watch.off("", self._with_signs, *shown))
        return await aask(self.monitor, handler, asked)

    @hook_config(can_jump_to=["model"])
    def after_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ARG002
        """Refuse, once, a claim of success that no check has borne out since the last edit.

        Raises:
            AgentStuck: it is, and another middleware has made an answer of that.
        """
        of, last = _of(state), state["messages"][-1]
        self._watch.raise_swallowed(of)
        is_end = isinstance(last, AIMessage) and not last.tool_calls
        if is_end and (refusal := self._watch.of(of).ending(str(last.text))):
            return {"messages": [HumanMessage(refusal.text)], "jump_to": "model"}
        return None

    @hook_config(can_jump_to=["model"])
    async def aafter_model(
        self, state: AgentState[Any], runtime: Runtime[Any]
    ) -> dict[str, Any] | None:
        """The same, async."""
        return await self._watch.off("", self.after_model, state, runtime)

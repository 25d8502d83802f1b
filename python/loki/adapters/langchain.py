"""LangChain: loki as a middleware of an agent.

    agent = create_agent(model, tools=[...], middleware=[LokiMiddleware()])

Needs the extra ``langchain``. It decides nothing: `loki.Monitor` does. Create chat models with
``max_retries=0``: loki is the one who asks again. For graphs of your own: `loki.adapters.langgraph`.
Under test: ``tests/py/adapters/test_langchain.py``.
"""

from __future__ import annotations

from asyncio import to_thread
from typing import Any
from warnings import warn

from loki.adapters.langgraph import LokiGraph, _of

try:
    from langchain.agents.middleware import AgentMiddleware, hook_config
    from langchain_core.messages import AIMessage, HumanMessage
except ImportError as error:
    raise ImportError("needs LangChain: pip install 'loki-core[langchain]'") from error


class LokiMiddleware(LokiGraph, AgentMiddleware):
    """Failures of tools are remembered, repeats are named and then stopped, outages are waited out.

    Args:
        monitor: what decides; a project's folder: one for that.

    Raises:
        AgentStuck: out of ``agent.invoke`` and its like, where the same failure came too often.

    Example:
        >>> from langchain.agents import create_agent
        >>> from langchain_core.language_models import FakeListChatModel
        >>> agent = create_agent(FakeListChatModel(responses=["Hello"]), middleware=[LokiMiddleware()])
        >>> agent.invoke({"messages": [("user", "Hi")]})["messages"][-1].content
        'Hello'
    """

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """Ask the model with the signs, in this request alone, and again after an outage."""
        messages = self._with_signs(_of(request.state), request.messages)
        return self.monitor.call(
            _breaker(request.model), handler, request.override(messages=messages)
        )

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        """The same, async."""
        messages = await to_thread(self._with_signs, _of(request.state), request.messages)
        asked = request.override(messages=messages)
        return await self.monitor.acall(_breaker(request.model), handler, asked)

    @hook_config(can_jump_to=["model"])
    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:  # noqa: ARG002 - its form
        """Refuse, once, a claim of success that no check has borne out since the last edit."""
        last = state["messages"][-1]
        if not isinstance(last, AIMessage) or last.tool_calls:
            return None
        refusal = self._watch.of(_of(state)).ending(str(last.text))
        if not refusal:
            return None
        return {"messages": [HumanMessage(refusal.text)], "jump_to": "model"}

    @hook_config(can_jump_to=["model"])
    async def aafter_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """The same, async."""
        return await to_thread(self.after_model, state, runtime)


def _breaker(model: Any) -> str:
    """The name of a chat model's circuit breaker, as loki names those of its own models."""
    if getattr(model, "max_retries", 0) != 0:
        name = type(model).__name__
        warn(
            f"{name} asks again by itself: create it with max_retries=0, loki does it", stacklevel=2
        )
    known = model._get_ls_params()
    return f"api/{known.get('ls_provider', 'unknown')}/{known.get('ls_model_name', 'unknown')}"

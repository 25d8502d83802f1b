"""LangGraph: loki round the nodes of a graph that ask a model and run tools.

    kept = LokiGraph()
    graph.add_node("model", kept.node("api/openai/gpt-5.5", ask))
    graph.add_node("tools", ToolNode(tools, **kept.around_tools))

Needs the extra ``langchain``. It decides nothing: `loki.Monitor` does. Create chat models with
``max_retries=0`` and give such nodes no ``retry_policy``: loki is the one who asks again.
Under test: ``tests/py/adapters/test_langgraph.py``.
"""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

from loki.adapters.conversation import Watch
from loki.decision.monitor import Reaction
from loki.decision.tool_call import ToolCall
from loki.monitoring.monitor import Monitor

try:
    from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage, ToolMessage
    from langgraph.errors import GraphBubbleUp
except ImportError as error:
    raise ImportError("needs LangGraph: pip install 'loki-core[langchain]'") from error


class LokiGraph:
    """Failures of tools are remembered, repeats are named and then stopped, outages are waited out.

    Args:
        monitor: what decides; a project's folder: one for that.

    Raises:
        AgentStuck: out of ``graph.invoke`` and its like, where the same failure came too often.
    """

    def __init__(self, monitor: Monitor | str | Path = ".") -> None:
        super().__init__()
        self._watch = Watch(monitor, "langchain")
        self.monitor = self._watch.monitor

    @property
    def around_tools(self) -> dict[str, Any]:
        """What a ``ToolNode`` takes as keywords."""
        return {"wrap_tool_call": self.wrap_tool_call, "awrap_tool_call": self.awrap_tool_call}

    def node(self, breaker: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """A node that calls a service.

        Args:
            breaker: the name of the service's circuit breaker, ``api/openai/gpt-5.5`` for instance.
            function: the node, sync or async. Of a state with ``messages`` it gets those with the
                signs among them; what it returns stays as it is.
        """
        if iscoroutinefunction(function):

            @wraps(function)
            async def anode(state: Any, *args: Any, **more: Any) -> Any:
                shown = await to_thread(self._shown, state)
                return await self.monitor.acall(breaker, function, shown, *args, **more)

            return anode

        @wraps(function)
        def node(state: Any, *args: Any, **more: Any) -> Any:
            return self.monitor.call(breaker, function, self._shown(state), *args, **more)

        return node

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Run a tool; what loki says to its failure is added to its message."""
        call = _tool_call(request)
        if refusal := self.monitor.before(call):
            return _refused(call, refusal)
        try:
            result = handler(request)
        except GraphBubbleUp:  # an interrupt or a command to a parent: no failure
            raise
        except Exception as error:
            self._watch.ended(_of(request.state), call, error)
            raise
        return self._seen(request, call, result)

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        """The same, async."""
        call = _tool_call(request)
        if refusal := await self.monitor.abefore(call):
            return _refused(call, refusal)
        try:
            result = await handler(request)
        except GraphBubbleUp:
            raise
        except Exception as error:
            await self._watch.aended(_of(request.state), call, error)
            raise
        return await to_thread(self._seen, request, call, result)

    def _shown(self, state: Any) -> Any:
        """A state as a node is to see it; one without messages as it is."""
        messages = state.get("messages") if isinstance(state, Mapping) else None
        return {**state, "messages": self._with_signs(_of(state), messages)} if messages else state

    def _with_signs(self, of: str, messages: list[AnyMessage]) -> list[AnyMessage]:
        """The messages of a conversation as a model is to see them.

        Raises:
            AgentStuck: a tool's result among them was one too many.
        """
        calls = [one.tool_call_id for one in messages if isinstance(one, ToolMessage)]
        self._watch.raise_held(of, calls)
        if not (signs := self.monitor.instructions()):
            return messages
        at = self._watch.place(of, signs, len(messages))
        if isinstance((*messages, None)[at], ToolMessage):  # the history was cut meanwhile
            at = len(messages)
        return [*messages[:at], HumanMessage(signs), *messages[at:]]

    def _seen(self, request: Any, call: ToolCall, result: Any) -> Any:
        """A tool's message with what loki says to it; a command of LangGraph's as it is."""
        is_message = isinstance(result, ToolMessage)
        ok = not is_message or (False if result.status == "error" else None)
        text = str(result.text) if is_message else ""
        said = self._watch.heard(_of(request.state), call, text, ok=ok)
        if not said.text:
            return result
        content = result.content
        more = f"{content}\n\n{said.text}" if isinstance(content, str) else [*content, said.text]
        return result.model_copy(update={"content": more})


def _of(state: Any) -> str:
    """What tells a conversation from others: its first message that is no prompt of all of them."""
    messages = (
        state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", ())
    )
    first = next((one for one in messages or () if not isinstance(one, SystemMessage)), None)
    return str(getattr(first, "id", None) or "")


def _tool_call(request: Any) -> ToolCall:
    call = request.tool_call
    return ToolCall(call["name"], call["args"], id=call["id"] or "")


def _refused(call: ToolCall, refusal: Reaction) -> ToolMessage:
    return ToolMessage(refusal.text, name=call.name, tool_call_id=call.id, status="error")

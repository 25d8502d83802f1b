"""LangGraph: loki round the nodes of a graph that ask a model and run tools.

    kept = LokiGraph()
    graph.add_node("model", kept.node("api/openai/gpt-5.5", ask))
    graph.add_node("tools", ToolNode(tools, **kept.around_tools))

Needs the extra ``langchain``. It decides nothing: `loki.Monitor` does. Create chat models with
``max_retries=0`` and give such nodes no ``retry_policy``: loki is the one who asks again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, TypeAlias

from loki.adapters.conversation import Watching, called
from loki.decision.monitor.monitor_state import Reaction
from loki.decision.monitor.tool_call import ToolCall

try:
    from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage, ToolMessage
    from langchain_core.runnables.config import ensure_config
    from langgraph.errors import GraphBubbleUp
    from langgraph.runtime import Runtime, get_runtime
except ImportError as error:
    raise ImportError("needs LangGraph: pip install 'loki-core[langchain]'") from error

if TYPE_CHECKING:
    from langgraph.prebuilt.tool_node import ToolCallRequest
    from langgraph.types import Command

    Result: TypeAlias = ToolMessage | Command[Any]
    Handler: TypeAlias = Callable[[ToolCallRequest], Result]
    AsyncHandler: TypeAlias = Callable[[ToolCallRequest], Awaitable[Result]]


class LokiGraph(Watching[Runtime[Any]]):
    """Failures of tools are remembered, repeats are named and then stopped, outages are waited out.

    Args:
        monitor: what decides; a project's folder: one for that.
        scope: whose signs a conversation is told: ``conversation``, its own; ``project``, all of the
            branch; a user's name: the user's; or what tells that name from a run's ``Runtime``.
        wait: how long a call of a model waits, all pauses together, until its circuit breaker lets it
            out; 0: not at all; None: as the monitor says.

    Raises:
        AgentStuck: out of ``graph.invoke`` and its like, where the same failure came too often.
    """

    _agent_name = "langchain"

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
                shown = await self._watch.off("", self._shown, state)
                return await self.monitor.acall(breaker, function, shown, *args, **more)

            return anode

        @wraps(function)
        def node(state: Any, *args: Any, **more: Any) -> Any:
            return self.monitor.call(breaker, function, self._shown(state), *args, **more)

        return node

    def wrap_tool_call(self, request: ToolCallRequest, handler: Handler) -> Result:
        """Run a tool; what loki says to its failure is added to its message."""
        of, call = _of(request.state), _tool_call(request)
        if refusal := self._watch.before(of, call):
            return _refused(call, refusal)
        try:
            result = handler(request)
        except GraphBubbleUp:  # an interrupt or a command to a parent: no failure
            raise
        except Exception as error:
            self._watch.ended(of, call, error, request.runtime)
            raise
        return self._seen(of, call, result)

    async def awrap_tool_call(self, request: ToolCallRequest, handler: AsyncHandler) -> Result:
        """The same, async."""
        of, call = _of(request.state), _tool_call(request)
        if refusal := self._watch.before(of, call):
            return _refused(call, refusal)
        try:
            result = await handler(request)
        except GraphBubbleUp:
            raise
        except Exception as error:
            await self._watch.aended(of, call, error, request.runtime)
            raise
        given = result.content if isinstance(result, ToolMessage) else ""
        return await self._watch.off(given, self._seen, of, call, result)

    def _shown(self, state: Any) -> Any:
        """A state as a node is to see it; one without messages as it is."""
        messages = state.get("messages") if isinstance(state, Mapping) else None
        if not messages:
            return state
        runtime = get_runtime() if callable(self._watch.scope) else None
        return {**state, "messages": self._with_signs(_of(state), messages, runtime)}

    def _with_signs(
        self, of: str, messages: list[AnyMessage], runtime: Runtime[Any] | None
    ) -> list[AnyMessage]:
        """The messages of a conversation as a model is to see them.

        Raises:
            AgentStuck: a tool's result among them was one too many.
        """
        calls = [one.tool_call_id for one in messages if isinstance(one, ToolMessage)]
        self._watch.raise_held(of, calls, runtime)
        if not (signs := self._watch.instructions(of, runtime)):
            return messages
        is_result = [isinstance(one, ToolMessage) for one in messages].__getitem__
        return self._watch.placed(of, messages, signs, HumanMessage(signs), is_result)

    def _seen(self, of: str, call: ToolCall, result: Result) -> Result:
        """A tool's message with what loki says to it; a command of LangGraph's as it is."""
        if not isinstance(result, ToolMessage):
            self._watch.received(of, call, "", ok=True)
            return result
        text, ok = str(result.text), False if result.status == "error" else None
        said = self._watch.received(of, call, text, ok=ok, fits=_UNFIT not in text[:99])
        if not said.text:
            return result
        content = result.content
        more = f"{content}\n\n{said.text}" if isinstance(content, str) else [*content, said.text]
        return result.model_copy(update={"content": more})


_UNFIT = "Error invoking tool "
"""What ``ToolNode`` says first where arguments do not fit."""


def _of(state: Any) -> str:
    """What tells a conversation from others: its first message that is no prompt of all of them."""
    messages = state.get("messages") if isinstance(state, Mapping) else state
    messages = messages if isinstance(messages, list) else getattr(state, "messages", ())
    first = next((one for one in messages or () if not isinstance(one, SystemMessage)), None)
    if name := getattr(first, "id", None):
        return str(name)
    return str(ensure_config().get("configurable", {}).get("thread_id") or called(first))


def _tool_call(request: ToolCallRequest) -> ToolCall:
    call = request.tool_call
    return ToolCall(call["name"], call["args"], id=call["id"] or "")


def _refused(call: ToolCall, refusal: Reaction) -> ToolMessage:
    return ToolMessage(refusal.text, name=call.name, tool_call_id=call.id, status="error")

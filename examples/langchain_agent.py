"""The same LangChain agent with and without loki, on a task that it loops on.

pip install 'loki-core[langchain]' pytest
python examples/langchain_agent.py
"""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import ModelCallLimitMiddleware
from langchain.agents.middleware.model_call_limit import ModelCallLimitExceededError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from looping_task import GOAL, PATIENCE, Task, compare

import loki
from loki.adapters.langchain import LokiMiddleware


class Scripted(BaseChatModel):
    """A chat model that does what the task's script says."""

    task: Any
    listens: bool

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **more: Any) -> Any:  # noqa: ARG002 - the base's
        """It knows its tools."""
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        step = self.task.next_step([str(one.content) for one in messages[1:]], listens=self.listens)
        number = str(self.task.count.requests)
        calls = [{"name": step.tool, "args": step.arguments, "id": number}] if step.tool else []
        message = AIMessage(step.text, tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


def run(task: Task, with_loki: bool, listens: bool) -> str:
    """Run the agent; how it ended."""
    limit = ModelCallLimitMiddleware(run_limit=PATIENCE, exit_behavior="error")
    agent = create_agent(
        Scripted(task=task, listens=listens),
        tools=[task.write_file, task.run_tests],
        middleware=[LokiMiddleware(task.folder), limit] if with_loki else [limit],
    )
    try:
        return str(agent.invoke({"messages": [("user", GOAL)]})["messages"][-1].content)
    except ModelCallLimitExceededError:
        return f"given up on after {PATIENCE} requests"
    except loki.AgentStuck as stuck:
        return f"stopped at the {stuck.count}th {stuck.failure and stuck.failure.error_type}"


if __name__ == "__main__":
    compare(run)

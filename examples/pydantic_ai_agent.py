"""The same pydantic-ai agent with and without loki, on a task that it loops on.

pip install 'loki-core[pydantic-ai]' pytest
python examples/pydantic_ai_agent.py
"""

from __future__ import annotations

from looping_task import GOAL, PATIENCE, Task, compare
from pydantic_ai import Agent, UsageLimitExceeded, UsageLimits
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import loki
from loki.adapters.pydantic_ai import LokiCapability


def run(task: Task, with_loki: bool, listens: bool) -> str:
    """Run the agent; how it ended."""

    def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        heard = [str(getattr(part, "content", "")) for one in messages for part in one.parts]
        step = task.next_step(heard[1:], listens=listens)
        if step.tool:
            return ModelResponse([ToolCallPart(step.tool, step.arguments)])
        return ModelResponse([TextPart(step.text)])

    agent = Agent(
        FunctionModel(model),
        tools=[task.write_file, task.run_tests],
        capabilities=[LokiCapability(task.folder)] if with_loki else [],
    )
    try:
        return agent.run_sync(GOAL, usage_limits=UsageLimits(request_limit=PATIENCE)).output
    except UsageLimitExceeded:
        return f"given up on after {PATIENCE} requests"
    except loki.AgentStuck as stuck:
        return f"stopped at the {stuck.count}th {stuck.failure and stuck.failure.error_type}"


if __name__ == "__main__":
    compare(run)

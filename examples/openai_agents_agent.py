"""The same agent of the OpenAI Agents SDK with and without loki, on a task that it loops on.

pip install 'loki-core[openai-agents]' pytest
python examples/openai_agents_agent.py
"""

from __future__ import annotations

import asyncio
from typing import Any

from agents import Agent, MaxTurnsExceeded, Runner, function_tool, set_tracing_disabled
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from looping_task import GOAL, PATIENCE, Task, compare

import loki
from loki.adapters.openai_agents import LokiRunner

set_tracing_disabled(True)  # traces go to OpenAI, and need a key


def run(task: Task, with_loki: bool, listens: bool) -> str:
    """Run the agent; how it ended."""

    def model(asked: Any) -> ModelStep:
        heard = [
            asked.system_instructions or "",
            *(str(one.get("output", "")) for one in asked.input),
        ]
        step = task.next_step(heard, listens=listens)
        number = str(task.count.requests)
        if step.tool:
            return ModelStep([function_call(step.tool, step.arguments or {}, call_id=number)])
        return ModelStep([assistant_message(step.text)])

    agent = Agent(
        "fixer",
        model=ScriptedModel([ModelStep.respond(model)] * PATIENCE),
        tools=[function_tool(task.write_file), function_tool(task.run_tests)],
    )
    runner: Any = LokiRunner(task.folder) if with_loki else Runner
    try:
        result = asyncio.run(runner.run(agent, GOAL, max_turns=PATIENCE))
        return str(result.final_output)
    except MaxTurnsExceeded:
        return f"given up on after {PATIENCE} requests"
    except loki.AgentStuck as stuck:
        return f"stopped at the {stuck.count}th {stuck.failure and stuck.failure.error_type}"


if __name__ == "__main__":
    compare(run)

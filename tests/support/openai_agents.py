"""Agents of the OpenAI Agents SDK whose model is a script, and what they were asked and told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from agents import Agent, function_tool, set_tracing_disabled
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

import loki
from loki.adapters.openai_agents import LokiRunner
from loki.memory.tool_failure import ToolFailure, ToolFailures
from support.framework_agents import Call

Steps = Sequence["list[Call] | str"]

set_tracing_disabled(True)


def scripted(steps: Steps, of: str = "") -> ScriptedModel:
    """A model that says its steps in turn: calls of tools, or last words; the last one for ever."""
    said = 0

    def answer(_: Any) -> ModelStep:
        nonlocal said
        said += 1
        step = steps[min(said, len(steps)) - 1]
        if isinstance(step, str):
            return ModelStep([assistant_message(step)])
        calls = [function_call(n, a, call_id=f"{of}{said}-{i}") for i, (n, a) in enumerate(step)]
        return ModelStep(calls)

    return ScriptedModel([ModelStep.respond(answer)] * 60)


def tools(check: Callable[[], Any], **more: Any) -> list[Any]:
    @function_tool
    def write_file(path: str, content: str) -> str:
        return f"wrote {len(content)} characters to {path}"

    def run_tests() -> Any:
        return check()

    return [write_file, function_tool(**more)(run_tests)]


def agent(steps: Steps, check: Callable[[], Any], **more: Any) -> Agent[Any]:
    return Agent("fixer", instructions="Fix it.", model=scripted(steps), tools=tools(check), **more)


def asked(of: Agent[Any]) -> tuple[Any, ...]:
    assert isinstance(of.model, ScriptedModel)
    return of.model.calls


def outputs(call: Any) -> list[str]:
    items = [] if isinstance(call.input, str) else call.input
    return [item["output"] for item in items if item.get("type") == "function_call_output"]


def kept_in(folder: Path) -> list[ToolFailure]:
    return list(ToolFailures(loki.Workspace(folder).store))


def run(runner: LokiRunner, of: Agent[Any], **options: Any) -> Any:
    return asyncio.run(runner.run(of, "Fix it", max_turns=30, **options))

"""What tests of test_public of both tiers share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import loki
import loki.testing
from support.project import CHECK, RIGHT, make_project

STAGES = f"""
version: 1
name: p
stages:
  - {{id: mend, agent: a, description: Make add add., checks: ["{CHECK}"]}}
"""


def calls(tmp_path: Path) -> dict[str, Callable[[], Any]]:
    """One plain use of every public name."""
    count = 0

    def project() -> Path:
        nonlocal count
        count += 1
        return make_project(tmp_path / f"p{count}")

    def solve(_briefing: loki.Briefing) -> dict[str, str]:
        return {"calc.py": RIGHT}

    def arun() -> str:
        import asyncio

        work = loki.arun("make add add", agent=solve, checks=[CHECK], path=str(project()))
        return asyncio.run(work).status

    def task() -> str:
        with loki.Workspace(project()).task("make add add", checks=[CHECK]) as entered:
            assert isinstance(entered, loki.Task)
            return entered.run(solve).status

    text = "app.py:1: error: Name 'x' is not defined  [name-defined]"
    briefing = loki.Briefing("Do it", "t", 1, Path("/"))
    return {
        "Agent": lambda: inspect.isclass(loki.Agent),
        "AgentError": lambda: loki.AgentError("x", retryable=False).retryable,
        "AgentStuck": lambda: loki.AgentStuck("stuck", None, 4, "repeat").count,
        "AnthropicLLM": lambda: loki.AnthropicLLM("claude-test", api_key="k").breaker,
        "Answer": lambda: loki.Answer("done").usage.total,
        "Backoff": lambda: loki.Backoff("5s").preview(3),
        "Breaker": lambda: loki.Breaker(name="api/claude").snapshot().state,
        "BreakerOpen": lambda: str(loki.BreakerOpen("api/claude", 5.0)),
        "Breakers": lambda: loki.Breakers(tmp_path / "breakers.json")["x"].snapshot().failure_count,
        "Briefing": lambda: str(briefing),
        "Change": lambda: loki.Change.write({"a": "b"}).paths,
        "Check": lambda: loki.Check.of("pytest -q"),
        "CommandAgent": lambda: loki.CommandAgent("true").name,
        "ConfigError": lambda: str(loki.ConfigError("no", file="a", line=1, column=2)),
        "Edit": lambda: loki.Edit("a", b"b"),
        "Failure": lambda: loki.Failure.of("it failed").fingerprint,
        "Finding": lambda: isinstance(loki.scan_message("It is flaky.")[0], loki.Finding),
        "FallbackAgent": lambda: loki.FallbackAgent([loki.ScriptedAgent([])]).name,
        "ResilientLLM": lambda: repr(loki.ResilientLLM(loki.testing.ScriptedLLM([]))),
        "LLM": lambda: inspect.isclass(loki.LLM),
        "LLMError": lambda: loki.LLMError("spent", "quota").retryable,
        "LokiError": lambda: str(loki.LokiError("x")),
        "Match": lambda: isinstance(loki.recognize(text).match, loki.Match),
        "Message": lambda: loki.Message("user", "Hello").text,
        "ModelAgent": lambda: loki.ModelAgent(loki.testing.ScriptedLLM([])).name,
        "OpenAILLM": lambda: loki.OpenAILLM("gpt-test", api_key="k").api,
        "PydanticAILLM": lambda: loki.PydanticAILLM("test").breaker,
        "Outcome": lambda: loki.Outcome("t", "success", 1).exit_code,
        "Monitor": lambda: loki.Monitor(project()).ending("All tests pass.").kind,
        "Pattern": lambda: isinstance(
            loki.PatternSet.default().patterns["lint-error"], loki.Pattern
        ),
        "PatternSet": lambda: loki.PatternSet.default().match(text),
        "Pipeline": lambda: loki.Pipeline.loads(STAGES).run(solve, path=project()).status,
        "PipelineOutcome": lambda: loki.PipelineOutcome("p-1", "p", "escalated").exit_code,
        "Proposal": lambda: loki.Proposal(loki.Change.nothing()).change.is_empty,
        "Reaction": lambda: bool(loki.Reaction()),
        "Reflection": lambda: loki.Reflection(why="the mock hides it").why,
        "ReflectionRequest": lambda: str(loki.ReflectionRequest("Why?", "t", 1, Path("/"))),
        "Reflective": lambda: inspect.isclass(loki.Reflective),
        "Request": lambda: loki.Request((loki.Message("user", "Hello"),)).max_tokens,
        "RetryBudget": lambda: loki.RetryBudget().try_withdraw(),
        "ScriptedAgent": lambda: loki.ScriptedAgent([{"a": "b"}]).propose(briefing).change.paths,
        "Signs": lambda: str(loki.Workspace(project()).signs().observe(text).advice),
        "StoreError": lambda: str(loki.StoreError("x")),
        "Task": task,
        "TokenUsage": lambda: (loki.TokenUsage(1, 2) + loki.TokenUsage(3, 4)).total,
        "Tool": lambda: loki.Tool("propose", "Propose a change.", {"type": "object"}).name,
        "ToolCall": lambda: loki.ToolCall("Bash", {"command": "pytest -q"}).line,
        "UsageError": lambda: str(loki.UsageError("x")),
        "Workspace": lambda: loki.Workspace(tmp_path).tasks(),
        "arun": arun,
        "clean": lambda: loki.clean("\x1b[31mred\x1b[0m"),
        "containment": lambda: loki.containment("a b c", "a b c d"),
        "dice": lambda: loki.dice("a b c", "a b d"),
        "fingerprint": lambda: loki.fingerprint("it failed after 3 s"),
        "normalize": lambda: loki.normalize("it failed after 3 s"),
        "group": lambda: loki.group(["retry 1", "retry 2"]),
        "overlap": lambda: loki.overlap("a b c", "a b d"),
        "FailureIndex": lambda: loki.FailureIndex().add(text, "monday"),
        "TokenSets": lambda: loki.TokenSets([text]).overlaps(text),
        "recognize_many": lambda: loki.recognize_many([text]),
        "recognize": lambda: loki.recognize(text),
        "retry_after": lambda: loki.retry_after({"Retry-After": "5"}, datetime.now(timezone.utc)),
        "run": lambda: loki.run("x", agent=solve, checks=[CHECK], path=str(project())).status,
        "scan_message": lambda: [one.id for one in loki.scan_message("It probably works.")],
        "same_failure": lambda: loki.same_failure(text, text),
    }

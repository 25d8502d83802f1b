"""loki: failure handling for autonomous coding agents.

The public names, nothing else. Each is loaded when it is first used, so that ``import loki`` stays
light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loki.action.agent_protocol import LLM as LLM
    from loki.action.agent_protocol import Agent as Agent
    from loki.action.agent_protocol import Answer as Answer
    from loki.action.agent_protocol import Briefing as Briefing
    from loki.action.agent_protocol import Message as Message
    from loki.action.agent_protocol import Proposal as Proposal
    from loki.action.agent_protocol import ReflectionRequest as ReflectionRequest
    from loki.action.agent_protocol import Reflective as Reflective
    from loki.action.agent_protocol import Request as Request
    from loki.action.agent_protocol import Tool as Tool
    from loki.action.changes.change import Change as Change
    from loki.action.changes.change import Edit as Edit
    from loki.action.checks.check import Check as Check
    from loki.action.pipelines.pipeline_state import PipelineOutcome as PipelineOutcome
    from loki.adapters.monitor.monitor import Monitor as Monitor
    from loki.agents.anthropic_llm import AnthropicLLM as AnthropicLLM
    from loki.agents.command_agent import CommandAgent as CommandAgent
    from loki.agents.fallback_agent import FallbackAgent as FallbackAgent
    from loki.agents.model_agent import ModelAgent as ModelAgent
    from loki.agents.openai_llm import OpenAILLM as OpenAILLM
    from loki.agents.pydantic_ai_llm import PydanticAILLM as PydanticAILLM
    from loki.agents.resilient_llm import ResilientLLM as ResilientLLM
    from loki.agents.scripted import ScriptedAgent as ScriptedAgent
    from loki.base.error import AgentError as AgentError
    from loki.base.error import AgentStuck as AgentStuck
    from loki.base.error import BreakerOpen as BreakerOpen
    from loki.base.error import ConfigError as ConfigError
    from loki.base.error import LLMError as LLMError
    from loki.base.error import LokiError as LokiError
    from loki.base.error import StoreError as StoreError
    from loki.base.error import UsageError as UsageError
    from loki.base.tokens import TokenUsage as TokenUsage
    from loki.decision.backoff import Backoff as Backoff
    from loki.decision.breaker import Breaker as Breaker
    from loki.decision.breakers import Breakers as Breakers
    from loki.decision.honesty import Finding as Finding
    from loki.decision.honesty import scan_message as scan_message
    from loki.decision.monitor.monitor_state import Reaction as Reaction
    from loki.decision.monitor.tool_call import ToolCall as ToolCall
    from loki.decision.retry import RetryBudget as RetryBudget
    from loki.decision.retry import retry_after as retry_after
    from loki.execution.task_session import Task as Task
    from loki.memory.reflection import Reflection as Reflection
    from loki.memory.sign import Signs as Signs
    from loki.memory.task_record import Outcome as Outcome
    from loki.pipelines import Pipeline as Pipeline
    from loki.recognition.failure import Failure as Failure
    from loki.recognition.failure import recognize as recognize
    from loki.recognition.failure import recognize_many as recognize_many
    from loki.recognition.grouping import FailureIndex as FailureIndex
    from loki.recognition.grouping import group as group
    from loki.recognition.pattern import Match as Match
    from loki.recognition.pattern import Pattern as Pattern
    from loki.recognition.pattern import PatternSet as PatternSet
    from loki.recognition.signature import fingerprint as fingerprint
    from loki.recognition.signature import normalize as normalize
    from loki.recognition.similarity import TokenSets as TokenSets
    from loki.recognition.similarity import containment as containment
    from loki.recognition.similarity import dice as dice
    from loki.recognition.similarity import overlap as overlap
    from loki.recognition.similarity import same_failure as same_failure
    from loki.recognition.text import clean as clean
    from loki.runtime import Runtime
    from loki.runtime import arun as arun
    from loki.runtime import run as run

    Workspace = Runtime

__version__ = "0.1.0"

# Module -> the public names that live in it.
_ROOMS = {
    "loki.action.agent_protocol": (
        *("Agent", "Briefing", "Proposal", "ReflectionRequest", "Reflective"),
        *("LLM", "Answer", "Message", "Request", "Tool"),
    ),
    "loki.action.changes.change": ("Change", "Edit"),
    "loki.action.checks.check": ("Check",),
    "loki.action.pipelines.pipeline_state": ("PipelineOutcome",),
    "loki.memory.task_record": ("Outcome",),
    "loki.agents.anthropic_llm": ("AnthropicLLM",),
    "loki.agents.command_agent": ("CommandAgent",),
    "loki.agents.model_agent": ("ModelAgent",),
    "loki.agents.openai_llm": ("OpenAILLM",),
    "loki.agents.fallback_agent": ("FallbackAgent",),
    "loki.agents.pydantic_ai_llm": ("PydanticAILLM",),
    "loki.agents.resilient_llm": ("ResilientLLM",),
    "loki.agents.scripted": ("ScriptedAgent",),
    "loki.base.error": (
        "AgentError",
        "AgentStuck",
        "BreakerOpen",
        "ConfigError",
        "LLMError",
        "LokiError",
        "StoreError",
        "UsageError",
    ),
    "loki.base.tokens": ("TokenUsage",),
    "loki.decision.backoff": ("Backoff",),
    "loki.decision.breaker": ("Breaker",),
    "loki.decision.breakers": ("Breakers",),
    "loki.decision.honesty": ("Finding", "scan_message"),
    "loki.decision.monitor.monitor_state": ("Reaction",),
    "loki.decision.retry": ("RetryBudget", "retry_after"),
    "loki.decision.monitor.tool_call": ("ToolCall",),
    "loki.memory.reflection": ("Reflection",),
    "loki.memory.sign": ("Signs",),
    "loki.adapters.monitor.monitor": ("Monitor",),
    "loki.pipelines": ("Pipeline",),
    "loki.recognition.failure": ("Failure", "recognize", "recognize_many"),
    "loki.recognition.grouping": ("FailureIndex", "group"),
    "loki.recognition.pattern": ("Match", "Pattern", "PatternSet"),
    "loki.recognition.signature": ("fingerprint", "normalize"),
    "loki.recognition.similarity": ("TokenSets", "containment", "dice", "overlap", "same_failure"),
    "loki.recognition.text": ("clean",),
    "loki.execution.task_session": ("Task",),
    "loki.runtime": ("Workspace", "arun", "run"),
}
_HOME = {name: module for module, names in _ROOMS.items() for name in names}

__all__ = sorted(_HOME)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'loki' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), "Runtime" if name == "Workspace" else name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})

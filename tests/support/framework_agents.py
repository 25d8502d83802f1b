"""What agents' tools say in tests of adapters: a project whose tests fail in this way or that."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

import loki
from loki.testing import ManualClock

Call: TypeAlias = "tuple[str, dict[str, Any]]"
"""A tool's name and its arguments."""

ZERO = (
    "exit code 1\nFAILED test_stats.py::test_none - ZeroDivisionError: division by zero\n"
    "1 failed in 0.02s"
)
TYPE = (
    "exit code 1\nFAILED test_stats.py::test_some - TypeError: unsupported operand type(s) for +: "
    "'int' and 'str'\n1 failed in 0.02s"
)
PASSED = "exit code 0\n2 passed in 0.01s"

CHECK: Call = ("run_tests", {})


def edit(content: str = "return 0") -> Call:
    """A call that writes a file."""
    return "write_file", {"path": "stats.py", "content": content}


def tries(number: int) -> list[list[Call]]:
    """So many tries: an edit and a check, one after the other."""
    return [[call] for _ in range(number) for call in (edit(), CHECK)]


def monitor(folder: Path, clock: ManualClock | None = None) -> loki.Monitor:
    """A monitor of a project without waiting."""
    return loki.Monitor(folder, agent="test", clock=clock or ManualClock())


class Says:
    """A tool that gives its answers in turn, the last one again and again; exceptions it raises."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.calls = 0

    def __call__(self) -> Any:
        answer = self.answers[min(self.calls, len(self.answers) - 1)]
        self.calls += 1
        if isinstance(answer, BaseException):
            raise answer.with_traceback(None)  # as one that was made anew
        return answer


class ScriptedChat(BaseChatModel):
    """A chat model that says its steps in turn: calls of tools, or last words; keeps what it was sent."""

    steps: Any
    sent: Any

    @classmethod
    def of(cls, steps: Sequence[list[Call] | str]) -> ScriptedChat:
        """One with these steps."""
        return cls(steps=steps, sent=[])

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **more: Any) -> Any:  # noqa: ARG002
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.sent.append(messages)
        number = len(self.sent)
        step = self.steps[min(number, len(self.steps)) - 1]
        message = AIMessage(step if isinstance(step, str) else "")
        if not isinstance(step, str):
            message.tool_calls = [
                {"name": name, "args": args, "id": f"{number}-{i}", "type": "tool_call"}
                for i, (name, args) in enumerate(step)
            ]
        return ChatResult(generations=[ChatGeneration(message=message)])

"""Models that say what they are told to say, and keep when they were asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TypeAlias

from loki.action.agent_protocol import Answer, Message, Request
from loki.base.error import ErrorKind, LLMError
from loki.base.tokens import TokenUsage
from loki.memory.call_log import Call, Calls
from loki.testing import ManualClock

Line: TypeAlias = Answer | BaseException | Callable[[Request], Answer]


class ScriptedLLM:
    """Gives prepared answers in order; after the last one, ``Answer("done")``.

    Attributes:
        asked: the clock's seconds at each call; requests: the requests.
    """

    def __init__(
        self,
        model: str,
        lines: Iterable[Line] = (),
        clock: ManualClock | None = None,
        provider: str = "example",
    ) -> None:
        self.provider, self.model = provider, model
        self.breaker = f"api/{provider}/{model}"
        self.asked: list[float] = []
        self.requests: list[Request] = []
        self._clock = clock or ManualClock()
        self._lines = list(lines)
        self._lock = threading.Lock()

    def complete(self, request: Request) -> Answer:
        with self._lock:
            self.asked.append(self._clock.monotonic())
            self.requests.append(request)
            line = self._lines.pop(0) if self._lines else Answer("done")
        if isinstance(line, BaseException):
            raise line
        return line(request) if callable(line) else line


class AsyncLLM:
    """The same, async."""

    def __init__(self, behind: ScriptedLLM) -> None:
        self.behind = behind
        self.provider, self.model, self.breaker = behind.provider, behind.model, behind.breaker

    async def complete(self, request: Request) -> Answer:
        return self.behind.complete(request)


class Kept(Calls):
    """Keeps the records here."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[Call] = []
        self._came = threading.Condition()

    def add(self, call: Call) -> None:
        with self._came:
            self.all.append(call)
            self._came.notify_all()

    def wait_for(self, count: int) -> bool:
        """Whether there are so many at last."""
        with self._came:
            return self._came.wait_for(lambda: len(self.all) >= count, 60)

    @property
    def told(self) -> list[tuple[str, str, int]]:
        return [(call.model, call.outcome, call.attempts) for call in self.all]


def error(kind: ErrorKind = "overloaded", **more: object) -> LLMError:
    return LLMError(f"it is {kind}", kind, **more)  # type: ignore[arg-type]


def answer(text: str = "done", input: int = 100, output: int = 10) -> Answer:  # noqa: A002
    return Answer(text, usage=TokenUsage(input, output))


def request(text: str = "hello", **more: object) -> Request:
    return Request((Message("user", text),), **more)  # type: ignore[arg-type]

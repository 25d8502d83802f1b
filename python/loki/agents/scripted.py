"""An agent and a model that say what they were told to say: for demos and tests."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from loki.action import agent_protocol
from loki.action.agent_protocol import Briefing, Proposal
from loki.action.changes.change import Change
from loki.base.error import LLMError

Answer: TypeAlias = Change | Proposal | Mapping[str, str | bytes | None] | BaseException
"""What a scripted agent answers; a mapping is `Change.write`, an exception is raised."""

Line: TypeAlias = Answer | Callable[[Briefing], Answer]
"""An answer, or a function that finds it from the briefing."""


class ScriptedAgent:
    """Gives prepared answers in order; after the last one, the empty change.

    Attributes:
        briefings: those it was given, in order.

    Example:
        >>> from pathlib import Path
        >>> agent = ScriptedAgent([{"a.py": "x = 1\\n"}])
        >>> briefing = Briefing("Write a.py", "task-1", 1, Path("/project"))
        >>> agent.propose(briefing).change.paths
        ('a.py',)
        >>> agent.propose(briefing).change.is_empty
        True
    """

    def __init__(self, proposals: Iterable[Line], name: str = "scripted") -> None:
        """Args: proposals: the answers; name: shown in attempts."""
        self.name = name
        self.briefings: list[Briefing] = []
        self._lines = list(proposals)

    def propose(self, briefing: Briefing) -> Proposal:
        """The next answer."""
        self.briefings.append(briefing)
        number = len(self.briefings) - 1
        if number >= len(self._lines):
            return Proposal(Change.nothing(), "nothing more to change", agent=self.name)
        line = self._lines[number]
        # A Change or Proposal is never callable; a function is asked.
        answer = line(briefing) if callable(line) else line
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, Proposal):
            return answer
        change = answer if isinstance(answer, Change) else Change.write(answer)
        return Proposal(change, agent=self.name)


Said: TypeAlias = agent_protocol.Answer | str | Mapping[str, Any] | BaseException
"""What a scripted model answers: an answer; text; arguments of the tool; an exception is raised."""


class ScriptedLLM:
    """A model that gives prepared answers in order, and keeps what it was asked.

    Attributes:
        requests: those it was given, in order.

    Example:
        >>> from loki import Message, Request
        >>> llm = ScriptedLLM(["Hello", {"edits": []}])
        >>> asked = Request((Message("user", "Hi"),))
        >>> llm.complete(asked).text, llm.complete(asked).arguments
        ('Hello', '{"edits": []}')
    """

    provider = "scripted"

    def __init__(
        self,
        answers: Iterable[Said] | Callable[[agent_protocol.Request], Said],
        model: str = "script",
    ) -> None:
        """Args: answers: in order, or a function that finds them; model: its name."""
        self.model = model
        self.breaker = f"api/{self.provider}/{model}"
        self.requests: list[agent_protocol.Request] = []
        self._find = answers if callable(answers) else None
        self._answers = iter(() if callable(answers) else answers)
        self._lock = threading.Lock()

    def complete(self, request: agent_protocol.Request) -> agent_protocol.Answer:
        """The next answer.

        Raises:
            LLMError: there are no more, or the call was cancelled.
        """
        if request.cancelled.is_set():
            raise LLMError(f"{self.model}: the call was cancelled", "cancelled")
        with self._lock:
            self.requests.append(request)
            over = LLMError(f"{self.model}: the script is over", "bad_request")
            said = self._find(request) if self._find else next(self._answers, over)
        if isinstance(said, BaseException):
            raise said
        answer = said if isinstance(said, agent_protocol.Answer) else self._answer(said)
        if answer.text and request.on_text is not None:
            request.on_text(answer.text)
        return answer

    def _answer(self, said: str | Mapping[str, Any]) -> agent_protocol.Answer:
        if isinstance(said, str):
            return agent_protocol.Answer(said, model=self.model)
        return agent_protocol.Answer(arguments=json.dumps(said), ending="tool", model=self.model)

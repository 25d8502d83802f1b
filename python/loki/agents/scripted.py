"""An agent that says what it was told to say: for demos and tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from loki.action.agent import Briefing, Proposal
from loki.action.change import Change

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

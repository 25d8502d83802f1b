"""Whom a workspace's triages ask, and whether that may be now."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loki.action.loop.agent_call import breaker_of, name_of
from loki.action.question_protocol import Question, Said
from loki.agents.fallback_agent import FallbackAgent, ask
from loki.base.error import BreakerOpen, UsageError
from loki.base.secret import mask_secrets
from loki.execution.resilience import breakers as breakers_of
from loki.execution.resilience import ways
from loki.execution.resolve import named_agent, program
from loki.jobs.recurring.recurring_task import RecurringTask
from loki.jobs.triage.triage_prompt import INSTRUCTIONS
from loki.jobs.triage.triage_record import TriageRecord

if TYPE_CHECKING:
    from loki.workspace import Workspace

VARIABLE, PROJECT_VARIABLE = "LOKI_TRIAGE", "LOKI_TRIAGE_PROJECT"
"""A triage agent's environment: the id of the triage, and the project's folder. Where the first is set,
the ``loki`` command only reads."""

ANSWER_TOKENS = 4_000
"""Tokens of a model's answer, thinking included. Chosen, not measured."""

_COMMAND = "command "


class NotBegun(Exception):
    """A circuit breaker stood in the way before anybody was asked."""


@dataclass(frozen=True)
class Way:
    """How a triage's agent is asked.

    Attributes:
        agent: who; name: what people call it.
        breakers: names of the circuit breakers that calls may go through: any one is enough.
    """

    agent: object
    name: str
    breakers: tuple[str, ...]


class TriageAgents:
    """The agents of a workspace, as far as triages ask them.

    Args:
        workspace: the project.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._ways: dict[str, Way | str] = {}

    def of(self, task: RecurringTask) -> str | None:
        """What stands for the agent that is asked about a task: ``[recurrence] triage_agent``, else its own.

        Returns:
            A name for `way`; None: there is nobody, or it cannot be started.
        """
        wanted = self._wanted(task)
        return wanted if wanted and isinstance(self.way(wanted), Way) else None

    def problem(self, task: RecurringTask) -> str:
        """Why the agent that was to be asked about a task cannot be, or ""."""
        wanted = self._wanted(task)
        found = self.way(wanted) if wanted else ""
        return found if isinstance(found, str) else ""

    def _wanted(self, task: RecurringTask) -> str | None:
        own = task.agent
        if name := self._workspace.config.recurrence.triage_agent or (own and own.agent):
            return name
        return f"{_COMMAND}{own.agent_command}" if own and own.agent_command else None

    def way(self, name: str) -> Way | str:
        """How an agent is asked, or why it cannot be."""
        if name not in self._ways:
            try:
                if name.startswith(_COMMAND):
                    agent: object = program(self._workspace, name.removeprefix(_COMMAND))
                else:
                    agent = named_agent(self._workspace, name)
            except UsageError as error:
                self._ways[name] = mask_secrets(str(error))
            else:
                shown = name_of(agent)  # type: ignore[arg-type]
                self._ways[name] = Way(agent, shown, _breakers_of(agent))
        return self._ways[name]

    def open_breaker(self, name: str) -> str | None:
        """The breaker that keeps an agent from being asked now; None: nothing does."""
        way = self.way(name)
        if not isinstance(way, Way):
            return None
        breakers = breakers_of(self._workspace)
        left = [breakers[one].snapshot().retry_after for one in way.breakers]
        return way.breakers[0] if all(one is None or one > 0 for one in left) else None

    def ask(self, name: str, record: TriageRecord, prompt: str, cancelled: threading.Event) -> Said:
        """What an agent says of a task that keeps failing.

        Raises:
            NotBegun: its circuit breaker was open before anything was asked.
            LokiError: it could not be asked, or did not answer.
        """
        way = self.way(name)
        if not isinstance(way, Way):
            raise UsageError(way)
        root = self._workspace.root
        question = Question(
            prompt,
            record.id,
            root,
            record.number,
            cancelled,
            INSTRUCTIONS,
            ANSWER_TOKENS,
            sees_project=True,
            environment={VARIABLE: record.id, PROJECT_VARIABLE: str(root)},
        )
        try:
            return ask([way.agent], question, self._workspace.once(ways))
        except BreakerOpen as error:
            if not getattr(error, "calls", 0):
                raise NotBegun from error
            raise


def _breakers_of(agent: object) -> tuple[str, ...]:
    """Names of the circuit breakers that calls of an agent may go through: any one is enough."""
    if isinstance(agent, FallbackAgent):
        return tuple(name for one in agent.agents for name in _breakers_of(one))
    llms = getattr(getattr(agent, "llm", None), "llms", ())
    return tuple(one.breaker for one in llms) or (breaker_of(agent),)  # type: ignore[arg-type]

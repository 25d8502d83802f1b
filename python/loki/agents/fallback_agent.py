"""Agents in a row: where the first cannot be asked, the next one is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from loki.action.agent_protocol import (
    Answering,
    Briefing,
    Question,
    ReflectionRequest,
    Said,
)
from loki.action.loop.agent_call import (
    AnyAgent,
    as_event,
    breaker_of,
    callable_of,
    is_resilient,
    name_of,
    record_of,
)
from loki.action.loop.loop_events import Answered
from loki.agents.backend import run_through
from loki.agents.fallback_chain import ChainOptions, ChainRun, Endpoint, LocalBreakers
from loki.base.error import AgentError, UsageError
from loki.base.time import SystemClock


class FallbackAgent:
    """An agent made of several: programs, models and functions, the preferred one first.

    Each passes its own circuit breaker and is asked again after a wait where that can help; then the
    next one is asked. Once the cooldown of the preferred one is over, the next briefing goes to it
    again. One that waits and retries by itself, as models do, is left to it.

    Args:
        agents: a `loki.Agent` or a function each, the preferred one first.
        ways: how to ask; None: with breakers in memory. A `loki.Workspace` gives its own to agents
            that it is given as a list.
        name: shown in attempts; None: the names of all.
        reference: what names the agent in a project, so that the task can be gone on with.
        breaker: arguments of `loki.Breaker` for breakers in memory.

    Raises:
        UsageError: there is no agent, or two pass one breaker.

    Example:
        >>> from pathlib import Path
        >>> def claude(briefing):
        ...     raise AgentError("your credit is used up", retryable=False)
        >>> def codex(briefing):
        ...     return {"a.py": "x = 1"}
        >>> agent = FallbackAgent([claude, codex])
        >>> agent.propose(Briefing("Write a.py", "task-1", 1, Path("/project"))).agent
        'codex'
    """

    is_resilient = True

    def __init__(
        self,
        agents: Sequence[AnyAgent],
        ways: ChainOptions | None = None,
        name: str | None = None,
        reference: str | None = None,
        breaker: Mapping[str, Any] | None = None,
    ) -> None:
        breakers = [breaker_of(agent) for agent in agents]
        if not agents or len(set(breakers)) < len(breakers):
            raise UsageError(
                f"found agents behind {', '.join(breakers) or 'no breaker'}: expected one or more, each "
                "with a circuit breaker of its own"
            )
        self.agents = tuple(agents)
        self.name = name or ", ".join(map(name_of, agents))
        self.breaker = breakers[0]
        self.reference = reference
        self.ways = ways or ChainOptions(LocalBreakers(SystemClock(), **(breaker or {})))
        self._members: list[Endpoint] = [
            Endpoint(callable_of(agent), name_of(agent), "", _breaker(agent), "agent")
            for agent in agents
        ]
        self._last: AnyAgent | None = None
        can_reflect = any(callable(getattr(agent, "reflect", None)) for agent in agents)
        self.reflect = self._reflect if can_reflect else None

    def to_dict(self) -> dict[str, Any]:
        """What is kept of it with a task, JSON-able."""
        kept = {"name": self.name, "agents": [record_of(agent) for agent in self.agents]}
        return {**kept, "agent": self.reference} if self.reference else kept

    def propose(self, briefing: Briefing) -> Any:
        """The answer of the first that could be asked; tokens and cost are those of all calls.

        Raises:
            BreakerOpen: none can be asked before a time.
            AgentError: none answered, or the run was stopped.
        """
        run: ChainRun[Any] = ChainRun(self._members, briefing, self.ways, briefing.task_id)
        answer = run_through(run.ask())
        agent = self._last = self.agents[run.member]
        event = as_event(answer, name_of(agent))
        if not isinstance(event, Answered):
            return answer  # the loop says what is wrong with it
        return replace(event.proposal, tokens=run.usage.total or None, cost=run.cost)

    def ask(self, question: Question) -> Said:
        """What the first of them says that can be asked for text.

        Raises:
            BreakerOpen: none can be asked before a time.
            AgentError: none answered.
        """
        return ask(self.agents, question, self.ways)

    def _reflect(self, request: ReflectionRequest) -> Any:
        """Asks the one that answered last."""
        reflect = getattr(self._last, "reflect", None)
        if not callable(reflect):
            raise AgentError(f"{self.name} cannot be asked", retryable=False)
        return reflect(request)


def ask(agents: Sequence[object], question: Question, ways: ChainOptions) -> Said:
    """What the first of some agents says that can be asked; loki's waits, breakers and records.

    Args:
        agents: the preferred one first.
        question: what they are asked.
        ways: how.

    Raises:
        BreakerOpen: none can be asked before a time.
        AgentError: none answered, or none can be asked for text alone.

    Example:
        >>> from pathlib import Path
        >>> from loki.agents.command_agent import CommandAgent
        >>> agent = CommandAgent(["sh", "-c", "echo It was the clock."])
        >>> ways = ChainOptions(LocalBreakers(SystemClock()))
        >>> ask([agent], Question("Why?", "task-1", Path(".")), ways).text
        'It was the clock.\\n'
    """
    members: list[Endpoint] = [
        Endpoint(one.ask, one.name, "", _breaker(one), "agent")
        for one in agents
        if isinstance(one, Answering)
    ]
    if not members:
        raise AgentError("no agent here can be asked for text alone", retryable=False)
    run: ChainRun[Said] = ChainRun(members, question, ways, question.task_id)
    answer = run_through(run.ask())
    return replace(answer, tokens=run.usage.total or None, cost=run.cost)


def _breaker(agent: object) -> str | None:
    return None if is_resilient(agent) else breaker_of(agent)  # type: ignore[arg-type]

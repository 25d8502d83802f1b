"""How an agent is asked, and what its answer means: values in, events out."""

from __future__ import annotations

import inspect
import math
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeAlias, TypeGuard

from loki.action.agent_protocol import Agent, Briefing, Proposal, ReflectionRequest, Reviewer
from loki.action.changes.change import Change
from loki.action.loop.exception_analysis import is_outage, raise_site
from loki.action.loop.loop_events import AgentFailed, Answered, Event, Malformed, Reflected, Refused
from loki.base.error import AgentError, AllRefused, BreakerOpen, LLMError, UsageError
from loki.base.secret import mask_secrets
from loki.base.time import seconds
from loki.base.token_usage import dollars_said, tokens_said
from loki.decision.retry_after import LIMIT
from loki.memory.reflection import as_reflection
from loki.recognition.failure import Failure

AnyAgent: TypeAlias = Agent | Callable[[Briefing], Any]
"""An agent, or a plain function from briefing to change; either may be async."""


def run_coroutine(
    answer: Awaitable[Any], started: Callable[[Callable[[], None]], object] = lambda _: None
) -> Any:
    """Await in a thread of its own, so that it also works inside a running event loop.

    Args:
        answer: what to await.
        started: given what cancels it, from any thread.

    Raises:
        asyncio.CancelledError: it was cancelled.
    """
    import asyncio  # much to load for who has no async agent

    cancels: list[Callable[[], None]] = []
    is_cancelled = threading.Event()

    async def work() -> Any:
        loop, task = asyncio.get_running_loop(), asyncio.ensure_future(answer)

        def cancel() -> None:
            with suppress(RuntimeError):  # it has ended meanwhile
                loop.call_soon_threadsafe(task.cancel)

        cancels.append(cancel)
        if is_cancelled.is_set():  # before there was anything to cancel
            cancel()
        started(cancel)
        return await task

    with ThreadPoolExecutor(1, thread_name_prefix="loki-agent") as thread:
        future = thread.submit(asyncio.run, work())
        try:
            # Again and again: Ctrl-C right before a wait begins would be heard when it is over.
            while not wait([future], timeout=1.0).done:
                pass
            return future.result()
        except BaseException:  # Ctrl-C: what runs there hears nothing of it
            is_cancelled.set()
            for cancel in cancels:
                cancel()
            raise


async def awaited(answer: Awaitable[Any]) -> Any:
    """The answer, as a coroutine."""
    return await answer


def reflects(
    agent: AnyAgent, wait: Callable[[Awaitable[Any]], Any]
) -> Callable[[ReflectionRequest], Event] | None:
    """What asks an agent about a failed attempt; None where it cannot be asked."""
    call = getattr(agent, "reflect", None)
    if not callable(call):
        return None

    def reflect(request: ReflectionRequest) -> Event:
        import asyncio

        try:
            answer = call(request)
            answer = wait(answer) if inspect.isawaitable(answer) else answer
        except (Exception, asyncio.CancelledError) as error:
            return as_failure_of(error)
        took = Reflected(
            tokens=tokens_said(getattr(answer, "tokens", None)) or 0,
            cost=dollars_said(getattr(answer, "cost", None)) or 0.0,
        )
        try:
            return replace(took, reflection=as_reflection(answer), by=name_of(agent))
        except TypeError as error:
            return replace(took, error=str(error))

    return reflect


def callable_of(agent: AnyAgent) -> Callable[[Briefing], Any]:
    """What is called with a briefing."""
    propose = getattr(agent, "propose", None)
    return propose if callable(propose) else agent  # type: ignore[return-value]


def name_of(agent: AnyAgent | Reviewer) -> str:
    """An agent's name, a function's where it is one."""
    return str(getattr(agent, "name", None) or getattr(agent, "__name__", type(agent).__name__))


def breaker_of(agent: AnyAgent | Reviewer) -> str:
    """Name of the circuit breaker that an agent's calls pass.

    Example:
        >>> from loki.agents.scripted import ScriptedAgent
        >>> breaker_of(ScriptedAgent([], name="writer"))
        'agent/writer'
    """
    given = getattr(agent, "breaker", None)
    return given if isinstance(given, str) and given else f"agent/{name_of(agent)}"


def is_resilient(agent: object) -> bool:
    """Whether an agent, or a model, waits, asks again and passes circuit breakers by itself."""
    return getattr(agent, "is_resilient", False) is True


def record_of(agent: AnyAgent) -> dict[str, Any]:
    """What is kept of an agent with its task: what it says of itself, else its name."""
    to_dict = getattr(agent, "to_dict", None)
    return dict(to_dict()) if callable(to_dict) else {"name": name_of(agent)}


def as_event(answer: Any, name: str, description: str = "") -> Event:
    """What an agent answered, as an event; anything that is no proposal is `Malformed`."""
    if isinstance(answer, Proposal):
        return Answered(_told(replace(answer, agent=answer.agent or name)))
    if isinstance(answer, Change):
        return Answered(Proposal(answer, description, agent=name))
    if isinstance(answer, Mapping):
        try:
            return Answered(Proposal(Change.write(answer), description, agent=name))
        except (TypeError, ValueError, UsageError) as error:
            reason = f": {error}"
    else:
        reason = ""
    message = (
        f"the agent answered with {type(answer).__name__}{reason}; expected a Change, a Proposal "
        "or a mapping of paths to contents"
    )
    return Malformed(Failure.of(message, tool="loki", error_code="malformed-answer"))


def _told(proposal: Proposal) -> Proposal:
    """A proposal without figures that cannot be: what is kept of an attempt must be read again."""
    tokens, cost, confidence = proposal.tokens, proposal.cost, proposal.confidence
    return replace(
        proposal,
        tokens=tokens_said(tokens),
        cost=dollars_said(cost),
        confidence=confidence if _is_number(confidence) and 0 <= confidence <= 1 else None,
    )


def _refused(error: BreakerOpen) -> Event:
    """What a breaker of its own says; a failed attempt where calls went out before it opened."""
    refused = Refused(error.name, error.retry_after, error.last_error, error.between_probes)
    if not isinstance(error, AllRefused) or not error.calls:
        return refused
    failure = Failure.of(error.last_error or str(error), tool="loki", error_code="agent-failed")
    return AgentFailed(failure, refused=refused, gave_up=True, tokens=error.tokens, cost=error.cost)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and math.isfinite(value)


def as_failure_of(error: BaseException) -> Event:
    """What an agent raised, as an event."""
    if isinstance(error, BreakerOpen):
        return _refused(error)
    if isinstance(error, LLMError) and error.kind == "malformed" and not error.retryable:
        # The model did answer; that nothing can be made of it is its own failure, no outage.
        code, said = "malformed-answer", mask_secrets(error.output)[-2000:]
        failure = Failure.of(str(error), tool="loki", error_code=code, excerpt=said)
        nothing = Proposal(Change.nothing(), model=error.model or None)
        return Malformed(failure, _told(replace(nothing, tokens=error.tokens, cost=error.cost)))
    if isinstance(error, AgentError):
        said = mask_secrets(error.output)[-2000:]
        failure = Failure.of(str(error), tool="loki", error_code="agent-failed", excerpt=said)
        return AgentFailed(
            failure,
            error.retryable,
            _hint(error.retry_after),
            gave_up=error.gave_up,
            tokens=tokens_said(error.tokens) or 0,
            cost=dollars_said(error.cost) or 0.0,
        )
    kind, again, where = type(error).__name__, is_outage(error), ""
    if not again:
        found = raise_site(error)
        where = f" ({found})" if found else ""
    message = mask_secrets(f"the agent raised {kind}: {error}{where}")
    return AgentFailed(Failure.of(message, tool="loki", error_type=kind), again)


def _hint(retry_after: Any) -> float | None:
    """Seconds to wait, as far as an agent says something sensible."""
    try:
        return None if retry_after is None else min(seconds(retry_after), seconds(LIMIT))
    except (TypeError, ValueError):
        return None

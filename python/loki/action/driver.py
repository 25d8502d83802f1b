"""Performs what the loop asks for: the thin, impure half of the closed loop.

`Session` joins the pure machine with a `Performer` up to the next question for the agent; `drive`
and `adrive` put the questions to an agent. Neither driver calls the other. A question comes only
with leave of the agent's circuit breaker, and its answer tells the breaker how the call went.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from loki.action.agent import Agent, Briefing, Proposal
from loki.action.change import Change
from loki.action.event import (
    AgentFailed,
    Answered,
    Ask,
    Begin,
    Event,
    Interrupted,
    Malformed,
    Refused,
)
from loki.action.loop import step
from loki.action.performer import Performer
from loki.action.state import Phase, State
from loki.action.task import Outcome
from loki.action.waiting import left
from loki.base.error import AgentError, BreakerOpen
from loki.base.time import Clock, seconds
from loki.decision.policy import is_retryable
from loki.decision.retry_after import LIMIT
from loki.recognition.failure import Failure

if TYPE_CHECKING:
    from loki.decision.breaker_snapshot import BreakerSnapshot
    from loki.decision.shared_breaker import SharedBreaker, SharedPermit

_T = TypeVar("_T")

AnyAgent: TypeAlias = Agent | Callable[[Briefing], Any]
"""An agent, or a plain function from briefing to change; either may be async."""

_LATE = object()

OWN_BUGS = (
    TypeError,
    AttributeError,
    NameError,
    ImportError,
    SyntaxError,
    NotImplementedError,
    AssertionError,
)
"""Errors that asking again does not mend: the agent's own code is wrong."""


class Session:
    """One execution of a task, from question to question.

    Args:
        state: where to begin.
        performer: performs the effects.
        clock: tells the machine the time.

    Attributes:
        breaker: what calls of the agent pass; None: nothing.
    """

    def __init__(self, state: State, performer: Performer, clock: Clock) -> None:
        self.state = state
        self.breaker: SharedBreaker | None = None
        self._permit: SharedPermit | None = None
        self._performer = performer
        self._clock = clock
        self._out_of_time = False
        self._disarm: Callable[[], None] = lambda: None

    @property
    def is_under_way(self) -> bool:
        """Begun, and not ended."""
        return self.state.phase not in {Phase.NEW, Phase.DONE}

    def start(self) -> Ask | Outcome:
        """Run the checks; the first question, or the outcome where nothing is to be asked."""
        limit = self.state.setting.task.budget.seconds
        if limit is not None:
            self._disarm = self._clock.alarm(limit, self._time_is_up)
        return self.answer(Begin())

    def answer(self, event: Event) -> Ask | Outcome:
        """Go on with an answer up to the next question or the end.

        An interrupt on the way is taken as the answer to whatever was under way: the attempt is
        recorded and the outcome says so.
        """
        if isinstance(event, Answered):
            event = replace(event, shown=self._performer.shown_digest())
        if self._out_of_time and isinstance(event, AgentFailed):
            event = Interrupted(out_of_time=True)  # it was ended for it
        pending: Event | None = event
        while pending is not None:
            try:
                ask, pending = self._advance(self._report(pending))
            except KeyboardInterrupt:
                if not self.is_under_way:
                    raise
                self.cancel()
                ask, pending = None, Interrupted()
            if ask is not None:
                return ask
        self._disarm()
        assert self.state.outcome is not None
        return self.state.outcome

    def briefing(self, ask: Ask) -> Briefing:
        """What the agent is told."""
        return self._performer.briefing(ask)

    def cancel(self) -> None:
        """End whatever runs, from another thread; `answer` then records the attempt and returns."""
        self._performer.cancelled.set()

    @property
    def seconds_left(self) -> float | None:
        """Seconds of the time budget that are left, 0 or more; None: there is none."""
        remaining = left(self.state, self._clock.now())
        return None if remaining is None else max(0.0, remaining)

    def _time_is_up(self) -> None:
        self._out_of_time = True
        self.cancel()

    def _advance(self, event: Event) -> tuple[Ask | None, Event | None]:
        """One step: (a question for the agent or None, the next event or None)."""
        self.state, effects = step(self.state, event, self._clock.now())
        answer: Event | None = None
        for effect in effects:
            if isinstance(effect, Ask):
                refusal = self._admit()
                return (effect, None) if refusal is None else (None, refusal)
            answer = self._performer.perform(effect) or answer
        if self._performer.cancelled.is_set() and self.is_under_way:
            answer = Interrupted(out_of_time=self._out_of_time)
        return None, answer

    # --- the agent's circuit breaker --------------------------------------------------------------

    def _admit(self) -> Event | None:
        """Leave for a call; else what stands against it."""
        if self.breaker is None:
            return None
        try:
            self._permit = self.breaker.try_acquire()
            return None if self._permit is not None else _refused(self.breaker.snapshot())
        except KeyboardInterrupt:
            return Interrupted(asked=False)

    def _report(self, event: Event) -> Event:
        """Tell the breaker how the call went; the event, with what the breaker says then."""
        permit, self._permit = self._permit, None
        if permit is None or self.breaker is None:
            return event
        if isinstance(event, AgentFailed) and self._is_outage(event):
            permit.failure(event.failure.message)
            now = self.breaker.snapshot()
            return replace(event, refused=_refused(now)) if now.state == "OPEN" else event
        if isinstance(event, (AgentFailed, Interrupted, Refused)):
            permit.ignore()  # says nothing about the other side
        else:
            permit.success()
        return event

    def _is_outage(self, event: AgentFailed) -> bool:
        """Whether the agent's service failed; what nobody would ask again for is no outage."""
        patterns = self.state.setting.patterns.patterns
        return event.retryable and is_retryable(event.failure, patterns)


def _refused(now: BreakerSnapshot) -> Refused:
    between_probes = now.state != "OPEN" and not now.is_probing
    return Refused(now.name, now.retry_after, now.last_error, between_probes)


def drive(session: Session, agent: AnyAgent) -> Outcome:
    """The whole loop with an agent, until it ends.

    Args:
        session: the task.
        agent: whom to ask; an async agent is run in a thread of its own.
    """
    pending = session.start()
    while isinstance(pending, Ask):
        briefing = session.briefing(pending)
        try:
            event = _ask(agent, briefing)
        except KeyboardInterrupt:
            briefing.cancelled.set()
            event = Interrupted()
        pending = session.answer(event)
    return pending


async def adrive(session: Session, agent: AnyAgent) -> Outcome:
    """The same without blocking the event loop; cancelling it interrupts the run.

    Everything that blocks runs in one thread of its own; async agents are awaited where they are.
    A cancellation is passed on once the attempt is recorded and nothing of it runs any more.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="loki") as thread:
        pending = await _in(thread, session, session.start)
        while isinstance(pending, Ask):
            briefing = session.briefing(pending)
            try:
                event = await _ask_async(thread, session, agent, briefing)
            except asyncio.CancelledError:
                session.cancel()
                await _in(thread, session, session.answer, Interrupted())
                raise
            pending = await _in(thread, session, session.answer, event)
        return pending


async def _in(
    thread: ThreadPoolExecutor, session: Session, work: Callable[..., _T], *args: Any
) -> _T:
    """Blocking work in the thread; cancelled, it is ended and waited for."""
    future = asyncio.get_running_loop().run_in_executor(thread, work, *args)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        session.cancel()
        await asyncio.wait([future])
        raise


async def _ask_async(
    thread: ThreadPoolExecutor, session: Session, agent: AnyAgent, briefing: Briefing
) -> Event:
    call = _callable(agent)
    try:
        if inspect.iscoroutinefunction(call):
            answer = await _within(call(briefing), session.seconds_left)
            if answer is _LATE:
                return Interrupted(out_of_time=True)
            return as_event(answer, name_of(agent))
        answer = await _in(thread, session, call, briefing)
        answer = await answer if inspect.isawaitable(answer) else answer
        return as_event(answer, name_of(agent))
    except Exception as error:
        return _as_failure(error)


async def _within(work: Awaitable[Any], seconds: float | None) -> Any:
    """What is awaited, or `_LATE` where it takes longer; it has ended when this returns."""
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task})
        raise
    if done:
        return task.result()
    task.cancel()
    await asyncio.wait({task})
    return _LATE


def _ask(agent: AnyAgent, briefing: Briefing) -> Event:
    try:
        answer = _callable(agent)(briefing)
        if inspect.isawaitable(answer):
            answer = _run_coroutine(answer)
        return as_event(answer, name_of(agent))
    except Exception as error:
        return _as_failure(error)


def _run_coroutine(answer: Awaitable[Any]) -> Any:
    """Await in a thread of its own, so that it also works inside a running event loop."""

    async def wait() -> Any:
        return await answer

    coroutine: Coroutine[Any, Any, Any] = wait()
    with ThreadPoolExecutor(1, thread_name_prefix="loki-agent") as thread:
        return thread.submit(asyncio.run, coroutine).result()


def _callable(agent: AnyAgent) -> Callable[[Briefing], Any]:
    propose = getattr(agent, "propose", None)
    return propose if callable(propose) else agent  # type: ignore[return-value]


def name_of(agent: AnyAgent) -> str:
    """An agent's name, a function's where it is one."""
    return str(getattr(agent, "name", None) or getattr(agent, "__name__", type(agent).__name__))


def breaker_of(agent: AnyAgent) -> str:
    """Name of the circuit breaker that an agent's calls pass.

    Example:
        >>> from loki.agents.scripted import ScriptedAgent
        >>> breaker_of(ScriptedAgent([], name="writer"))
        'agent/writer'
    """
    given = getattr(agent, "breaker", None)
    return given if isinstance(given, str) and given else f"agent/{name_of(agent)}"


def record_of(agent: AnyAgent) -> dict[str, Any]:
    """What is kept of an agent with its task: what it says of itself, else its name."""
    to_dict = getattr(agent, "to_dict", None)
    return dict(to_dict()) if callable(to_dict) else {"name": name_of(agent)}


def as_event(answer: Any, name: str, description: str = "") -> Event:
    """What an agent answered, as an event; anything that is no proposal is `Malformed`."""
    if isinstance(answer, Proposal):
        return Answered(replace(answer, agent=answer.agent or name))
    if isinstance(answer, Change):
        return Answered(Proposal(answer, description, agent=name))
    if isinstance(answer, Mapping):
        try:
            return Answered(Proposal(Change.write(answer), description, agent=name))
        except (TypeError, ValueError) as error:
            reason = f": {error}"
    else:
        reason = ""
    message = (
        f"the agent answered with {type(answer).__name__}{reason}; expected a Change, a Proposal "
        "or a mapping of paths to contents"
    )
    return Malformed(Failure.of(message, tool="loki", error_code="malformed-answer"))


def _as_failure(error: Exception) -> Event:
    if isinstance(error, BreakerOpen):
        return Refused(error.name, error.retry_after, error.last_error)  # a breaker of its own
    if isinstance(error, AgentError):
        failure = Failure.of(
            str(error), tool="loki", error_code="agent-failed", excerpt=error.output[-2000:]
        )
        return AgentFailed(failure, error.retryable, _hint(error.retry_after))
    message = f"the agent raised {type(error).__name__}: {error}"
    failure = Failure.of(message, tool="loki", error_type=type(error).__name__)
    return AgentFailed(failure, not isinstance(error, OWN_BUGS))


def _hint(retry_after: Any) -> float | None:
    """Seconds to wait, as far as an agent says something sensible."""
    try:
        return None if retry_after is None else min(seconds(retry_after), seconds(LIMIT))
    except (TypeError, ValueError):
        return None

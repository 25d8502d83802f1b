"""Performs what the loop asks for: the thin, impure half of the closed loop.

`resumption_status` says where a task stands: records in, standing out. What stays through an
intervention: numbering, history, signs, files, and the tests that were seen failing. What begins anew:
the retry budget, and which strategies count as tried, because a person's help changes what they start
from.

`Session` joins the pure machine with a `Performer` up to the next question for the agent; `drive` and
`adrive` put the questions to an agent: one driver, in the caller's thread or beside the caller's event loop.
A question comes only with leave of the agent's circuit breaker, and its answer tells the breaker how the
call went.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from loki.action.agent_protocol import Briefing, ReflectionRequest
from loki.action.changes.change import Merged
from loki.action.loop.agent_call import (
    AnyAgent,
    as_event,
    as_failure_of,
    awaited,
    callable_of,
    name_of,
    reflects,
    run_coroutine,
)
from loki.action.loop.loop import left, step
from loki.action.loop.loop_events import (
    AgentFailed,
    Answered,
    Ask,
    Edited,
    Event,
    Interrupted,
    Reflect,
    Reflected,
    Refused,
)
from loki.action.loop.loop_state import (
    LoopSettings,
    Phase,
    ProgressMeasure,
    State,
    of_record,
    usage,
)
from loki.action.loop.performer import Performer
from loki.action.loop.resumption import ENDED, awaits_approval
from loki.base.machine import Begin
from loki.base.time import Clock
from loki.decision.loop_policy import FailureHistory, PastFailure, is_retryable
from loki.memory.attempt import Attempt
from loki.memory.task_record import Intervention, Outcome, TaskRecord, last_attempt_before

if TYPE_CHECKING:
    from loki.decision.breaker import BreakerSnapshot
    from loki.decision.breakers import SharedBreaker, SharedPermit


# --- Where a task stands before it is worked on -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ResumptionStatus:
    """Where a task stands.

    Attributes:
        execution: the execution that goes on or begins, 1 or more.
        last_number: number of the last attempt in the task's life.
        made: attempts made in this execution since a person last stepped in.
        made_before: those before that.
        tokens, cost: what those since then took, as far as agents told.
        past: failures of this execution that count for the rules, oldest first.
        goes_on: the execution goes on: what it changed is part of it.
        seen_failing: (check, test) of tests that were seen failing.
        failing_files: files of tests that checks failed in.
        interventions: of the task's life, oldest first.
        stepped_in: a person stepped in just now.
        fewest: tests that were not mended when fewest were, since then; None: nobody counted.
    """

    execution: int = 1
    last_number: int = 0
    made: int = 0
    made_before: int = 0
    tokens: int = 0
    cost: float = 0.0
    past: tuple[PastFailure, ...] = ()
    goes_on: bool = False
    seen_failing: frozenset[tuple[str, str]] = frozenset()
    failing_files: frozenset[str] = frozenset()
    interventions: tuple[Intervention, ...] = ()
    stepped_in: bool = False
    fewest: int | None = None

    def state(
        self, setting: LoopSettings, files: tuple[str, ...], *, changed: bool = False
    ) -> State:
        """Where the machine begins.

        Args:
            setting: what stays the same.
            files: paths changed since the task began.
            changed: somebody changed the project since the task stopped.
        """
        return State(
            setting,
            last_number=self.last_number,
            made=self.made,
            made_before=self.made_before,
            tokens=self.tokens,
            cost=self.cost,
            past=FailureHistory.of(self.past),
            worked=(self.goes_on and bool(files)) or (self.stepped_in and changed),
            helped=self.stepped_in,
            fewest=None if self.fewest is None else ProgressMeasure(self.fewest),
            files=files,
            seen_failing=self.seen_failing,
        )


def resumption_status(
    record: TaskRecord,
    attempts: Sequence[Attempt],
    intervention: Intervention | None = None,
) -> ResumptionStatus:
    """Where a task stands, from what is kept of it.

    Args:
        record: what is kept of it.
        attempts: of the task's life, oldest first.
        intervention: a person steps in with this; its execution, attempt and status are filled in.

    Example:
        >>> resumption_status(TaskRecord(execution=0), []).execution
        1
        >>> resumption_status(TaskRecord(outcome=Outcome("t", "escalated", 1)), []).execution
        2
    """
    status = record.status
    # What waits for an approval goes on with it: nobody has to work on it again.
    stopped = status in ENDED and not awaits_approval(record)
    goes_on = bool(record) and (not stopped or intervention is not None)
    execution = record.execution + (0 if goes_on else 1)
    last = attempts[-1].attempt if attempts else 0
    interventions = record.interventions
    if intervention is not None:
        now = Intervention(
            intervention.at, intervention.kind, intervention.context, execution, last, status
        )
        interventions = (*interventions, now)
    since = last_attempt_before(interventions, execution)
    mine = [attempt for attempt in attempts if attempt.execution == execution]
    counted = [attempt for attempt in mine if attempt.attempt > since]
    left_over = [of_record(attempt.progress)[1] for attempt in counted]
    return ResumptionStatus(
        execution,
        last,
        made=len(counted),
        made_before=len(mine) - len(counted),
        tokens=sum(attempt.tokens or 0 for attempt in counted),
        cost=sum(attempt.cost or 0.0 for attempt in counted),
        past=_failures(counted),
        goes_on=goes_on,
        seen_failing=record.seen_failing,
        failing_files=record.failing_files,
        interventions=interventions,
        stepped_in=intervention is not None,
        fewest=min((count for count in left_over if count is not None), default=None),
    )


def _failures(attempts: Sequence[Attempt]) -> tuple[PastFailure, ...]:
    return tuple(
        PastFailure(
            failure, attempt.strategy_used, attempt.infrastructure, of_record(attempt.progress)[0]
        )
        for attempt in attempts
        if attempt.result == "failed" and (failure := attempt.recognized()) is not None
    )


# --- One execution of a task --------------------------------------------------------------------------

_T = TypeVar("_T")


class Session:
    """One execution of a task, from question to question.

    Args:
        state: where to begin.
        performer: performs the effects.
        clock: tells the machine the time.

    Attributes:
        breaker: what calls of the agent pass; None: nothing.
        reflect: asks the agent about a failed attempt; None: the facts speak.
        stop_asking: ends a question to an agent that is under way, from another thread.
    """

    def __init__(self, state: State, performer: Performer, clock: Clock) -> None:
        self.state = state
        self.breaker: SharedBreaker | None = None
        self._permit: SharedPermit | None = None
        self.reflect: Callable[[ReflectionRequest], Event] | None = None
        self.stop_asking: Callable[[], object] = lambda: None
        self.performer = performer
        performer.judge.can_stop = self.can_stop
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
        if isinstance(event, Edited):
            self.performer.drafts.drop()  # who edits the project has seen it as it is
        if isinstance(event, Answered):
            proposal = self.performer.taken(event.proposal)
            event = Answered(proposal, self.performer.shown_digest())
            event = self.performer.reviewing.answered(event)
        if self.is_cancelled and isinstance(event, (AgentFailed, Interrupted)):
            # It was ended for it.
            was_asked = isinstance(event, AgentFailed) or event.asked
            event = Interrupted(was_asked, self._out_of_time)
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
        spent = usage(self.state, self._clock.now())
        return self.performer.briefing(ask, self.state.setting.task.budget.rest(spent))

    def cancel(self) -> None:
        """End whatever runs, from another thread; `answer` then records the attempt and returns."""
        self.performer.cancelled.set()
        self.stop_asking()

    def can_stop(self, stop: Callable[[], object]) -> None:
        """Something is under way that can be ended by this; it is, where that was asked for before."""
        self.stop_asking = stop
        if self.is_cancelled:
            stop()

    @property
    def is_cancelled(self) -> bool:
        """Whether whatever runs is to end."""
        return self.performer.cancelled.is_set()

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
        if isinstance(event, Interrupted):
            event = replace(event, files=self.performer.executor.changed_files())
        self.state, effects = step(self.state, event, self._clock.now())
        answer: Event | None = None
        for effect in effects:
            if isinstance(effect, Ask):
                refusal = self.performer.held(effect) or self._admit()
                return (effect, None) if refusal is None else (None, refusal)
            if isinstance(effect, Reflect):
                answer = self._reflect(effect)
            else:
                answer = self.performer.perform(effect) or answer
        if self.is_cancelled and self.is_under_way and not isinstance(answer, Merged):
            answer = Interrupted(out_of_time=self._out_of_time)
        return None, answer

    def _reflect(self, effect: Reflect) -> Event:
        """Ask the agent about a failed attempt; where it cannot answer, the facts speak."""
        remaining = self.seconds_left
        is_late = remaining is not None and remaining <= 0
        if self.reflect is None or is_late or self.is_cancelled:
            return Reflected()
        if self.breaker is not None:
            # A probe is for the work itself.
            if self.breaker.snapshot().state != "CLOSED":
                return Reflected()
            self._permit = self.breaker.try_acquire()
        event = self.reflect(self.performer.reflection_request(effect))
        if self.performer.cancelled.is_set():  # meanwhile
            event = Interrupted()
        self._report(event)
        if isinstance(event, AgentFailed):
            said = event.failure.said
            return Reflected(error=said, tokens=event.tokens, cost=event.cost)
        return event if isinstance(event, Reflected) else Reflected()

    # --- The agent's circuit breaker --------------------------------------------------------------

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
            permit.failure(event.failure.said)
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


Awaiter: TypeAlias = Callable[[Awaitable[Any], Callable[[Callable[[], None]], object]], Any]
"""Awaits for who blocks, as `loki.action.loop.agent_call.run_coroutine` does."""


def drive(session: Session, agent: AnyAgent, wait: Awaiter = run_coroutine) -> Outcome:
    """The whole loop with an agent, until it ends.

    Args:
        session: the task.
        agent: whom to ask.
        wait: awaits what an async agent answers; where nothing is said, in a thread of its own.
    """

    def stoppable(answer: Awaitable[Any]) -> Any:
        return wait(answer, session.can_stop)

    session.reflect = reflects(agent, stoppable)
    pending = session.start()
    while isinstance(pending, Ask):
        try:
            event = _ask(agent, session.briefing(pending), stoppable)
        except (KeyboardInterrupt, asyncio.CancelledError):
            session.cancel()
            event = Interrupted()
        pending = session.answer(event)
    return pending


async def adrive(session: Session, agent: AnyAgent) -> Outcome:
    """The same without blocking the event loop; cancelling it interrupts the run.

    Everything that blocks runs in one thread of its own; async agents are awaited where they are.
    A cancellation is passed on once the attempt is recorded and nothing of it runs any more.
    """
    return await in_thread(session.cancel, drive, session, agent, wait_here())


def wait_here() -> Awaiter:
    """What awaits in the running event loop, in its caller's context, for a thread beside it."""
    loop, context = asyncio.get_running_loop(), copy_context()

    def wait(answer: Awaitable[Any], started: Callable[[Callable[[], None]], object]) -> Any:
        ended: Future[asyncio.Task[Any]] = Future()

        def begin() -> None:
            task = asyncio.ensure_future(awaited(answer))
            task.add_done_callback(ended.set_result)

            def cancel() -> None:
                with suppress(RuntimeError):  # the loop has ended meanwhile
                    loop.call_soon_threadsafe(task.cancel)

            started(cancel)

        loop.call_soon_threadsafe(begin, context=context)
        return ended.result().result()

    return wait


async def in_thread(cancel: Callable[[], object], work: Callable[..., _T], *args: Any) -> _T:
    """Blocking work in a thread of its own; cancelled, it is ended and waited for.

    Args:
        cancel: ends it.
        work, args: what is called.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="loki") as thread:
        future = asyncio.get_running_loop().run_in_executor(thread, work, *args)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            cancel()
            while not future.done():  # a thread that needs the loop must not block it
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([future])
            future.exception()  # what it raised for that is of no interest, and not to be logged
            raise


def _ask(agent: AnyAgent, briefing: Briefing, wait: Callable[[Awaitable[Any]], Any]) -> Event:
    try:
        answer = callable_of(agent)(briefing)
        if inspect.isawaitable(answer):
            answer = wait(answer)
        return as_event(answer, name_of(agent))
    except Exception as error:
        return as_failure_of(error)

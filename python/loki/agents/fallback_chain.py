"""Asks the members of a fallback chain, models or whole agents, until one of them answers.

Each is asked through its circuit breaker, and again after a wait as long as that can help; then the next
one is. Where none is left, all are waited for, within the caller's patience, until one may be asked again;
else less is asked for, of those whom that may help. In a table: ``docs/design/llm-resilience.md``.

Every request begins with the first: while its breaker is open it is refused without a call, and the
first request after the cooldown is its probe. So work returns to it by itself.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cache
from typing import Any, Generic, Literal, Protocol, TypeVar

from loki.action.agent_protocol import WORKS
from loki.action.loop.agent_call import as_failure_of
from loki.action.loop.loop_events import AgentFailed
from loki.agents.backend import BLOCKING, Backend
from loki.base.error import AgentError, AllRefused, BreakerOpen, ErrorKind, LLMError
from loki.base.log import fields, quoted, write
from loki.base.time import Clock, SystemClock, isoformat
from loki.base.tokens import TokenUsage, dollars_said, tokens_said
from loki.decision import recovery
from loki.decision.backoff import Backoff
from loki.decision.breaker import Breaker, BreakerSnapshot
from loki.decision.budget import UNLIMITED, Budget, Meter
from loki.decision.limiter import Limiter, Slot
from loki.decision.loop_policy import is_retryable
from loki.decision.price import Prices
from loki.decision.retry import RetryBudget
from loki.memory.call_log import Call, CallOutcome, Calls
from loki.recognition.pattern import Pattern, PatternSet

# --- Who can be asked, and how ------------------------------------------------------------------------

A = TypeVar("A")

DEFAULT_BACKOFF = Backoff("5s", cap="2m", jitter=0)
"""From the opening of a model's breaker to its probe while others answer: 5 s, 10 s, 20 s, … Chosen."""

RETRIES = 5
"""Retries of one request to one model, as the specification has it."""

PATIENCE = 300.0
"""Seconds: a service that asks for a longer wait is not waited for, but left until then. It is the
longest wait between retries that the specification allows, and a breaker's cooldown."""

LESS_HELPS = frozenset({"too_long", "timeout", "malformed"})
"""Kinds of error that a smaller request may not meet: it fits in, is done in time, is not cut off. A
service that is overloaded or limits the rate is not asked at once for less: it said when to come."""

WAIT = 300.0
"""Seconds that a call waits until a model may be asked again, where nobody says. Chosen: as long as
the longest wait between two retries."""


class Permit(Protocol):
    """Leave for one call: of `loki.Breaker` or `loki.Breakers`."""

    def success(self) -> None:
        """The call went well."""

    def failure(self, error: object = None, retry_after: Any = None) -> None:
        """The call failed; whoever was asked wants to be left alone for so long."""

    def ignore(self) -> None:
        """Neither."""


class NoBreaker:
    """Leave from nobody: who is asked passes a breaker of its own."""

    def success(self) -> None:
        """Nothing to tell."""

    def failure(self, error: object = None, retry_after: Any = None) -> None:
        """Nothing to tell."""

    def ignore(self) -> None:
        """Nothing to tell."""


class OnTextErrors:
    """Tells what a caller's own ``on_text`` raised from what a model did."""

    def __init__(self) -> None:
        self._errors: list[Exception] = []

    def on(self, question: Any) -> Any:
        """A question whose ``on_text`` is listened to, where it has one."""
        on_text = getattr(question, "on_text", None)
        if on_text is None:
            return question

        def tell(piece: str) -> None:
            try:
                on_text(piece)
            except Exception as error:
                self._errors.append(error)
                raise

        return replace(question, on_text=tell)

    def raised(self, error: BaseException) -> bool:
        """Whether an error is the caller's own."""
        return any(error is one for one in self._errors)


class Circuit(Protocol):
    """What a chain needs of a breaker."""

    def try_acquire(self) -> Permit | None:
        """Leave for one call; None: refused."""

    def snapshot(self) -> BreakerSnapshot:
        """The breaker as it is now."""


class Circuits(Protocol):
    """Breakers by name: `loki.Breakers`, or what is like it."""

    def __getitem__(self, name: str, /) -> Any:
        """The breaker of that name."""


@dataclass(frozen=True, slots=True)
class CallUsage:
    """What an answer, or a failed call, says of itself."""

    usage: TokenUsage = field(default_factory=TokenUsage)
    cost: float | None = None
    model: str = ""
    request_id: str = ""


@dataclass(frozen=True)
class Endpoint:
    """Someone who can be asked.

    Attributes:
        call: asks; may be async. acall: the same, always async; None: there is only one.
        provider, model: for records.
        breaker: name of the circuit breaker that calls pass; None: it passes its own, and keeps its own
            records.
        kind: ``llm`` or ``agent``.
        asks_again: who passes breakers of its own asks again by itself, too.
    """

    call: Callable[[Any], Any]
    provider: str
    model: str
    breaker: str | None
    kind: Literal["llm", "agent"] = "llm"
    acall: Callable[[Any], Any] | None = None
    asks_again: bool = True

    @property
    def name(self) -> str:
        """What people call it."""
        return f"{self.provider}/{self.model}" if self.model else self.provider


@dataclass
class ChainOptions:
    """How a chain asks; shared by all questions that go through it.

    Attributes:
        breakers: by name.
        clock: where time comes from.
        backoff: waits between retries; retries: of one question to one member, at most.
        prices: what calls cost; calls: where their records go.
        meter: counts all of them against a budget of its own; None: there is none.
        retry_budgets: by breaker, for all who ask there; made where there is none; so are limiters.
        parallel: calls at a time behind one breaker; None: as many as like.
        wait: seconds that a call of a model waits, all pauses together, where none may be asked yet.
    """

    breakers: Circuits
    clock: Clock = field(default_factory=SystemClock)
    backoff: Backoff = field(default_factory=lambda: Backoff("5s", cap="5m"))
    retries: int = RETRIES
    prices: Prices = field(default_factory=Prices)
    calls: Calls = field(default_factory=Calls)
    meter: Meter | None = None
    retry_budgets: dict[str, RetryBudget] = field(default_factory=dict)
    parallel: int | None = None
    wait: float = WAIT
    limiters: dict[str, Limiter] = field(default_factory=dict)
    _left: dict[str, tuple[float, BaseException]] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def retry_budget(self, breaker: str) -> RetryBudget:
        """What all who ask there may retry together."""
        with self._lock:
            if breaker not in self.retry_budgets:
                self.retry_budgets[breaker] = RetryBudget(clock=self.clock)
            return self.retry_budgets[breaker]

    def failed(self, breaker: str) -> None:
        """A call failed: capacity that grows again after an outage begins anew."""
        if breaker in self.limiters:
            self.limiters[breaker].report(recovery.Failed(breaker))

    def postpone(self, breaker: str, seconds: float, error: BaseException) -> None:
        """A service asked for a wait so long that nobody waits: it is left alone until then."""
        with self._lock:
            self._left[breaker] = self.clock.monotonic() + seconds, error

    def postponed(self, breaker: str) -> tuple[float, BaseException] | None:
        """Seconds until a service that was left is asked again, and what it said; None: now."""
        with self._lock:
            until, error = self._left.get(breaker, (0.0, None))
            seconds = until - self.clock.monotonic()
            if error is not None and seconds > 0:
                return seconds, error
            self._left.pop(breaker, None)
            return None

    def relaxed_wait(self, breaker: Circuit, others: Sequence[Endpoint]) -> float | None:
        """Seconds until one that was down is tried again while others answer; None: now.

        The longer it has been down, the longer: who has an answer is in no hurry for another's.
        """
        if not others:
            return None
        now = breaker.snapshot()
        if now.state != "OPEN" or now.retry_after != 0 or now.last_state_change is None:
            return None
        names = (one.breaker for one in others)
        if not any(name and self.breakers[name].snapshot().state == "CLOSED" for name in names):
            return None
        seen = (self.clock.now() - now.last_state_change).total_seconds()
        left = DEFAULT_BACKOFF.delay(now.trips, offset=1) - seen
        return left if left > 0 else None

    def slot(self, member: Endpoint, cancelled: threading.Event) -> Slot | None:
        """A place among those who may call at a time; None: as many as like may.

        Args:
            member: who is called.
            cancelled: ends the wait for a place, too.
        """
        name = member.breaker
        if self.parallel is None or name is None:
            return None
        with self._lock:
            if name not in self.limiters:
                limiter = self.limiters[name] = Limiter(self.parallel, clock=self.clock)
                limiter.watch_one(self.breakers[name])
        return self.limiters[name].slot(urgent=True, circuit=name, cancelled=cancelled)


class LocalBreakers:
    """Circuit breakers by name, in memory.

    Args:
        clock: where time comes from.
        settings: arguments of `loki.Breaker` for all of them.
    """

    def __init__(self, clock: Clock, **settings: Any) -> None:
        self._clock, self._settings = clock, settings
        Breaker(**settings)  # refused here, not at the first call
        self._lock = threading.Lock()
        self._breakers: dict[str, Breaker] = {}

    def __getitem__(self, name: str) -> Breaker:
        """The breaker of that name."""
        with self._lock:
            if name not in self._breakers:
                self._breakers[name] = Breaker(name=name, clock=self._clock, **self._settings)
            return self._breakers[name]


# --- A member that is being asked, and what its errors tell -------------------------------------------


@dataclass
class CallRecord:
    """A member that is being asked, until the chain goes on.

    Attributes:
        attempts: calls that went out; failures: those without an answer.
        retry: seconds until it is asked again; None: the next one is.
    """

    member: Endpoint
    index: int
    at: str
    started: float
    attempts: int = 0
    failures: int = 0
    retry: float | None = None
    took: CallUsage = field(default_factory=CallUsage)
    is_priced: bool = True
    error: BaseException | None = None
    outcome: CallOutcome | None = None


def error_text(error: BaseException) -> str:
    """What an error says, for people."""
    return str(error) if isinstance(error, AgentError) else f"{type(error).__name__}: {error}"


def usage_of(said: object) -> CallUsage:
    """What a call took, as its answer says it, or the error that came in place of one."""
    told = getattr(said, "usage", None)
    # An agent tells no more than a sum.
    counts = astuple(told) if isinstance(told, TokenUsage) else (getattr(said, "tokens", None),)
    usage = TokenUsage(*(tokens_said(count) or 0 for count in counts))
    names = (getattr(said, name, None) for name in ("model", "request_id"))
    model, request_id = (name if isinstance(name, str) else "" for name in names)
    return CallUsage(usage, getattr(said, "cost", None), model, request_id)


# --- A question on its way through the chain ----------------------------------------------------------

ERROR_LENGTH = 500
"""Characters that are kept of an error. Chosen, not measured."""

SPREAD = 0.25
"""Share of a pause by which those who wait come back one after another. Chosen, not measured."""


def spread(seconds: float) -> float:
    """A little longer, by another amount for each who waits: not all come at once."""
    return seconds + random.uniform(0.01, 0.01 + SPREAD * min(seconds, 1.0))  # noqa: S311


class ChainRun(Generic[A]):
    """One question on its way through a chain.

    Args:
        members: whom to ask, the preferred one first.
        question: what: a `loki.Request` or a `loki.Briefing`.
        ways: how.
        task: id of the task that it is for, or "".
        wait: seconds to wait, all pauses together, where nobody may be asked before a time.
        backend: how it waits.

    Attributes:
        member: who was asked last, from 0.
        work: how much of the work was asked for, one of `WORKS`.
        usage: tokens of all calls.
    """

    def __init__(
        self,
        members: Sequence[Endpoint],
        question: Any,
        ways: ChainOptions,
        task: str = "",
        wait: float = 0.0,
        backend: Backend = BLOCKING,
    ) -> None:
        self._ears = OnTextErrors()
        self.members, self.ways, self.task = members, ways, task
        self._question = self._ears.on(question)
        self._backend = backend
        own: int | None = getattr(question, "retries", None)
        self._retries = ways.retries if own is None else min(own, ways.retries)
        self.member, self.work = 0, WORKS[0]
        self.usage, self._cost, self._calls = TokenUsage(), 0.0, 0
        self._is_priced = False
        left: Budget = getattr(question, "left", UNLIMITED)
        self._meters = [Meter(left, ways.clock), *([ways.meter] if ways.meter else [])]
        # Of members, as these: seconds until they may be asked again, None where nobody knows; whether
        # asking again may help those that failed; and what they, and their breakers, said last.
        self._refused: dict[int, float | None] = {}
        self._failed: dict[int, bool] = {}
        self._errors: dict[int, BaseException] = {}
        self._refusals: dict[int, BreakerSnapshot] = {}
        own_wait: float | None = getattr(question, "wait", None)
        wait = wait if own_wait is None else min(wait, own_wait)
        # What is not worth asking again is not worth a wait either.
        self._until = ways.clock.monotonic() + (0.0 if own == 0 else wait)
        self._refused_before: set[int] = set()
        for meter in self._meters:
            meter.begin()

    async def ask(self) -> A:
        """The first answer.

        Raises:
            BreakerOpen: nobody can be asked before a time.
            AgentError: nobody answered, the budget is spent, or the run was stopped.
        """
        while True:
            for index in range(len(self.members)):
                if (found := await self._visit(index)) is not None:
                    return found[0]
            seconds = min((s for s in self._refused.values() if s is not None), default=None)
            if seconds is None or seconds >= self._patience():
                break
            names = ", ".join(self.members[index].name for index in self._refused)
            self._say(f"waiting {seconds:.1f} s until one of {names} may be asked again")
            await self._sleep(spread(seconds))
            self._refused.clear()
            self._failed.clear()
        for work in WORKS[1:]:
            able = self._able()
            if not able or not self._reduce(work):
                break
            for index in able:
                if (found := await self._visit(index)) is not None:
                    return found[0]
        is_waiting = any(seconds is not None for seconds in self._refused.values())
        # Nobody but a person closes a breaker that names no time.
        raise self._refusal() if is_waiting or not self._failed else self._failure()

    def _patience(self) -> float:
        """Seconds that may still be waited, 0 or more: the caller's, and no more than a budget has."""
        left = [meter.left for meter in self._meters if meter.left is not None]
        return max(0.0, min([self._until - self.ways.clock.monotonic(), *left]))

    def _able(self) -> list[int]:
        """Members that less work may do for: what they failed with says so, and they can be asked."""
        return [
            index
            for index in sorted(self._failed)
            if getattr(self._errors[index], "kind", "") in LESS_HELPS and index not in self._refused
        ]

    def _reduce(self, work: str) -> bool:
        """Ask for less from here on, where there is less."""
        make = getattr(self._question, "simpler", None)
        if make is None:
            return False
        self._question, self.work = self._ears.on(make()), work
        self._say(f"work={self.work} reason={quoted('nobody answered')}")
        return True

    # --- One member -------------------------------------------------------------------------------

    async def _visit(self, index: int) -> tuple[A] | None:
        """What a member answers, be it a None, asked again while that may help; None: nothing."""
        clock, self.member = self.ways.clock, index
        member = self.members[index]
        visit = CallRecord(member, index, isoformat(clock.now()), clock.monotonic())
        try:
            while True:
                if (found := await self._attempt(visit)) is not None:
                    return found
                if visit.retry is None or not self._may_retry(visit):
                    return None
                await self._sleep(visit.retry)
        finally:
            await self._backend.run(self._close, visit)

    def _may_retry(self, visit: CallRecord) -> bool:
        """Whether it is asked again, which is told; all who ask there may have done so too often."""
        member = visit.member
        if member.breaker and not self.ways.retry_budget(member.breaker).try_withdraw():
            return False
        said = quoted(error_text(self._errors[visit.index])[:ERROR_LENGTH])
        again = f"{member.name} is asked again (retry {visit.failures} of {self._retries})"
        self._say(f"waiting {visit.retry:.1f} s, then {again} error={said}")
        return True

    async def _sleep(self, seconds: float) -> None:
        await self._backend.sleep(self.ways.clock, seconds, self._question.cancelled)
        self._stop_if_cancelled()

    async def _attempt(self, visit: CallRecord) -> tuple[A] | None:
        """One call, where the member's breaker gives leave."""
        run, visit.retry = self._backend.run, None
        permit = await run(self._admit, visit)
        slot = self.ways.slot(visit.member, self._question.cancelled)
        if permit is None:
            return None
        if slot is None:
            return await self._call(visit, permit)
        is_probe = getattr(permit, "is_probe", False)
        if not is_probe:
            permit.ignore()  # the wait for a slot may be long, and the breaker another one after it
        async with self._backend.hold(slot):
            try:
                self._stop_if_over()
            except LLMError:
                if is_probe:
                    await run(permit.ignore)
                raise
            leave = permit if is_probe else await run(self._admit, visit)
            return None if leave is None else await self._call(visit, leave)

    def _stop_if_cancelled(self) -> None:
        if self._question.cancelled.is_set():
            raise self._error("the run was stopped", "cancelled")

    def _stop_if_over(self) -> None:
        self._stop_if_cancelled()
        spent = next((why for meter in self._meters if (why := meter.spent())), "")
        if spent:
            raise self._error(spent, "budget")

    def _admit(self, visit: CallRecord) -> Permit | None:
        """Leave for a call; None: its breaker gives none."""
        self._stop_if_over()
        member, index = visit.member, visit.index
        if member.breaker is None:
            return NoBreaker()
        if (left := self.ways.postponed(member.breaker)) is not None:
            seconds, self._errors[index] = left
            self._refuse(visit, seconds)
            return None
        breaker: Circuit = self.ways.breakers[member.breaker]
        if (later := self.ways.relaxed_wait(breaker, self.members[index + 1 :])) is not None:
            self._refuse(visit, later)
            return None
        permit = breaker.try_acquire()
        if permit is None:
            now = self._refusals[index] = breaker.snapshot()
            self._refuse(visit, now.retry_after)
        return permit

    def _refuse(self, visit: CallRecord, seconds: float | None) -> None:
        self._refused[visit.index] = seconds
        visit.outcome = visit.outcome or "refused"

    async def _call(self, visit: CallRecord, permit: Permit) -> tuple[A] | None:
        member = visit.member
        visit.attempts += 1
        self._calls += 1
        if visit.attempts == 1 and member.breaker is not None:
            self.ways.retry_budget(member.breaker).deposit()
        failed: BaseException
        try:
            answer: A = await self._backend.ask(self._question, member.call, member.acall)
        except BaseException as error:
            failed = error
        else:
            await self._backend.run(self._answered, visit, permit, answer)
            return (answer,)
        ended = await self._backend.run(self._unanswered, visit, permit, failed)
        if ended is not None:
            raise ended  # out here, so that a caller's own exception gets no context of ours
        return None

    def _answered(self, visit: CallRecord, permit: Permit, answer: A) -> None:
        permit.success()
        self._charge(visit, usage_of(answer))
        visit.outcome = "ok"

    def _unanswered(
        self, visit: CallRecord, permit: Permit, error: BaseException
    ) -> BaseException | None:
        """Take note of a call without an answer; what ends the chain, or None."""
        visit.error, visit.outcome, visit.failures = error, "error", visit.failures + 1
        # A breaker of its own may have let nothing out.
        calls = getattr(error, "calls", 0) if isinstance(error, BreakerOpen) else 1
        visit.attempts, self._calls = visit.attempts + calls - 1, self._calls + calls - 1
        self._charge(visit, usage_of(error), calls=calls)
        ended = self._ended(visit, error)
        if ended is not None:
            permit.ignore()
            return ended
        self._errors[visit.index] = error
        if isinstance(error, BreakerOpen):  # one of its own
            permit.ignore()
            visit.outcome, self._refused[visit.index] = "refused", error.retry_after
        else:
            self._judge(visit, permit, error)
        return None

    def _ended(self, visit: CallRecord, error: BaseException) -> BaseException | None:
        """What an error ends the chain with; None: another may answer."""
        kind = getattr(error, "kind", "")
        is_ours = isinstance(error, Exception)
        if not is_ours or kind == "cancelled" or self._question.cancelled.is_set():
            visit.outcome = "cancelled"
            return self._error("the run was stopped", "cancelled") if is_ours else error
        if getattr(error, "ends_chain", False) or self._ears.raised(error):
            return error
        # Nobody else may spend it either.
        return self._error(str(error), "budget") if kind == "budget" else None

    def _judge(self, visit: CallRecord, permit: Permit, error: BaseException) -> None:
        """Whether asking again helps, and when; a service that asks for a longer wait is left until then."""
        member, index = visit.member, visit.index
        seen = as_failure_of(error)
        # An answer that nothing can be made of is no `AgentFailed`: the next one may do better.
        said = seen if isinstance(seen, AgentFailed) else None
        retryable = said is not None and said.retryable and is_retryable(said.failure, _patterns())
        self._failed[index] = retryable
        if said is None or not retryable:
            permit.ignore()
            return
        asked = said.retry_after
        is_long = asked is not None and asked > PATIENCE
        if member.breaker is None:
            permit.ignore()
        else:
            permit.failure(error, *([asked] if asked else []))
            self.ways.failed(member.breaker)
            if asked is not None and is_long:
                self.ways.postpone(member.breaker, asked, error)
            now = self.ways.breakers[member.breaker].snapshot()
            if now.state == "OPEN":
                self._refusals[index], self._refused[index] = now, now.retry_after
                return
        if said.gave_up or (member.breaker is None and member.asks_again):
            return  # it has asked again by itself
        if is_long:
            self._refused[index] = asked
        elif visit.failures <= self._retries and self.work == WORKS[0]:
            self._plan_retry(visit, asked)

    def _plan_retry(self, visit: CallRecord, asked: float | None) -> None:
        backoff, failures = self.ways.backoff, visit.failures
        left = min((meter.left for meter in self._meters if meter.left is not None), default=None)
        visit.retry = backoff.wait(failures, self.task, offset=1, retry_after=asked, left=left)
        if visit.retry is None:  # nothing would be left of the time: whoever asks may come back
            later = backoff.delay(failures, self.task, offset=1)
            self._refused[visit.index] = max(later, asked or 0.0)

    # --- Records ----------------------------------------------------------------------------------

    def _charge(self, visit: CallRecord, took: CallUsage, *, calls: int = 1) -> None:
        cost = dollars_said(took.cost)
        member = visit.member
        if cost is None and member.kind == "llm":
            said = took.model or member.model
            cost = self.ways.prices.cost(took.usage, said, member.model)
        visit.is_priced = visit.is_priced and cost is not None
        total = visit.took
        visit.took = CallUsage(
            total.usage + took.usage,
            (total.cost or 0.0) + (cost or 0.0),
            took.model or total.model,
            took.request_id or total.request_id,
        )
        self.usage, self._cost = self.usage + took.usage, self._cost + (cost or 0.0)
        self._is_priced = self._is_priced or cost is not None
        for meter in self._meters:
            news = meter.charge(calls=calls, tokens=took.usage.total, cost=cost or 0.0)
            for name, text in news.items() if meter is self.ways.meter else ():
                self._say(f"budget={name} {text}", warning=True)

    def _close(self, visit: CallRecord) -> None:
        """Keep the record of a member that is done with."""
        member, error = visit.member, visit.error if visit.outcome != "ok" else None
        if member.breaker is None or visit.outcome is None:
            return
        if visit.attempts == 0:
            if visit.index in self._refused_before:
                return  # once is enough, however often it is waited for
            self._refused_before.add(visit.index)
        clock, took = self.ways.clock, visit.took
        self.ways.calls.add(
            Call(
                visit.at,
                member.provider,
                member.model,
                visit.outcome,
                call=member.kind,
                attempts=visit.attempts,
                usage=took.usage,
                cost=took.cost if visit.is_priced else None,
                latency_ms=round((clock.monotonic() - visit.started) * 1000),
                response_model=took.model,
                error_kind=str(getattr(error, "kind", type(error).__name__ if error else "")),
                error=error_text(error)[:ERROR_LENGTH] if error else "",
                status=getattr(error, "status", None),
                request_id=took.request_id,
                task=self.task,
                breaker=member.breaker,
                work=self.work,
            )
        )

    def _say(self, message: str, *, warning: bool = False) -> None:
        task = f"task={self.task} " if self.task else ""
        line = f"{task}{message}"
        write(line, fields(line), warning=warning)

    # --- The end ----------------------------------------------------------------------------------

    @property
    def cost(self) -> float | None:
        """US dollars of all calls, as far as they are known; None: of none."""
        return self._cost if self._is_priced else None

    def _error(self, message: str, kind: ErrorKind) -> LLMError:
        return LLMError(message, kind, usage=self.usage, cost=self.cost)

    def _refusal(self) -> BreakerOpen:
        """Of those who can be asked again, who can first."""
        known = [(s, i) for i, s in self._refused.items() if s is not None]
        seconds, index = min(known) if known else (None, min(self._refused))
        member = self.members[index]
        now = self._refusals.get(index)
        own = self._errors.get(index)
        name, said = member.breaker or member.name, now.last_error if now else str(own or "")
        if isinstance(own, BreakerOpen):
            name, said = own.name, own.last_error
        return AllRefused(
            name,
            seconds,
            self.ways.clock.now().timestamp(),
            said,
            between_probes=now is not None and now.state != "OPEN" and not now.is_probing,
            calls=self._calls,
            tokens=self.usage.total,
            cost=self._cost,
        )

    def _failure(self) -> AgentError:
        """What those who were asked said, as one error."""
        failed = [self.members[index] for index in self._failed]
        errors = [self._errors[index] for index in self._failed]
        first = errors[0]
        if len(errors) == 1 and isinstance(first, AgentError):
            first.gave_up, first.tokens = True, self.usage.total or first.tokens
            first.cost = self.cost
            return first
        told = [f"{m.name}: {error_text(error)}" for m, error in zip(failed, errors, strict=True)]
        whole = told[0] if len(told) == 1 else f"nobody answered: {'; '.join(told)}"
        final: dict[str, Any] = {
            "retryable": any(self._failed.values()),
            "cost": self.cost,
            "gave_up": True,
        }
        if isinstance(first, LLMError):
            final |= {"provider": first.provider, "model": first.model, "status": first.status}
            return LLMError(whole, first.kind, usage=self.usage, **final)
        return AgentError(whole, tokens=self.usage.total or None, **final)


@cache
def _patterns() -> dict[str, Pattern]:
    return dict(PatternSet.default().patterns)

"""Asks the members of a fallback chain as `loki.decision.fallback_policy` decides: models, or whole agents.

`ChainRun` is one question on its way through the chain: it knows breakers, budgets and records, and calls
nobody; `loki.agents.fallback_driver` does what it says.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Generic, Literal, Protocol, TypeVar

from loki.action.loop.agent_call import as_failure_of
from loki.action.loop.loop_events import AgentFailed
from loki.base.error import AgentError, AllRefused, BreakerOpen, LLMError
from loki.base.log import fields, quoted, write
from loki.base.time import Clock, SystemClock, isoformat
from loki.base.tokens import TokenUsage, dollars_said
from loki.decision import fallback_policy, recovery
from loki.decision.backoff import Backoff
from loki.decision.breaker import Breaker, BreakerSnapshot
from loki.decision.budget import UNLIMITED, Budget, Meter
from loki.decision.fallback_policy import RETRIES, Chain, Event, Failed, Refused, RetryBudget
from loki.decision.limiter import Limiter, Slot
from loki.decision.loop_policy import is_retryable
from loki.decision.price import Prices
from loki.memory.call_log import Call, CallOutcome, Calls
from loki.recognition.pattern import Pattern, PatternSet

# --- Who can be asked, and how ------------------------------------------------------------------------

A = TypeVar("A")

DEFAULT_BACKOFF = Backoff("5s", cap="2m", jitter=0)
"""From the opening of a model's breaker to its probe while others answer: 5 s, 10 s, 20 s, … Chosen."""

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
class Endpoint(Generic[A]):
    """Someone who can be asked.

    Attributes:
        call: asks; may be async. acall: the same, always async; None: there is only one.
        took: reads what an answer took.
        provider, model: for records.
        breaker: name of the circuit breaker that calls pass; None: it passes its own, and keeps its own
            records.
        kind: ``llm`` or ``agent``.
        asks_again: who passes breakers of its own asks again by itself, too.
    """

    call: Callable[[Any], Any]
    took: Callable[[A], CallUsage]
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
        hedge: seconds after which the next member is asked, too; None: never.
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
    hedge: float | None = None
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

    def relaxed_wait(self, breaker: Circuit, others: Sequence[Endpoint[Any]]) -> float | None:
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

    def slot(self, member: Endpoint[Any], cancelled: threading.Event) -> Slot | None:
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
    """A member that is being asked, until the chain goes on."""

    member: Endpoint[Any]
    index: int
    at: str
    started: float
    work: str
    attempts: int = 0
    took: CallUsage = field(default_factory=CallUsage)
    is_priced: bool = True
    error: BaseException | None = None
    outcome: CallOutcome = "refused"


def error_text(error: BaseException) -> str:
    """What an error says, for people."""
    return str(error) if isinstance(error, AgentError) else f"{type(error).__name__}: {error}"


def usage_of(error: BaseException | None) -> CallUsage:
    """What a call took that brought no answer."""
    if isinstance(error, LLMError):
        return CallUsage(error.usage, error.cost, error.model, error.request_id)
    tokens, cost = getattr(error, "tokens", None), getattr(error, "cost", None)
    return CallUsage(TokenUsage(input=tokens or 0), cost)


# --- A question on its way through the chain ----------------------------------------------------------

ERROR_LENGTH = 500
"""Characters that are kept of an error. Chosen, not measured."""


class ChainRun(Generic[A]):
    """One question on its way through a chain.

    Args:
        members: whom to ask, the preferred one first.
        question: what: a `loki.Request` or a `loki.Briefing`.
        ways: how.
        task: id of the task that it is for, or "".
        wait: seconds to wait, all pauses together, where nobody may be asked before a time.
    """

    def __init__(
        self,
        members: Sequence[Endpoint[A]],
        question: Any,
        ways: ChainOptions,
        task: str = "",
        wait: float = 0.0,
    ) -> None:
        self._ears = OnTextErrors()
        self.members, self.ways, self.task = members, ways, task
        self.question = self._ears.on(question)
        own: int | None = getattr(question, "retries", None)
        retries = ways.retries if own is None else min(own, ways.retries)
        self.chain = Chain(len(members), ways.backoff, retries, task)
        self.answer: A | None = None
        self.answer_of: CallRecord | None = None
        self.usage, self.cost, self.calls = TokenUsage(), 0.0, 0
        self._is_priced = False
        left: Budget = getattr(question, "left", UNLIMITED)
        self._meters = [Meter(left, ways.clock), *([ways.meter] if ways.meter else [])]
        self._visit: CallRecord | None = None
        self._refusals: dict[int, BreakerSnapshot | None] = {}  # by member, as these:
        self._errors: dict[int, BaseException] = {}
        self._spent = ""
        self._fatal: BaseException | None = None
        own_wait: float | None = getattr(question, "wait", None)
        wait = wait if own_wait is None else min(wait, own_wait)
        # What is not worth asking again is not worth a wait either.
        self._until = ways.clock.monotonic() + (0.0 if own == 0 else wait)
        self._refused_before: set[int] = set()
        for meter in self._meters:
            meter.begin()

    @property
    def cancelled(self) -> threading.Event:
        """Set when the run is being stopped."""
        found: threading.Event = self.question.cancelled
        return found

    def step(self, event: Event) -> fallback_policy.Effect | None:
        """What to do after an event; who is done with is recorded."""
        before = (self.chain.member, self.chain.work)
        patient = replace(self.chain, patience=self._patience())
        self.chain, effect = fallback_policy.step(patient, event)
        stays = isinstance(effect, (fallback_policy.Call, fallback_policy.Wait)) and before == (
            self.chain.member,
            self.chain.work,
        )
        if self._visit is not None and not stays:
            visit, self._visit = self._visit, None
            self.close(visit)
        return effect

    def _patience(self) -> float:
        """Seconds that may still be waited, 0 or more: the caller's, and no more than a budget has."""
        left = [meter.left for meter in self._meters if meter.left is not None]
        return max(0.0, min([self._until - self.ways.clock.monotonic(), *left]))

    # --- One call ---------------------------------------------------------------------------------

    def stop(self) -> Event | None:
        """Why nothing may be asked at all now; None: something may."""
        if self.cancelled.is_set():
            return fallback_policy.Cancelled()
        self._spent = next((why for meter in self._meters if (why := meter.spent())), "")
        return fallback_policy.Spent() if self._spent else None

    def visit(self, index: int) -> CallRecord:
        """Who is asked now; begun where it is another one than before."""
        if self._visit is None:
            self._visit = self.open(index)
        return self._visit

    def open(self, index: int) -> CallRecord:
        """A record in the making."""
        clock = self.ways.clock
        work = fallback_policy.WORKS[self.chain.work]
        return CallRecord(
            self.members[index], index, isoformat(clock.now()), clock.monotonic(), work
        )

    def admit(self, visit: CallRecord) -> Permit | Event:
        """Leave for a call; else what stands against it."""
        stopped = self.stop()
        if stopped is not None:
            return stopped
        member = visit.member
        if member.breaker is None:
            return NoBreaker()
        if (left := self.ways.postponed(member.breaker)) is not None:
            seconds, self._errors[visit.index] = left
            return Refused(seconds)
        breaker: Circuit = self.ways.breakers[member.breaker]
        others = self.members[visit.index + 1 :]
        if (later := self.ways.relaxed_wait(breaker, others)) is not None:
            return Refused(later)
        permit = breaker.try_acquire()
        if permit is not None:
            return permit
        now = self._refusals[visit.index] = breaker.snapshot()
        return Refused(now.retry_after)

    def go(self, visit: CallRecord) -> None:
        """A call goes out."""
        visit.attempts += 1
        self.calls += 1
        if visit.attempts == 1 and visit.member.breaker is not None:
            self.ways.retry_budget(visit.member.breaker).deposit()

    def answered(self, visit: CallRecord, permit: Permit, answer: A) -> Event:
        """An answer came."""
        permit.success()
        self._charge(visit, visit.member.took(answer))
        visit.outcome, self.answer, self.answer_of = "ok", answer, visit
        return fallback_policy.Answered()

    def too_late(
        self, visit: CallRecord, permit: Permit, answer: A | None, error: BaseException | None
    ) -> None:
        """Somebody else answered before; what it took counts, though not for the answer."""
        permit.ignore()
        took = visit.member.took(answer) if answer is not None else usage_of(error)
        self._charge(visit, took, of_answer=False)
        visit.outcome, visit.error = "cancelled", error

    def detach(self) -> None:
        """Who is being asked is done by itself, and keeps its record then."""
        self._visit = None

    def failed(self, visit: CallRecord, permit: Permit, error: BaseException) -> Event:
        """None came; what is no `Exception` is passed on once it is recorded."""
        visit.error, visit.outcome = error, "error"
        # A breaker of its own may have let nothing out.
        calls = getattr(error, "calls", 0) if isinstance(error, BreakerOpen) else 1
        visit.attempts, self.calls = visit.attempts + calls - 1, self.calls + calls - 1
        self._charge(visit, usage_of(error), calls=calls)
        ended = self._ended(visit, error)
        if ended is not None:
            permit.ignore()
            return ended
        return self._judged(visit, permit, error)

    def _ended(self, visit: CallRecord, error: BaseException) -> Event | None:
        """What an error is that says nothing of the service; None: it does."""
        is_stopped = not isinstance(error, Exception) or getattr(error, "kind", "") == "cancelled"
        if is_stopped or self.cancelled.is_set():
            visit.outcome = "cancelled"
            return fallback_policy.Cancelled()
        if getattr(error, "ends_chain", False) or self._ears.raised(error):
            self._fatal = error
            return fallback_policy.Cancelled()
        self._errors[visit.index] = error
        if isinstance(error, BreakerOpen):  # one of its own
            visit.outcome = "refused"
            return Refused(error.retry_after)
        if getattr(error, "kind", "") == "budget":  # nobody else may spend it either
            self._spent = str(error)
            return fallback_policy.Spent()
        return None

    def _judged(self, visit: CallRecord, permit: Permit, error: BaseException) -> Failed:
        """Whether asking again helps, and what the breaker says to it."""
        member = visit.member
        seen = as_failure_of(error)
        # An answer that nothing can be made of is no `AgentFailed`: the next one may do better.
        said = seen if isinstance(seen, AgentFailed) else None
        retryable = said is not None and said.retryable and is_retryable(said.failure, _patterns())
        asked = said.retry_after if said is not None else None
        refused = None
        if retryable and member.breaker is not None:
            permit.failure(error, *([asked] if asked else []))
            self.ways.failed(member.breaker)
            if asked is not None and asked > fallback_policy.PATIENCE:
                self.ways.postpone(member.breaker, asked, error)
            now = self.ways.breakers[member.breaker].snapshot()
            if now.state == "OPEN":
                self._refusals[visit.index] = now
                refused = Refused(now.retry_after)
        else:
            permit.ignore()
        left = [meter.left for meter in self._meters if meter.left is not None]
        return Failed(
            retryable,
            getattr(error, "kind", ""),
            asked,
            refused,
            (member.breaker is None and member.asks_again) or bool(said and said.gave_up),
            min(left, default=None),
        )

    def hold(self, wait: fallback_policy.Wait | fallback_policy.Pause) -> bool:
        """Tell of a wait; False: there is to be none, as all who ask there have retried too often."""
        if isinstance(wait, fallback_policy.Pause):
            names = ", ".join(self.members[index].name for index in self.chain.refused)
            self._say(f"waiting {wait.seconds:.1f} s until one of {names} may be asked again")
            return True
        member = self.members[wait.member]
        if member.breaker and not self.ways.retry_budget(member.breaker).try_withdraw():
            return False
        said = quoted(error_text(self._errors[wait.member])[:ERROR_LENGTH])
        again = (
            f"{member.name} is asked again (retry {self.chain.failures} of {self.chain.retries})"
        )
        self._say(f"waiting {wait.seconds:.1f} s, then {again} error={said}")
        return True

    def held(self, wait: fallback_policy.Wait | fallback_policy.Pause) -> Event:
        """A wait is over."""
        if self.cancelled.is_set():
            return fallback_policy.Cancelled()
        is_pause = isinstance(wait, fallback_policy.Pause)
        return fallback_policy.Resumed() if is_pause else fallback_policy.Waited()

    def reduce(self) -> Event:
        """Ask for less from here on, where there is less."""
        make = getattr(self.question, "simpler", None)
        if make is None:
            return fallback_policy.Irreducible()
        self.question = self._ears.on(make())
        self._say(
            f"work={fallback_policy.WORKS[self.chain.work + 1]} reason={quoted('nobody answered')}"
        )
        return fallback_policy.Reduced()

    # --- Records ----------------------------------------------------------------------------------

    def _charge(
        self, visit: CallRecord, took: CallUsage, *, calls: int = 1, of_answer: bool = True
    ) -> None:
        cost = dollars_said(took.cost)
        member = visit.member
        if cost is None and member.kind == "llm":
            known = took.model if self.ways.prices.of(took.model) else member.model
            cost = self.ways.prices.cost(known, took.usage)
        visit.is_priced = visit.is_priced and cost is not None
        total = visit.took
        visit.took = CallUsage(
            total.usage + took.usage,
            (total.cost or 0.0) + (cost or 0.0),
            took.model or total.model,
            took.request_id or total.request_id,
        )
        if of_answer:
            self.usage, self.cost = self.usage + took.usage, self.cost + (cost or 0.0)
            self._is_priced = self._is_priced or cost is not None
        for meter in self._meters:
            news = meter.charge(calls=calls, tokens=took.usage.total, cost=cost or 0.0)
            for name, text in news.items() if meter is self.ways.meter else ():
                self._say(f"budget={name} {text}", warning=True)

    def close(self, visit: CallRecord) -> None:
        """Keep the record of a member that is done with."""
        member, error = visit.member, visit.error if visit.outcome != "ok" else None
        if member.breaker is None or (visit.attempts == 0 and visit.outcome != "refused"):
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
                work=visit.work,
            )
        )

    def _say(self, message: str, *, warning: bool = False) -> None:
        task = f"task={self.task} " if self.task else ""
        line = f"{task}{message}"
        write(line, fields(line), warning=warning)

    # --- The end ----------------------------------------------------------------------------------

    def result(self) -> A:
        """The answer.

        Raises:
            BreakerOpen: nobody can be asked before a time.
            AgentError: nobody answered, the budget is spent, or the run was stopped.
        """
        ending = self.chain.ending
        if ending == "answered":
            assert self.answer is not None
            return self.answer
        took: dict[str, Any] = {"usage": self.usage, "cost": self.total_cost}
        if self._fatal is not None:
            raise self._fatal
        if ending == "cancelled":
            raise LLMError("the run was stopped", "cancelled", **took)
        if ending == "spent":
            raise LLMError(self._spent, "budget", **took)
        if ending == "refused":
            raise self._refusal()
        raise self._failure()

    @property
    def total_cost(self) -> float | None:
        """US dollars of all calls, as far as they are known; None: of none."""
        return self.cost if self._is_priced else None

    def _refusal(self) -> BreakerOpen:
        """Of those who can be asked again, who can first."""
        known = [(s, i) for i, s in self.chain.refused.items() if s is not None]
        seconds, index = min(known) if known else (None, min(self.chain.refused))
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
            calls=self.calls,
            tokens=self.usage.total,
            cost=self.cost,
        )

    def _failure(self) -> AgentError:
        """What those who were asked said, as one error."""
        failed = [self.members[index] for index in self.chain.failed]
        errors = [self._errors[index] for index in self.chain.failed]
        first = errors[0]
        if len(errors) == 1 and isinstance(first, AgentError):
            first.gave_up, first.tokens = True, self.usage.total or first.tokens
            first.cost = self.total_cost
            return first
        told = [f"{m.name}: {error_text(error)}" for m, error in zip(failed, errors, strict=True)]
        whole = told[0] if len(told) == 1 else f"nobody answered: {'; '.join(told)}"
        final: dict[str, Any] = {
            "retryable": any(one.retryable for one in self.chain.failed.values()),
            "cost": self.total_cost,
            "gave_up": True,
        }
        if isinstance(first, LLMError):
            final |= {"provider": first.provider, "model": first.model, "status": first.status}
            return LLMError(whole, first.kind, usage=self.usage, **final)
        return AgentError(whole, tokens=self.usage.total or None, **final)


@cache
def _patterns() -> dict[str, Pattern]:
    return dict(PatternSet.default().patterns)

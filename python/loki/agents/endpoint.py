"""Who can be asked in a fallback chain, and how a chain asks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, Protocol, TypeVar

from loki.base.time import Clock, SystemClock
from loki.base.token_usage import TokenUsage
from loki.decision import recovery
from loki.decision.backoff import Backoff
from loki.decision.breaker import Breaker
from loki.decision.breaker_snapshot import BreakerSnapshot
from loki.decision.budget_meter import Meter
from loki.decision.fallback_policy import RETRIES
from loki.decision.limiter import Limiter, Slot
from loki.decision.price import Prices
from loki.decision.retry_budget import RetryBudget
from loki.memory.call_log import Calls

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

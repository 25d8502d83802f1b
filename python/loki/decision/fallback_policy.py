"""Whom to ask, when to ask again and when to ask the next one: the fallback chain as a pure machine.

`step` is the machine: (state, event) → (state, effect). Nothing here reads a clock, waits or calls
anybody; `loki.agents.fallback_chain` drives it, for models and for whole agents alike.

============= ==================================== ============================================ =========
phase         event                                next                                         effect
============= ==================================== ============================================ =========
new           Begin                                calling the first                            Call
calling       Answered                             done                                         -
calling       Refused (its breaker is open)        calling the next                             Call
calling       Failed, asking again helps           waiting, while retries are left              Wait
calling       Failed, its breaker is open now      calling the next: other retries are dropped  Call
calling       Failed, the wait would be too long   calling the next                             Call
calling       Failed, asking again does not help   calling the next                             Call
waiting       Waited                               calling the same                             Call
waiting       Denied (the retry budget is spent)   calling the next                             Call
(no next)     …, one can be asked within the time  paused                                       Pause
paused        Resumed                              calling the first, all anew                  Call
(no next)     …, and less work may do              reducing                                     Reduce
reducing      Reduced                              calling the first who may do it; no retries  Call
reducing      Irreducible                          done                                         -
calling, …    Spent, Cancelled                     done                                         -
============= ==================================== ============================================ =========

Every request begins with the first: while its breaker is open it is refused without a call, and the
first request after the cooldown is its probe. So work returns to it by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from enum import Enum
from functools import partial
from typing import Any, Literal, TypeAlias

from loki import _core
from loki.base.time import Clock, Duration, SystemClock, argument_nanoseconds
from loki.decision.backoff import Backoff


class RetryBudget:
    """A token bucket that caps retries as a share of calls.

    Retries multiply load when a service can least take it. Give all callers of a service one
    budget: each call deposits ``share``, each retry withdraws 1, so that even where everything
    fails, load grows by that share and not by a multiple. A new budget is full. Safe to use from
    many threads.

    Over any t seconds with n calls at most ``capacity + share * n + per_second * t`` retries are
    allowed.

    Args:
        share: retries that a call pays for; 0.2 is the default of Finagle's ``RetryBudget``.
        per_second: retries a second that are allowed whatever the calls, so that callers who come
            seldom can retry, too; chosen, not measured.
        capacity: retries that may be saved up, 1 or more; 100 is what Finagle's defaults reserve.
        clock: where time comes from; only ``monotonic`` is asked.

    Raises:
        ValueError: a number outside its range (none may be over 1,000,000).

    Example:
        >>> budget = RetryBudget(share=0.5, per_second=0, capacity=1)
        >>> budget.try_withdraw(), budget.try_withdraw()
        (True, False)
        >>> budget.deposit(); budget.deposit()
        >>> budget.try_withdraw()
        True
    """

    def __init__(
        self,
        share: float = 0.2,
        per_second: float = 1.0,
        capacity: float = 100.0,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._core = _core.RetryBudget(share, per_second, capacity, self._now())

    def deposit(self) -> None:
        """A call is made: not a retry of one."""
        self._core.deposit()

    def try_withdraw(self) -> bool:
        """Whether a retry may be made now; if so, it is paid for."""
        return self._core.try_withdraw(self._now())

    @property
    def balance(self) -> float:
        """Retries that could be made now, a fraction included."""
        return self._core.balance(self._now())

    def __repr__(self) -> str:
        return f"<RetryBudget: {self.balance:g} retries>"

    def _now(self) -> int:
        return round(self._clock.monotonic() * 1e9)


# --- When a service says that it may be asked again ---------------------------------------------------

LIMIT = "24h"
"""The longest wait that a header can ask for; Backoff's default cap."""

_MILLISECONDS = ("retry-after-ms", "x-ms-retry-after-ms")
"""More precise than Retry-After, and looked at first: OpenAI's and Azure's services send them."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def retry_after(headers: Mapping[str, str], now: datetime, limit: Duration = LIMIT) -> float | None:
    """Seconds that an answer's headers ask to wait; None where they do not, or not legibly.

    Read are ``Retry-After`` (seconds, with decimals, too, or a date in any of the three forms of
    RFC 9110, section 5.6.7) and, before it, ``retry-after-ms`` and ``x-ms-retry-after-ms``.

    Args:
        headers: of the answer; letter case of names does not matter.
        now: the time that a date is seen from, with a zone.
        limit: the longest wait; a service that asks for more gets this.

    Returns:
        0 for a negative number or a date that is past.

    Raises:
        ValueError: ``now`` has no zone, or ``limit`` is no duration.

    Example:
        >>> now = datetime(1994, 11, 6, 8, 49, 30, tzinfo=timezone.utc)
        >>> retry_after({"Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT"}, now)
        7.0
        >>> retry_after({"Retry-After": "2", "retry-after-ms": "1500"}, now)
        1.5
        >>> retry_after({"Retry-After": "soon"}, now) is None
        True
    """
    if now.tzinfo is None:
        raise ValueError(f"{now!r} has no zone: expected a time like datetime.now(timezone.utc)")
    values = {name.lower(): value for name, value in headers.items()}
    asked = [_core.parse_retry_after_ms(values[name]) for name in _MILLISECONDS if name in values]
    if "retry-after" in values:
        now_us = (now - _EPOCH) // timedelta(microseconds=1)
        asked.append(_core.parse_retry_after(values["retry-after"], now_us))
    found = next((count for count in asked if count is not None), None)
    return None if found is None else min(found, argument_nanoseconds("limit", limit)) / 1e9


# --- Whom to ask, when to ask again and when to ask the next one --------------------------------------

RETRIES = 5
"""Retries of one request to one model, as the specification has it."""

PATIENCE = 300.0
"""Seconds: a service that asks for a longer wait is not waited for, but left until then. It is the
longest wait between retries that the specification allows, and a breaker's cooldown."""

WORKS = ("full", "simpler", "minimal")
"""How much is asked for; what follows the last is a person."""

LESS_HELPS = frozenset({"too_long", "timeout", "malformed"})
"""Kinds of error that a smaller request may not meet: it fits in, is done in time, is not cut off. A
service that is overloaded or limits the rate is not asked at once for less: it said when to come."""


class IllegalTransition(Exception):
    """An event came in a phase that does not expect it: a bug in a driver."""


class Phase(str, Enum):
    """What the chain waits for."""

    NEW = "new"
    CALLING = "calling"
    WAITING = "waiting"
    PAUSED = "paused"
    REDUCING = "reducing"
    DONE = "done"


# --- Events ---------------------------------------------------------------------------------------


class Event:
    """What a chain is told."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Begin(Event):
    """There is something to ask."""


@dataclass(frozen=True, slots=True)
class Answered(Event):
    """The answer came."""


@dataclass(frozen=True, slots=True)
class Refused(Event):
    """The breaker let no call out.

    Attributes:
        retry_after: seconds after which it may; None: a person has to close it.
    """

    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Failed(Event):
    """The call brought no answer.

    Attributes:
        retryable: asking the same again may help.
        kind: one of `loki.base.error.ErrorKind`, or "".
        retry_after: seconds that the service asked to wait, or None.
        refused: what the breaker says now, where it is open.
        final: whoever was asked has asked again by itself.
        left: seconds that may still be waited; None: there is no end.
    """

    retryable: bool = True
    kind: str = ""
    retry_after: float | None = None
    refused: Refused | None = None
    final: bool = False
    left: float | None = None


@dataclass(frozen=True, slots=True)
class Waited(Event):
    """The wait is over."""


@dataclass(frozen=True, slots=True)
class Resumed(Event):
    """Somebody may be asked again, perhaps."""


@dataclass(frozen=True, slots=True)
class Denied(Event):
    """All callers together have retried too often: the retry budget gives no leave."""


@dataclass(frozen=True, slots=True)
class Reduced(Event):
    """There is a smaller thing to ask for, and it is what is asked for now."""


@dataclass(frozen=True, slots=True)
class Irreducible(Event):
    """There is nothing smaller to ask for."""


@dataclass(frozen=True, slots=True)
class Spent(Event):
    """The budget of tokens, money or time is spent."""


@dataclass(frozen=True, slots=True)
class Cancelled(Event):
    """The run is being stopped, or an error came that nobody else may answer in its place."""


# --- Effects --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """Ask a member, if its breaker gives leave: answered by Answered, Refused, Failed, Spent, Cancelled."""

    member: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Take a retry out of the retry budget and wait: answered by Waited, Denied or Cancelled."""

    member: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait until somebody may be asked again: answered by Resumed or Cancelled."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Reduce:
    """Ask for less from here on: answered by Reduced or Irreducible."""


Effect: TypeAlias = Call | Wait | Pause | Reduce

Ending: TypeAlias = Literal["answered", "refused", "failed", "spent", "cancelled"]
"""An answer came; none can come before a breaker lets calls out again; asking again would not help,
or has not; the budget is spent; the run was stopped."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Where a request stands in its chain; begin with ``Chain(members)`` and go on with `step`.

    Attributes:
        members: how many can be asked, 1 or more.
        backoff: waits between retries.
        retries: of one member, 0 or more.
        key: spreads waits of different requests.
        phase: what it waits for.
        member: who is being asked, from 0.
        work: how much is asked for, an index of `WORKS`.
        failures: calls of this member that failed, in a row.
        refused: members that cannot be asked before a time, and the seconds until then.
        failed: how each member failed last.
        patience: seconds that may still be waited until somebody may be asked again; 0: none.
        ending: how it ended, once it has.
    """

    members: int
    backoff: Backoff = field(default_factory=lambda: Backoff("5s", cap="5m"))
    retries: int = RETRIES
    key: str = ""
    phase: Phase = Phase.NEW
    member: int = 0
    work: int = 0
    failures: int = 0
    refused: Mapping[int, float | None] = field(default_factory=dict)
    failed: Mapping[int, Failed] = field(default_factory=dict)
    patience: float = 0.0
    ending: Ending | None = None

    @property
    def retry_after(self) -> float | None:
        """Seconds until the first refused member may be asked again; None: nobody knows."""
        return min((s for s in self.refused.values() if s is not None), default=None)


Step: TypeAlias = tuple[Chain, Effect | None]


def step(chain: Chain, event: Event) -> Step:
    """The chain after an event, and what is to be done; None: it has ended.

    Args:
        chain: the chain before; not changed.
        event: what happened.

    Raises:
        IllegalTransition: this phase does not expect this event.

    Example:
        >>> chain, effect = step(Chain(members=2), Begin())
        >>> chain, effect = step(chain, Refused(retry_after=300.0))
        >>> effect
        Call(member=1)
        >>> step(chain, Answered())[0].ending
        'answered'
    """
    handler = TABLE.get((chain.phase, type(event)))
    if handler is None:
        raise IllegalTransition(f"{type(event).__name__} in phase {chain.phase.value}")
    return handler(chain, event)


def _call(chain: Chain, member: int) -> Step:
    failures = chain.failures if member == chain.member else 0
    return replace(chain, phase=Phase.CALLING, member=member, failures=failures), Call(member)


def _refused(chain: Chain, event: Refused) -> Step:
    refused = {**chain.refused, chain.member: event.retry_after}
    return _next(replace(chain, refused=refused))


def _failed(chain: Chain, event: Failed) -> Step:
    failures = chain.failures + 1
    chain = replace(chain, failures=failures, failed={**chain.failed, chain.member: event})
    if event.refused is not None:
        return _refused(chain, event.refused)
    if not event.retryable or event.final:
        return _next(chain)
    if event.retry_after is not None and event.retry_after > PATIENCE:
        return _refused(chain, Refused(event.retry_after))
    if failures > chain.retries or chain.work > 0:
        return _next(chain)
    seconds = chain.backoff.wait(
        failures, chain.key, offset=1, retry_after=event.retry_after, left=event.left
    )
    if seconds is None:  # nothing would be left of the time: whoever asks may come back
        later = chain.backoff.delay(failures, chain.key, offset=1)
        return _refused(chain, Refused(max(later, event.retry_after or 0.0)))
    return replace(chain, phase=Phase.WAITING), Wait(chain.member, seconds)


def _ask_member(chain: Chain, _event: Event) -> Step:
    """Ask whose turn it is: of a new chain the first."""
    return _call(chain, chain.member)


def _resumed(chain: Chain, _event: Resumed) -> Step:
    return _call(replace(chain, refused={}, failed={}, failures=0), 0)


def _next(chain: Chain, _event: Event | None = None) -> Step:
    """Ask the next one who may do it; where there is none, ask for less; else it has ended."""
    may = range(chain.members) if chain.work == 0 else _able(chain)
    later = [member for member in range(chain.member + 1, chain.members) if member in may]
    if later:
        return _call(chain, later[0])
    seconds = chain.retry_after
    if seconds is not None and seconds < chain.patience and chain.work == 0:
        return replace(chain, phase=Phase.PAUSED), Pause(seconds)
    if _able(chain) and chain.work + 1 < len(WORKS):
        return replace(chain, phase=Phase.REDUCING), Reduce()
    return _give_up(chain)


def _able(chain: Chain) -> list[int]:
    """Members that less work may do for: what they failed with says so, and they can be asked."""
    return [
        member
        for member, failed in chain.failed.items()
        if failed.kind in LESS_HELPS and member not in chain.refused
    ]


def _reduced(chain: Chain, _event: Reduced) -> Step:
    chain = replace(chain, work=chain.work + 1, failures=0)
    return _call(chain, min(_able(chain)))


def _give_up(chain: Chain, _event: Event | None = None) -> Step:
    is_waiting = any(seconds is not None for seconds in chain.refused.values())
    # Nobody but a person closes a breaker that names no time.
    return _end("refused" if is_waiting or not chain.failed else "failed", chain)


def _end(ending: Ending, chain: Chain, _event: Event | None = None) -> Step:
    return replace(chain, phase=Phase.DONE, ending=ending), None


TABLE: Mapping[tuple[Phase, type[Any]], Callable[[Chain, Any], Step]] = {
    (Phase.NEW, Begin): _ask_member,
    (Phase.CALLING, Answered): partial(_end, "answered"),
    (Phase.CALLING, Refused): _refused,
    (Phase.CALLING, Failed): _failed,
    (Phase.CALLING, Spent): partial(_end, "spent"),
    (Phase.CALLING, Cancelled): partial(_end, "cancelled"),
    (Phase.WAITING, Waited): _ask_member,
    (Phase.WAITING, Denied): _next,
    (Phase.WAITING, Cancelled): partial(_end, "cancelled"),
    (Phase.PAUSED, Resumed): _resumed,
    (Phase.PAUSED, Cancelled): partial(_end, "cancelled"),
    (Phase.REDUCING, Reduced): _reduced,
    (Phase.REDUCING, Irreducible): _give_up,
}

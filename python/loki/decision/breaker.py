"""Circuit breakers: stop calling what is down, and find out carefully when it is back.

The numbers of the resilience documents (3 failures in 60 s, 300 s of pause) are for whole agents, whose
attempts take minutes. A service that is called often fails now and then without being down: there a share
of failures counts, and a pause of some seconds that grows, as whoever waits wants to know soon.

The table of states is in the C++ core and is pure; here are its arguments, its listeners and what
counts as a failure. ``docs/design/breaker.md`` has the table.
"""

from __future__ import annotations

import functools
import inspect
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple, NoReturn, ParamSpec, TypeVar, cast

from loki import _core
from loki.base.argument_checks import called
from loki.base.error import BreakerOpen
from loki.base.markup import html_card
from loki.base.secret import mask_secrets
from loki.base.time import Clock, Duration, argument_nanoseconds, at_one_moment, isoformat

# --- What is told of a breaker ------------------------------------------------------------------------

CircuitState = Literal["CLOSED", "OPEN", "HALF_OPEN"]
STATES: tuple[CircuitState, ...] = ("CLOSED", "OPEN", "HALF_OPEN")
"""By the core's numbers."""


@dataclass(frozen=True, slots=True)
class Transition:
    """A change of state.

    Attributes:
        name: the breaker's.
        before: the state that it left.
        after: the state that it entered.
        at: when, in UTC.
    """

    name: str
    before: CircuitState
    after: CircuitState
    at: datetime


class BreakerCounts(NamedTuple):
    """What a breaker has seen since it was made; nothing resets it."""

    granted: int
    refused: int
    successes: int
    failures: int
    ignored: int
    late: int
    """Outcomes of an earlier time, or of a probe out of its lease."""
    transitions: int


@dataclass(frozen=True, slots=True)
class BreakerSnapshot:
    """A breaker at one instant.

    Attributes:
        name: the breaker's.
        state: ``CLOSED``, ``OPEN`` or ``HALF_OPEN``; OPEN also when the cooldown is over and no
            call has come yet.
        is_isolated: open until somebody closes it.
        is_probing: a probe is in flight.
        failure_count: failures that count now; while OPEN those that tripped it.
        success_count: successful probes in a row.
        trips: how often in a row it tripped, without having been closed between.
        generation: counts its transitions, and what was done to it by hand; of two looks with the same,
            nothing of that came between. Times may differ by microseconds from look to look.
        last_failure_time: in UTC, like all times; None since it was last closed.
        last_state_change: None where there was none.
        cooldown_until: None unless OPEN with an end.
        failure_window_start: the oldest failure that counts.
        retry_after: seconds until the next call may be let through; 0.0: now; None: isolated.
        last_error: of the last failure that counted.
        counts: calls and outcomes so far.
    """

    name: str
    state: CircuitState
    is_isolated: bool
    is_probing: bool
    failure_count: int
    success_count: int
    trips: int
    generation: int
    last_failure_time: datetime | None
    last_state_change: datetime | None
    cooldown_until: datetime | None
    failure_window_start: datetime | None
    retry_after: float | None
    last_error: str
    counts: BreakerCounts

    def _repr_html_(self) -> str:
        return breaker_html(self)


def breaker_html(shown: BreakerSnapshot) -> str:
    """What Jupyter shows of a breaker."""
    counts, wait = shown.counts, shown.retry_after
    isolated = ", isolated" if shown.is_isolated else ""
    is_closed = shown.state == "CLOSED"
    return html_card(
        f"Breaker {shown.name}: {shown.state}{isolated}",
        [
            ("next call", None if is_closed or wait is None else f"in {wait:.1f} s"),
            ("failures that count", shown.failure_count),
            ("successful probes", shown.success_count if shown.state == "HALF_OPEN" else None),
            ("tripped in a row", shown.trips or None),
            ("changed", shown.last_state_change and isoformat(shown.last_state_change)),
            ("calls", f"{counts.granted} let through, {counts.refused} refused"),
            ("outcomes", f"{counts.successes} successes, {counts.failures} failures"),
            ("last error", shown.last_error),
        ],
    )


# --- What breakers are made with, by their names ------------------------------------------------------

CALLS: Mapping[str, Any] = {
    "failure_rate": 0.7,
    "minimum_calls": 3,
    "window_calls": 3,
    "window": 300,
    "cooldown": 7.5,
    "cooldown_multiplier": 1.2,
    "cooldown_cap": 8.9,
    "half_open_interval": 1,
    "recovery_threshold": 2,
}
"""Arguments of `loki.Breaker` for calls of models and tools.

Of the newest three calls within 5 minutes 70 % failed, which is all three. A service that fails 4 % of its
calls does so once in some 15,000, and nothing is lost by a pause of seconds. With more calls, a caller who
is alone would wait through the third retry's 20 s before anybody knew of an outage.
A pause of 7.5 s, then 8.9 s: fifteen calls in an outage of two minutes, the next one right after it; of
other lengths the end is seen less than 5 s later on average. `python -m benchmarks.calls` prints all of it.
Chosen by that.
"""

KINDS = ("api/*/*", "tool/*")
"""Names of breakers of models (``api/<provider>/<model>``) and tools (``tool/<host>``)."""


def call_arguments(own: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Arguments of `loki.Breaker` for calls of models and tools.

    Args:
        own: what is different; with a ``threshold`` failures count, not their share.
    """
    return _with(CALLS, own or {})


def for_calls(
    own: Mapping[str, Any] | None = None, named: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, Mapping[str, Any]]:
    """Arguments by name: `CALLS` for those of models and tools.

    Args:
        own: what is different for all of those; with a ``threshold`` failures count, not their share.
        named: for single names or globs of them, beside that; also for other breakers.

    Example:
        >>> for_calls({"cooldown": 2}, {"api/claude": {"threshold": 9}})["tool/*"]["cooldown"]
        2
    """
    calls = call_arguments(own)
    others = {
        name: _with(calls if _is_call(name) else {}, said) for name, said in (named or {}).items()
    }
    return {**others, **dict.fromkeys(KINDS, calls)}


def named_arguments(
    name: str, named: Mapping[str, Mapping[str, Any]], others: Mapping[str, Any]
) -> Mapping[str, Any]:
    """What a breaker is made with: by its name, by the first glob that fits, else as all others."""
    if name in named:
        return named[name]
    return next((said for glob, said in named.items() if fnmatchcase(name, glob)), others)


def _with(arguments: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    kept = dict(arguments)
    if "threshold" in own and "failure_rate" not in own:
        for name in ("failure_rate", "minimum_calls", "window_calls"):
            kept.pop(name, None)
    return {**kept, **own}


def _is_call(name: str) -> bool:
    return any(fnmatchcase(name, glob) for glob in KINDS)


# --- The breaker --------------------------------------------------------------------------------------

Permit = _core.Permit
"""Leave for one call: ``success()``, ``failure(error)`` or ``ignore()``; a context manager, too."""

P = ParamSpec("P")
R = TypeVar("R")

WindowMode = Literal["time", "consecutive", "calls"]
MODES: tuple[WindowMode, ...] = ("time", "consecutive", "calls")

Counts = type[BaseException] | tuple[type[BaseException], ...] | Callable[[BaseException], bool]
"""What counts as a failure: types of exceptions, or a function that is asked."""

ERROR_LENGTH = 500
"""Characters that are kept of an error. Chosen, not measured."""

logger = logging.getLogger("loki")


class Breaker(_core.Breaker):
    """Refuses calls to what has failed too often, until it is back.

    CLOSED lets calls through, and trips at ``threshold`` failures within ``window``. OPEN refuses
    them until ``cooldown`` is over. HALF_OPEN lets single probes through, and closes after
    ``recovery_threshold`` successes or opens again at the first failure. Safe to share between
    threads and tasks.

    Use ``guard()`` with ``with`` or ``async with``, ``protect`` as a decorator, or ``try_acquire``
    and the permit's ``success()``, ``failure(error)`` and ``ignore()``.

    Args:
        threshold: failures that trip it, 1 or more; of no account where ``failure_rate`` is given.
        window: how long a failure counts: seconds, a ``timedelta`` or text like ``"60s"``, as all
            durations here. It slides, and successes do not clear it.
        cooldown: how long it stays open.
        half_open_interval: least time between the starts of two probes.
        recovery_threshold: consecutive successful probes that close it.
        probe_lease: a probe not reported by then frees its slot, and its outcome is void.
        clock: a `loki.base.time.Clock`; None: the machine's.
        name: shown in errors and to listeners.
        window_mode: ``"time"``; ``"consecutive"``: failures since the last success count, however
            old; ``"calls"``: failures among the last ``window_calls`` calls.
        window_calls: see there; rates look at no more than so many calls of the window.
        cooldown_multiplier: growth of the cooldown per trip without a recovery between, 1 or more.
        cooldown_cap: the longest cooldown.
        failure_rate: share of failed calls in the window that trips it, in (0, 1], in place of
            ``threshold``.
        minimum_calls: with fewer calls than this in the window there is no rate.
        slow_call_duration: a call that takes this long is slow.
        slow_call_rate: share of slow calls that trips it, too; a slow probe is a failed one.
        counts: exceptions that count as failures; others count nothing, nor does what is no
            `Exception` (a cancellation, Ctrl-C).
        counts_result: whether what a protected function returned counts as a failure.

    The defaults of ``window_calls`` and ``minimum_calls`` are chosen, not measured.

    Raises:
        ValueError: an argument outside its range, or arguments that contradict each other.
        TypeError: an argument that is nothing of its kind.

    Example:
        >>> breaker = Breaker(threshold=1, name="api/claude")
        >>> with breaker.guard():
        ...     raise OSError("connection lost")
        Traceback (most recent call last):
        OSError: connection lost
        >>> breaker
        <Breaker 'api/claude': OPEN>
        >>> breaker.try_acquire() is None
        True
        >>> breaker.close()
        >>> with breaker.guard():
        ...     print("called")
        called
    """

    def __init__(  # noqa: PLR0913 - each is a knob of its own
        self,
        threshold: int = 3,
        window: Duration = 60,
        cooldown: Duration = 300,
        half_open_interval: Duration = 10,
        recovery_threshold: int = 3,
        probe_lease: Duration = 600,
        clock: Clock | None = None,
        *,
        name: str = "breaker",
        window_mode: WindowMode = "time",
        window_calls: int = 100,
        cooldown_multiplier: float = 1.0,
        cooldown_cap: Duration = "24h",
        failure_rate: float | None = None,
        minimum_calls: int = 10,
        slow_call_duration: Duration | None = None,
        slow_call_rate: float | None = None,
        counts: Counts = Exception,
        counts_result: Callable[[Any], bool] | None = None,
    ) -> None:
        if window_mode not in MODES:
            raise ValueError(
                f"unknown window_mode {window_mode!r}: expected one of {', '.join(MODES)}"
            )
        config = _core.BreakerConfig()
        config.mode = MODES.index(window_mode)
        config.cooldown_multiplier = cooldown_multiplier
        config.threshold = _count("threshold", threshold)
        config.recovery_threshold = _count("recovery_threshold", recovery_threshold)
        config.window_calls = _count("window_calls", window_calls)
        config.minimum_calls = _count("minimum_calls", minimum_calls)
        config.failure_rate = _rate("failure_rate", failure_rate)
        config.slow_call_rate = _rate("slow_call_rate", slow_call_rate)
        config.window_ns = argument_nanoseconds("window", window)
        config.cooldown_ns = argument_nanoseconds("cooldown", cooldown)
        config.cooldown_cap_ns = argument_nanoseconds("cooldown_cap", cooldown_cap)
        config.half_open_interval_ns = argument_nanoseconds(
            "half_open_interval", half_open_interval
        )
        config.probe_lease_ns = argument_nanoseconds("probe_lease", probe_lease)
        config.slow_call_duration_ns = argument_nanoseconds(
            "slow_call_duration", 0 if slow_call_duration is None else slow_call_duration
        )
        self._config = config
        super().__init__(config, clock.monotonic if clock is not None else None)
        self.name = name
        # Not SystemClock: one call of C, as refusals are meant to be cheap.
        self._epoch = time.time if clock is None else lambda: clock.now().timestamp()
        self._counts_error = _checked(counts)
        self._counts_result = None if counts_result is None else called(counts_result)
        self._listeners: list[Callable[[Transition], object]] = []
        self._announcing = threading.Lock()

    def protect(self, function: Callable[P, R]) -> Callable[P, R]:
        """A function, or coroutine function, that passes this breaker at each call.

        Args:
            function: what is called. A generator does its work after it has returned, when nobody
                watches any more, so there is no protecting it.

        Raises:
            TypeError: it is a generator function, or nothing that can be called.
            BreakerOpen: at a call that is refused.

        Example:
            >>> @Breaker(name="api/claude").protect
            ... def ask(question):
            ...     return question.upper()
            >>> ask("why?")
            'WHY?'
        """
        kinds = (called(function), type(function).__call__)
        if any(inspect.isgeneratorfunction(k) or inspect.isasyncgenfunction(k) for k in kinds):
            raise TypeError(
                f"{function!r} is a generator function: expected a function or a coroutine "
                "function; guard what it calls instead"
            )
        if any(map(inspect.iscoroutinefunction, kinds)):
            return self._protect_coroutine(function)
        guard, counts_result = self.guard, self._counts_result

        @functools.wraps(function)
        def protected(*args: P.args, **kwargs: P.kwargs) -> R:
            with guard() as permit:
                result = function(*args, **kwargs)
                if counts_result is not None:
                    self._judge_result(permit, result)
                return result

        return protected

    def _protect_coroutine(self, function: Callable[P, R]) -> Callable[P, R]:
        guard, counts_result = self.guard, self._counts_result
        coroutine = cast("Callable[P, Awaitable[Any]]", function)

        @functools.wraps(coroutine)
        async def protected(*args: P.args, **kwargs: P.kwargs) -> Any:
            with guard() as permit:
                result = await coroutine(*args, **kwargs)
                if counts_result is not None:
                    self._judge_result(permit, result)
                return result

        return cast("Callable[P, R]", protected)

    def listen(self, listener: Callable[[Transition], object]) -> Callable[[Transition], object]:
        """Call ``listener`` with every `Transition` from now on; returns it.

        It is called after the fact, outside any lock, one at a time and in the order of the
        transitions, by whichever thread comes along. It may use the breaker. What it raises is
        logged, and harms nobody.

        Example:
            >>> breaker = Breaker(threshold=1, name="api/claude")
            >>> _ = breaker.listen(lambda change: print(change.before, "->", change.after))
            >>> breaker.open()
            CLOSED -> OPEN
        """
        self._listeners.append(called(listener))
        return listener

    def snapshot(self) -> BreakerSnapshot:
        """The breaker as it is now, without moving it.

        Example:
            >>> Breaker().snapshot().state
            'CLOSED'
        """
        view, now_ns = self._view()
        then_ns, epoch = at_one_moment(self._now_ns, self._epoch)

        def moment(ns: int | None) -> datetime | None:
            return None if ns is None else _time_of_day(epoch, ns - then_ns)

        retry_ns = view.retry_at_ns
        return BreakerSnapshot(
            name=self.name,
            state=STATES[view.state],
            is_isolated=view.is_isolated,
            is_probing=view.is_probing,
            failure_count=view.failure_count,
            success_count=view.success_count,
            trips=view.trips,
            generation=view.generation,
            last_failure_time=moment(view.last_failure_ns),
            last_state_change=moment(view.last_change_ns),
            cooldown_until=moment(view.cooldown_until_ns),
            failure_window_start=moment(view.window_start_ns),
            retry_after=None if retry_ns is None else (retry_ns - now_ns) / 1e9,
            last_error=view.last_error,
            counts=BreakerCounts(*self._counts()),
        )

    def __repr__(self) -> str:
        view, _ = self._view()
        isolated = ", isolated" if view.is_isolated else ""
        return f"<{type(self).__name__} {self.name!r}: {STATES[view.state]}{isolated}>"

    def _repr_html_(self) -> str:
        return breaker_html(self.snapshot())

    # --- What the core calls, never under its lock ------------------------------------------------

    def _announce(self) -> None:
        # One thread tells all; whoever finds it at work leaves its own news to it, so that the
        # order holds. It looks once more after it has let go: nothing is left lying.
        while self._has_news():
            if not self._announcing.acquire(blocking=False):
                return
            try:
                for before, after, at_ns in self._take_news():
                    self._tell(before, after, at_ns)
            finally:
                self._announcing.release()

    def _tell(self, before: int, after: int, at_ns: int) -> None:
        listeners = tuple(self._listeners)
        if not listeners:
            return
        then_ns, epoch = at_one_moment(self._now_ns, self._epoch)
        at = _time_of_day(epoch, at_ns - then_ns)
        change = Transition(self.name, STATES[before], STATES[after], at)
        for listener in listeners:
            try:
                listener(change)
            except Exception:
                logger.exception("a listener of the breaker %s raised", self.name)

    def _refuse(self, retry_after: float | None, last_error: str) -> NoReturn:
        raise BreakerOpen(self.name, retry_after, self._epoch(), last_error)

    def _judge(self, permit: Permit, error: BaseException) -> None:
        if self._is_failure(error):
            permit.failure(error)
        else:
            permit.ignore()

    def _is_failure(self, error: BaseException) -> bool:
        if not isinstance(error, Exception):
            return False
        counts = self._counts_error
        if isinstance(counts, type | tuple):
            return isinstance(error, counts)
        try:
            return bool(counts(error))
        except Exception:
            logger.exception("what counts as a failure of %s could not be asked", self.name)
            return True

    def _judge_result(self, permit: Permit, result: object) -> None:
        assert self._counts_result is not None
        if self._counts_result(result):
            permit.failure(f"returned {result!r}")

    def _asked(self, retry_after: Duration) -> int:
        """Nanoseconds that a service asks to wait."""
        return argument_nanoseconds("retry_after", retry_after)

    def _describe(self, error: object) -> str:
        """What is kept of an error: its type and text, without secrets, not too long."""
        if error is None:
            return ""
        try:
            text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        except Exception:
            text = type(error).__name__

        text = mask_secrets(text.encode("utf-8", "replace").decode("utf-8"))
        return text if len(text) <= ERROR_LENGTH else text[: ERROR_LENGTH - 1] + "…"


def _checked(counts: Counts) -> Counts:
    if isinstance(counts, type | tuple):
        kinds = counts if isinstance(counts, tuple) else (counts,)
        if all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
            return counts
    elif callable(counts):
        return counts
    raise TypeError(
        f"counts is {counts!r}: expected a type of exceptions, a tuple of them or a function"
    )


def _count(name: str, value: int) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{name} is {value!r}: expected a whole number")
    if not 1 <= value < 2**32:
        raise ValueError(f"{name} is {value}: expected 1 to 2**32 - 1")
    return value


def _rate(name: str, value: float | None) -> float:
    if value is None:
        return 0.0
    if not 0 < value <= 1:
        raise ValueError(f"{name} is {value}: expected a share above 0, at most 1")
    return value


def _time_of_day(epoch: float, later_ns: int) -> datetime:
    """Of whole milliseconds, as files hold it: two looks at one change differ by microseconds."""
    return datetime.fromtimestamp(round(epoch + later_ns / 1e9, 3), timezone.utc)

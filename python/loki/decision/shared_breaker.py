"""One breaker of `loki.Breakers`, and its permits."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypeVar, cast

from loki import _core
from loki._core import BreakerEventKind as Kind
from loki.decision.breaker import Breaker
from loki.decision.breaker_snapshot import BreakerSnapshot

if TYPE_CHECKING:
    from loki.base.time import Clock, Duration

P = ParamSpec("P")
R = TypeVar("R")

Change = tuple[int, int, int]
"""(state before, state after, nanoseconds), as the core has it."""


class Home(Protocol):
    """What a breaker needs of the `loki.Breakers` that it belongs to."""

    def now_ns(self) -> int:
        """Nanoseconds of the monotonic clock."""

    def look_if_due(self) -> int:
        """Look at the file, if the last look is old; now, in nanoseconds."""

    def refresh(self) -> None:
        """Look at the file."""

    def together(
        self,
        breaker: SharedBreaker,
        kind: Kind,
        permit: _core.BreakerPermit | None = None,
        error: str = "",
        *asked: int,
    ) -> _core.BreakerReply:
        """What an event does, by what the file says."""

    def drop(self, permit: SharedPermit) -> None:
        """Free a probe's slot soon."""


class SharedPermit:
    """Leave for one call: report ``success()``, ``failure(error)`` or ``ignore()``, once.

    As a context manager it does so by itself. One that is dropped counts nothing.
    """

    __slots__ = ("_breaker", "_value")

    is_probe = False
    """Whether this call finds out if the other side is back."""

    def __init__(self, breaker: SharedBreaker, value: _core.BreakerPermit) -> None:
        """Use `SharedBreaker.try_acquire` or `SharedBreaker.guard`."""
        self._breaker = breaker
        self._value = [value]  # taken out by whoever reports first

    def success(self) -> None:
        """The call went well."""
        self._report(Kind.SUCCESS)

    def failure(self, error: object = None, retry_after: Duration | None = None) -> None:
        """The call failed; the error, an exception or a text, is shown to those that are refused.

        Where it trips the breaker, ``retry_after`` is for how long: what the service asked for.
        """
        asked = () if retry_after is None else (self._breaker._asked(retry_after),)
        self._report(Kind.FAILURE, self._breaker._describe(error), *asked)

    def ignore(self) -> None:
        """Neither: cancelled, or an error that says nothing about the other side."""
        self._report(Kind.IGNORE)

    def _report(self, kind: Kind, error: str = "", *asked: int) -> None:
        try:
            value = self._value.pop()
        except IndexError:
            return  # somebody has reported
        self._breaker._take(kind, value, error, *asked)

    def __enter__(self) -> SharedPermit:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> Literal[False]:
        if error is None:
            self._report(Kind.SUCCESS)
        else:
            self._breaker._judge(cast("_core.Permit", self), error)
        return False

    async def __aenter__(self) -> SharedPermit:
        return self

    async def __aexit__(
        self, kind: object, error: BaseException | None, trace: object
    ) -> Literal[False]:
        if error is None and not self.is_probe:
            self._report(Kind.SUCCESS)
        else:
            # The disk takes milliseconds, which the loop has not; a cancellation does not stop it.
            import asyncio  # there already, where somebody awaits

            await asyncio.shield(asyncio.to_thread(self.__exit__, kind, error, trace))
        return False


class Probe(SharedPermit):
    """Leave for the one call that finds out if the other side is back."""

    __slots__ = ()

    is_probe = True

    def __del__(self) -> None:
        # Anything may be under way here, also what holds the lock that a report would wait for.
        if self._value:
            self._breaker._home.drop(SharedPermit(self._breaker, self._value.pop()))


class SharedBreaker(Breaker):
    """A `loki.Breaker` that other processes see: one of `loki.Breakers`."""

    def __init__(
        self, home: Home, name: str, clock: Clock | None, arguments: Mapping[str, Any]
    ) -> None:
        """Use `loki.Breakers`."""
        super().__init__(**{**arguments, "name": name, "clock": clock})
        self._home = home
        self._shared = _core.SharedBreaker(name, self._config)
        self._news: deque[Change] = deque()

    def try_acquire(self) -> SharedPermit | None:  # type: ignore[override]
        """Leave for one call; None: refused. Report what came of it to the permit."""
        now_ns = self._home.look_if_due()
        permit = self._shared.acquire_closed(now_ns) or self._send(now_ns, Kind.ACQUIRE).permit
        return self._permit(permit) if permit is not None else None

    def guard(self) -> SharedPermit:  # type: ignore[override]
        """Leave for one call, for ``with`` and ``async with``.

        Raises:
            BreakerOpen: it is refused.
        """
        now_ns = self._home.look_if_due()
        permit = self._shared.acquire_closed(now_ns)
        if permit is None:
            reply = self._send(now_ns, Kind.ACQUIRE)
            permit, at = reply.permit, reply.retry_at_ns
            if permit is None:
                wait = None if at is None else (at - now_ns) / 1e9
                self._refuse(wait, self._view()[0].last_error)
        return self._permit(permit)

    def snapshot(self) -> BreakerSnapshot:
        """The breaker as it is now, for all processes, without moving it."""
        self._home.refresh()
        return super().snapshot()

    def open(self) -> None:
        """Refuse calls for one cooldown from now, as if it had tripped."""
        self._home.together(self, Kind.OPEN)

    def close(self) -> None:
        """Let calls go out, as after a recovery; a closed breaker is left as it is."""
        self._home.together(self, Kind.CLOSE)

    def reset(self) -> None:
        """Close it and forget all failures, also those of a closed one."""
        self._home.together(self, Kind.RESET)

    def isolate(self) -> None:
        """Refuse calls until somebody closes, resets or opens it."""
        self._home.together(self, Kind.ISOLATE)

    def expire(self) -> None:
        """Let time do its part now: an open breaker whose cooldown is over becomes half open."""
        self._send(self._home.look_if_due(), Kind.EXPIRE)

    def _protect_coroutine(self, function: Callable[P, R]) -> Callable[P, R]:
        coroutine = cast("Callable[P, Awaitable[Any]]", function)

        @functools.wraps(coroutine)
        async def protected(*args: P.args, **kwargs: P.kwargs) -> Any:
            async with self.guard() as permit:
                result = await coroutine(*args, **kwargs)
                if self._counts_result is not None and self._counts_result(result):
                    import asyncio

                    await asyncio.to_thread(permit.failure, f"returned {result!r}")
                return result

        return cast("Callable[P, R]", protected)

    # --- what the front of a breaker asks its core ------------------------------------------------

    def _send(
        self,
        now_ns: int,
        kind: Kind,
        permit: _core.BreakerPermit | None = None,
        error: str = "",
        *asked: int,
    ) -> _core.BreakerReply:
        reply = self._shared.locally(kind, permit, error, now_ns, *asked)
        return self._home.together(self, kind, permit, error, *asked) if reply is None else reply

    def _permit(self, value: _core.BreakerPermit) -> SharedPermit:
        return (Probe if value.is_probe else SharedPermit)(self, value)

    def _take(self, kind: Kind, permit: _core.BreakerPermit, error: str, *asked: int) -> None:
        if kind is not Kind.SUCCESS or not self._shared.success_closed(permit):
            self._send(self._now_ns(), kind, permit, error, *asked)

    def _hear(self, *changes: Change | None) -> None:
        self._news.extend(change for change in changes if change is not None)

    def _now_ns(self) -> int:
        return self._home.now_ns()

    def _has_news(self) -> bool:
        return bool(self._news)

    def _take_news(self) -> list[Change]:
        return [self._news.popleft() for _ in range(len(self._news))]

    def _view(self) -> tuple[_core.BreakerView, int]:
        now_ns = self._now_ns()
        return self._shared.view(now_ns), now_ns

    def _counts(self) -> tuple[int, int, int, int, int, int, int]:
        return self._shared.counts()

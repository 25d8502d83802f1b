"""Circuit breakers that processes share through a file, and that survive a restart.

A thin join: what an event does to a breaker, and whether others must see it, is the C++ core's; the
disk is `loki.decision.breakers_file`'s. ``docs/design/breakers.md`` says what is exact, what is seen
a moment later, and what it costs.
"""

from __future__ import annotations

import atexit
import functools
import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Literal, ParamSpec, TypeVar, cast

from loki import _core
from loki._core import BreakerEventKind as Kind
from loki._core import BreakerMoment, BreakerPermit, BreakerReply, BreakersFile
from loki.base.argument_checks import called
from loki.base.error import StoreError
from loki.base.locks import boot_id
from loki.base.time import Clock, Duration, SystemClock, argument_nanoseconds, at_one_moment
from loki.decision.breaker import STATES, Breaker, BreakerSnapshot, Transition, named_arguments
from loki.decision.breakers_file import (
    BreakersCompaction,
    Content,
    SharedFile,
    TransitionLog,
    moment,
    owner,
)

# --- One breaker of `loki.Breakers`, and its permits --------------------------------------------------

P = ParamSpec("P")
R = TypeVar("R")

Change = tuple[int, int, int]
"""(state before, state after, nanoseconds), as the core has it."""


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
        self, home: Breakers, name: str, clock: Clock | None, arguments: Mapping[str, Any]
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

    # --- What the front of a breaker asks its core ------------------------------------------------

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
        return list(_taken(self._news))

    def _view(self) -> tuple[_core.BreakerView, int]:
        now_ns = self._now_ns()
        return self._shared.view(now_ns), now_ns

    def _counts(self) -> tuple[int, int, int, int, int, int, int]:
        return self._shared.counts()


# --- All breakers of a file ---------------------------------------------------------------------------

T = TypeVar("T")

RETRY_SECONDS = 5.0
"""How long a disk that failed is left alone. Chosen, not measured."""

MANY = 8
"""Breakers for which a long file is rather read as a whole. Chosen, not measured."""

_OFTEN = frozenset({Kind.ACQUIRE, Kind.SUCCESS, Kind.FAILURE, Kind.IGNORE})
"""What happens at calls; all else is done by a person, and seen in the file at once."""

logger = logging.getLogger("loki")


class Breakers:
    """Breakers by name, shared by all processes that use the same file.

    Failures, changes of state and probes are written before they are acknowledged, and none is
    lost; a call through a breaker that is closed touches no file. Where the disk fails, this
    process goes on in memory, and says so once. Safe to share between threads and tasks.

    Args:
        path: the file, usually ``.loki/state/circuit-breakers.json``; it need not exist. One that
            cannot be read is set aside as ``….corrupt-1`` with one warning, and all start closed.
        clock: where time comes from; None: the machine's.
        look_every: how old what is known of other processes may be when a call is let through.
        recovery_log: gets a line for each breaker that this process closes; None: ``logs/
            circuit-recovery.log`` beside the file's folder, where that is called ``state``. There
            all transitions are kept, too: ``breaker-transitions.jsonl``.
        named: arguments of `loki.Breaker` for single names, or for globs of names, beside ``knobs``;
            of several globs that fit the first counts.
        settings: arguments of `loki.Breaker` for all: ``threshold``, ``window``, ``cooldown``, …

    Raises:
        ValueError: an argument outside its range.

    Example:
        >>> import tempfile
        >>> path = tempfile.mkdtemp() + "/circuit-breakers.json"
        >>> breakers = Breakers(path, threshold=1)
        >>> with breakers.guard("api/claude"):
        ...     raise OSError("connection lost")
        Traceback (most recent call last):
        OSError: connection lost
        >>> Breakers(path)["api/claude"]
        <SharedBreaker 'api/claude': OPEN>
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        clock: Clock | None = None,
        look_every: Duration = "100ms",
        recovery_log: str | os.PathLike[str] | None = None,
        named: Mapping[str, Mapping[str, Any]] | None = None,
        **settings: Any,
    ) -> None:
        if isinstance(clock, SystemClock):
            clock = None
        self._file = SharedFile(path)
        self._clock: Clock = clock or SystemClock()
        self._given_clock = clock
        self._monotonic = time.monotonic if clock is None else clock.monotonic
        self._boot_id = boot_id() if clock is None else str(getattr(clock, "boot_id", ""))
        self._look_every = argument_nanoseconds("look_every", look_every) / 1e9
        self._look_at = 0.0
        self._log = TransitionLog(self._file.path, recovery_log)
        self._named = {name: {**settings, **own} for name, own in (named or {}).items()}
        self._settings = settings
        for arguments in (settings, *self._named.values()):
            Breaker(**arguments)  # refused here, not at the first call
        self._lock = threading.Lock()  # threads queue here, not at the file's lock
        self._breakers: dict[str, SharedBreaker] = {}
        self._listeners: list[Callable[[Transition], object]] = []
        self._dropped: deque[SharedPermit] = deque()
        self._warnings: deque[str] = deque()
        self._has_warned, self._not_before = False, 0.0
        self._unwritten: dict[str, SharedBreaker] = {}  # what the file may not have of them
        self._folding = BreakersCompaction(self._file, self._lock, self._complain)
        _all.add(self)

    def __getitem__(self, name: str) -> SharedBreaker:
        """The breaker of that name, which need not exist yet.

        Raises:
            ValueError: the name is no text, or holds half a character (a lone surrogate).
        """
        found = self._breakers.get(name)
        if found is None:
            self._add([name])
        return found or self._breakers[name]

    def __iter__(self) -> Iterator[str]:
        """Names of all breakers that the file has, or that were used here."""
        return iter(self.names())

    def names(self) -> list[str]:
        """Names of all breakers that the file has, or that were used here, sorted."""
        kept: list[str] = []
        with self._locked():
            try:
                kept = self._file.read().whole().names()
            except ValueError:
                try:
                    with self._file.lock():
                        self._whole()
                except StoreError as problem:
                    self._complain(problem)
            except StoreError:
                pass
            return sorted({*kept, *self._breakers})

    def guard(self, name: str) -> SharedPermit:
        """Leave for one call, for ``with`` and ``async with``.

        Raises:
            BreakerOpen: it is refused.
        """
        return self[name].guard()

    def protect(self, name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """A decorator: the function, or coroutine function, passes that breaker at each call."""
        return self[name].protect

    def listen(self, listener: Callable[[Transition], object]) -> Callable[[Transition], object]:
        """Call ``listener`` with every transition of every breaker, other processes' too.

        Those are told when they are seen: at the next call, or at `refresh`; also of breakers that
        were never used here. The rest is as for `Breaker.listen`.
        """
        self._add(self.names())
        with self._lock:
            self._listeners.append(called(listener))
            for breaker in self._breakers.values():
                breaker.listen(listener)
        return listener

    def refresh(self) -> None:
        """See now what other processes have done, instead of at the next call."""
        self._look_at = 0.0
        self._look(wait=True)

    def snapshot(self) -> dict[str, BreakerSnapshot]:
        """All breakers as they are now, by name, without moving any."""
        self.refresh()
        names = self.names()
        self._add(names)
        return {name: Breaker.snapshot(self[name]) for name in names}

    # --- For the breakers -------------------------------------------------------------------------

    def now_ns(self) -> int:
        """Nanoseconds of the monotonic clock."""
        return round(self._monotonic() * 1e9)

    def look_if_due(self) -> int:
        """Look at the file, if the last look is old; now, in nanoseconds."""
        now = self._monotonic()
        if now >= self._look_at:
            self._look()
        return round(now * 1e9)

    def together(
        self,
        breaker: SharedBreaker,
        kind: Kind,
        permit: BreakerPermit | None = None,
        error: str = "",
        *asked: int,
    ) -> BreakerReply:
        """What an event does, by what the file says; written, if it changes that."""
        with self._locked():
            reply = self._together(breaker, kind, permit, error, *asked)
        change = reply.change
        if change is not None:
            before, after = STATES[change[0]], STATES[change[1]]
            tripped = error if after == "OPEN" else ""
            self._log.keep(breaker.name, before, after, self._clock.now(), tripped)
        breaker._announce()
        return reply

    def drop(self, permit: SharedPermit) -> None:
        """Free a probe's slot soon; called where nothing may wait or fail."""
        self._dropped.append(permit)
        self._look_at = 0.0

    # --- Under the lock ---------------------------------------------------------------------------

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._lock:
            yield
        self._warn()

    def _together(
        self,
        breaker: SharedBreaker,
        kind: Kind,
        permit: BreakerPermit | None = None,
        error: str = "",
        *asked: int,
    ) -> BreakerReply:
        core = breaker._shared
        reply = None
        if self._monotonic() >= self._not_before:
            try:
                with self._file.lock():
                    before, content = self._content(breaker)
                    reply = core.together(
                        kind, permit, error, content, self._moment(), owner(), *asked
                    )
                    at_once = reply.change is not None or kind not in _OFTEN
                    if reply.is_to_write and not self._file.write(
                        before, breaker.name, content, at_once=at_once
                    ):
                        self._folding.later()
                self._unwritten.pop(breaker.name, None)
            except StoreError as problem:
                self._complain(problem)
                if reply is not None:
                    core.note_unwritten()
                    self._unwritten[breaker.name] = breaker
        if reply is None:
            self._unwritten[breaker.name] = breaker
            reply = core.alone(kind, permit, error, self.now_ns(), *asked)
        breaker._hear(reply.learned, reply.change)
        return reply

    def _content(self, breaker: SharedBreaker) -> tuple[Content, BreakersFile]:
        """The file, and a breaker's part; what of it cannot be read set aside; needs its lock."""
        before = self._whole()
        content = before.entry(breaker.name)
        try:
            breaker._shared.check(content, self._moment())
        except ValueError as flaw:
            self._warn_aside(self._file.copy_aside(), f"{breaker.name}: {flaw}")
            content.remove(breaker.name)
        return before, content

    def _whole(self) -> Content:
        try:
            return self._file.read()
        except ValueError as flaw:
            self._warn_aside(self._file.set_aside(), str(flaw))
            return Content(b"{}")

    def _look(self, *, wait: bool = False) -> None:
        if not self._lock.acquire(blocking=wait):
            return  # somebody is at it
        try:
            self._look_at = self._monotonic() + self._look_every
            if self._file.has_changed():
                self._take_over(list(self._breakers.values()))
            if self._unwritten and self._monotonic() >= self._not_before:
                self._write_the_rest()
            breakers = list(self._breakers.values())
        finally:
            self._lock.release()
        self._warn()
        for permit in _taken(self._dropped):
            permit.ignore()
        for breaker in breakers:
            breaker._announce()

    def _write_the_rest(self) -> None:
        """Write what could not be written when it happened."""
        for breaker in list(self._unwritten.values()):
            self._together(breaker, Kind.NONE)

    def _end(self) -> None:
        """The process ends: nobody would ever write what could not be written yet."""
        if self._file.has_folder() and self._lock.acquire(timeout=1):
            try:
                self._not_before = 0.0
                self._write_the_rest()
                self._folding.at_end()
            finally:
                self._lock.release()

    def _take_over(self, breakers: list[SharedBreaker]) -> None:
        whole: BreakersFile | None = None
        try:
            seen = self._file.read()
            if seen.has_lines:
                self._folding.later()
            if self._listeners or len(breakers) > MANY:
                whole = seen.whole()
        except ValueError:
            seen = None
        except StoreError as problem:
            self._complain(problem)
            return
        if whole is not None and self._listeners:
            others = [name for name in whole.names() if name not in self._breakers]
            breakers = [*breakers, *map(self._new, others)]
        for breaker in breakers:
            try:
                if seen is None:
                    raise ValueError
                content = whole or seen.entry(breaker.name)
                learned, is_to_mend = breaker._shared.look(content, self._moment())
                breaker._hear(learned)
            except ValueError:
                is_to_mend = True
            if is_to_mend:
                self._together(breaker, Kind.NONE)

    def _add(self, names: Iterable[str]) -> None:
        with self._locked():
            breakers = [self._new(name) for name in names if name not in self._breakers]
            if breakers:
                self._take_over(breakers)
            for breaker in breakers:
                breaker._news.clear()  # how it was found is nothing new

    def _new(self, name: str) -> SharedBreaker:
        if not isinstance(name, str) or _is_broken(name):
            raise ValueError(f"{name!r} is no name of a breaker: expected a text in Unicode")
        arguments = named_arguments(name, self._named, self._settings)
        breaker = SharedBreaker(self, name, self._given_clock, arguments)
        for listener in self._listeners:
            breaker.listen(listener)
        self._breakers[name] = breaker
        return breaker

    # --- The edge ---------------------------------------------------------------------------------

    def _moment(self) -> BreakerMoment:
        return moment(*at_one_moment(self.now_ns, self._clock.now), self._boot_id)

    def _complain(self, problem: StoreError) -> None:
        self._not_before = self._monotonic() + RETRY_SECONDS
        if not self._has_warned:
            self._has_warned = True
            self._warnings.append(
                f"Could not persist: {problem}. Going on; breakers are kept in memory."
            )

    def _warn_aside(self, aside: str, flaw: str) -> None:
        aside = os.path.basename(aside)
        self._warnings.append(f"{self._file.path}: {flaw}; set aside as {aside}, starting closed")

    def _warn(self) -> None:
        """Say what came up under the lock: whoever handles it may use a breaker."""
        for warning in _taken(self._warnings):
            logger.warning("%s", warning)

    def _begin_anew(self) -> None:
        """In a child of fork: the threads that may have held locks are not there."""
        self._lock = threading.Lock()
        self._folding = BreakersCompaction(self._file, self._lock, self._complain)
        for breaker in self._breakers.values():
            breaker._announcing = threading.Lock()


_all: weakref.WeakSet[Breakers] = weakref.WeakSet()


def _after_fork() -> None:
    for breakers in list(_all):
        breakers._begin_anew()


os.register_at_fork(after_in_child=_after_fork)


@atexit.register
def _at_exit() -> None:
    for breakers in list(_all):
        breakers._end()


def _taken(queue: deque[T]) -> Iterator[T]:
    """What is in a queue that several threads empty."""
    with suppress(IndexError):
        while True:
            yield queue.popleft()


def _is_broken(name: str) -> bool:
    return name.encode("utf-8", "ignore").decode("utf-8") != name

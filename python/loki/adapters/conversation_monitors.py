"""A monitor for each conversation of an agent, which tells the signs that a scope says."""

from __future__ import annotations

import weakref
from asyncio import shield, to_thread
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from uuid import uuid4

from loki.adapters.monitor.monitor import Monitor
from loki.adapters.scope import CONVERSATION, NOBODYS, PROJECT, SCOPES, Scope, name_of
from loki.base.time import argument_seconds

if TYPE_CHECKING:
    from loki.base.time import Duration
    from loki.memory.signs import Signs

_K = TypeVar("_K")
P = ParamSpec("P")
T = TypeVar("T")

KEPT = 512
"""Conversations and stops that are kept; who comes back later is one that is new. Chosen."""

SHORT = 20_000
"""Characters that are read within about a millisecond; see `loki.recognition`. Chosen."""

RUNNING: ContextVar[str] = ContextVar("conversation", default="")
"""The conversation that is under way here, for frameworks that do not say which one it is."""


def keep(kept: OrderedDict[_K, Any], key: _K) -> None:
    """Keep an entry as the newest one, and drop the oldest ones that are too many."""
    kept.move_to_end(key)
    while len(kept) > KEPT:
        kept.popitem(last=False)


class Monitors:
    """A monitor for each conversation.

    Args:
        monitor: what decides; a project's folder: one for that.
        agent: the agent's name in such a one.
        scope: whose signs a conversation is told.
        wait: how long a call of a model waits until its breaker lets it out; None: as the monitor says.
    """

    def __init__(
        self,
        monitor: Monitor | str | Path,
        agent: str,
        scope: Scope[Any],
        wait: Duration | None = None,
    ) -> None:
        self.monitor = monitor if isinstance(monitor, Monitor) else Monitor(monitor, agent=agent)
        if wait is not None:
            self.monitor.wait = argument_seconds("wait", wait)
        self.scope = scope
        self._guard = RLock()
        self._monitors: OrderedDict[str, Monitor] = OrderedDict()
        self._left: Monitor | None = None

    @contextmanager
    def running(self, **options: Any) -> Iterator[None]:
        """What is heard in here, and in tasks and threads begun here, is of one conversation.

        Args:
            options: the run's: a ``session``, which has its ``session_id``, or a ``conversation_id``,
                without which it is a new one; ``context``, from which a scope may be told.
        """
        name = getattr(options.get("session"), "session_id", None) or options.get("conversation_id")
        token = RUNNING.set(str(name or uuid4().hex))
        self.scoped("", options.get("context"))
        try:
            yield
        finally:
            RUNNING.reset(token)

    def of(self, conversation: str = "") -> Monitor:
        """The monitor of one conversation; "": of the one that is `running`.

        Where nobody knows it, as where processes share a session, there is one for all of them.
        """
        conversation = self.monitor.session or conversation or RUNNING.get()
        with self._guard:
            known = self._monitors.get(conversation) or self._left or self._beside(conversation)
            self._left = None if known is self._left else self._left
            self._monitors[conversation] = known
            keep(self._monitors, conversation)
            return known

    def scoped(self, conversation: str = "", context: Any = None) -> Monitor:
        """The same, of which the run's context is known, from which a scope may be told."""
        monitor = self.of(conversation)
        if callable(self.scope) and context is not None:
            of = self.monitor.session or conversation or RUNNING.get()
            name = name_of(self.scope, of, context)
            if name and (monitor.signs is None or monitor.signs.branch != name):
                monitor.signs = self._signs(name)
        return monitor

    def _beside(self, conversation: str, *, counts: bool = True) -> Monitor:
        """A monitor like the given one that counts by itself, or what nobody hears of."""
        own = self.monitor
        name = name_of(CONVERSATION if callable(self.scope) else self.scope, conversation)
        made = Monitor(
            own.workspace,
            mapped=own.mapped,
            session=own.session if counts else None,
            above=own.above if counts else None,
            agent=own.agent,
            task=own.task,
            signs=own.signs if own.signs is not None or name is None else self._signs(name),
            clock=own.clock,
        )
        made.rules = own.rules
        return made

    def _signs(self, name: str) -> Signs:
        return SCOPES.signs(self.monitor.workspace.root, name, self.monitor.rules.signs)

    def close(self, of: str = "") -> None:
        """Close signs, so that nobody is told of them any more, and count anew.

        Args:
            of: a conversation's id, or a user's name; "": all that conversations of this one are told.
                Where that is the project's, its run is closed as by ``loki close``.

        Raises:
            UsageError: another run is at work in the project.
        """
        names = {f"user {of}", f"conversation {of}"} if of else set[str]()
        if not of and isinstance(self.scope, str):
            names.add(name_of(self.scope, "") or "")
        with self._guard:
            self._left = None
            for key, one in list(self._monitors.items()):
                name = (one.signs.branch or "") if one.signs else ""
                if not of or key == of or name in names:
                    self._monitors.pop(key).helped()  # a session that processes share goes on
                    names.add(name)
        SCOPES.close(self.monitor.workspace.root, names)
        if self.scope == PROJECT and not of:
            self.monitor.close()

    def instructions(self, of: str = "", context: Any = None) -> str:
        """The signs that a conversation is told; arguments: as `scoped` takes them.

        Where nobody knows which one it is it may be anybody's: it is told none of another.
        """
        monitor = self.scoped(of, context)
        is_nobodys = monitor.signs is not None and monitor.signs.branch == NOBODYS
        return "" if is_nobodys else monitor.instructions()

    async def ainstructions(self, of: str = "", context: Any = None) -> str:
        """The same, as `off` does it."""
        return await self.off("", self.instructions, of, context)

    async def off(self, given: object, work: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
        """Do work in a thread, where it may take its time: it is on the disk, or given much.

        Else a thread would cost more than the work. What is begun is ended, also if it is cancelled.

        Args:
            given: what it has to read.
            work: what is done; args, more: what it takes.
        """
        is_near = self.scope != PROJECT and self.monitor.session is None and is_short(given)
        if is_near:
            return work(*args, **more)
        return await shield(to_thread(work, *args, **more))

    def leave(self, monitor: Monitor) -> None:
        """Let the next conversation go on counting where a run has ended before its time.

        Where there are other conversations, or each has signs of its own, nobody knows whose it is.
        """
        with self._guard:
            is_alone = all(one is monitor for one in self._monitors.values())
            is_shared = isinstance(self.scope, str) and self.scope != CONVERSATION
            self._left = monitor if is_alone and is_shared else None


def is_short(given: object) -> bool:
    """Whether a tool's result is read at once.

    Example:
        >>> is_short("1 passed"), is_short({"stdout": "x" * 100_000}), is_short(ValueError("no"))
        (True, False, True)
    """
    if isinstance(given, Mapping):
        return len(given) < SHORT and all(
            isinstance(v, str | int | None) and is_short(v) for v in given.values()
        )
    return isinstance(given, BaseException | int | None) or (
        isinstance(given, str) and len(given) < SHORT
    )


def called(thing: object) -> str:
    """A name for an object that has none, which no other one has while the process lives.

    Args:
        thing: the object; of None and of what cannot be told from others, as a tuple, it is "".

    Example:
        >>> one, two = {1}, {2}
        >>> called(one) == called(one) != called(two), called(None)
        (True, '')
    """
    key = id(thing)
    known = _CALLED.get(key)
    if known is not None and known[0]() is thing:
        return known[1]

    def forget(_gone: object) -> None:
        _CALLED.pop(key, None)

    try:
        found = weakref.ref(thing, forget), uuid4().hex
    except TypeError:
        return ""
    _CALLED[key] = found
    return found[1]


_CALLED: dict[int, tuple[weakref.ref[Any], str]] = {}

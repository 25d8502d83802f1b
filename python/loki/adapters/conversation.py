"""What adapters share: where a text stands in a conversation, which are to be stopped, results of tools.

Under test: ``tests/py/adapters/test_conversation.py``.
"""

from __future__ import annotations

from asyncio import shield, to_thread
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from loki.decision.tool_result import text_blocks, tool_result
from loki.monitoring.monitor import Monitor

if TYPE_CHECKING:
    from loki.decision.monitor import Reaction
    from loki.decision.tool_call import ToolCall

_K = TypeVar("_K")
_T = TypeVar("_T")

KEPT = 512
"""Conversations and stops that are kept; who comes back later is one that is new. Chosen."""


class Conversations:
    """Places of texts in conversations.

    A text that loki adds to requests is no part of a conversation's messages. It goes to the end of
    the first request that has it and keeps that place in later ones: what stands before it stays
    byte for byte what the service has seen, so that its prompt cache holds.

    Thread-safe: agents run tools and conversations in parallel.
    """

    def __init__(self) -> None:
        self._places: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._lock = Lock()

    def place(self, conversation: str, text: str, end: int) -> int:
        """Where a text stands: the number of messages before it.

        Args:
            conversation: what tells it from others, its run's id for instance.
            text: what is added.
            end: messages that the conversation has now.

        Example:
            >>> kept = Conversations()
            >>> [kept.place("run", "a sign", end) for end in (3, 5, 7)], kept.place("run", "two", 7)
            ([3, 3, 3], 7)
        """
        with self._lock:
            at = min(end, self._places.setdefault((conversation, text), end))
            _keep(self._places, (conversation, text))
            return at


_RUNNING: ContextVar[str] = ContextVar("conversation", default="")


class Watch(Conversations):
    """A monitor that hears of tools' results as frameworks hand them on, and whose stops wait.

    Each conversation is counted by itself: agents are run at once, and for one person after the other.
    What one of them learns, the others are told by the signs. Calls are known by conversation and id, as
    some models number them anew in each.

    A stop waits for the next request to the model, so that every tool call that was made has its
    result in the messages: a conversation that ends in the middle of calls cannot be gone on with. Who
    goes on with one that was stopped is counted anew.

    Args:
        monitor: what decides; a project's folder: one for that.
        agent: the agent's name in such a one.
    """

    def __init__(self, monitor: Monitor | str | Path, agent: str) -> None:
        super().__init__()
        self.monitor = monitor if isinstance(monitor, Monitor) else Monitor(monitor, agent=agent)
        self._monitors: OrderedDict[str, Monitor] = OrderedDict()
        self._left: Monitor | None = None
        self._stops: OrderedDict[tuple[str, str], Reaction] = OrderedDict()
        self._raised: OrderedDict[tuple[str, str], BaseException] = OrderedDict()
        self._said: OrderedDict[tuple[str, str], str] = OrderedDict()

    @contextmanager
    def running(self, session: Any = None) -> Iterator[None]:
        """What is heard in here, and in tasks and threads begun here, is of one conversation.

        Args:
            session: what has its ``session_id``; None: it is a new one.
        """
        token = _RUNNING.set(str(getattr(session, "session_id", None) or uuid4().hex))
        try:
            yield
        finally:
            _RUNNING.reset(token)

    def of(self, conversation: str = "") -> Monitor:
        """The monitor of one conversation; "": of the one that is `running`.

        Where there is none, or several processes share a session, it is the one that was given.
        """
        conversation = conversation or _RUNNING.get()
        if not conversation or self.monitor.session is not None:
            return self.monitor
        with self._lock:
            known = self._monitors.get(conversation) or self._left or self._beside()
            self._left = None if known is self._left else self._left
            self._monitors[conversation] = known
            _keep(self._monitors, conversation)
            return known

    def _beside(self) -> Monitor:
        """A monitor like the given one that counts by itself."""
        own = self.monitor
        made = Monitor(own.workspace, agent=own.agent, task=own.task, clock=own.clock)
        made.rules = own.rules
        return made

    def raise_held(self, of: str, calls: Iterable[str]) -> None:
        """Stop, if one of these calls was a reason to.

        Args:
            of: the conversation; of one that is not known, as its first messages were summed up
                meanwhile, the calls alone decide.
            calls: ids of the calls whose results are in the request.

        Raises:
            AgentStuck: it was.
        """
        of, asked = of or _RUNNING.get(), set(calls)
        with self._lock:
            is_known = not of or of in self._monitors
            ours = [
                key for key in self._stops if key[1] in asked and (key[0] == of or not is_known)
            ]
            held = [self._stops.pop(key) for key in ours]
        for reaction in held:
            reaction.raise_if_stop()

    async def told(self, instructions: str | None, calls: Iterable[str]) -> str | None:
        """Instructions with the signs after them; calls: as `raise_held` takes them, and raises."""
        self.raise_held("", calls)
        signs = await self.monitor.ainstructions()
        return "\n\n".join(filter(None, (instructions, signs))) or None

    def raised(self, call: str, error: BaseException | None) -> None:
        """Keep what a tool raised until its framework tells what the model is to see of it."""
        if error is not None:
            self._keep(self._raised, "", call, error)

    def heard(self, of: str, call: ToolCall, result: Any, *, ok: bool | None = None) -> Reaction:
        """What is to be said to a tool's result; a stop is held.

        Args:
            of: the conversation.
            call: the call.
            result: what the tool's function returned or raised, or what became of it: anything.
            ok: whether it went well; None: as the result says.
        """
        monitor = self.of(of)
        with self._lock:
            result = self._raised.pop((of or _RUNNING.get(), call.id), result)
        if isinstance(result, BaseException):
            reaction = monitor.after(call, result, ok=ok)
        else:
            read = tool_result(result)
            reaction = monitor.after(call, read.text, ok=ok, exit_code=read.exit_code)
        if reaction.kind == "stop":
            self._keep(self._stops, of, call.id, reaction)
            monitor.helped()
        return reaction

    async def aheard(
        self, of: str, call: ToolCall, result: Any, *, ok: bool | None = None
    ) -> Reaction:
        """`heard`, off the event loop."""
        return await shield(to_thread(self.heard, of, call, result, ok=ok))

    async def anoted(self, of: str, call: ToolCall, result: Any) -> None:
        """The same, and keep the text for `said`."""
        said = await self.aheard(of, call, result)
        if said.text:
            self._keep(self._said, of, call.id, said.text)

    def ended(self, of: str, call: ToolCall, error: BaseException) -> None:
        """Hear of what a tool raised that ends the run; who begins anew goes on counting.

        Where there are other conversations, nobody knows who begins: that one is counted by itself.

        Raises:
            AgentStuck: it came too often.
        """
        monitor = self.of(of)
        reaction = monitor.after(call, error)
        if reaction.kind == "stop":
            monitor.helped()
            reaction.raise_if_stop()
        with self._lock:
            is_alone = all(one is monitor for one in self._monitors.values())
            self._left = monitor if is_alone and self._monitors else None

    async def aended(self, of: str, call: ToolCall, error: BaseException) -> None:
        """`ended`, off the event loop."""
        await shield(to_thread(self.ended, of, call, error))

    def said(self, call: str, shown: Any) -> str:
        """A result with what is said to it, once; "" where that is nothing."""
        with self._lock:
            said = self._said.pop((_RUNNING.get(), call), "")
        return f"{text_blocks(shown) or shown}\n\n{said}" if said else ""

    def _keep(self, kept: OrderedDict[tuple[str, str], _T], of: str, call: str, what: _T) -> None:
        with self._lock:
            kept[of or _RUNNING.get(), call] = what
            _keep(kept, (of or _RUNNING.get(), call))


class StandIn:
    """In the place of an object of a framework: what it does not have itself is the other one's.

    Args:
        of: the other one.
    """

    def __init__(self, of: Any) -> None:
        self._of = of

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)


def stand_in(of: Any, **ours: Any) -> Any:
    """A `StandIn` of an object, with what is said in its place by name.

    Example:
        >>> ours = stand_in("text", upper=lambda: "ours")
        >>> ours.upper(), ours.title()
        ('ours', 'Text')
    """
    made = StandIn(of)
    vars(made).update(ours)
    return made


def _keep(kept: OrderedDict[_K, Any], key: _K) -> None:
    kept.move_to_end(key)
    while len(kept) > KEPT:
        kept.popitem(last=False)

"""What adapters share: where a text stands in a conversation, which are to be stopped, results of tools,
and whose signs a conversation is told.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace
from pathlib import Path
from threading import Lock
from types import CellType, FunctionType
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import uuid4

from loki.adapters.conversation_monitors import RUNNING, Monitors, called, keep
from loki.adapters.monitor.monitor import Monitor
from loki.adapters.scope import CONVERSATION, C, Scope
from loki.decision.monitor.monitor_policy import Reaction
from loki.decision.monitor.tool_result import text_blocks, tool_result

if TYPE_CHECKING:
    from loki.base.time import Duration
    from loki.decision.monitor.tool_call import ToolCall

_T = TypeVar("_T")
_F = TypeVar("_F")


UNFIT = frozenset({"ModelBehaviorError"})
"""What frameworks raise where the arguments of a call are not what its tool takes."""


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
            keep(self._places, (conversation, text))
            return at

    def placed(
        self, of: str, messages: list[_T], text: str, said: _T, splits: Callable[[int], bool]
    ) -> list[_T]:
        """Messages with a text among them.

        Args:
            of: the conversation.
            messages: those that it has.
            text, said: what is added, as text and as a message.
            splits: whether at a number of messages it would stand between a call and its result: the
                history was cut meanwhile.
        """
        at = self.place(of, text, len(messages))
        at = len(messages) if at < len(messages) and splits(at) else at
        return [*messages[:at], said, *messages[at:]]


class Watch(Conversations, Monitors):
    """A monitor that hears of tools' results as frameworks hand them on, and whose stops wait.

    Each conversation is counted by itself: agents are run at once, and for one person after the other.
    Whom else its signs are told to is said by a scope. Calls are known by conversation and id, as some
    models number them anew in each.

    A stop waits for the next request to the model, so that every tool call that was made has its
    result in the messages: a conversation that ends in the middle of calls cannot be gone on with. Who
    goes on with one that was stopped is counted anew.

    Args:
        monitor: what decides; a project's folder: one for that.
        agent: the agent's name in such a one.
        scope: whose signs a conversation is told; see `loki.adapters.scope`.
        wait: how long a call of a model waits until its breaker lets it out; None: as the monitor says.
    """

    def __init__(
        self,
        monitor: Monitor | str | Path,
        agent: str,
        scope: Scope[Any] = CONVERSATION,
        wait: Duration | None = None,
    ) -> None:
        Conversations.__init__(self)
        Monitors.__init__(self, monitor, agent, scope, wait)
        self._stops: OrderedDict[tuple[str, str], Reaction] = OrderedDict()
        self._asked: OrderedDict[str, tuple[Reaction, object]] = OrderedDict()
        self._tried: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._raised: OrderedDict[tuple[str, str], BaseException] = OrderedDict()
        self._said: OrderedDict[tuple[str, str], str] = OrderedDict()

    def before(self, of: str, call: ToolCall) -> Reaction:
        """Whether a call may be made; one that was a reason to stop is not made again by anybody."""
        with self._lock:
            held = self._stops.get((of or RUNNING.get(), call.id)) if call.id else None
        return held or self.of(of).before(call)

    def raise_held(self, of: str, calls: Iterable[str], by: object = None) -> None:
        """Stop, if one of these calls was a reason to.

        Args:
            of: the conversation; of one that is not known, as its first messages were summed up
                meanwhile, the calls alone decide.
            calls: ids of the calls whose results are in the request.
            by: what is the same object while a framework asks again by itself; None: none does.

        Raises:
            AgentStuck: it was; and again while ``by`` is the same.
        """
        of, asked = of or RUNNING.get(), set(calls)
        with self._lock:
            is_known = not of or of in self._monitors
            ours = [
                key for key in self._stops if key[1] in asked and (key[0] == of or not is_known)
            ]
            held = [self._stops.pop(key) for key in ours]
            before = self._asked.pop(of, None)
            if not held and before is not None and before[1] is by:
                held = [before[0]]
            if held and by is not None:
                self._asked[of] = held[0], by
                keep(self._asked, of)
        for reaction in held:
            reaction.raise_if_stop()

    def raise_swallowed(self, of: str) -> None:
        """Stop, where `raise_held` has said so and somebody went on all the same.

        Raises:
            AgentStuck: so it is.
        """
        with self._lock:
            before = self._asked.pop(of, None)
        if before is not None:
            before[0].raise_if_stop()

    async def told(self, instructions: str | None, calls: Iterable[str]) -> str | None:
        """Instructions with the signs after them; calls: as `raise_held` takes them, and raises.

        A run that nobody has begun by `running` is one with all that its task does from here on.
        """
        if not RUNNING.get():
            RUNNING.set(uuid4().hex)
        self.raise_held("", calls)
        signs = await self.ainstructions()
        return "\n\n".join(filter(None, (instructions, signs))) or None

    def raised(self, call: str, error: BaseException | None) -> None:
        """Keep what a tool raised until its framework tells what the model is to see of it."""
        if error is not None:
            self._keep(self._raised, "", call, error)

    def received(
        self, of: str, call: ToolCall, result: Any, *, ok: bool | None = None, fits: bool = True
    ) -> Reaction:
        """What is to be said to a tool's result; a stop is held.

        Args:
            of: the conversation.
            call: the call.
            result: what the tool's function returned or raised, or what became of it: anything.
            ok: whether it went well; None: as the result says.
            fits: whether its tool took the arguments.
        """
        monitor = self.of(of)
        with self._lock:
            result = self._raised.pop((of or RUNNING.get(), call.id), result)
        if not fits or type(result).__name__ in UNFIT:
            call, result = replace(call, fits=False), str(result)
            reaction = monitor.after(call, result, ok=False)
        elif isinstance(result, BaseException):
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
        """`heard`, as `off` does it."""
        return await self.off(result, self.received, of, call, result, ok=ok)

    async def aending(self, of: str, message: str) -> Reaction:
        """Whether a conversation may end with a message, as `off` asks it."""
        return await self.off(message, self.of(of).ending, message)

    async def anoted(self, of: str, call: ToolCall, result: Any) -> None:
        """The same, and keep the text for `said`."""
        said = await self.aheard(of, call, result)
        if said.text:
            self._keep(self._said, of, call.id, said.text)

    def ended(self, of: str, call: ToolCall, error: BaseException, by: object = None) -> None:
        """Hear of what a tool raised that ends the run; who begins anew goes on counting.

        Where there are other conversations, or each has signs of its own, nobody knows who begins: that
        one is counted by itself.

        Args:
            of: the conversation.
            call: the call.
            error: what it raised.
            by: what is the same object while a framework makes the call again by itself; None: none
                does. What is made again so counts once. A stop is held, too: it may be taken for one
                more error of the tool.

        Raises:
            AgentStuck: it came too often.
        """
        monitor, key = self.of(of), (of or RUNNING.get(), call.id)
        if name := called(by):
            if self._tried.get(key) == name:  # its service, if it has one, is told of
                self._beside(key[0], counts=False).after(call, error)
                return
            self._keep(self._tried, *key, name)
        reaction = monitor.after(call, error)
        if reaction.kind == "stop":
            monitor.helped()
            if by is not None:
                self._keep(self._stops, *key, reaction)
            reaction.raise_if_stop()
        self.leave(monitor)

    async def aended(
        self, of: str, call: ToolCall, error: BaseException, by: object = None
    ) -> None:
        """`ended`, as `off` does it."""
        await self.off(error, self.ended, of, call, error, by)

    def said(self, call: str, shown: Any) -> str:
        """A result with what is said to it, once; "" where that is nothing."""
        with self._lock:
            said = self._said.pop((RUNNING.get(), call), "")
        return f"{text_blocks(shown) or shown}\n\n{said}" if said else ""

    def _keep(self, kept: OrderedDict[tuple[str, str], _T], of: str, call: str, what: _T) -> None:
        with self._lock:
            kept[of or RUNNING.get(), call] = what
            keep(kept, (of or RUNNING.get(), call))


class Watching(Generic[C]):
    """What agents of a framework are watched with; a framework has its own of it.

    Args:
        monitor: what decides; a project's folder: one for that.
        scope: whose signs a conversation is told: ``conversation``, its own; ``project``, all of the
            branch; a user's name: the user's; or what tells that name from the run's context.
        wait: how long a call of a model waits until its breaker lets it out; None: as the monitor says.
    """

    _agent_name = "agent"

    def __init__(
        self,
        monitor: Monitor | str | Path = ".",
        scope: Scope[C] = CONVERSATION,
        wait: Duration | None = None,
    ) -> None:
        super().__init__()
        self._watch = Watch(monitor, self._agent_name, scope, wait)
        self.monitor = self._watch.monitor

    def close(self, of: str = "") -> None:
        """Close signs, so that nobody is told of them any more, and count anew.

        Args:
            of: a conversation's id, or a user's name; "": all that this one's conversations are told.
                Where that is the project's, its run is closed as by ``loki close``.

        Raises:
            UsageError: another run is at work in the project.
        """
        self._watch.close(of)


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


def enclosing(function: _F, known: object, ours: object) -> _F:
    """The same function, or object with functions, with another object in their closures.

    Args:
        function: a function, or what has some; neither is changed.
        known, ours: what is in its closure, and what is to be there.

    Example:
        >>> def greets(name): return lambda: f"Hello {name}"
        >>> greet = greets("Ada")
        >>> enclosing(greet, "Ada", "Bob")(), greet()
        ('Hello Bob', 'Hello Ada')
    """
    if not isinstance(function, FunctionType):
        made = copy(function)
        kept = vars(made) if hasattr(made, "__dict__") else {}
        kept.update(
            {k: enclosing(f, known, ours) for k, f in kept.items() if isinstance(f, FunctionType)}
        )
        return made
    cells = [
        CellType(ours) if one.cell_contents is known else one for one in function.__closure__ or ()
    ]
    other = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        tuple(cells),
    )
    other.__kwdefaults__ = function.__kwdefaults__
    vars(other).update(vars(function))
    return other  # type: ignore[return-value]

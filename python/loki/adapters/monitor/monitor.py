"""Watches an agent's tool calls and model calls, and says something where they lead nowhere.

The join behind adapters, hooks and the MCP server: it recognizes, keeps, and asks
`loki.decision.monitor.monitor_policy` what to say. ``docs/design/monitor.md`` says why.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from loki.adapters.monitor.monitor_sessions import LocalSession, Session, SharedSession
from loki.adapters.monitor.path_mapping import mapped_folders
from loki.adapters.monitor.received_call import NAME, is_outside, known_call, received_call
from loki.adapters.monitor.tool_breakers import tell
from loki.base.error import AgentStuck, UsageError
from loki.base.time import Clock, argument_seconds, isoformat
from loki.decision.monitor.check_evidence import ended
from loki.decision.monitor.monitor_policy import (
    NOTHING,
    Ended,
    Failed,
    FailuresReset,
    Finished,
    MonitorEvent,
    Passed,
    Reaction,
    Started,
    refusal,
    step,
)
from loki.decision.monitor.monitor_state import MonitorRules, MonitorState
from loki.decision.monitor.tool_call import ToolCall, is_steering
from loki.decision.monitor.value_text import short
from loki.execution.resilience import breakers as breakers_of
from loki.execution.resilience import ways
from loki.execution.workspace_runs import Runs
from loki.memory.sign import Sighting
from loki.memory.tool_failure import ToolFailure, ToolFailures
from loki.runtime import Runtime

if TYPE_CHECKING:
    from loki.adapters.monitor.fallback_calls import FallbackCalls
    from loki.agents.endpoint import ChainOptions, Circuits
    from loki.base.time import Duration
    from loki.memory.signs import Signs

_Stepped: TypeAlias = tuple[MonitorState, MonitorState, Reaction]
P = ParamSpec("P")
T = TypeVar("T")


class Monitor:
    """Watches one agent's calls of tools and models.

    Ask it `before` a tool is called, tell it `after`, give the model its `instructions`, and ask it
    at the `ending`. A healthy run hears nothing: every reaction is then ``none``. Safe to share between
    threads and tasks.

    Args:
        workspace: the project, or its folder.
        root: the same, by the name that it has elsewhere; one of both.
        mapped: of an agent that works in a container: folders there, and what they are here, relative to
            the project; ``{"/workspace": "."}``.
        session: where several processes watch one agent, the name that they share: the state is kept
            in ``.loki/state/sessions/``. None: it is kept in memory.
        above: of an agent that works for another one in the same project, the other's session: what goes
            well here counts there, too, as a change or as a check.
        agent: the agent's name, for records.
        task: what it works on, or "".
        wait: how long a call of a model waits until its breaker lets it out, all pauses together; 0: not
            at all; None: as ``[models] wait`` says, 5 minutes.
        breakers: arguments of `loki.Breaker` for calls of models and tools, beside ``[breakers]``.
        signs: where those are that it tells; None: the branch's, which all who work on it share.
        clock: where time comes from; None: the workspace's.

    Raises:
        UsageError: no such folder, both a workspace and a root, or a mapped folder that is not absolute.
        ConfigError: a file in ``.loki/`` that a person wrote cannot be used.

    Example:
        >>> import tempfile
        >>> monitor = Monitor(tempfile.mkdtemp())
        >>> said = "FAILED test_login.py::test_redirect - KeyError: 'next'"
        >>> for text in ("return ''", "return None", "pass"):
        ...     edit = ToolCall("Edit", {"file_path": "login.py", "new_string": text})
        ...     reactions = monitor.after(edit, "ok"), monitor.after(
        ...         ToolCall("Bash", {"command": "pytest -q"}), said, exit_code=1
        ...     )
        ...     print([reaction.kind for reaction in reactions])
        ['none', 'none']
        ['none', 'none']
        ['none', 'nudge']
    """

    def __init__(
        self,
        workspace: Runtime | str | Path | None = None,
        *,
        root: str | Path | None = None,
        mapped: Mapping[str, str] | None = None,
        session: str | None = None,
        above: str | None = None,
        agent: str = "agent",
        task: str = "",
        wait: Duration | None = None,
        breakers: Mapping[str, Any] | None = None,
        signs: Signs | None = None,
        clock: Clock | None = None,
    ) -> None:
        if workspace is not None and root is not None:
            raise UsageError("both a workspace and a root are given: expected one of them")
        place = (root if workspace is None else workspace) or "."
        self.workspace = place if isinstance(place, Runtime) else Runtime(place, clock=clock)
        self.mapped = mapped_folders(mapped, self.workspace.root)
        self.clock: Clock = clock or self.workspace.clock
        self.session, self.above, self.signs = session, above, signs
        self.agent, self.task = agent, task
        self.wait = None if wait is None else argument_seconds("wait", wait)
        self._settings = breakers
        self.rules = MonitorRules(Runs(self.workspace).signs().rules)
        if self.workspace.is_configured:
            retries = self.workspace.config.loop.max_retries
            self.rules = MonitorRules.of(self.rules.signs, retries)
        self._state: Session = LocalSession() if session is None else self._shared(session)
        self._above = None if above is None else self._shared(above)
        self._branch_signs: Signs | None = None  # what it has read is read again at a change only
        self._lock = threading.Lock()

    def _shared(self, session: str) -> Session:
        return SharedSession(self.workspace.store, session, self.rules)

    @property
    def _breakers(self) -> Circuits:  # loaded once something can be down
        return self._ways.breakers

    @cached_property
    def _ways(self) -> ChainOptions:
        found = self.workspace.once(ways)
        if self._settings is None:
            return found
        return replace(found, breakers=breakers_of(self.workspace, calls=self._settings))

    # --- tools ------------------------------------------------------------------------------------

    def before(self, call: ToolCall) -> Reaction:
        """Whether a call may be made: refused while what it reaches is known to be down.

        Args:
            call: the call.
        """
        said = known_call(call)
        if not said.breaker:
            return NOTHING
        now = self._breakers[said.breaker].snapshot()
        last = now.last_error if self.signs is None else ""
        return refusal(said, now.retry_after, last) if now.state == "OPEN" else NOTHING

    def after(
        self,
        call: ToolCall,
        output: str | bytes | BaseException,
        *,
        ok: bool | None = None,
        exit_code: int | None = None,
    ) -> Reaction:
        """What is to be said about a call that was made.

        Args:
            call: the call.
            output: what it gave, or what it raised.
            ok: whether it went well; None: as the exit code says, else as the output does.
            exit_code: of its command, where it is known.

        Returns:
            The reaction; of a call whose own agent was stuck, ``stop``.
        """
        if isinstance(output, AgentStuck):  # an agent that this one uses as a tool
            return Reaction("stop", output.text, output.reason, output.failure, output.count)
        if isinstance(output, BaseException) and is_steering(output):
            return NOTHING
        event = received_call(self.workspace, known_call(call), output, ok, exit_code, self.mapped)
        if event.call.breaker:
            tell(self._breakers[event.call.breaker], event, output)
        if isinstance(event, Failed):
            return self._failed(event, exit_code)
        if is_outside(event.call, self.workspace.root, self.mapped):
            event = replace(event, call=replace(event.call, tries=False, is_scratch=True))
        return self._step(event)

    def started(self, call: ToolCall, task: str = "") -> None:
        """Take note of a call that goes on in the background.

        Args:
            call: the call.
            task: what `finished` will be told when it has ended; "": nobody will tell.
        """
        self._step(Started(said := known_call(call), said.tool, short(task, NAME)))

    def finished(self, task: str, output: str, *, exit_code: int | None = None) -> Reaction:
        """What is to be said of a call that went on in the background and has ended, as `after` does.

        Args:
            task: as `started` was told.
            output: what it printed.
            exit_code: of its command; None: nobody knows, as of one that was ended from outside.
        """
        task = short(task, NAME)
        _, going = ended(self._state.read(), task)
        self._step(Finished(task))
        if going is None or exit_code is None:
            return NOTHING
        return self.after(
            ToolCall(going.tool, {"command": going.command}), output, exit_code=exit_code
        )

    def helped(self) -> None:
        """Take note that a person has spoken to an agent that was told to stop: it counts anew."""
        self._step(FailuresReset())

    def close(self) -> None:
        """Count anew, and end the branch's run with its signs as ``loki close`` does; given ones stay.

        Raises:
            UsageError: another run is at work in the project.
        """
        self.helped()
        if self.signs is None:
            with self.workspace.exclusive():
                Runs(self.workspace).close()

    def _failed(self, failed: Failed, exit_code: int | None) -> Reaction:
        before, reaction = self._state.read(), self._step(failed)
        who = self.session or "", self.agent, self.task
        what = isoformat(self.clock.now()), failed.call.tool, failed.call.said, failed.failure
        record = ToolFailure(*what, "; ".join(before.tried), *who, exit_code)
        ToolFailures(self.workspace.store).add(record)
        return reaction

    def _step(self, event: MonitorEvent) -> Reaction:
        if self._above is not None and isinstance(event, Passed):
            self._change(self._above, event)
        return self._change(self._state, event)

    def _change(self, session: Session, event: MonitorEvent) -> Reaction:
        def change(state: MonitorState) -> tuple[MonitorState, _Stepped]:
            after, reaction = step(state, event, self.rules)
            return after, (state, after, reaction)

        before, after, reaction = session.change(change)
        if before.seen is not after.seen:
            if isinstance(event, Passed):
                self._mended(before, after)
            elif isinstance(event, Failed) and not (after.stashed or event.call.stashes):
                sighting = after.seen.sightings[-1]
                look = before.looks.get(sighting.failure.fingerprint)
                if sighting.count == 1 or reaction:  # what it is not told, no sign tells either
                    self._observe(sighting, event, is_told=look is not None and look.told)
        return reaction

    def _mended(self, before: MonitorState, after: MonitorState) -> None:
        """Keep what has mended failures, and take back their signs."""
        left = {one.failure.fingerprint for one in after.seen.sightings}
        gone = [one.failure for one in before.seen.sightings if one.failure.fingerprint not in left]
        now, names = isoformat(self.clock.now()), [one.fingerprint for one in gone]
        if before.tried:
            solution = "; ".join(before.tried)
            ToolFailures(self.workspace.store).mended(now, names, solution, self.session or "")
        with self._signs() as signs:
            signs.mend(gone)

    def _observe(self, sighting: Sighting, event: Failed, *, is_told: bool) -> None:
        """Tell the signs of a failure that counted, and of what led to it while the agent was not told."""
        first = sighting.count == 1  # seen in another session, nothing was tried in this one
        led = [one.text for one in sighting.approaches for _ in range(one.count)] or [""]
        missed = 0 if is_told else max(0, sighting.count - 2)
        with self._signs() as signs:
            for one in led[-1 - missed :]:
                signs.observe(
                    event.failure, one, self.task, command=event.call.command, only_new=first
                )

    # --- what the model is told -------------------------------------------------------------------

    def instructions(self) -> str:
        """The signs that bind now, for the next request to the model; "" where there are none."""
        with self._signs() as signs:
            told = str(signs)
        return f"{HEAD}\n{told}" if told else ""

    def ending(
        self, message: str, *, turn: str = "", running: Collection[str] | None = None
    ) -> Reaction:
        """Whether the agent may end with a message.

        Args:
            message: its last words.
            turn: what it works on since a person has spoken, where that has a name.
            running: tasks (see `started`) that are known to go on; None: nobody knows.

        Returns:
            ``refuse`` where it claims plainly what the run speaks against, or what nothing in it bears
            out, at most once for each claim and twice in a turn; else ``none``.
        """
        still = None if running is None else frozenset(short(one, NAME) for one in running)
        return self._step(Ended(message, turn, still))

    @contextmanager
    def _signs(self) -> Iterator[Signs]:
        """Those that were given, or those of the branch that is checked out now."""
        with self._lock:
            if self.signs is not None:
                yield self.signs
                return
            branch = self.workspace.position()[0]
            if self._branch_signs is None or self._branch_signs.branch != branch:
                self._branch_signs = Runs(self.workspace).signs(branch)
            yield self._branch_signs

    # --- the same, off the event loop -------------------------------------------------------------

    async def abefore(self, call: ToolCall) -> Reaction:
        """`before`, off the event loop."""
        return await _off(self.before, call)

    async def aafter(
        self,
        call: ToolCall,
        output: str | bytes | BaseException,
        *,
        ok: bool | None = None,
        exit_code: int | None = None,
    ) -> Reaction:
        """`after`, off the event loop."""
        return await _off(self.after, call, output, ok=ok, exit_code=exit_code)

    async def ainstructions(self) -> str:
        """`instructions`, off the event loop."""
        return await _off(self.instructions)

    async def aending(self, message: str) -> Reaction:
        """`ending`, off the event loop."""
        return await _off(self.ending, message)

    # --- models -----------------------------------------------------------------------------------

    def call(self, name: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a model through its circuit breaker, and again after a wait where it had an outage.

        Whoever calls it here must not retry by itself: loki's retries are the only ones.

        Args:
            name: of the breaker, such as ``api/openai/gpt-5``; "": what is called passes its own, waits
                and asks again by itself.
            function: makes one call; args, kwargs: what it is given.

        Raises:
            BreakerOpen: the breaker lets nothing out for as long as ``wait`` says.
            Exception: whatever the function raised: at once where that is no outage, else once the
                retries are spent.
        """
        from loki.adapters.monitor.breaker_call import call

        return call(self._ways, name, self.task, lambda: function(*args, **kwargs), self.wait)

    async def acall(
        self, name: str, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """`call` of a coroutine function, in the running event loop."""
        from loki.adapters.monitor.breaker_call import acall

        def asked() -> Awaitable[T]:
            return function(*args, **kwargs)

        return await acall(self._ways, name, self.task, asked, self.wait)

    def astream(
        self, name: str, function: Callable[[], AsyncIterator[T]], is_silent: Callable[[T], bool]
    ) -> AsyncIterator[T]:
        """`call` of what streams: asked again only as long as it has said nothing.

        Args:
            name: as there.
            function: begins one stream.
            is_silent: whether an event says nothing yet, and another stream may begin after it.
        """
        from loki.adapters.monitor.breaker_call import astream

        return astream(self._ways, name, self.task, function, is_silent, self.wait)

    def fallback_calls(self) -> FallbackCalls:
        """One call of a model whose members are asked in turn by somebody else: each through its breaker."""
        from loki.adapters.monitor.fallback_calls import FallbackCalls

        return FallbackCalls(self._ways, self.task, self.wait)


HEAD = "These failures came back. What led to them led nowhere; this binds what you do next:"


async def _off(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What may touch the disk, off the event loop; a cancellation does not tear it apart."""
    import asyncio

    return await asyncio.shield(asyncio.to_thread(work, *args, **kwargs))

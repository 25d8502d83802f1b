"""A call of a hook, from what the agent says to what it is told; light where there is nothing to say.

A hook runs at every tool call, so `loki.adapters.monitor` is imported only where it is needed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from loki import __version__
from loki.adapters.hooks.hook_message import Answer, HookMessage
from loki.adapters.hooks.hooked_agents import AGENTS, HookedAgent

if TYPE_CHECKING:
    from loki.adapters.monitor.monitor import Monitor
    from loki.decision.monitor.monitor_state import Reaction

PROBE = "LokiProbe"
"""An event that no agent has: `loki hook status` finds out with it whether a command line works."""

IN_A_RUN = "LOKI_TASK"
"""A variable that agents have which loki itself has started: its loop sees what they do."""

STOPS = "state/stops/"
"""Folder of the sessions that were told to stop, in ``.loki/``."""

_SAYS_FAILED = re.compile("(?i)fail|error|problem")
_MARKS = (".loki", ".git")
_FOLDERS = ("CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR")


def answer(name: str, data: object, environment: Mapping[str, str]) -> Answer:
    """What an agent is told.

    Args:
        name: the agent's, one of `AGENTS`.
        data: what it says.
        environment: variables that it has set.

    Raises:
        ValueError: it says something that no hook says.
        LokiError: loki cannot work there.
    """
    if not isinstance(data, dict) or not isinstance(data.get("hook_event_name"), str):
        raise ValueError("found no hook_event_name, expected the JSON object that a hook is given")
    if data["hook_event_name"] == PROBE:
        return {"loki": __version__}
    agent = AGENTS[name]
    heard = None if environment.get(IN_A_RUN) else agent.received(data)
    if heard is None:
        return None
    folder = project_of(heard.folder, environment)
    stop = _Stop(folder, f"{agent.name}.{heard.session}")
    if heard.kind == "before":
        return _before(agent, heard, folder, stop)
    if heard.kind == "after" and _is_light(agent, heard, folder, stop.session):
        return None
    return _heavier(agent, heard, _monitor(agent, heard, folder, stop), stop)


def _is_light(agent: HookedAgent, heard: HookMessage, folder: str, session: str) -> bool:
    """Whether a call that was made is nothing to ask the monitor about: now, or at all."""
    if heard.ok and heard.tool in agent.module().READS:
        return True
    if _went_well(heard) and not _may_be_hidden(heard) and not _may_be_open(folder):
        from loki.adapters.hooks.success_buffer import both_ends, keep_success

        call = heard.tool, heard.arguments, heard.id, both_ends(heard.output)
        if keep_success(folder, session, call):
            return True
    from loki.adapters.hooks.call_deduplication import is_first_report

    return not is_first_report(folder, session, heard.id)


def _heavier(agent: HookedAgent, heard: HookMessage, monitor: Monitor, stop: _Stop) -> Answer:
    """Of what the monitor has to know."""
    if heard.kind == "start":
        said = monitor.instructions()
        return agent.answer("nudge", heard, said) if said else None
    if heard.kind == "ending":
        reaction = monitor.ending(heard.message, turn=heard.turn, running=heard.running)
        return _told(agent, heard, reaction)
    from loki.decision.monitor.tool_call import ToolCall

    call = ToolCall(heard.tool, heard.arguments, id=heard.id)
    if heard.kind == "started":
        monitor.started(call, heard.task)
        return None
    if heard.kind == "finished":
        from loki.adapters.hooks.transcript_tail import end_of

        reaction = monitor.finished(heard.task, end_of(heard.printed), exit_code=heard.exit_code)
    else:
        from loki.adapters.hooks.success_buffer import both_ends

        # As it is kept where it is: the same answer is the same then, too.
        is_kept = _went_well(heard) and not _may_be_hidden(heard)
        output = both_ends(heard.output) if is_kept else heard.output
        reaction = monitor.after(call, output, ok=heard.ok, exit_code=heard.exit_code)
    if reaction.kind == "stop":
        stop.keep(monitor, heard.turn, reaction.text)
    return _told(agent, heard, reaction)


def _before(agent: HookedAgent, heard: HookMessage, folder: str, stop: _Stop) -> Answer:
    """Of a call that is about to be made."""
    if said := stop.binding(heard.turn):
        return agent.answer("stopped", heard, said)
    if not heard.is_last and not _may_be_open(folder):
        return None
    from loki.decision.monitor.tool_call import ToolCall

    monitor = _monitor(agent, heard, folder, stop)
    call = ToolCall(heard.tool, heard.arguments, id=heard.id)
    reaction = monitor.before(call)
    if reaction.kind == "none" and heard.is_last:
        monitor.after(call, "", ok=True)
    return _told(agent, heard, reaction)


def _told(agent: HookedAgent, heard: HookMessage, reaction: Reaction) -> Answer:
    """A reaction, in the agent's words."""
    return None if reaction.kind == "none" else agent.answer(reaction.kind, heard, reaction.text)


def _monitor(agent: HookedAgent, heard: HookMessage, folder: str, stop: _Stop) -> Monitor:
    from loki.adapters.hooks.hook_warnings import silence_repeated_warnings

    silence_repeated_warnings()
    from loki import Monitor

    above = f"{agent.name}.{heard.above}" if heard.above else None
    if above is not None:
        other = Monitor(folder, session=above, agent=agent.name)
        _tell_kept(other, folder, above)  # what it did before counts before
    monitor = Monitor(folder, session=stop.session, above=above, agent=agent.name)
    if heard.kind != "start" and stop.is_over(heard.turn):
        stop.forget(monitor)
    _tell_kept(monitor, folder, stop.session)
    return monitor


def _tell_kept(monitor: Monitor, folder: str, session: str) -> None:
    """Tell of the calls that went well and were kept."""
    from loki.adapters.hooks.success_buffer import take_successes
    from loki.decision.monitor.tool_call import ToolCall

    for tool, arguments, id_, output in take_successes(folder, session):
        monitor.after(ToolCall(tool, arguments, id=id_), output, ok=True)


def _went_well(heard: HookMessage) -> bool:
    return bool(heard.ok or (heard.ok is None and heard.exit_code == 0))


def _may_be_hidden(heard: HookMessage) -> bool:
    """Whether a line may have hidden that a check failed: `pytest | tail`. The monitor judges it."""
    words = (value for value in heard.arguments.values() if isinstance(value, str))
    is_joined = any(sign in word for word in words for sign in ("|", ";", "\n", "&"))
    return is_joined and _SAYS_FAILED.search(heard.output) is not None


def _may_be_open(folder: str) -> bool:
    """Whether a breaker of the project may be open: a look that costs no import."""
    try:
        with open(os.path.join(folder, ".loki", "state", "circuit-breakers.json"), "rb") as file:
            return b'OPEN"' in file.read()  # or HALF_OPEN
    except OSError:
        return False


def project_of(folder: str, environment: Mapping[str, str]) -> str:
    """The project that an agent works on: where it was started, or above that.

    Args:
        folder: where it works now.
        environment: variables that it has set; some say where it was started.

    Returns:
        The nearest folder upwards with ``.loki`` or ``.git``; without one, where it was started.
    """
    given = next((environment[name] for name in _FOLDERS if environment.get(name)), folder)
    start = os.path.abspath(given or ".")
    here, home = start, os.path.expanduser("~")
    while True:
        if any(os.path.exists(os.path.join(here, mark)) for mark in _MARKS):
            return here
        above = os.path.dirname(here)
        if above in {here, home}:
            return start
        here = above


class _Stop:
    """That a session was told to stop: it binds until a person has spoken again."""

    def __init__(self, folder: str, session: str) -> None:
        self.session = session
        self._document = f"{STOPS}{quote(session[:80], safe='')}.json"
        self._said: Mapping[str, Any] = {}
        try:
            with open(os.path.join(folder, ".loki", self._document), encoding="utf-8") as file:
                said = json.load(file)
        except (OSError, ValueError, RecursionError):
            return
        self._said = said if isinstance(said, dict) else {}

    def binding(self, turn: str) -> str:
        """What the agent was told in this turn, or ""."""
        said = self._said.get("text")
        binds = bool(turn) and self._said.get("turn") == turn
        return said if binds and isinstance(said, str) else ""

    def is_over(self, turn: str) -> bool:
        """Whether a person has spoken since."""
        return bool(self._said) and not self.binding(turn)

    def keep(self, monitor: Monitor, turn: str, said: str) -> None:
        """Keep that it was told to stop, in this turn."""
        from loki.adapters.hooks.session_cleanup import remove_stale_sessions

        monitor.workspace.store.write(self._document, json.dumps({"turn": turn, "text": said}))
        remove_stale_sessions(str(monitor.workspace.folder / STOPS))

    def forget(self, monitor: Monitor) -> None:
        """It was helped, and begins to count anew."""
        monitor.helped()
        monitor.workspace.store.update(self._document, lambda _old: None)
        self._said = {}

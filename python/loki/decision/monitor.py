"""What is to be said of an agent's tool calls: nothing, a sign, or that it must stop. A pure table.

`step` is the machine: (state, event) → (state, reaction). What counts as the same failure again, and
what does not, is decided here; ``docs/design/monitor.md`` says why.

============ ================================================================ ===================
event        what is so                                                       reaction
============ ================================================================ ===================
Passed       (a check's failures are mended; a change begins a new try)       none
Failed       what was given does not fit, for the same reason: 2nd, 3rd, 4th  nudge, nudge, stop
Failed       infrastructure failed, or the command polls                      none
Failed       the same failure, nothing was tried since, another look at it    none
Failed       the same failure after a try, and fewer others beside it         none
Failed       the first time                                                   none
Failed       the same after a try (no check: also the very same call): 2nd    nudge: the sign
Failed       … 3rd                                                            nudge: change strategy
Failed       … 4th (``[loop] max_retries`` + 1)                               stop
Failed       the very same check without a change: a 3rd time, then a 4th     nudge, stop
Failed       failures that come back in turn, A B A B                         nudge: the turn
Failed       … a third turn                                                   stop
Started      (a check in the background: a claim that tests pass has to wait)  none
Finished     (what it said is told as of any other)                           none
Helped       (failures are counted anew)                                      none
Ended        a claim without a passing check since the last change            refuse, once
============ ================================================================ ===================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from loki.base.error import AgentStuck
from loki.decision import background
from loki.decision.monitor_state import Again, Look, MonitorRules, MonitorState
from loki.decision.monitor_text import call_text, refusal_text, repeat_text
from loki.decision.tool_call import Effect, Known
from loki.decision.whence import NOT_YOURS, covers, may_touch, names_of, says_not_yet, says_whence
from loki.memory.sign import Seen, Sighting, observe
from loki.recognition.failure import Failure
from loki.recognition.similarity import same_failure

MOST_TRIED = 5
"""Changes since the last failure that are named as what was tried, the newest. Chosen."""

MOST_CALLS = 64
"""Failing calls that are remembered, the newest. Chosen, not measured."""

MOST_LOOKS = 16
"""Calls that showed one failure, remembered. Chosen, not measured."""

NO_PROGRAM = 127
"""Exit code of a shell that finds no program, as POSIX has it."""

Kind: TypeAlias = Literal["none", "nudge", "refuse", "stop"]


@dataclass(frozen=True, slots=True)
class Reaction:
    """What is to be done about a call, or about an end.

    Attributes:
        kind: ``none``; ``nudge``: ``text`` belongs into what the model sees next; ``refuse``: the call,
            or the end, is not to be; ``stop``: the agent is stuck.
        text: what the agent is told, "" where there is nothing to say.
        reason: the rule that says so: ``repeat``, ``same-call``, ``turn``, ``breaker``, ``claim``.
        failure, count: what came back, or None; how often it was seen.
    """

    kind: Kind = "none"
    text: str = ""
    reason: str = ""
    failure: Failure | None = None
    count: int = 0

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return self.kind != "none"

    def raise_if_stop(self) -> None:
        """Raise where the agent must stop.

        Raises:
            AgentStuck: it is stuck.
        """
        if self.kind == "stop":
            raise AgentStuck(self.text, self.failure, self.count, self.reason)


NOTHING = Reaction()


# --- events ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Passed:
    """A call went well."""

    call: Known


@dataclass(frozen=True, slots=True)
class Failed:
    """A call failed.

    Attributes:
        call: the call.
        failure: what failed first in it.
        extent: how many lines of its output told of failures; see `loki.decision.extent`.
        passes: how many tests passed, as far as it tells.
    """

    call: Known
    failure: Failure
    extent: int = 0
    passes: int = 0


@dataclass(frozen=True, slots=True)
class Started:
    """A call goes on in the background.

    Attributes:
        call: the call.
        tool: the name of its tool.
        task: how the agent will name it once it has ended; "": how it ends is never told.
    """

    call: Known
    tool: str = ""
    task: str = ""


@dataclass(frozen=True, slots=True)
class Finished:
    """What went on in the background has ended."""

    task: str


@dataclass(frozen=True, slots=True)
class Helped:
    """A person has spoken to an agent that was told to stop."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The agent says that it is done.

    Attributes:
        message: its last words.
        turn: what it works on since a person has spoken, or "": it has no name for it.
        running: tasks in the background that are known to go on; None: nobody knows.
    """

    message: str
    turn: str = ""
    running: frozenset[str] | None = None


MonitorEvent: TypeAlias = Passed | Failed | Started | Finished | Helped | Ended
Step: TypeAlias = tuple[MonitorState, Reaction]


def step(state: MonitorState, event: MonitorEvent, rules: MonitorRules | None = None) -> Step:
    """The state after an event, and what is to be done.

    Args:
        state: the state before; not changed.
        event: what happened.
        rules: what counts; the defaults where nothing is said.

    Example:
        >>> from loki.decision.tool_call import ToolCall, known
        >>> check = known(ToolCall("Bash", {"command": "pytest -q"}))
        >>> edit = known(ToolCall("Edit", {"file_path": "calc.py"}))
        >>> failed = Failed(check, Failure.of("KeyError: 'next'", tests=["t.py::test_a"]))
        >>> state = MonitorState()
        >>> for event in (failed, Passed(edit), failed, Passed(edit), failed, Passed(edit), failed):
        ...     state, reaction = step(state, event)
        ...     if reaction:
        ...         print(reaction.kind, reaction.count)
        nudge 2
        nudge 3
        stop 4
    """
    known_rules = rules or MonitorRules()
    return TABLE[type(event)](state, event, known_rules)


def _passed(state: MonitorState, event: Passed, _rules: MonitorRules) -> Step:
    call = event.call
    state = _fitted(state, call, call.key)
    if call.effect is Effect.WRITE:
        return _changed(state, call), NOTHING
    if call.effect is Effect.RUN:
        return _ran(state, call), NOTHING
    return state, NOTHING


def _fitted(state: MonitorState, call: Known, key: str = "") -> MonitorState:
    """After a call that its tool took: those that it did not take are mended, and that of the key."""
    again = tuple(a for a in state.again if a.key != key and not a.key.startswith(_unfit(call)))
    return replace(state, again=again) if len(again) < len(state.again) else state


def _unfit(call: Known) -> str:
    return f"unfit:{call.tool}:"


def _changed(state: MonitorState, call: Known) -> MonitorState:
    looks = {
        name: replace(look, touched=True)
        if not look.touched and may_touch(call, look.names)
        else look
        for name, look in state.looks.items()
    }
    tried = (*(one for one in state.tried if one != call.said), call.said)[-MOST_TRIED:]
    state = replace(state, change=state.change + 1, tried=tried, looks=looks)
    if call.is_prose or (call.command and not call.path and not call.edits):
        return state  # no check reads it, or nobody knows
    # What a check in the background says now is of another tree.
    return replace(state, unverified=True, untested=True, ran=False, background=())


def _ran(state: MonitorState, call: Known) -> MonitorState:
    """After something ran well: what it had shown is mended."""
    shown = {one.failure.fingerprint: one.failure for one in state.seen.sightings}
    mended = {name for name, look in state.looks.items() if covers(call, look, shown.get(name))}
    if mended:
        kept = tuple(one for one in state.seen.sightings if one.failure.fingerprint not in mended)
        recent = tuple(name for name in state.seen.recent if name not in mended)
        looks = {name: look for name, look in state.looks.items() if name not in mended}
        state = replace(state, seen=Seen(kept, recent), looks=looks)
    if not call.is_check:
        return state if state.ran else replace(state, ran=True)
    untested = state.untested and not call.runs_tests
    ends = state.ends if state.turn else 0
    if state.unverified or state.failing or (untested, ends) != (state.untested, state.ends):
        state = replace(state, unverified=False, failing=False, untested=untested, ends=ends)
    return state


def _failed(state: MonitorState, event: Failed, rules: MonitorRules) -> Step:
    call, failure = event.call, event.failure
    if not call.fits:
        return _same_call(state, call, failure, rules)
    state = _fitted(state, call)
    if call.is_check:
        state = replace(state, failing=True)
    if call.waits or _polls(call, failure, rules):
        return state, NOTHING
    if not failure.is_specific or call.effect in {Effect.READ, Effect.WRITE}:
        return _same_call(state, call, failure, rules)
    if rules.signs.ignores(failure, call.command):
        return state, NOTHING
    return _same_failure(state, event, rules)


def _polls(call: Known, failure: Failure, rules: MonitorRules) -> bool:
    """Whether a failure says nothing of what the agent does."""
    if failure.match is not None and failure.match.is_infrastructure:
        return True
    return rules.signs.is_exempt(call.command) or says_not_yet(call, failure)


def _same_call(
    state: MonitorState, call: Known, failure: Failure, rules: MonitorRules, looks: int = 0
) -> Step:
    """Only the very same call, without any change, counts; ``looks``: that often it may be repeated."""
    said, key = failure.fingerprint, call.key
    if failure.exit_code == NO_PROGRAM:  # it is not there, whatever it is asked for
        key = f"{NO_PROGRAM}:{said}"
    if not call.fits:  # whatever was given: it is the reason that comes back, to the letter
        key = f"{_unfit(call)}{failure.message}"
    before = next((one for one in state.again if one.key == key), None)
    repeated = before is not None and before.change == state.change and before.said == said
    count = before.count + 1 if repeated and before is not None else 1 + looks
    others = (one for one in state.again if one.key != key)
    again = (*others, Again(key, said, state.change, count))[-MOST_CALLS:]
    state = replace(state, again=again)
    threshold = rules.signs.threshold_for(failure) + looks
    if count < threshold:
        return state, NOTHING
    stop = rules.stop_for(threshold)
    kind: Kind = "stop" if count >= stop else "nudge"
    return state, Reaction(
        kind, call_text(call, failure, count, threshold), "same-call", failure, count
    )


def _same_failure(state: MonitorState, event: Failed, rules: MonitorRules) -> Step:
    failure = event.failure
    known = next((s for s in state.seen.sightings if same_failure(s.failure, failure)), None)
    name = known.failure.fingerprint if known else failure.fingerprint
    look = state.looks.get(name) if known else None
    if look and event.call.is_check and look.change == state.change and event.call.key in look.keys:
        return _same_call(state, event.call, failure, rules, looks=1)  # a check may be run again
    if look is not None and _is_news(look, event, state.change):
        return replace(
            state, looks={**state.looks, name: _looked(look, event, state.change)}
        ), NOTHING
    seen, sighting = observe(state.seen, failure, "; ".join(state.tried), "", rules.signs)
    names = {one.failure.fingerprint for one in seen.sightings}
    looks = {n: look for n, look in state.looks.items() if n in names}
    is_old = state.change == 0 and says_whence(failure)
    first = Look(state.change, (), touched=not is_old, names=names_of(failure))
    looks[name] = _looked(look or first, event, state.change)
    answer = _answer(seen, sighting, rules, is_old=not looks[name].touched)
    return replace(state, seen=seen, looks=looks, tried=()), answer


def _is_news(look: Look, event: Failed, change: int) -> bool:
    """Whether a known failure says nothing against what was done."""
    if look.change == change:  # another look at it: nothing was tried
        return event.call.key not in look.keys
    most = max(look.extents.values(), default=0)
    fewest = look.extents.get(event.call.key, most)
    # Others beside it are mended, or what was being made works: the failure was there before.
    return 0 < event.extent < fewest or event.passes > look.passes > 0


def _looked(look: Look, event: Failed, change: int) -> Look:
    """Who has shown a failure, after one more."""
    key, programs = event.call.key, event.call.programs
    shown = look.keys if look.change == change else ()
    keys = (*(known for known in shown if known != key), key)[-MOST_LOOKS:]
    calls = tuple(dict.fromkeys((*look.calls, *programs)))[-MOST_LOOKS:]
    fewest = min(event.extent, look.extents.get(key, event.extent))
    extents = {**{k: n for k, n in look.extents.items() if k != key}, key: fewest}
    return replace(
        look,
        change=change,
        keys=keys,
        calls=calls,
        extents=dict(list(extents.items())[-MOST_LOOKS:]),
        passes=max(look.passes, event.passes),
    )


def _answer(seen: Seen, sighting: Sighting, rules: MonitorRules, *, is_old: bool) -> Reaction:
    """What is said to a failure that counts; to one that is not the agent's, once, and never a stop."""
    if not sighting.is_sign or (
        is_old and sighting.approaches and sighting.count > sighting.threshold
    ):
        return NOTHING
    if is_old and sighting.approaches:
        text = repeat_text(sighting, (), stops=False)
        return Reaction("nudge", f"{text}\n{NOT_YOURS}", "repeat", sighting.failure, sighting.count)
    failure, count, cycle = sighting.failure, sighting.count, seen.cycle
    stop = rules.stop_for(sighting.threshold)
    in_turn = bool(cycle) and all(one.count > one.threshold for one in cycle)
    kind: Kind = "stop" if count >= stop or in_turn else "nudge"
    reason = "turn" if cycle else "repeat"
    return Reaction(
        kind, repeat_text(sighting, cycle, stops=kind == "stop"), reason, failure, count
    )


def _started(state: MonitorState, event: Started, _rules: MonitorRules) -> Step:
    return background.started(state, event.call, event.tool, event.task), NOTHING


def _finished(state: MonitorState, event: Finished, _rules: MonitorRules) -> Step:
    return background.ended(state, event.task)[0], NOTHING


def _helped(state: MonitorState, _event: Helped, _rules: MonitorRules) -> Step:
    """A person has spoken: failures are counted anew, what no check has seen stays unchecked."""
    return replace(state, seen=Seen(), looks={}, again=(), tried=()), NOTHING


def _ended(state: MonitorState, event: Ended, _rules: MonitorRules) -> Step:
    from loki.decision.ending import objection  # what claims look like is a table of its own

    state, text = objection(state, event.message, event.turn, event.running)
    return state, Reaction("refuse", text, "claim", None, 1) if text else NOTHING


TABLE: Mapping[type[Any], Callable[[MonitorState, Any, MonitorRules], Step]] = {
    Passed: _passed,
    Failed: _failed,
    Started: _started,
    Finished: _finished,
    Helped: _helped,
    Ended: _ended,
}


def refusal(call: Known, seconds: float | None, said: str) -> Reaction:
    """What a call is told whose breaker is open; arguments: `refusal_text`."""
    return Reaction("refuse", refusal_text(call, seconds, said), "breaker")

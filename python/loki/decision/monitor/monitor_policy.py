"""What is to be said of an agent's tool calls: nothing, a sign, or that it must stop. A pure table.

`step` is the machine: (state, event) → (state, reaction). What comes again, and what does not, is decided
here. Each row is what runs of real agents bear out, and each number was set on them:
``docs/monitor.md`` has the figures, ``docs/design/monitor.md`` says why.

============ ================================================================ ===================
event        what is so                                                       reaction
============ ================================================================ ===================
Passed       it waits for what others do, or asks whether that is done        none
Passed       a change of a file, the very same one: 3rd time                  nudge: same-change
Passed       a command printed the same, after changes between: 3rd, where    nudge: same-output
             it complains, else 4th
Passed       the very same call, the same result, nothing new done; of a      nudge: same-call
             look also nothing new seen: 4th; never a stop
Passed       (a check's failures are mended; a change begins a new try)       none
Failed       infrastructure failed, or the command polls                      none
Failed       the agent's changes were taken back for that: it is not theirs   none
Failed       the very same call, the same result, nothing new done: 3rd       nudge: same-call
Failed       … 6th (``[loop] max_retries`` + 1, where that is more)           stop
Failed       the same failure, nothing was tried since, another look at it    none
Failed       the same after a try, and fewer others beside it, or other       none
             numbers in it
Failed       the same after a try: 2nd time where a harness tells it, 3rd     nudge: repeat
             where a command does, 4th, once, where nothing that it names changed
Failed       … 12th, in a file that was changed                              stop
Failed       nothing specific, printed the same after changes: 3rd            nudge: same-output
Failed       one tool, one error, whatever it is given: 3rd in a row, of      nudge: same-error
             looks and edits the 4th; 5th in all where it has no command line
Failed       a file that the agent changes cannot be loaded, 5 runs in a row  nudge: broken
Failed       time was up for the same call: 3rd                               nudge: time-out
Failed       what was given does not fit, for the same reason: 2nd; an       nudge: same-call
             answer in a wrong form: 3rd; never a stop
Started      (a check in the background: a claim that tests pass has to wait)  none
Finished     (what it said is told as of any other)                           none
Helped       (failures are counted anew)                                      none
Ended        a claim that the checks speak against, or that nothing bears out refuse, once
============ ================================================================ ===================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any

from loki.decision.monitor import check_evidence
from loki.decision.monitor.completion_check import objection
from loki.decision.monitor.monitor_state import (
    NOTHING,
    Ended,
    Failed,
    FailuresReset,
    Finished,
    MonitorEvent,
    MonitorRules,
    MonitorState,
    Passed,
    Reaction,
    Started,
    Step,
)
from loki.decision.monitor.repeated_action import (
    changes_of_call,
    covers,
    is_waiting_for_service,
    on_broken_file,
    on_old_failure,
    on_printing_command,
    on_recurring_failure,
    on_refused_input,
    refusal_text,
    repetition_key,
    same_call,
    same_change,
    same_error,
    same_output,
    same_time_out,
    with_age,
    without_expired,
)
from loki.decision.monitor.tool_call import Known
from loki.decision.monitor.tool_command import Effect
from loki.memory.sign import Seen
from loki.recognition.failure import Failure

DEFAULT_RULES = MonitorRules()

MOST_TRIED = 5
"""Changes since the last failure that are named as what was tried, the newest. Chosen."""

MOST_DONE = 256
"""Things done that are known to be nothing new, the newest. Chosen, not measured."""

MOST_MADE = 64
"""Changes that are remembered, the newest. Chosen, not measured."""


def step(state: MonitorState, event: MonitorEvent, rules: MonitorRules = DEFAULT_RULES) -> Step:
    """The state after an event, and what is to be done.

    Args:
        state: the state before; not changed.
        event: what happened.
        rules: what counts; the defaults where nothing is said.

    Example:
        >>> from loki.decision.monitor.tool_call import ToolCall, known
        >>> check = known(ToolCall("Bash", {"command": "pytest -q"}))
        >>> failed = Failed(check, Failure.of("KeyError: 'next'", tests=["test_calc.py::test_a"]))
        >>> state = MonitorState()
        >>> for text in ("return ''", "return None", "pass"):
        ...     edit = known(ToolCall("Edit", {"file_path": "calc.py", "new_string": text}))
        ...     for event in (failed, Passed(edit)):
        ...         state, reaction = step(state, event)
        ...         if reaction:
        ...             print(reaction.kind, reaction.reason, reaction.count)
        nudge repeat 3
    """
    return TABLE[type(event)](state, event, rules)


def _passed(state: MonitorState, event: Passed, rules: MonitorRules) -> Step:
    call, outcome = event.call, event.outcome
    state = without_expired(
        state, lambda one: one.key in {repetition_key(call), f"unfit:{call.key}"}
    )
    state = with_age(_fitted(state, call))
    if call.waits or rules.signs.is_exempt(call.command):
        return check_evidence.shown(state, call, outcome), NOTHING
    if call.talks:
        return on_printing_command(state, call)
    state = without_expired(state, lambda one: one.key == "talk")
    if call.effect is Effect.WRITE:
        state = _changed(state, call)
        if not (call.is_check or call.also_runs):
            return same_change(state, call)
    if call.effect in {Effect.RUN, Effect.WRITE}:
        state = without_expired(state, lambda one: one.key == "broken")
        state = check_evidence.shown(_mended(state, call), call, outcome)
    if call.effect is not Effect.READ and not call.is_check:
        state = _done(state, f"{call.key}:{outcome.said}")
    if call.effect is Effect.WRITE or not outcome.said:
        return state, NOTHING
    state, reaction = same_output(state, event, None)
    return _first(
        (state, reaction), lambda state: same_call(state, call, outcome.said, None, rules)
    )


def _first(step: Step, otherwise: Callable[[MonitorState], Step]) -> Step:
    """What the first rule says, else the other one; both see the event."""
    state, reaction = step
    state, other = otherwise(state)
    return state, other if other.kind == "stop" or not reaction else reaction


def _fitted(state: MonitorState, call: Known) -> MonitorState:
    """After a call that its tool took: those that it did not take are mended."""
    return without_expired(state, lambda one: one.key.startswith(f"unfit:{call.tool}:"))


def _changed(state: MonitorState, call: Known) -> MonitorState:
    """After a change."""
    state = _done(state, call.key)
    if call.stashes or call.puts_back:
        state = replace(state, stashed=not call.puts_back)
    if call.tries and not (call.is_prose and call.path):
        number = state.change + 1
        tried = (*(one for one in state.tried if one != call.said), call.said)[-MOST_TRIED:]
        made = (*state.made, changes_of_call(call, number))[-MOST_MADE:]
        state = replace(state, change=number, tried=tried, made=made)
    return check_evidence.edited(state, call)


def _done(state: MonitorState, what: str) -> MonitorState:
    """After something was done; what was done before, with the same result, has moved nothing."""
    name = sha256(what.encode("utf-8", "replace")).hexdigest()[:12]
    if name in state.done:
        return state
    return replace(state, done=(*state.done, name)[-MOST_DONE:], moved=state.moved + 1)


def _mended(state: MonitorState, call: Known) -> MonitorState:
    """After something ran well: what it had shown is mended."""
    shown = {one.failure.fingerprint: one.failure for one in state.seen.sightings}
    mended = {name for name, look in state.looks.items() if covers(call, look, shown.get(name))}
    if not mended:
        return state
    kept = tuple(one for one in state.seen.sightings if one.failure.fingerprint not in mended)
    recent = tuple(name for name in state.seen.recent if name not in mended)
    looks = {name: look for name, look in state.looks.items() if name not in mended}
    return replace(state, seen=Seen(kept, recent), looks=looks)


def _failed(state: MonitorState, event: Failed, rules: MonitorRules) -> Step:
    call, failure, outcome = event.call, event.failure, event.outcome
    if call.puts_back:  # as far as it went: what is there now is what the agent goes on with
        state = replace(state, stashed=False)
    if not call.fits:
        return on_refused_input(state, call, failure)
    state = _fitted(state, call)
    runs = call.effect in {Effect.RUN, Effect.OTHER} or call.is_check or call.also_runs
    if runs and call.effect is Effect.WRITE:
        state = _changed(state, call)  # as far as anybody knows: what it ran has failed
    if runs:
        state = check_evidence.shown(state, call, outcome, failure)
    if call.waits or _polls(call, failure, rules):
        return state, NOTHING
    if runs and (state.stashed or call.stashes):
        return on_old_failure(state, event), NOTHING
    said = outcome.said or failure.fingerprint
    if runs and not call.is_check:
        state = _done(state, f"{call.key}:{said}")
    step = (state, NOTHING)
    if runs and failure.is_specific and not rules.signs.ignores(failure, call.command):
        step = on_recurring_failure(state, event, rules)
    elif runs and not outcome.timed_out:
        step = same_output(state, event, failure)
    step = _first(step, lambda state: same_call(state, call, said, failure, rules))
    step = _first(step, lambda state: on_broken_file(state, call, failure))
    step = _first(step, lambda state: same_error(state, event))
    return _first(step, lambda state: same_time_out(state, event))


def _polls(call: Known, failure: Failure, rules: MonitorRules) -> bool:
    """Whether a failure says nothing of what the agent does."""
    if failure.match is not None and failure.match.is_infrastructure:
        return True
    return rules.signs.is_exempt(call.command) or is_waiting_for_service(call, failure)


def _started(state: MonitorState, event: Started, _rules: MonitorRules) -> Step:
    return check_evidence.started(state, event.call, event.task), NOTHING


def _finished(state: MonitorState, event: Finished, _rules: MonitorRules) -> Step:
    return check_evidence.ended(state, event.task)[0], NOTHING


def _helped(state: MonitorState, _event: FailuresReset, _rules: MonitorRules) -> Step:
    """A person has spoken: failures are counted anew, what no check has seen stays unchecked."""
    return replace(state, seen=Seen(), looks={}, again=(), done=(), tried=()), NOTHING


def _ended(state: MonitorState, event: Ended, _rules: MonitorRules) -> Step:
    state, text = objection(state, event.message, event.turn, event.running)
    return state, Reaction("refuse", text, "claim", None, 1) if text else NOTHING


TABLE: Mapping[type[Any], Callable[[MonitorState, Any, MonitorRules], Step]] = {
    Passed: _passed,
    Failed: _failed,
    Started: _started,
    Finished: _finished,
    FailuresReset: _helped,
    Ended: _ended,
}


def refusal(call: Known, seconds: float | None, said: str) -> Reaction:
    """What a call is told whose breaker is open; arguments: `refusal_text`."""
    return Reaction("refuse", refusal_text(call, seconds, said), "breaker")

"""What an agent does again, to the letter: a call, an answer, a change, an output, an error. Pure.

Each rule takes the state and gives the state after it, with what is to be said; the table of all of them is
`loki.decision.monitor.monitor_policy`. What a failure is that comes back after changes:
`loki.decision.monitor.recurring_failure`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from loki.decision.monitor.attribution import TRIED, attempts_to_fix, names_in_failure
from loki.decision.monitor.monitor_events import NOTHING, Failed, Passed, Reaction, Step
from loki.decision.monitor.monitor_state import FIRST, MonitorRules, MonitorState, Repetition
from loki.decision.monitor.monitor_text import (
    broken_text,
    call_text,
    change_text,
    error_text,
    output_text,
    talk_text,
    time_text,
)
from loki.decision.monitor.tool_call import Effect, Known
from loki.recognition.failure import Failure
from loki.recognition.signature import normalize

MOST_AGAIN = 96
"""Calls, outputs and errors that are remembered for coming again, the newest. Chosen, not measured."""

SAME_CALL, SAME_ANSWER, SAME_CHANGE, SAME_ERROR, TIME_OUTS = 3, 4, 3, 3, 3
"""Times that something comes before it is named: a call that fails, one that goes well, a change, a tool's
error in a row (of looks and edits, which agents often get right the third time, once more), a time-out.
Set on runs of real agents: one less, and runs that get on hear of it."""

OFTEN = 5
"""Times that a tool without a command line gives one error, whatever came between. Set on the same runs."""

BROKEN = 5
"""Runs in a row that a file cannot even be loaded in which the agent changes. Set on the same runs."""

OWN = 2
"""Changes of a failing test alone, or of the agent's own script, that count as one try. Chosen."""

TALK = 4
"""Commands in a row that only print what their author says. Chosen, not measured."""

SAME_OUTPUT, SAME_OUTPUT_QUIET = 3, 4
"""The same for what a command prints after changes: where it complains, and where nothing says so."""

BLIND = 6
"""The same for a tool's call of which nobody knows what it does. Chosen."""

UNFIT, UNFIT_NEAR = 2, 3
"""The same for what a tool did not take, as it says why; of an answer in a wrong form once more. And after
how many calls that are taken it is forgotten. Chosen, not measured."""


def without_expired(state: MonitorState, is_over: Callable[[Repetition], bool]) -> MonitorState:
    """The state without what is over."""
    again = tuple(one for one in state.again if not is_over(one))
    return replace(state, again=again) if len(again) < len(state.again) else state


def with_age(state: MonitorState) -> MonitorState:
    """The state after a call that was taken: what was not is forgotten after a few of those."""
    if not any(one.key.startswith("unfit:") for one in state.again):
        return state
    aging = (
        one._replace(at=one.at - 1) if one.key.startswith("unfit:") else one for one in state.again
    )
    again = tuple(one for one in aging if one.at > 0 or not one.key.startswith("unfit:"))
    return replace(state, again=again)


def repetition_key(call: Known) -> str:
    """The name of a tool's errors in a row."""
    return f"row:{call.tool}"


def count_occurrence(
    state: MonitorState, key: str, said: str, at: int, *, goes_on: bool
) -> tuple[MonitorState, int]:
    """The state after something came, and how often it has; goes_on: it is what came before."""
    before = next((one for one in state.again if one.key == key), None)
    count = before.times + 1 if before is not None and goes_on else 1
    others = (one for one in state.again if one.key != key)
    return replace(state, again=(*others, Repetition(key, said, at, count))[-MOST_AGAIN:]), count


def _before(state: MonitorState, key: str, said: str) -> Repetition | None:
    return next((one for one in state.again if one.key == key and one.said == said), None)


def same_call(
    state: MonitorState, call: Known, said: str, failure: Failure | None, rules: MonitorRules
) -> Step:
    """The very same call with the same result, and nothing new between."""
    key = f"call:{call.key}"
    before = _before(state, key, said)
    at = state.moved
    if failure is None and call.effect in {Effect.READ, Effect.OTHER}:
        if call.is_blind:  # "Scrolled down." says nothing of what it saw
            return state, NOTHING
        state, learnt = _learnt(state, is_new=before is None)
        at += learnt
    goes_on = before is not None and before.at == at
    state, count = count_occurrence(state, key, said, at, goes_on=goes_on)
    if failure is None:
        least = BLIND if call.effect is Effect.OTHER else SAME_ANSWER
    else:
        least = rules.signs.threshold_for(failure) + SAME_CALL - FIRST
    if count < least:
        return state, NOTHING
    stops = failure is not None and count >= max(rules.stop, least + 1)
    text = call_text(call, failure, count, stops=stops)
    return state, Reaction("stop" if stops else "nudge", text, "same-call", failure, count)


def _learnt(state: MonitorState, *, is_new: bool) -> tuple[MonitorState, int]:
    """The state after a look, and how many have shown something new: who reads on looks again, too."""
    before = next((one.times for one in state.again if one.key == "learnt"), 0)
    if not is_new:
        return state, before
    return count_occurrence(state, "learnt", "", 0, goes_on=True)


def on_refused_input(state: MonitorState, call: Known, failure: Failure) -> Step:
    """What a tool did not take: whatever was given, it is the reason that comes back, to the letter."""
    key = f"unfit:{call.tool}:{failure.message[:300]}"
    state, count = count_occurrence(state, key, "", UNFIT_NEAR, goes_on=True)
    if count < UNFIT + call.talks:
        return state, NOTHING
    text = call_text(call, failure, count, stops=False)
    return state, Reaction("nudge", text, "same-call", failure, count)


def same_change(state: MonitorState, call: Known) -> Step:
    """The very same change of a file, made again; what is committed begins anew."""
    if ("git", "commit") in {program[:2] for program in call.programs}:
        return without_expired(
            state, lambda one: one.key.startswith("edit:")
        ), NOTHING  # it is kept
    if call.is_prose or not call.path or call.takes_back or (call.command and not call.edits):
        return state, NOTHING
    state, count = count_occurrence(state, f"edit:{call.key}", "", 0, goes_on=True)
    if count < SAME_CHANGE:
        return state, NOTHING
    return state, Reaction("nudge", change_text(call, count), "same-change", None, count)


def is_due(times: int) -> bool:
    """Whether something that may well be as it should is named again, so many times after the first.

    Example:
        >>> [times for times in range(20) if is_due(times)]
        [0, 1, 2, 4, 8, 16]
    """
    return times & (times - 1) == 0 if times else True


def same_output(state: MonitorState, event: Passed | Failed, failure: Failure | None) -> Step:
    """The same printed again, although what may have to do with it was changed."""
    call, outcome = event.call, event.outcome
    if not outcome.said or outcome.is_green or call.effect not in {Effect.RUN, Effect.WRITE}:
        return state, NOTHING
    if failure is None and call.is_check:
        return state, NOTHING
    key = f"out:{call.key}"
    before = _before(state, key, outcome.said)
    strength = attempts_to_fix(state.made, before.at, call, failure) if before else TRIED
    if strength == 0:
        return state, NOTHING
    state, count = count_occurrence(
        state, key, outcome.said, state.change, goes_on=before is not None
    )
    least = SAME_OUTPUT if failure or outcome.complains else SAME_OUTPUT_QUIET
    least += OWN if strength < TRIED else 0
    if count < least or (least > SAME_OUTPUT and not is_due(count - least)):
        return state, NOTHING
    text = output_text(call, failure, count, state.tried)
    return state, Reaction("nudge", text, "same-output", failure, count)


def same_error(state: MonitorState, event: Failed) -> Step:
    """One tool, one error, whatever it is given; failures of the project are none of these."""
    call, failure = event.call, event.failure
    is_of_project = call.is_check and event.outcome.has_begun
    line = normalize(
        f"{failure.error_type or ''} {failure.message[:300]}", level="template"
    ).strip()
    if is_of_project or not line or names_in_failure(failure):
        return state, NOTHING
    before = _before(state, repetition_key(call), line)
    state, count = count_occurrence(
        state, repetition_key(call), line, 0, goes_on=before is not None
    )
    least = SAME_ERROR + (call.effect in {Effect.READ, Effect.WRITE})
    if count < least and not call.command:
        state, count = count_occurrence(state, f"error:{call.tool}:{line}", "", 0, goes_on=True)
        least = OFTEN
    if count < least:
        return state, NOTHING
    return state, Reaction("nudge", error_text(call, failure, count), "same-error", failure, count)


_UNLOADED = frozenset(
    {"SyntaxError", "IndentationError", "TabError", "NameError", "ImportError", "UnboundLocalError"}
)


def on_broken_file(state: MonitorState, call: Known, failure: Failure) -> Step:
    """A file that the agent changes cannot be loaded, again and again, by ever other errors of its own."""
    if not call.command:
        return state, NOTHING
    file = (failure.path or "").rpartition("/")[2]
    is_own = any(one.file == file and not one.is_test for one in state.made)
    if not is_own or not (failure.error_type in _UNLOADED or failure.kind == "syntax-error"):
        return without_expired(state, lambda one: one.key == "broken"), NOTHING
    before = _before(state, "broken", file)
    if before is not None and before.at == state.change:
        return state, NOTHING
    state, count = count_occurrence(state, "broken", file, state.change, goes_on=before is not None)
    if count < BROKEN:
        return state, NOTHING
    return state, Reaction("nudge", broken_text(file, count), "broken", failure, count)


def on_printing_command(state: MonitorState, call: Known) -> Step:
    """Commands that only print what their author says: nobody reads it."""
    state, count = count_occurrence(state, "talk", "", 0, goes_on=True)
    if count < TALK:
        return state, NOTHING
    return state, Reaction("nudge", talk_text(call, count), "same-call", None, count)


def same_time_out(state: MonitorState, event: Failed) -> Step:
    """Time was up for the same call."""
    if not event.outcome.timed_out:
        return state, NOTHING
    call = event.call
    state, count = count_occurrence(state, f"time:{call.key}", "", 0, goes_on=True)
    if count < TIME_OUTS:
        return state, NOTHING
    return state, Reaction("nudge", time_text(call, count), "time-out", event.failure, count)

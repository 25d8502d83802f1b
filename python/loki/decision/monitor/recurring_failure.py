"""Failures that come back after changes: which sighting counts, and what is said to it. Pure.

The table of all that a monitor says: `loki.decision.monitor.monitor_policy`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from loki.decision.monitor.attribution import (
    NOT_YOURS,
    attempts_to_fix,
    is_touched,
    names_in_failure,
)
from loki.decision.monitor.monitor_events import NOTHING, Failed, Kind, Reaction, Step
from loki.decision.monitor.monitor_state import (
    FIRST,
    LATER,
    UNTOUCHED,
    Inspection,
    MonitorRules,
    MonitorState,
)
from loki.decision.monitor.monitor_text import repeat_text
from loki.decision.monitor.repeated_action import OWN, count_occurrence
from loki.memory.sign import Seen, Sighting, observe
from loki.recognition.failure import Failure
from loki.recognition.similarity import same_failure

MOST_LOOKS = 16
"""Calls that showed one failure, remembered. Chosen, not measured."""


def _known(state: MonitorState, failure: Failure) -> Sighting | None:
    return next((s for s in state.seen.sightings if same_failure(s.failure, failure)), None)


def on_old_failure(state: MonitorState, event: Failed) -> MonitorState:
    """A failure that was there before the agent changed anything is none of its making."""
    failure = event.failure
    known = _known(state, failure)
    if known is None:
        seen, known = observe(state.seen, failure, "", "")
        state = replace(state, seen=replace(seen, recent=state.seen.recent))
    name = known.failure.fingerprint
    look = state.looks.get(name) or Inspection(state.change, (), names=names_in_failure(failure))
    looks = {**state.looks, name: replace(look, is_old=True)}
    return replace(state, looks=_of_seen(looks, state.seen))


def _of_seen(looks: Mapping[str, Inspection], seen: Seen) -> dict[str, Inspection]:
    names = {one.failure.fingerprint for one in seen.sightings}
    return {name: look for name, look in looks.items() if name in names}


def on_recurring_failure(state: MonitorState, event: Failed, rules: MonitorRules) -> Step:
    """The state after a specific failure, and what is to be said where it has come back.

    Args:
        state: the state before.
        event: what something that ran showed.
        rules: what counts.
    """
    failure = event.failure
    known = _known(state, failure)
    name = known.failure.fingerprint if known else failure.fingerprint
    look = state.looks.get(name) if known else None
    if look is not None and attempts_to_fix(state.made, look.change, event.call, failure) == 1:
        state, count = count_occurrence(state, f"own:{name}", "", 0, goes_on=True)
        if count % OWN:
            looks = {**state.looks, name: _looked(look, event, state.change)}
            return replace(state, looks=looks), NOTHING
    if look is not None and _is_news(state, look, event):
        looks = {**state.looks, name: _looked(look, event, state.change)}
        return replace(state, looks=looks), NOTHING
    seen, sighting = observe(state.seen, failure, "; ".join(state.tried), "", rules.signs)
    first = Inspection(state.change, (), names=names_in_failure(failure))
    looks = {**_of_seen(state.looks, seen), name: _looked(look or first, event, state.change)}
    state = replace(state, seen=seen, looks=looks, tried=())
    reaction = _answer(state, event, sighting, looks[name], rules)
    if reaction:
        looks = {**looks, name: replace(looks[name], told=True)}
    return replace(state, looks=looks), reaction


def _is_news(state: MonitorState, look: Inspection, event: Failed) -> bool:
    """Whether a known failure says nothing against what was done."""
    if look.is_old or not attempts_to_fix(state.made, look.change, event.call, event.failure):
        return True  # not theirs; another look at it: nothing was tried
    if look.numbers != numbers_in(event.failure):
        return True  # what was changed has shown
    most = max(look.extents.values(), default=0)
    fewest = look.extents.get(event.call.key, most)
    # Others beside it are mended, or what was being made works: the failure was there before.
    return 0 < event.extent < fewest or event.outcome.passed > look.passes > 0


_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w])")
_PLACES = re.compile(
    r"0x[0-9a-fA-F]+|:\d+(?::\d+)?\b|\bline \d+|\d+(?:\.\d+)? ?(?:s|ms|seconds?)\b"
)


def numbers_in(failure: Failure) -> str:
    """The numbers that a message has, but for places and durations: what a program found instead.

    Example:
        >>> numbers_in(Failure.of("assert 30 == 27")), numbers_in(Failure.of("bad at a.py:3 in 0.2 s"))
        ('30 27', '')
    """
    return " ".join(_NUMBER.findall(_PLACES.sub(" ", failure.message)))[:200]


def _looked(look: Inspection, event: Failed, change: int) -> Inspection:
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
        passes=max(look.passes, event.outcome.passed),
        numbers=numbers_in(event.failure),
    )


def _answer(
    state: MonitorState, event: Failed, sighting: Sighting, look: Inspection, rules: MonitorRules
) -> Reaction:
    """What is said to a failure that counts."""
    is_theirs = is_touched(state.made, look.names)
    least = FIRST if event.call.is_harness else LATER if is_theirs else UNTOUCHED
    first = sighting.threshold + least - FIRST
    if sighting.count < first:
        return NOTHING
    if not is_theirs and sighting.count > first:
        return NOTHING  # they have been told, and leave it
    stops = is_theirs and sighting.count >= rules.far
    text = repeat_text(sighting, first, stops=stops)
    if not is_theirs:
        text = f"{text}\n{NOT_YOURS}"
    kind: Kind = "stop" if stops else "nudge"
    return Reaction(kind, text, "repeat", sighting.failure, sighting.count)

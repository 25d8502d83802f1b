"""What an agent does again: a call, an answer, a change, an output, an error, a failure. Pure.

Each rule takes the state and gives the state after it, with what is to be said; the table of all of them is
`loki.decision.monitor.monitor_policy`. ``docs/design/monitor.md`` says why they are so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from loki.decision.monitor.monitor_state import (
    FIRST,
    LATER,
    NOTHING,
    UNTOUCHED,
    Failed,
    Inspection,
    Kind,
    MadeChange,
    MonitorRules,
    MonitorState,
    Passed,
    Reaction,
    Repetition,
    Step,
)
from loki.decision.monitor.tool_call import Known
from loki.decision.monitor.tool_command import Effect, knowledge
from loki.memory.quote import one_line, quoted
from loki.memory.sign import Seen, Sighting, observe, render_failure, render_sign
from loki.recognition.failure import Failure
from loki.recognition.signature import normalize
from loki.recognition.similarity import same_failure

# --- What an agent reads ------------------------------------------------------------------------------

_OFTEN = 2
"""Times more than the first that something is named after which the words are plain. Chosen."""


def repeat_text(sighting: Sighting, first: int, *, stops: bool = False) -> str:
    """A failure that came back: the sign, and what it is for.

    Args:
        sighting: the failure.
        first: at how many sightings it is named for the first time: the more, the plainer.
        stops: the agent is stuck.
    """
    more = sighting.count - first
    if stops:
        head = "Stop here: this has led nowhere. Say what was tried and what a person must decide."
    elif more <= 0:
        head = "This failure came back, so what led to it did not mend it:"
    elif more < _OFTEN:
        head = (
            f"The same failure for the {_th(sighting.count)} time. What you believe of its cause is not "
            "so: before the next change, look at what the program really does there."
        )
    else:
        head = (
            f"The same failure for the {_th(sighting.count)} time. Nothing that was tried comes near it. "
            "Take back what did not help, say what you know for certain, and go about it in another way, "
            "or ask a person."
        )
    return f"{head}\n{render_sign(sighting)}"


def call_text(call: Known, failure: Failure | None, count: int, *, stops: bool) -> str:
    """A call that was made again, with the same result and nothing new between."""
    said = f": {render_failure(failure)}" if failure is not None and failure.message else ""
    if not call.fits:
        head = (
            f"What was given to {quoted(call.said)} was not accepted, {count} times for the same "
            f"reason{said}."
        )
        return f"{head} Compare it with what is asked for, and change what is named there."
    what = "failed the same way" if failure is not None else "gave the same answer"
    head = f"{quoted(one_line(call.said))} {what} {count} times, with nothing new in between{said}."
    if stops:
        return (
            f"Stop here: {head} It will not be different the next time. Say what was tried, and what a "
            "person must decide."
        )
    if failure is None:
        return f"{head} You have the answer already: go on with it."
    return f"{head} Making the same call again does not help: change something first."


def change_text(call: Known, count: int) -> str:
    """A change that was made again."""
    return (
        f"{quoted(one_line(call.said))} is the very same change, made for the {_th(count)} time. It did "
        "not lead where it was to before: find out why, or make another one."
    )


def output_text(call: Known, failure: Failure | None, count: int, tried: Sequence[str]) -> str:
    """The same printed again, whatever was changed."""
    said = f": {render_failure(failure)}" if failure is not None and failure.message else ""
    changes = "; ".join(quoted(one_line(one, 80)) for one in tried[-3:])
    after = f" Changed meanwhile: {changes}." if changes else ""
    return (
        f"{quoted(one_line(call.said))} printed the very same for the {_th(count)} time{said}, although "
        f"files were changed in between.{after} If that is not what it should print, the changes do not "
        "reach it: check that it runs the code that you change, and where that decides."
    )


def error_text(call: Known, failure: Failure, count: int) -> str:
    """One error of a tool, whatever it is given."""
    return (
        f"{count} calls of {quoted(call.tool)} failed with one error: {render_failure(failure)}. Giving "
        "it something "
        "slightly different does not help: look at what the error says first, or take another way."
    )


def broken_text(file: str, count: int) -> str:
    """A file that cannot be loaded since the agent changes it."""
    return (
        f"{quoted(file)} could not even be loaded in the last {count} runs, each time by another mistake of "
        "the changes to it. Take it back to the last state that ran, read the part that is to change, and "
        "change it in one piece."
    )


def talk_text(call: Known, count: int) -> str:
    """Commands that print what their author says."""
    said = quoted(one_line(call.said, 80))
    return (
        f"{count} commands in a row only printed what they say themselves ({said}). "
        "Nobody answers there: go on with the task as far as it is known, or end with the question."
    )


def time_text(call: Known, count: int) -> str:
    """Time was up, again."""
    return (
        f"{quoted(one_line(call.said))} ran out of time for the {_th(count)} time. Run a smaller part of it, "
        "run it in the background, or find out what it waits for."
    )


def refusal_text(call: Known, seconds: float | None, said: str) -> str:
    """A call whose breaker is open.

    Args:
        call: the call.
        seconds: until it may be made again; None: a person has to close the breaker.
        said: the error that was seen last.
    """
    when = f"for another {seconds:.0f} s" if seconds is not None else "until a person closes it"
    last = f" The last error was: {quoted(said)}." if said else ""
    return (
        f"Not called: {quoted(one_line(call.said))} reaches what has failed again and again, so it is "
        f"left alone {when} (circuit breaker {call.breaker}).{last} Do something else meanwhile."
    )


def _th(count: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(
        count % 10 if count % 100 not in {11, 12, 13} else 0, "th"
    )
    return f"{count}{ending}"


# --- Whether a failure comes of a change, or is gone --------------------------------------------------

NOT_YOURS = (
    "It was there before your first change, and none of your changes is in a file that it names. If it "
    "is not your task, leave it as it is, go on, and say so at the end."
)
"""What is added where a failure may be nobody's doing of this session."""


TRIED = 2
"""What `attempted` says where something was changed that could have mended a failure."""


def changes_of_call(call: Known, number: int) -> MadeChange:
    """What is kept of a change.

    Args:
        call: what made it.
        number: the how many-th it is.
    """
    file = call.path.replace("\\", "/").rpartition("/")[2]
    return MadeChange(number, file, _stem(file), call.is_test or call.is_scratch)


def attempts_to_fix(
    made: Sequence[MadeChange], since: int, call: Known, failure: Failure | None = None
) -> int:
    """Whether anything was changed since that could have mended what a call shows: `TRIED`; 0: nothing.

    1: only a test that fails, or a script that is there to show the failure, was changed. What a command
    runs is no such script where the failure is in it.

    Args:
        made: changes, the newest last.
        since: the number of the last change that was known before.
        call: what shows it.
        failure: what it shows; None: it only printed something.
    """
    words = {word.rpartition("/")[2] for program in call.programs for word in program[1:]} - {""}
    place = (failure.path or "").rpartition("/")[2] if failure else ""
    is_unread = failure is not None and failure.kind == "syntax-error"
    found = 0
    for one in reversed(made):
        if one.number <= since:
            break
        is_own = one.is_test or one.file in words
        if not is_own or (one.file == place and (is_unread or not one.is_test)):
            return TRIED
        found = 1
    return found


def is_touched(made: Sequence[MadeChange], names: frozenset[str]) -> bool:
    """Whether any change may be in a file that a failure names; where it names none, or nobody knows what
    was changed, it may be."""
    return not names or any(not one.file or one.stem in names for one in made)


def _stem(path: str) -> str:
    """The name of a file without folders, endings and what makes it one of tests."""
    stem = path.replace("\\", "/").rpartition("/")[2].split(".", 1)[0].casefold()
    return stem.removeprefix("test_").removesuffix("_test").removesuffix("_tests")


def is_waiting_for_service(call: Known, failure: Failure) -> bool:
    """Whether a tool says that what it was asked for is not done yet: asking again is how one waits.

    Example:
        >>> from loki.decision.monitor.tool_call import ToolCall, known
        >>> said = Failure.of("build 7 is still running")
        >>> is_waiting_for_service(known(ToolCall("wait_for_build", {"id": 7})), said)
        True
    """
    if call.command or call.effect is Effect.WRITE:
        return False
    if call.effect is Effect.RUN and (failure.tests or failure.error_type or failure.frames):
        return False  # it ran, and says so of what it found
    return knowledge().not_yet.search(failure.message) is not None


def names_in_failure(failure: Failure) -> frozenset[str]:
    """The stems of the files that a failure names: its place, its stack in the project, its tests."""
    files = {failure.path or "", *(f.path for f in failure.frames if f.in_project)}
    files |= {test.split("::", 1)[0] for test in failure.tests}
    return frozenset(_stem(file) for file in files if file and not file.startswith("<"))


def covers(call: Known, look: Inspection, failure: Failure | None) -> bool:
    """Whether a call that went well shows that what another had shown is mended."""
    if call.key in look.keys:
        return True
    if not call.is_check:
        return False
    named = _about(failure) if failure else frozenset()
    for program, *words in call.programs:
        for other, *others in look.calls:
            if program == other and (set(words) <= set(others) or named & set(words)):
                return True
    return False


def _about(failure: Failure) -> frozenset[str]:
    """Files and tests that a failure names."""
    files = {test.split("::", 1)[0] for test in failure.tests}
    return frozenset({*failure.tests, *files, *([failure.path] if failure.path else [])})


# --- What an agent does again, to the letter ----------------------------------------------------------

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
    again = []
    for one in state.again:
        if not one.key.startswith("unfit:"):
            again.append(one)
        elif one.at > 1:
            again.append(one._replace(at=one.at - 1))
    return state if tuple(again) == state.again else replace(state, again=tuple(again))


def repetition_key(call: Known) -> str:
    """The name of a tool's errors in a row."""
    return f"row:{call.tool}"


def count_occurrence(
    state: MonitorState, key: str, said: str = "", at: int = 0, *, is_anew: bool = False
) -> tuple[MonitorState, int]:
    """The state after something came, and how often it has with the same result; is_anew: the first time."""
    before = None if is_anew else _before(state, key, said)
    count = before.times + 1 if before is not None else 1
    others = (one for one in state.again if one.key != key)
    return replace(state, again=(*others, Repetition(key, said, at, count))[-MOST_AGAIN:]), count


def _nudged(
    counted: tuple[MonitorState, int],
    least: int,
    text: Callable[[int], str],
    reason: str,
    failure: Failure | None = None,
) -> Step:
    """A nudge where something came as often as that, with what it says of the number."""
    state, count = counted
    if count < least:
        return state, NOTHING
    return state, Reaction("nudge", text(count), reason, failure, count)


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
    is_anew = before is not None and before.at != at
    state, count = count_occurrence(state, key, said, at, is_anew=is_anew)
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
    return count_occurrence(state, "learnt")


def on_refused_input(state: MonitorState, call: Known, failure: Failure) -> Step:
    """What a tool did not take: whatever was given, it is the reason that comes back, to the letter."""
    key = f"unfit:{call.tool}:{failure.message[:300]}"
    counted = count_occurrence(state, key, at=UNFIT_NEAR)
    text = partial(call_text, call, failure, stops=False)
    return _nudged(counted, UNFIT + call.talks, text, "same-call", failure)


def same_change(state: MonitorState, call: Known) -> Step:
    """The very same change of a file, made again; what is committed begins anew."""
    if ("git", "commit") in {program[:2] for program in call.programs}:
        return without_expired(state, lambda one: one.key.startswith("edit:")), NOTHING
    if call.is_prose or not call.path or call.takes_back or (call.command and not call.edits):
        return state, NOTHING
    counted = count_occurrence(state, f"edit:{call.key}")
    return _nudged(counted, SAME_CHANGE, partial(change_text, call), "same-change")


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
    state, count = count_occurrence(state, key, outcome.said, state.change)
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
    state, count = count_occurrence(state, repetition_key(call), line)
    least = SAME_ERROR + (call.effect in {Effect.READ, Effect.WRITE})
    if count < least and not call.command:
        state, count = count_occurrence(state, f"error:{call.tool}:{line}")
        least = OFTEN
    text = partial(error_text, call, failure)
    return _nudged((state, count), least, text, "same-error", failure)


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
    counted = count_occurrence(state, "broken", file, state.change)
    return _nudged(counted, BROKEN, partial(broken_text, file), "broken", failure)


def on_printing_command(state: MonitorState, call: Known) -> Step:
    """Commands that only print what their author says: nobody reads it."""
    return _nudged(count_occurrence(state, "talk"), TALK, partial(talk_text, call), "same-call")


def same_time_out(state: MonitorState, event: Failed) -> Step:
    """Time was up for the same call."""
    if not event.outcome.timed_out:
        return state, NOTHING
    counted = count_occurrence(state, f"time:{event.call.key}")
    text = partial(time_text, event.call)
    return _nudged(counted, TIME_OUTS, text, "time-out", event.failure)


# --- Failures that come back after changes ------------------------------------------------------------

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
    """The looks at failures that are still remembered."""
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
    is_half = False
    if look is not None and attempts_to_fix(state.made, look.change, event.call, failure) == 1:
        state, count = count_occurrence(state, f"own:{name}")
        is_half = count % OWN != 0
    if look is not None and (is_half or _is_news(state, look, event)):
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

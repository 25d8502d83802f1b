"""What an agent reads of what is said to it: a failure that came back, a call made again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from loki.memory.quote import one_line, quoted
from loki.memory.sign import Sighting
from loki.memory.sign_text import render_failure, render_sign

if TYPE_CHECKING:
    from loki.decision.monitor.tool_call import Known
    from loki.recognition.failure import Failure

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

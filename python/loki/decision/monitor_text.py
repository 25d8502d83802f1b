"""What an agent reads of what is said to it: a failure that came back, a call made again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from loki.memory.quote import one_line, quoted
from loki.memory.sign import Sighting, render_signs, told

if TYPE_CHECKING:
    from loki.decision.tool_call import Known
    from loki.recognition.failure import Failure


def repeat_text(sighting: Sighting, cycle: Sequence[Sighting], *, stops: bool) -> str:
    """A failure that came back, or several in turn: the signs, and what they are for."""
    signs = tuple(dict.fromkeys((sighting, *cycle))) if cycle else (sighting,)
    head = (
        "Stop here: this has led nowhere. Say what was tried and what a person must decide."
        if stops
        else "This failure came back, so what led to it did not mend it:"
    )
    return f"{head}\n{render_signs(signs, cycle)}"


def call_text(call: Known, failure: Failure, count: int, threshold: int) -> str:
    """A call that was made again without a change."""
    times = f"{count} times" if count > 1 else "once"
    said = f": {told(failure)}" if failure.message else ""
    if not call.fits:
        head = f"What was given to {quoted(call.said)} was not accepted, {times} for the same reason{said}."
        if count > threshold:
            return f"{head} It will not be the next time: go about it another way, or ask a person."
        return f"{head} Compare it with what is asked for, and change what is named there."
    head = f"{quoted(one_line(call.said))} failed {times} the same way, nothing was changed{said}."
    if count > threshold:
        return f"{head} It will fail again: go about it another way, or ask a person."
    return f"{head} Making the same call again does not help: change something first."


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

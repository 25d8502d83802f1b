"""The page by which a person is asked to take over.

It tells what happened, what was tried and why it failed, what may help, the ways to go on with the
command for each, and what exactly the person must decide. `loki.people.escalations` keeps the pages
and reads them again; `loki.people.escalation_answer` is what a page becomes once a person has spoken.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from loki.base.markdown import bullets, code, cut, fence, inline, numbered
from loki.memory import advice
from loki.memory.attempt import Attempt
from loki.memory.dead_letter_page import error_chain, known_of
from loki.people.escalation_trigger import NAMES
from loki.people.request import Option
from loki.people.request_page import page, ways
from loki.recognition.failure import Failure

MAX_PLACES = 8
"""Places that a person is pointed at; chosen, not measured."""

MAX_NAME = 120
"""Characters of a task's id in the name of its page: file systems take 255 bytes."""

TASK, ALSO = "Task ID", "Also Task ID"
"""What names a page's tasks: the first one, and the others."""


@dataclass(frozen=True, slots=True)
class Escalation:
    """A task that needs a person.

    Attributes:
        task_id, title: the task.
        trigger: what made loki ask: a pattern, same_failure, infrastructure, stopped, … or one of
            `loki.people.escalation_trigger.NAMES`.
        reason: one sentence.
        failure: the last failure, or None.
        attempts: of this execution, oldest first.
        files: paths changed.
        said: what people have said about it already, oldest first.
        run: id of the pipeline's run that it is a stage of, or "".
        answer: what was wrong with the agent's answers after that failure, or "".
        others: ids of further tasks that fail for the same reason.
        evidence: what speaks for the trigger, a line each.
        ways: how to go on; empty: the three ways of a task that the loop stopped.
        failures: how often it failed; None: as often as attempts of these failed.
    """

    task_id: str
    title: str
    trigger: str
    reason: str
    failure: Failure | None
    attempts: Sequence[Attempt]
    files: Sequence[str]
    said: Sequence[str] = ()
    run: str = ""
    answer: str = ""
    others: Sequence[str] = ()
    evidence: Sequence[str] = ()
    ways: Sequence[Option] = ()
    failures: int | None = None


def options(task_id: str, run: str = "") -> tuple[Option, Option, Option]:
    """The three ways to go on with an escalated task.

    Args:
        task_id: the task.
        run: id of the pipeline's run that it is a stage of, or "".

    Example:
        >>> [option.command for option in options("fix-login-1a2b3c")][0]
        'loki resume fix-login-1a2b3c'
    """
    command = f"loki resume {shlex.quote(task_id)}"
    abort = Option(
        "Abort",
        f"{command} --abort",
        "Restores the files as they were before the task. Nothing is lost but the attempts, "
        "which stay on record.",
    )
    if run:
        command = f"loki pipeline resume {shlex.quote(run)}"
        cost = "Ends the whole run; the stage is rolled back as its file says, else its edits stay."
        abort = Option("Abort", f"{command} --reject", cost)
    return (
        Option(
            "Fix by hand and retry",
            command,
            "Costs your time; most certain where rights, credentials or a decision are missing. The "
            "checks run first, and your edits stay yours: `loki undo` does not touch them.",
        ),
        Option(
            "Give context",
            f'{command} --context "…"',
            "Cheapest where the agent lacks something that you know. It stands in every later "
            "briefing, and the retries begin anew; may end here again where knowledge was not what "
            "is missing.",
        ),
        abort,
    )


def file_name(timestamp: str, task_id: str) -> str:
    """Name of the page below ``.loki/``.

    Example:
        >>> file_name("2026-01-25T10:30:00.000Z", "fix-login-1a2b3c")
        'escalations/20260125T103000.000Z-fix-login-1a2b3c.md'
    """
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", task_id)[:MAX_NAME]  # other programs name tasks, too
    return f"escalations/{timestamp.replace('-', '').replace(':', '')}-{safe}.md"


def render(escalation: Escalation) -> str:
    """The page: what happened, what it means, the options, and what the person must decide."""
    failed = sum(attempt.result == "failed" for attempt in escalation.attempts)
    count = failed if escalation.failures is None else escalation.failures
    told = _advice(escalation)
    steps = told.to_do(known_of(escalation.failure, escalation.attempts))
    options_ = "options" if escalation.ways else "three options"
    why = f"{inline(escalation.trigger) or 'none given'}: {inline(escalation.reason)}"
    return page(
        f"Escalation: {inline(escalation.title)}",
        [
            (TASK, inline(escalation.task_id)),
            *((ALSO, inline(task)) for task in escalation.others),
            ("Failure Count", str(count)),
            ("Trigger", why),
        ],
        [
            ("Failure Summary", _summary(escalation)),
            ("Attempts Log", error_chain(escalation.attempts)),
            ("Agent Analysis", _analysis(escalation)),
            ("Guidance", _guidance(escalation, told, steps)),
        ],
        _options(escalation, steps[0]),
        f"Decide {told.decide}{_at_stake(escalation)}; then take one of the {options_}.",
    )


def _advice(escalation: Escalation) -> advice.Advice:
    match = escalation.failure.match if escalation.failure else None
    kinds = (match.pattern, match.kind) if match else ()
    # What a review found out says more than how the last attempt failed.
    found = (escalation.trigger,) if escalation.trigger in NAMES else ()
    return advice.of(*found, *kinds, escalation.trigger)


def _summary(escalation: Escalation) -> str:
    failure, answer = escalation.failure, escalation.answer
    told = "No check has failed."
    if failure is not None:
        then = f"\n\nAfter that, {_line(answer)}." if answer else ""
        place = f" at {code(failure.place)}" if failure.place else ""
        told = f"{inline(failure.said)}{place}\n\n{fence(failure.excerpt)}{then}"
    return _with(told, "Why a person is asked", escalation.evidence)


def _with(text: str, name: str, lines: Sequence[str]) -> str:
    return f"{text}\n\n{name}:\n\n{bullets(map(_line, lines))}" if lines else text


def _analysis(escalation: Escalation) -> str:
    """What each strategy led to, in the attempt after it; the files; what people said before."""
    led_to = "No strategy was tried: this kind of failure is not retried automatically."
    if lines := _strategies(escalation.attempts):
        led_to = bullets(lines)
    changed = bullets(map(code, escalation.files))
    told = f"{led_to}\n\nFiles changed so far, left as they are:\n\n{changed}"
    return _with(told, "Said by a person before, and it was not enough", escalation.said)


def _strategies(attempts: Sequence[Attempt]) -> list[str]:
    lines = []
    for before, after in pairwise(attempts):
        if not before.strategy_used:
            continue
        if after.result != "failed":
            came = f"attempt {after.attempt} was {inline(after.result)}"
        elif after.fingerprint == before.fingerprint:
            came = f"attempt {after.attempt} failed in the same way"
        else:
            came = f"attempt {after.attempt} failed otherwise: {_line(after.error)}"
        lines.append(f"{code(before.strategy_used)} answered attempt {before.attempt}; {came}.")
    return lines


def _guidance(escalation: Escalation, told: advice.Advice, steps: Sequence[str]) -> str:
    parts = [numbered(steps)]
    if told.causes:
        parts.append(f"Likely causes:\n\n{bullets(told.causes)}")
    if places := _places(escalation):
        parts.append(f"Where to look:\n\n{bullets(places)}")
    return "\n\n".join(parts)


def _places(escalation: Escalation) -> list[str]:
    """Files and lines, the failure's own first, then its stack, then what was named before."""
    failure = escalation.failure
    found: dict[str, str] = {}
    if failure and failure.path:
        reporter = f", where {inline(failure.tool)} reports it" if failure.tool else ""
        found[_place(failure.path, failure.line)] = reporter
    for frame in reversed(failure.frames if failure else ()):
        if frame.in_project:
            where = inline(frame.function or "its body")
            found.setdefault(_place(frame.path, frame.line), f", in {where}")
    for attempt in reversed(escalation.attempts):
        earlier = attempt.failure or {}
        if earlier.get("path"):
            place = _place(str(earlier["path"]), earlier.get("line"))
            found.setdefault(place, f", where attempt {attempt.attempt} failed")
    return [f"{code(place)}{why}" for place, why in found.items()][:MAX_PLACES]


def _place(path: str, line: int | None) -> str:
    return f"{path}:{line}" if line else path


def _options(escalation: Escalation, first: str) -> str:
    if escalation.ways:
        return ways(escalation.ways)
    by_hand, *others = options(escalation.task_id, escalation.run)
    mend = f"1. **{by_hand.name}.** {first} Then: {code(by_hand.command)}\n   {by_hand.follows}"
    rest = ways(others, first=2)
    return f"{mend}\n{rest}"


def _at_stake(escalation: Escalation) -> str:
    failure = escalation.failure
    return f", at {code(failure.place)}" if failure and failure.path else ""


def _line(text: str | None) -> str:
    return cut(inline(text or "none given"), 200)

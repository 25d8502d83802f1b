"""The page by which a person is asked to take over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loki.base.markdown import bullets
from loki.memory.attempt import Attempt
from loki.memory.dead_letter import error_chain
from loki.recognition.failure import Failure

GUIDANCE: Mapping[str, str] = {
    "permission-error": "Give the user that runs the check the rights it lacks, or change the owner.",
    "merge-conflict": "Resolve the conflict markers by hand; only a person knows which side is right.",
    "git-error": "Put the repository in order by hand before anything else writes to it.",
    "auth-error": "Supply valid credentials; loki does not guess or create them.",
    "env-missing": "Set the missing environment variable or file where the check runs.",
    "memory-limit": "Give the check more memory, or make the case smaller.",
    "infrastructure": "See whether the service is reachable, then run the task again.",
    "stopped": "Read the reason above; loki went no further on purpose.",
}
"""What helps, by pattern or trigger."""


@dataclass(frozen=True, slots=True)
class Escalation:
    """A task that needs a person.

    Attributes:
        task_id, title: the task.
        trigger: what made loki ask: a pattern, same_failure, infrastructure, stopped, …
        reason: one sentence.
        failure: the last failure, or None.
        attempts: of this execution, oldest first.
        files: paths changed.
        command: how to go on.
    """

    task_id: str
    title: str
    trigger: str
    reason: str
    failure: Failure | None
    attempts: Sequence[Attempt]
    files: Sequence[str]
    command: str


def file_name(timestamp: str, task_id: str) -> str:
    """Name of the page below ``.loki/``.

    Example:
        >>> file_name("2026-01-25T10:30:00.000Z", "fix-login-1a2b3c")
        'escalations/20260125T103000.000Z-fix-login-1a2b3c.md'
    """
    return f"escalations/{timestamp.replace('-', '').replace(':', '')}-{task_id}.md"


def render(escalation: Escalation) -> str:
    """The page: what happened, what it means, the options, and what the person must decide."""
    failed = sum(attempt.result == "failed" for attempt in escalation.attempts)
    return f"""\
## Escalation: {escalation.title}

**Task ID:** {escalation.task_id}
**Failure Count:** {failed}
**Trigger:** {escalation.trigger or "none given"}: {escalation.reason}

### Failure Summary

{_summary(escalation.failure)}

### Attempts Log

{error_chain(escalation.attempts)}

### Agent Analysis

{_analysis(escalation)}

Files changed so far, left as they are:

{bullets(escalation.files)}

### Recommended Options

1. **Fix by hand and retry.** {_guidance(escalation)} Then: `{escalation.command}`.
   Costs your time; most certain where rights, credentials or a decision are missing.
2. **Give context.** Say what the agent cannot know in the task's text and run it again.
   Cheapest where the task was ambiguous; may end here again where it was not.
3. **Abort.** `loki undo {escalation.task_id}` restores the files as they were.
   Nothing is lost but the attempts.

### Awaiting

Decide which of the three it is{_question(escalation)}.
"""


def _summary(failure: Failure | None) -> str:
    if failure is None:
        return "No check has failed."
    where = ":".join(str(part) for part in (failure.path, failure.line) if part)
    ticks = "````"
    while ticks in failure.excerpt:
        ticks += "`"
    place = f" at `{where}`" if where else ""
    return f"{failure.message}{place}\n\n{ticks}text\n{failure.excerpt}\n{ticks}"


def _analysis(escalation: Escalation) -> str:
    strategies = list(
        dict.fromkeys(a.strategy_used for a in escalation.attempts if a.strategy_used)
    )
    if not strategies:
        return "No strategy was tried: this kind of failure is not retried automatically."
    return f"Tried: {', '.join(strategies)}. None of them made the checks pass."


def _guidance(escalation: Escalation) -> str:
    pattern = (
        escalation.failure.match.pattern if escalation.failure and escalation.failure.match else ""
    )
    return (
        GUIDANCE.get(pattern) or GUIDANCE.get(escalation.trigger) or "Mend what the summary shows."
    )


def _question(escalation: Escalation) -> str:
    failure = escalation.failure
    return (
        f", and for the first: how `{failure.path}` is to be mended"
        if failure and failure.path
        else ""
    )

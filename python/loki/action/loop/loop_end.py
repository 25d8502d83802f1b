"""How the closed loop ends: pure, as the loop itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from loki.action.checks.check import EVIDENCE
from loki.action.loop.loop_events import Effect, Executed, Finish, Interrupted, Keep, Note
from loki.action.loop.loop_state import (
    Phase,
    State,
    attempt_line,
    charged,
    proposal_of,
    record,
    say,
    to_mend,
    usage,
    with_current,
    without_request,
)
from loki.action.loop.review_event import ReviewNeeded
from loki.base.time import isoformat
from loki.memory import dead_letter_page
from loki.memory.task_outcome import Outcome
from loki.people.escalation import file_name
from loki.people.human_review import HUMAN_REVIEW

NO_EVIDENCE = (
    "No check that failed before passes now, and no new test was seen to fail without the change: nothing "
    "shows that the feature is there"
)


def succeed(
    state: State, now: datetime, status: str, reason: str
) -> tuple[State, tuple[Effect, ...]]:
    """The attempt in flight was the last one: record it, and end."""
    result = "success" if status == "success" else status
    kept = Keep(record(state, now, result, None, None))
    line = attempt_line(state, None, None, result=result)
    after, effects = finish(state, now, status, reason)
    return after, (kept, line, *effects)


def conclude(state: State, now: datetime, reason: str) -> tuple[State, tuple[Effect, ...]]:
    """Everything that can be checked is well: success, or a person's approval is still missing.

    Args:
        state: the state; an attempt is in flight, or none has been begun.
        now: the time of day.
        reason: why it is a success, one sentence.
    """
    if not state.waiting:
        if state.current is None:
            return finish(state, now, "success", reason)
        return succeed(state, now, "success", reason)
    named = ", ".join(state.waiting)
    missing = f"every other check passes; a person has to approve: {named}"
    if EVIDENCE in state.waiting:
        missing += f". {NO_EVIDENCE}"
    kept: tuple[Effect, ...] = ()
    if state.current is not None:
        kept = (
            Keep(record(state, now, "unverified", None, None)),
            attempt_line(state, None, None, result="unverified"),
        )
    state = replace(state, failure=None)
    after, effects = finish(
        state, now, "escalated", missing, trigger="approval", awaiting=state.waiting
    )
    return after, (*kept, *effects)


def finish(
    state: State,
    now: datetime,
    status: str,
    reason: str,
    *,
    trigger: str = "",
    breaker: str | None = None,
    retry_at: datetime | None = None,
    awaiting: tuple[str, ...] = (),
    review: str | None = None,
) -> tuple[State, tuple[Effect, ...]]:
    """End the task with a status and, where a person has something to read, a page."""
    failure = None if status in {"success", "unverified"} else to_mend(state)
    attempts = state.made_before + state.made
    elapsed = now - (state.started or now)
    outcome = Outcome(
        state.setting.task.id,
        status,
        attempts,
        state.files,
        failure.match.pattern if failure and failure.match else None,
        reason,
        round(elapsed.total_seconds() * 1000),
        trigger,
        breaker=breaker,
        retry_at=retry_at,
        awaiting=awaiting,
        review=review,
    )
    outcome = replace(outcome, page=_page(outcome, now))
    state = replace(state, phase=Phase.DONE, outcome=outcome)
    effects: list[Effect] = []
    if status == "failed" and trigger != "budget":
        effects.append(say(state, f"dead_letter reason={trigger}"))
    answer = state.failure if failure and failure is not state.failure else None
    shown = f"status={status} total_attempts={attempts} duration_ms={outcome.duration_ms}"
    return state, (*effects, Finish(outcome, failure, answer), say(state, shown))


def _page(outcome: Outcome, now: datetime) -> str | None:
    """The page that tells a person more, relative to ``.loki/``."""
    if outcome.status == "escalated":
        return file_name(isoformat(now), outcome.task_id)
    if outcome.status == "failed" and outcome.trigger != "budget":
        return dead_letter_page.name(outcome.task_id)
    return None


def review_needed(
    state: State, event: ReviewNeeded, now: datetime
) -> tuple[State, tuple[Effect, ...]]:
    """A person has to decide before the loop goes on: what was to be done next is not done."""
    effects: tuple[Effect, ...] = ()
    if event.proposal is not None:
        state = charged(with_current(state, proposal=event.proposal), event.proposal)
    if state.phase is Phase.GENERATE and event.proposal is None:
        state = without_request(state)
    elif state.current is not None:
        effects = (Keep(record(state, now, "interrupted", None, None)),)
    after, ends = finish(
        state, now, "escalated", event.reason, trigger=HUMAN_REVIEW, review=event.review
    )
    return after, (*effects, *ends)


def interrupted(
    state: State, event: Interrupted, now: datetime
) -> tuple[State, tuple[Effect, ...]]:
    """The run is to stop, whatever it is doing: what is under way is recorded."""
    reason = "interrupted; run it again to go on"
    in_flight = {
        Phase.GENERATE,
        Phase.VALIDATE,
        Phase.EXECUTE,
        Phase.EVALUATE,
        Phase.REGRESSION,
        Phase.LAND,
    }
    effects: tuple[Effect, ...] = ()
    state = _ended(state, event.files)
    if state.phase is Phase.GENERATE and not event.asked:
        state = without_request(state)
    elif state.phase in in_flight and state.current is not None:
        effects = (Keep(record(state, now, "interrupted", None, None)),)
    elif state.facts is not None:
        effects = (Note(state.facts),)
    if event.out_of_time:
        after, ends = finish(state, now, "failed", _out_of_time(state, now), trigger="budget")
    else:
        after, ends = finish(state, now, "interrupted", reason, trigger="interrupted")
    return after, (*effects, *ends)


def _out_of_time(state: State, now: datetime) -> str:
    budget, used = state.setting.task.budget, usage(state, now)
    # The timer that ended it may be a moment ahead of the clock by which the run is measured.
    used = replace(used, seconds=max(used.seconds, budget.seconds or 0.0))
    return budget.spent(used) or "the time budget is spent"


def _ended(state: State, changed: tuple[str, ...]) -> State:
    """The state with what something changed that was ended before it could tell."""
    current = state.current
    if state.phase is Phase.EXECUTE and current is not None and current.executed is None:
        own = set(changed) - set(state.files) | set(proposal_of(state).change.paths)
        state = with_current(state, executed=Executed(tuple(p for p in changed if p in own)))
    return replace(state, files=tuple(dict.fromkeys((*state.files, *changed))))

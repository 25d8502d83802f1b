"""The ANALYZE phase: what a failure leads to, and how the loop waits and ends; pure, as the loop itself.

Deciding takes no time, so it is no phase of the machine: it happens inside the step.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from loki.action.checks.check import EVIDENCE
from loki.action.loop.briefing import from_facts
from loki.action.loop.loop_events import (
    AgentFailed,
    Amend,
    Effect,
    Executed,
    Finish,
    Interrupted,
    Keep,
    Note,
    Observe,
    Reflect,
    Reflected,
    Refused,
    ReviewNeeded,
    RunStrategy,
    StrategyResult,
    Wait,
    prepend,
)
from loki.action.loop.loop_state import (
    Current,
    Phase,
    State,
    Step,
    attempt_line,
    charged,
    of_record,
    proposal_of,
    record,
    say,
    to_mend,
    usage,
    with_current,
    without_request,
)
from loki.base.time import isoformat
from loki.decision.loop_policy import (
    RETRY,
    Action,
    Decision,
    PastFailure,
    Situation,
    decide,
    next_untried,
)
from loki.memory import dead_letter
from loki.memory.task_record import Outcome
from loki.people.escalation import file_name
from loki.people.human_review import HUMAN_REVIEW
from loki.recognition.failure import Failure

# --- How the loop ends --------------------------------------------------------------------------------

NO_EVIDENCE = (
    "No check that failed before passes now, and no new test was seen to fail without the change: nothing "
    "shows that the feature is there"
)


def succeed(state: State, now: datetime, status: str, reason: str) -> Step:
    """The attempt in flight was the last one: record it, and end."""
    result = "success" if status == "success" else status
    kept = Keep(record(state, now, result, None, None))
    line = attempt_line(state, None, None, result=result)
    return prepend((kept, line), finish(state, now, status, reason))


def conclude(state: State, now: datetime, reason: str) -> Step:
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
    end = finish(state, now, "escalated", missing, trigger="approval", awaiting=state.waiting)
    return prepend(kept, end)


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
) -> Step:
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
        return dead_letter.page_name(outcome.task_id)
    return None


def review_needed(state: State, event: ReviewNeeded, now: datetime) -> Step:
    """A person has to decide before the loop goes on: what was to be done next is not done."""
    effects: tuple[Effect, ...] = ()
    if event.proposal is not None:
        state = charged(with_current(state, proposal=event.proposal), event.proposal)
    if state.phase is Phase.GENERATE and event.proposal is None:
        state = without_request(state)
    elif state.current is not None:
        effects = (Keep(record(state, now, "interrupted", None, None)),)
    end = finish(state, now, "escalated", event.reason, trigger=HUMAN_REVIEW, review=event.review)
    return prepend(effects, end)


def interrupted(state: State, event: Interrupted, now: datetime) -> Step:
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
        end = finish(state, now, "failed", _out_of_time(state, now), trigger="budget")
    else:
        end = finish(state, now, "interrupted", reason, trigger="interrupted")
    return prepend(effects, end)


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


# --- What the loop may still spend, and how it waits --------------------------------------------------


def left(state: State, now: datetime) -> float | None:
    """Seconds of the time budget that are left, negative where it is spent; None: there is none."""
    limit = state.setting.task.budget.seconds
    if limit is None or state.started is None:
        return None
    return limit - (now - state.started).total_seconds()


def back_off(state: State, decision: Decision, now: datetime, retry_after: float | None) -> Step:
    """Wait before the next attempt, longer each time; end where that would use up the budget.

    Args:
        state: the state.
        decision: why.
        now: the time of day.
        retry_after: seconds that a service asked for, or None; the longer wait wins.
    """
    streak = state.past.wait_streak
    setting = state.setting
    seconds = setting.backoff.wait(
        streak, setting.task.id, offset=1, retry_after=retry_after, left=left(state, now)
    )
    if seconds is None:
        reason = f"the time budget of {setting.task.budget.seconds:g} s leaves no room for a wait"
        return finish(state, now, "failed", reason, trigger="budget")
    state = replace(state, phase=Phase.WAIT, wait_seconds=seconds)
    return state, (Wait(seconds, decision.reason),)


def hold(state: State, refused: Refused, now: datetime) -> Step:
    """No call may go out: wait until one may where that is wanted, else end, to be gone on with."""
    seconds = refused.retry_after
    at = None if seconds is None else now + timedelta(seconds=seconds)
    reason = why(refused, now)
    if seconds is not None and _is_worth_waiting(state, refused, seconds, now):
        state = replace(state, phase=Phase.BREAKER, wait_seconds=seconds)
        return state, (Wait(seconds, reason),)
    return finish(
        state, now, "paused", reason, trigger="circuit_open", breaker=refused.name, retry_at=at
    )


def why(refused: Refused, now: datetime) -> str:
    """What a person is told: which breaker, until when, and what failed."""
    until = "until somebody closes it"
    if refused.retry_after is not None:
        until = f"until {isoformat(now + timedelta(seconds=refused.retry_after))}"
    said = refused.last_error.rstrip(".")  # this, too, is read as a sentence
    error = f"; the last error was: {said}" if said else ""
    return f"the circuit breaker {refused.name} lets no call through {until}{error}"


def _is_worth_waiting(state: State, refused: Refused, seconds: float, now: datetime) -> bool:
    """As the task says; where it says nothing, between probes and within a time budget."""
    task, remaining = state.setting.task, left(state, now)
    if task.wait is False or (remaining is not None and seconds >= remaining):
        return False
    return bool(task.wait) or refused.between_probes or remaining is not None


def account(state: State, now: datetime) -> tuple[State, tuple[Effect, ...], str | None]:
    """What is to be warned of, once for each limit, and why no further attempt may begin."""
    budget, used = state.setting.task.budget, usage(state, now)
    nearly = budget.nearly_spent(used)
    warnings = tuple(
        say(state, f"budget={name} {text}", warning=True)
        for name, text in nearly.items()
        if name not in state.warned
    )
    return replace(state, warned=state.warned | nearly.keys()), warnings, budget.spent(used)


# --- What a failure leads to --------------------------------------------------------------------------


def analyze(
    state: State,
    failure: Failure,
    now: datetime,
    agent: AgentFailed | None = None,
    *,
    of_answer: bool = False,
    landing: bool = False,
    violation: str = "",
) -> Step:
    """Record a failed attempt and do what the rules say about its failure.

    Args:
        state: the state, its attempt in flight.
        failure: what failed.
        now: the time of day.
        agent: where the agent could not answer: how.
        of_answer: it is one of the answer alone, like one that changes nothing. It arms no sign:
            another task's would have nothing in common with it.
        landing: the project has changed under the work. It arms no sign either: the same approach
            may well be right.
        violation: how security was violated, a line, or "".
    """
    setting = state.setting
    refused = agent.refused if agent else None
    counted = state.current.progress if state.current else None
    progress, _ = of_record(counted)
    situation = Situation(
        failure,
        state.past,
        setting.patterns.patterns,
        setting.limits,
        agent is not None,
        f"the agent cannot go on: {failure.said}" if agent and not agent.retryable else "",
        why(refused, now) if refused else "",
        agent is not None and agent.gave_up,
        landing,
        violation,
        progress=progress,
    )
    decision = decide(situation)
    infrastructure = situation.is_infrastructure
    past = PastFailure(failure, decision.strategy, infrastructure, progress)
    failed_in = state.phase
    attempt = record(state, now, "failed", failure, decision, infrastructure=infrastructure)
    if agent is not None:
        attempt = replace(attempt, tokens=agent.tokens or None, cost=agent.cost or None)
    effects: list[Effect] = [Keep(attempt), attempt_line(state, failure, decision)]
    facts = None
    if not infrastructure and state.current is not None:
        current = state.current
        if not (of_answer or landing):
            effects.append(Observe(failure, _led_there(current), current.failed_command))
        facts = from_facts(state, failure, decision, now)
    state = replace(
        state,
        past=state.past.add(past),
        failure=failure,
        of_answer=of_answer,
        unmended=(state.unmended or state.failure) if of_answer or agent else None,
        decision=decision,
        help=None,
        helpless=frozenset(),
        failed_in=failed_in,
        facts=facts,
    )
    if facts is not None:
        return replace(state, phase=Phase.REFLECT), (*effects, Reflect(facts, failure))
    if agent is not None:  # who could not answer may have spent the rest
        state, warnings, spent = account(state, now)
        effects += warnings
        if spent is not None:
            return prepend(effects, finish(state, now, "failed", spent, trigger="budget"))
    return prepend(effects, _carry_out(state, decision, now, agent))


def reflected(state: State, event: Reflected, now: datetime) -> Step:
    """Keep what the agent, or else the facts, say of the failed attempt; do what was decided."""
    facts, decision = state.facts, state.decision
    assert facts is not None and decision is not None  # noqa: PT018
    note = event.reflection.on(facts, event.by) if event.reflection else facts
    effects: list[Effect] = [Note(note)]
    if event.error:
        effects.append(say(state, f"no reflection by the agent: {event.error}", warning=True))
    state = replace(charged(state, event), facts=None)
    return prepend(effects, _carry_out(state, decision, now, None))


def _carry_out(state: State, decision: Decision, now: datetime, agent: AgentFailed | None) -> Step:
    failure = to_mend(state)
    assert failure is not None
    if decision.action is Action.PAUSE:
        assert agent is not None and agent.refused is not None  # noqa: PT018
        return hold(state, agent.refused, now)
    if decision.action is Action.ESCALATE:
        return finish(state, now, "escalated", decision.reason, trigger=decision.trigger)
    if decision.action is Action.DEAD_LETTER:
        return finish(state, now, "failed", decision.reason, trigger=decision.trigger)
    if decision.strategy == RETRY:
        return back_off(state, decision, now, agent.retry_after if agent else None)
    assert decision.strategy is not None
    return replace(state, phase=Phase.FIX), (RunStrategy(decision.strategy, failure, state.files),)


def _led_there(current: Current) -> str:
    """What a sign would forbid: a change that nobody described is not every change of its files."""
    described = current.proposal is None or current.proposal.description
    return current.approach if described else f"{current.approach} as in attempt {current.number}"


def other_strategy(state: State, event: StrategyResult, now: datetime) -> Step:
    """A strategy could not be carried out: the next one is tried, or a person is asked."""
    failure = to_mend(state)
    assert state.failure is not None and failure is not None  # noqa: PT018
    match = state.failure.match
    pattern = state.setting.patterns.patterns.get(match.pattern) if match else None
    helpless = state.helpless | {event.strategy}
    tried = {*state.past.answers} | helpless
    other = next_untried(pattern, tried)
    message = f"strategy {event.strategy} failed: {event.error}"
    if other is None or other in {"escalate", RETRY}:
        end = finish(state, now, "escalated", f"{message}; none is left", trigger="strategy")
        return prepend((say(state, message, warning=True),), end)
    state = replace(state, past=state.past.amended(other), helpless=helpless)
    return state, (
        say(state, f"{message}, trying {other}", warning=True),
        Amend(state.last_number, other),
        RunStrategy(other, failure, state.files),
    )

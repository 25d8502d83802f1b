"""The ANALYZE phase: what a failure leads to; pure, as the loop itself.

Deciding takes no time, so it is no phase of the machine: it happens inside the step.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from loki.action.loop.attempt_progress import of_record
from loki.action.loop.loop_end import finish
from loki.action.loop.loop_events import (
    AgentFailed,
    Amend,
    Effect,
    Keep,
    Note,
    Observe,
    Reflect,
    Reflected,
    RunStrategy,
    StrategyResult,
)
from loki.action.loop.loop_state import (
    Current,
    Phase,
    State,
    attempt_line,
    charged,
    record,
    say,
    to_mend,
)
from loki.action.loop.loop_wait import account, back_off, hold, why
from loki.action.loop.reflection_prompt import from_facts
from loki.decision.failure_history import PastFailure
from loki.decision.loop_policy import (
    RETRY,
    Action,
    Decision,
    Situation,
    decide,
    next_untried,
)
from loki.recognition.failure import Failure


def analyze(
    state: State,
    failure: Failure,
    now: datetime,
    agent: AgentFailed | None = None,
    *,
    of_answer: bool = False,
    landing: bool = False,
    violation: str = "",
) -> tuple[State, tuple[Effect, ...]]:
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
            after, more = finish(state, now, "failed", spent, trigger="budget")
            return after, (*effects, *more)
    after, more = _carry_out(state, decision, now, agent)
    return after, (*effects, *more)


def reflected(state: State, event: Reflected, now: datetime) -> tuple[State, tuple[Effect, ...]]:
    """Keep what the agent, or else the facts, say of the failed attempt; do what was decided."""
    assert state.facts is not None
    assert state.decision is not None
    facts, decision = state.facts, state.decision
    note = event.reflection.on(facts, event.by) if event.reflection else facts
    effects: list[Effect] = [Note(note)]
    if event.error:
        effects.append(say(state, f"no reflection by the agent: {event.error}", warning=True))
    state = replace(charged(state, event), facts=None)
    after, more = _carry_out(state, decision, now, None)
    return after, (*effects, *more)


def _carry_out(
    state: State, decision: Decision, now: datetime, agent: AgentFailed | None
) -> tuple[State, tuple[Effect, ...]]:
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


def other_strategy(
    state: State, event: StrategyResult, now: datetime
) -> tuple[State, tuple[Effect, ...]]:
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
        after, effects = finish(
            state, now, "escalated", f"{message}; none is left", trigger="strategy"
        )
        return after, (say(state, message, warning=True), *effects)
    state = replace(state, past=state.past.amended(other), helpless=helpless)
    return state, (
        say(state, f"{message}, trying {other}", warning=True),
        Amend(state.last_number, other),
        RunStrategy(other, failure, state.files),
    )

"""The closed loop as a pure machine: (state, event, now) → (state, effects).

GENERATE → VALIDATE → EXECUTE → EVALUATE → REGRESSION (→ LAND) → SUCCESS; a failure in any is analyzed
(`loki.decision.loop_policy`) and leads to FIX → GENERATE, to a wait, to ESCALATE or to DEAD LETTER.
Deciding takes no time, so ANALYZE is no phase of the machine: it happens inside the step.
Where a proposal leaves its task, nothing of it is applied, and that is no failed attempt: it touches
neither the task's retries nor a pattern's, and what it cost counts for the budget.

No I/O and no clock in here: a driver performs the effects and brings the answers back as events.
An event that a phase does not expect raises `IllegalTransition` and leaves the state untouched.

Covered by tests/py/action/loop/test_loop_table.py, every row of `TABLE`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from loki.action.agent_protocol import Proposal
from loki.action.changes.change import Change, Merge, Merged
from loki.action.checks.check import EVIDENCE, Report
from loki.action.checks.regression import missing_tests, missing_tests_failure
from loki.action.checks.results.suite_results import Comparison
from loki.action.gates.gate import Validation
from loki.action.loop.briefing import from_facts
from loki.action.loop.loop_events import (
    AgentFailed,
    Amend,
    Answered,
    Ask,
    Checked,
    CheckRegressions,
    Compared,
    Drifted,
    DriftReviewed,
    Edited,
    Effect,
    Event,
    Execute,
    Executed,
    Finish,
    Interrupted,
    Keep,
    Malformed,
    Note,
    Observe,
    Reflect,
    Reflected,
    Refused,
    ReportDrift,
    ReviewDrift,
    ReviewNeeded,
    RunChecks,
    RunStrategy,
    StrategyResult,
    TakeBaseline,
    Validate,
    Validated,
)
from loki.action.loop.loop_state import (
    APPLIED,
    Current,
    Phase,
    Remedy,
    State,
    Step,
    attempt_line,
    awaited,
    charged,
    measured,
    of_record,
    paid,
    proposal_of,
    record,
    say,
    to_mend,
    took_effect,
    usage,
    with_current,
    without_request,
)
from loki.base.log import quoted
from loki.base.machine import Begin, Row, Table, Wait, Waited, prepend, row
from loki.base.time import isoformat
from loki.decision import drift
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
from loki.memory.attempt import DRIFT
from loki.memory.task_record import Outcome
from loki.people.escalation import file_name
from loki.people.human_review import HUMAN_REVIEW
from loki.recognition.failure import Failure

# --- A step of the machine ----------------------------------------------------------------------------


def step(state: State, event: Event, now: datetime) -> Step:
    """The state after an event, and what is to be done.

    Args:
        state: the state before; not changed.
        event: what happened.
        now: the time of day.

    Raises:
        IllegalTransition: this phase does not expect this event.
    """
    after: Step = row(TABLE, state.phase, event).does(state, event, now)
    return after


# --- How the loop ends --------------------------------------------------------------------------------

NO_EVIDENCE = (
    "No check that failed before passes now, and no new test was seen to fail without the change: nothing "
    "shows that the feature is there"
)


def _succeed(state: State, now: datetime, status: str, reason: str) -> Step:
    """The attempt in flight was the last one: record it, and end."""
    return prepend(_over(state, now, status), _finish(state, now, status, reason))


def _over(state: State, now: datetime, result: str) -> tuple[Effect, ...]:
    """Nothing failed in the attempt in flight: it is recorded."""
    return Keep(record(state, now, result)), attempt_line(state, result)


def _conclude(state: State, now: datetime) -> Step:
    """Everything that can be checked is well: success, or a person's approval is still missing."""
    if not state.waiting:
        helped = " after a person's help" if state.helped and state.current is None else ""
        reason = f"every check passes{helped}"
        if state.current is None:
            return _finish(state, now, "success", reason)
        return _succeed(state, now, "success", reason)
    named = ", ".join(state.waiting)
    missing = f"every other check passes; a person has to approve: {named}"
    if EVIDENCE in state.waiting:
        missing += f". {NO_EVIDENCE}"
    over = () if state.current is None else _over(state, now, "unverified")
    state = replace(state, failure=None)
    end = _finish(state, now, "escalated", missing, trigger="approval", awaiting=state.waiting)
    return prepend(over, end)


def _finish(
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


def _review_needed(state: State, event: ReviewNeeded, now: datetime) -> Step:
    """A person has to decide before the loop goes on: what was to be done next is not done."""
    effects: tuple[Effect, ...] = ()
    if event.proposal is not None:
        state = charged(with_current(state, proposal=event.proposal), event.proposal)
    if state.phase is Phase.GENERATE and event.proposal is None:
        state = without_request(state)
    elif state.current is not None:
        effects = (Keep(record(state, now, "interrupted")),)
    end = _finish(state, now, "escalated", event.reason, trigger=HUMAN_REVIEW, review=event.review)
    return prepend(effects, end)


def _interrupted(state: State, event: Interrupted, now: datetime) -> Step:
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
        effects = (Keep(record(state, now, "interrupted")),)
    elif state.phase is Phase.REFLECT:
        effects = (Note(state.asked_about),)
    if event.out_of_time:
        end = _finish(state, now, "failed", _out_of_time(state, now), trigger="budget")
    else:
        end = _finish(state, now, "interrupted", reason, trigger="interrupted")
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


def _back_off(state: State, decision: Decision, now: datetime, retry_after: float | None) -> Step:
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
        return _finish(state, now, "failed", reason, trigger="budget")
    state = replace(state, phase=Phase.WAIT, wait_seconds=seconds)
    return state, (Wait(seconds, decision.reason),)


def _hold(state: State, refused: Refused, now: datetime) -> Step:
    """No call may go out: wait until one may where that is wanted, else end, to be gone on with."""
    seconds = refused.retry_after
    at = None if seconds is None else now + timedelta(seconds=seconds)
    reason = _why(refused, now)
    if seconds is not None and _is_worth_waiting(state, refused, seconds, now):
        state = replace(state, phase=Phase.BREAKER, wait_seconds=seconds)
        return state, (Wait(seconds, reason),)
    return _finish(
        state, now, "paused", reason, trigger="circuit_open", breaker=refused.name, retry_at=at
    )


def _why(refused: Refused, now: datetime) -> str:
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


def _account(state: State, now: datetime) -> tuple[State, tuple[Effect, ...], str | None]:
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


def _analyze(
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
        _why(refused, now) if refused else "",
        agent is not None and agent.gave_up,
        landing,
        violation,
        progress=progress,
    )
    decision = decide(situation)
    infrastructure = situation.is_infrastructure
    past = PastFailure(failure, decision.strategy, infrastructure, progress)
    remedy = Remedy(decision, state.phase)
    attempt = record(state, now, "failed", failure, decision, infrastructure=infrastructure)
    if agent is not None:
        attempt = replace(attempt, tokens=agent.tokens or None, cost=agent.cost or None)
    effects: list[Effect] = [Keep(attempt), attempt_line(state, "failed", failure, decision)]
    if not infrastructure and state.current is not None:
        current = state.current
        if not (of_answer or landing):
            effects.append(Observe(failure, _led_there(current), current.failed_command))
        remedy = replace(remedy, facts=from_facts(state, failure, decision, now))
    state = replace(
        state,
        past=state.past.add(past),
        failure=failure,
        of_answer=of_answer,
        unmended=(state.unmended or state.failure) if of_answer or agent else None,
        last_remedy=remedy,
    )
    if remedy.facts is not None:
        return replace(state, phase=Phase.REFLECT), (*effects, Reflect(remedy.facts, failure))
    if agent is not None:  # who could not answer may have spent the rest
        state, warnings, spent = _account(state, now)
        effects += warnings
        if spent is not None:
            return prepend(effects, _finish(state, now, "failed", spent, trigger="budget"))
    return prepend(effects, _carry_out(state, now, agent))


def _reflected(state: State, event: Reflected, now: datetime) -> Step:
    """Keep what the agent, or else the facts, say of the failed attempt; do what was decided."""
    facts = state.asked_about
    note = event.reflection.on(facts, event.by) if event.reflection else facts
    effects: list[Effect] = [Note(note)]
    if event.error:
        effects.append(say(state, f"no reflection by the agent: {event.error}", warning=True))
    return prepend(effects, _carry_out(charged(state, event), now, None))


def _carry_out(state: State, now: datetime, agent: AgentFailed | None) -> Step:
    failure, decision = to_mend(state), state.remedy.decision
    assert failure is not None
    if decision.action is Action.PAUSE:
        assert agent is not None and agent.refused is not None  # noqa: PT018
        return _hold(state, agent.refused, now)
    if decision.action is Action.ESCALATE:
        return _finish(state, now, "escalated", decision.reason, trigger=decision.trigger)
    if decision.action is Action.DEAD_LETTER:
        return _finish(state, now, "failed", decision.reason, trigger=decision.trigger)
    if decision.strategy == RETRY:
        return _back_off(state, decision, now, agent.retry_after if agent else None)
    assert decision.strategy is not None
    return replace(state, phase=Phase.FIX), (RunStrategy(decision.strategy, failure, state.files),)


def _led_there(current: Current) -> str:
    """What a sign would forbid: a change that nobody described is not every change of its files."""
    described = current.proposal is None or current.proposal.description
    return current.approach if described else f"{current.approach} as in attempt {current.number}"


def _other_strategy(state: State, event: StrategyResult, now: datetime) -> Step:
    """A strategy could not be carried out: the next one is tried, or a person is asked."""
    failure = to_mend(state)
    assert state.failure is not None and failure is not None  # noqa: PT018
    match = state.failure.match
    pattern = state.setting.patterns.patterns.get(match.pattern) if match else None
    helpless = state.remedy.helpless | {event.strategy}
    tried = {*state.past.answers} | helpless
    other = next_untried(pattern, tried)
    message = f"strategy {event.strategy} failed: {event.error}"
    if other is None or other in {"escalate", RETRY}:
        end = _finish(state, now, "escalated", f"{message}; none is left", trigger="strategy")
        return prepend((say(state, message, warning=True),), end)
    remedy = replace(state.remedy, helpless=helpless)
    state = replace(state, past=state.past.amended(other), last_remedy=remedy)
    return state, (
        say(state, f"{message}, trying {other}", warning=True),
        Amend(state.last_number, other),
        RunStrategy(other, failure, state.files),
    )


# --- Where a proposal leaves its task -----------------------------------------------------------------


def _drifted(state: State, event: Drifted, now: datetime) -> Step:
    verdict = drift.decide(event.drifts, event.count, state.drift, has_reviewer=event.has_reviewer)
    proposal = proposal_of(state)
    line = say(
        state,
        f"drift={event.count} severity={drift.worst(event.drifts)} move={verdict.move.value} "
        f"reason={quoted(verdict.reason)}",
        warning=True,
    )
    report = ReportDrift(event.drifts, proposal.agent)
    if verdict.move is drift.DriftResponse.PAUSE:
        ask = replace(report, ask=verdict.reason)
        end = _finish(state, now, "escalated", verdict.reason, trigger=DRIFT)
        return prepend((line, ask, _kept(state, event.drifts, now)), end)
    if verdict.move is drift.DriftResponse.REVIEW:
        return state, (line, report, ReviewDrift(proposal, event.drifts))
    if verdict.move is drift.DriftResponse.PASS:
        return state, (line, report, Validate(proposal))
    return prepend((line, report), _send_back(state, event.drifts, now))


def _drift_reviewed(state: State, event: DriftReviewed, now: datetime) -> Step:
    said = "approved" if event.approved else "rejected"
    line = say(
        state,
        f"drift review={said} by={quoted(event.by)} reason={quoted(event.reason)}",
        warning=not event.approved,
    )
    if event.approved:
        return state, (line, Validate(proposal_of(state)))
    return prepend((line,), _send_back(state, event.drifts, now))


def _send_back(state: State, drifts: tuple[drift.Drift, ...], now: datetime) -> Step:
    """Back to reasoning: what was proposed may be proposed again, by who insists."""
    digest = proposal_of(state).change.digest()
    proposed = {key: shown for key, shown in state.proposed.items() if key != digest}
    after = replace(state, drift=state.drift.sent_back(drifts), proposed=proposed)
    return prepend((_kept(state, drifts, now),), _generate(after, now, again=True))


def _kept(state: State, drifts: tuple[drift.Drift, ...], now: datetime) -> Keep:
    said = "; ".join(one.detected_drift for one in drifts)
    return Keep(replace(record(state, now, DRIFT), error=said, phase=state.phase.value))


# --- The phases ---------------------------------------------------------------------------------------


def _begin(state: State, _event: Begin, now: datetime) -> Step:
    state = replace(state, started=now)
    if not state.setting.task.checks:
        return _generate(state, now)
    # Before there is work, there is nothing to judge.
    return replace(state, phase=Phase.BASELINE), (RunChecks(judge=state.worked),)


def _baseline(state: State, event: Checked, now: datetime) -> Step:
    state = replace(state, seen_failing=state.seen_failing | event.report.failing_tests)
    first = event.report.first_failure
    lost = missing_tests(state.seen_failing, event.report, event.gone)
    state = measured(state, event.report)
    if first is not None or lost:
        found = first.failure if first is not None else missing_tests_failure(lost)
        return _generate(replace(state, failure=found), now)
    waiting = awaited(state, event.report)
    is_done = state.setting.task.done_when_passing and not waiting
    if state.worked or (is_done and state.files):
        return _accept(replace(state, waiting=waiting), now)
    if is_done:
        reason = "nothing to do: every check passed before the first attempt"
        return _finish(state, now, "success", reason)
    return _generate(state, now)


def _generate(state: State, now: datetime, *, delay: float = 0.0, again: bool = False) -> Step:
    """Begin the next attempt, if there is time left; ``again``: with the question of the last."""
    state, warnings, spent = _account(state, now)
    if spent is not None:
        return prepend(warnings, _finish(state, now, "failed", spent, trigger="budget"))
    number = state.last_number + 1
    current = Current(number, now, delay_seconds=delay)
    state = replace(
        state, phase=Phase.GENERATE, current=current, last_number=number, made=state.made + 1
    )
    if state.pending_proposal is not None:
        return prepend(warnings, _approved(state, state.pending_proposal))
    ask = replace(state.asked, attempt=number) if again and state.asked else _question(state)
    return replace(state, asked=ask), (*warnings, ask)


def _approved(state: State, withheld: Proposal) -> Step:
    """The next attempt is what a person approved; nobody is asked for it."""
    proposed = {**state.proposed, withheld.change.digest(): ""}
    state = with_current(state, proposal=withheld)
    after = replace(state, pending_proposal=None, proposed=proposed, phase=Phase.VALIDATE)
    return after, (Validate(withheld),)


def _question(state: State) -> Ask:
    remedy = state.last_remedy
    helped = remedy.help if remedy else None
    return Ask(
        state.last_number,
        state.failure,
        helped.strategy if helped else None,
        remedy.decision.reason if remedy else "",
        helped.context if helped else "",
        helped.done if helped else "",
        to_mend(state) if state.of_answer else None,
        state.setting.limits.left(state.past),
    )


def _answered(state: State, event: Answered, now: datetime) -> Step:
    proposal = event.proposal
    state = charged(with_current(state, proposal=proposal), proposal)
    change = proposal.change
    if change.is_empty:
        if state.altered:
            return _evaluate(replace(state, altered=False))
        return _refuse(state, now, "empty-change", "the agent proposed no change")
    digest = change.digest()
    if state.proposed.get(digest) in {APPLIED, event.shown}:
        message = "the agent proposed the same change again, and nothing else has changed since"
        return _refuse(state, now, "same-change", message)
    proposed = {**state.proposed, digest: event.shown}
    state = replace(state, proposed=proposed, altered=False, phase=Phase.VALIDATE)
    return state, (Validate(proposal),)


def _refuse(state: State, now: datetime, code: str, message: str) -> Step:
    failure = Failure.of(message, tool="loki", error_code=code)
    return _analyze(state, failure, now, of_answer=state.phase is Phase.GENERATE)


def _agent_failed(state: State, event: AgentFailed, now: datetime) -> Step:
    return _analyze(charged(state, event), event.failure, now, event)


def _malformed(state: State, event: Malformed, now: datetime) -> Step:
    if event.proposal is not None:
        state = charged(with_current(state, proposal=event.proposal), event.proposal)
    return _analyze(state, event.failure, now, of_answer=True)


def _refused(state: State, event: Refused, now: datetime) -> Step:
    return _hold(without_request(state), event, now)


def _edited(state: State, event: Edited, now: datetime) -> Step:
    proposal = Proposal(Change.nothing(), event.description)
    executed = Executed(event.files)
    state = with_current(
        state, proposal=proposal, validation=Validation(skipped=True), executed=executed
    )
    state = took_effect(state, event.files)
    if event.failure is not None or event.ok is False:
        failure = event.failure or Failure.of("the caller reported a failure without its output")
        return _analyze(state, failure, now)
    if state.setting.task.checks:
        return _evaluate(state)
    return _succeed(state, now, "unverified", "the caller reports success; no check verified it")


def _validated(state: State, event: Validated, now: datetime) -> Step:
    validation = event.validation
    state = with_current(state, validation=validation)
    line = say(
        state,
        f"validation={'passed' if validation.passed else 'failed'} "
        f"gates={len(validation.gates)} violations={len(validation.violations)}",
    )
    if not validation.passed:
        failure = validation.failure(state.setting.patterns)
        return prepend((line,), _analyze(state, failure, now, violation=validation.security))
    proposal = proposal_of(state)
    baseline: tuple[Effect, ...] = ()
    if state.setting.checks_regressions:
        baseline = (TakeBaseline(proposal.change.paths),)
    return replace(state, phase=Phase.EXECUTE), (line, *baseline, Execute(proposal))


def _executed(state: State, event: Executed, now: datetime) -> Step:
    state = took_effect(with_current(state, executed=event), event.files)
    if event.commands:
        state = replace(state, worked=True)
    if event.failure is not None:
        return _analyze(state, event.failure, now)
    return _evaluate(state)


def _evaluate(state: State) -> Step:
    return replace(state, phase=Phase.EVALUATE), (RunChecks(),)


def _evaluated(state: State, event: Checked, now: datetime) -> Step:
    report = event.report
    lost = missing_tests(state.seen_failing, report, event.gone)
    state = with_current(state, report=report)
    state = measured(replace(state, seen_failing=state.seen_failing | report.failing_tests), report)
    first = report.first_failure
    # A runner that says which tests ran, none of them failing, fails because tests are gone.
    is_empty = first is not None and first.tests is not None and not report.failing_tests
    if lost and (first is None or is_empty):
        return _analyze(state, missing_tests_failure(lost), now)
    if first is not None and first.failure is not None:
        return _analyze(state, first.failure, now)
    if not state.worked:
        return _refuse(state, now, "nothing-done", "every check passes, but nothing was changed")
    if not state.setting.task.checks and state.setting.needs_check:
        return _succeed(state, now, "unverified", "the change is made; no check verified it")
    return _accept(replace(state, waiting=awaited(state, report)), now)


def _accept(state: State, now: datetime) -> Step:
    """Every check passes: what passed before the work must still pass."""
    if state.setting.checks_regressions:
        return replace(state, phase=Phase.REGRESSION), (CheckRegressions(),)
    return _compared(state, Compared(Comparison(skipped="complexity")), now)


def _compared(state: State, event: Compared, now: datetime) -> Step:
    found = event.comparison
    failure = found.failure(state.setting.patterns)
    if state.current is not None:
        fixed = bool(state.regressed - found.tests)
        state = with_current(state, regression=found.record(fixed=fixed))
    state = replace(state, regressed=found.tests)
    complexity = state.setting.task.complexity
    line = say(state, f"regression_check={found.outcome} complexity={complexity}")
    if failure is None:
        return prepend((line,), _land(state, now))
    if state.current is None:  # what an earlier execution broke is where this one begins
        return prepend((line,), _generate(replace(state, failure=failure), now))
    return prepend((line,), _analyze(state, failure, now))


def _land(state: State, now: datetime) -> Step:
    """All is well where it was worked on; what waits for a person is brought in once they approve."""
    if not state.setting.lands or state.waiting:
        return _conclude(state, now)
    return replace(state, phase=Phase.LAND), (Merge(),)


def _landed(state: State, event: Merged, now: datetime) -> Step:
    if event.moved:
        phase = Phase.BASELINE if state.current is None else Phase.EVALUATE
        return replace(state, phase=phase, regressed=frozenset()), (RunChecks(),)
    if event.failure is None:
        return _conclude(state, now)
    # Nothing of the work is left but what was learned.
    state = replace(state, files=(), proposed={}, altered=True, regressed=frozenset())
    if state.current is None:
        return _generate(replace(state, failure=event.failure), now)
    return _analyze(state, event.failure, now, landing=True)


def _helped(state: State, event: StrategyResult, now: datetime) -> Step:
    assert state.failure is not None
    if event.error:
        return _other_strategy(state, event, now)
    if event.files or event.acted:
        state = replace(took_effect(state, event.files), worked=True, altered=True)
    return _generate(replace(state, last_remedy=replace(state.remedy, help=event)), now)


def _waited(state: State, _event: Waited, now: datetime) -> Step:
    """After a wait for infrastructure the same again, from where it failed; else a new attempt."""
    waited, failed_in = state.wait_seconds, state.remedy.failed_in
    is_retry = state.remedy.decision.action is Action.RETRY
    if not is_retry or failed_in in {Phase.GENERATE, Phase.VALIDATE}:
        return _generate(state, now, delay=waited, again=is_retry)
    state, warnings, spent = _account(state, now)
    if spent is not None:
        return prepend(warnings, _finish(state, now, "failed", spent, trigger="budget"))
    number = state.last_number + 1
    current = replace(
        state.attempt,
        number=number,
        begun=now,
        delay_seconds=waited,
        report=Report(),
        proposal=paid(state.attempt.proposal),
    )
    state = replace(state, current=current, last_number=number, made=state.made + 1)
    if failed_in is Phase.EXECUTE:
        applied = bool(current.executed and current.executed.files)
        execute = Execute(proposal_of(state), commands_only=applied)
        return replace(state, phase=Phase.EXECUTE), (*warnings, execute)
    return prepend(warnings, _evaluate(state))


def _waited_for_breaker(state: State, _event: Waited, now: datetime) -> Step:
    return _generate(state, now, delay=state.wait_seconds, again=True)


# --- The table ----------------------------------------------------------------------------------------

_NEXT = (Phase.GENERATE, Phase.VALIDATE, Phase.DONE)
"""The next attempt, which may be what a person has approved; or nothing may be spent any more."""

_FAILED = (Phase.REFLECT, Phase.WAIT, Phase.DONE)
"""What failed is analyzed: the agent is asked about it, or infrastructure is waited for; or it ends."""

TABLE: Table[Phase] = {
    (Phase.NEW, Begin): Row(_begin, (Phase.BASELINE, *_NEXT)),
    (Phase.BASELINE, Checked): Row(_baseline, (*_NEXT, Phase.REGRESSION, Phase.LAND)),
    (Phase.GENERATE, Answered): Row(_answered, (Phase.VALIDATE, Phase.EVALUATE, *_FAILED)),
    (Phase.GENERATE, AgentFailed): Row(_agent_failed, (Phase.WAIT, Phase.BREAKER, Phase.DONE)),
    (Phase.GENERATE, Refused): Row(_refused, (Phase.BREAKER, Phase.DONE)),
    (Phase.GENERATE, Malformed): Row(_malformed, _FAILED),
    (Phase.GENERATE, Edited): Row(_edited, (Phase.EVALUATE, *_FAILED)),
    (Phase.VALIDATE, Validated): Row(_validated, (Phase.EXECUTE, *_FAILED)),
    (Phase.VALIDATE, Drifted): Row(_drifted, _NEXT),
    (Phase.VALIDATE, DriftReviewed): Row(_drift_reviewed, _NEXT),
    (Phase.EXECUTE, Executed): Row(_executed, (Phase.EVALUATE, *_FAILED)),
    (Phase.EVALUATE, Checked): Row(_evaluated, (*_FAILED, Phase.REGRESSION, Phase.LAND)),
    (Phase.REGRESSION, Compared): Row(_compared, (Phase.LAND, *_NEXT, Phase.REFLECT, Phase.WAIT)),
    (Phase.LAND, Merged): Row(
        _landed, (Phase.BASELINE, Phase.EVALUATE, *_NEXT, Phase.REFLECT, Phase.WAIT)
    ),
    (Phase.REFLECT, Reflected): Row(_reflected, (Phase.FIX, Phase.WAIT, Phase.DONE)),
    (Phase.FIX, StrategyResult): Row(_helped, (Phase.FIX, *_NEXT)),
    (Phase.WAIT, Waited): Row(_waited, (*_NEXT, Phase.EXECUTE, Phase.EVALUATE)),
    (Phase.BREAKER, Waited): Row(_waited_for_breaker, _NEXT),
    **{
        (phase, ReviewNeeded): Row(_review_needed, (Phase.DONE,))
        for phase in (Phase.BASELINE, Phase.GENERATE, Phase.EXECUTE, Phase.LAND)
    },
    **{
        (phase, Interrupted): Row(_interrupted, (Phase.DONE,))
        for phase in Phase
        if phase not in {Phase.NEW, Phase.DONE}
    },
}
"""What the loop does: by phase and event, the function for it and the phases that it leads to."""

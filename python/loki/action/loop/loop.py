"""The closed loop as a pure machine: (state, event, now) → (state, effects).

GENERATE → VALIDATE → EXECUTE → EVALUATE → REGRESSION (→ LAND) → SUCCESS; a failure in any is analyzed
(`loki.decision.loop_policy`) and leads to FIX → GENERATE, to a wait, to ESCALATE or to DEAD LETTER.
Where a proposal leaves its task, nothing of it is applied, and that is no failed attempt: it touches
neither the task's retries nor a pattern's, and what it cost counts for the budget.

No I/O and no clock in here: a driver performs the effects and brings the answers back as events.
An event that a phase does not expect raises `IllegalTransition` and leaves the state untouched.

Covered by tests/py/action/loop/test_loop_table.py, every row of `TABLE`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from loki.action.agent_protocol import Proposal
from loki.action.changes.change import Change, Merge, Merged
from loki.action.checks.check import Report
from loki.action.checks.regression import missing_tests, missing_tests_failure
from loki.action.checks.results_comparison import Comparison
from loki.action.gates.gate import Validation
from loki.action.loop.failure_analysis import (
    account,
    analyze,
    conclude,
    finish,
    hold,
    interrupted,
    other_strategy,
    reflected,
    review_needed,
    succeed,
)
from loki.action.loop.loop_events import (
    AgentFailed,
    Answered,
    Ask,
    Begin,
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
    Interrupted,
    Keep,
    Malformed,
    Reflected,
    Refused,
    ReportDrift,
    ReviewDrift,
    ReviewNeeded,
    RunChecks,
    StrategyResult,
    TakeBaseline,
    Validate,
    Validated,
    Waited,
    prepend,
)
from loki.action.loop.loop_state import (
    APPLIED,
    Current,
    Phase,
    State,
    Step,
    awaited,
    charged,
    measured,
    paid,
    proposal_of,
    record,
    say,
    to_mend,
    took_effect,
    with_current,
    without_request,
)
from loki.base.log import quoted
from loki.decision.drift.drift import Drift, DriftResponse, decide, worst
from loki.decision.fallback_policy import IllegalTransition
from loki.decision.loop_policy import Action
from loki.memory.attempt import DRIFT
from loki.recognition.failure import Failure

# --- Where a proposal leaves its task -----------------------------------------------------------------


def _drifted(state: State, event: Drifted, now: datetime) -> Step:
    verdict = decide(event.drifts, event.count, state.drift, has_reviewer=event.has_reviewer)
    proposal = proposal_of(state)
    line = say(
        state,
        f"drift={event.count} severity={worst(event.drifts)} move={verdict.move.value} "
        f"reason={quoted(verdict.reason)}",
        warning=True,
    )
    report = ReportDrift(event.drifts, proposal.agent)
    if verdict.move is DriftResponse.PAUSE:
        ask = replace(report, ask=verdict.reason)
        end = finish(state, now, "escalated", verdict.reason, trigger=DRIFT)
        return prepend((line, ask, _kept(state, event.drifts, now)), end)
    if verdict.move is DriftResponse.REVIEW:
        return state, (line, report, ReviewDrift(proposal, event.drifts))
    if verdict.move is DriftResponse.PASS:
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


def _send_back(state: State, drifts: tuple[Drift, ...], now: datetime) -> Step:
    """Back to reasoning: what was proposed may be proposed again, by who insists."""
    digest = proposal_of(state).change.digest()
    proposed = {key: shown for key, shown in state.proposed.items() if key != digest}
    after = replace(state, drift=state.drift.sent_back(drifts), proposed=proposed)
    return prepend((_kept(state, drifts, now),), _generate(after, now, again=True))


def _kept(state: State, drifts: tuple[Drift, ...], now: datetime) -> Keep:
    said = "; ".join(drift.detected_drift for drift in drifts)
    return Keep(replace(record(state, now, DRIFT, None, None), error=said, phase=state.phase.value))


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
    handler = TABLE.get((state.phase, type(event)))
    if handler is None:
        raise IllegalTransition(f"{type(event).__name__} in phase {state.phase.value}")
    return handler(state, event, now)


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
        return finish(state, now, "success", reason)
    return _generate(state, now)


def _generate(state: State, now: datetime, *, delay: float = 0.0, again: bool = False) -> Step:
    """Begin the next attempt, if there is time left; ``again``: with the question of the last."""
    state, warnings, spent = account(state, now)
    if spent is not None:
        return prepend(warnings, finish(state, now, "failed", spent, trigger="budget"))
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
    decision, helped = state.decision, state.help
    return Ask(
        state.last_number,
        state.failure,
        helped.strategy if helped else None,
        decision.reason if decision else "",
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
    return analyze(state, failure, now, of_answer=state.phase is Phase.GENERATE)


def _agent_failed(state: State, event: AgentFailed, now: datetime) -> Step:
    return analyze(charged(state, event), event.failure, now, event)


def _malformed(state: State, event: Malformed, now: datetime) -> Step:
    if event.proposal is not None:
        state = charged(with_current(state, proposal=event.proposal), event.proposal)
    return analyze(state, event.failure, now, of_answer=True)


def _refused(state: State, event: Refused, now: datetime) -> Step:
    return hold(without_request(state), event, now)


def _edited(state: State, event: Edited, now: datetime) -> Step:
    proposal = Proposal(Change.nothing(), event.description)
    executed = Executed(event.files)
    state = with_current(
        state, proposal=proposal, validation=Validation(skipped=True), executed=executed
    )
    state = took_effect(state, event.files)
    if event.failure is not None or event.ok is False:
        failure = event.failure or Failure.of("the caller reported a failure without its output")
        return analyze(state, failure, now)
    if state.setting.task.checks:
        return _evaluate(state)
    return succeed(state, now, "unverified", "the caller reports success; no check verified it")


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
        return prepend((line,), analyze(state, failure, now, violation=validation.security))
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
        return analyze(state, event.failure, now)
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
        return analyze(state, missing_tests_failure(lost), now)
    if first is not None and first.failure is not None:
        return analyze(state, first.failure, now)
    if not state.worked:
        return _refuse(state, now, "nothing-done", "every check passes, but nothing was changed")
    if not state.setting.task.checks and state.setting.needs_check:
        return succeed(state, now, "unverified", "the change is made; no check verified it")
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
    return prepend((line,), analyze(state, failure, now))


def _land(state: State, now: datetime) -> Step:
    """All is well where it was worked on; what waits for a person is brought in once they approve."""
    if not state.setting.lands or state.waiting:
        return _conclude(state, now)
    return replace(state, phase=Phase.LAND), (Merge(),)


def _conclude(state: State, now: datetime) -> Step:
    helped = " after a person's help" if state.helped and state.current is None else ""
    return conclude(state, now, f"every check passes{helped}")


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
    return analyze(state, event.failure, now, landing=True)


def _helped(state: State, event: StrategyResult, now: datetime) -> Step:
    assert state.failure is not None
    if event.error:
        return other_strategy(state, event, now)
    if event.files or event.acted:
        state = replace(took_effect(state, event.files), worked=True, altered=True)
    return _generate(replace(state, help=event), now)


def _waited(state: State, _event: Waited, now: datetime) -> Step:
    """After a wait for infrastructure the same again, from where it failed; else a new attempt."""
    assert state.decision is not None
    waited = state.wait_seconds
    is_retry = state.decision.action is Action.RETRY
    if not is_retry or state.failed_in in {Phase.GENERATE, Phase.VALIDATE}:
        return _generate(replace(state, help=None), now, delay=waited, again=is_retry)
    state, warnings, spent = account(state, now)
    if spent is not None:
        return prepend(warnings, finish(state, now, "failed", spent, trigger="budget"))
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
    if state.failed_in is Phase.EXECUTE:
        applied = bool(current.executed and current.executed.files)
        execute = Execute(proposal_of(state), commands_only=applied)
        return replace(state, phase=Phase.EXECUTE), (*warnings, execute)
    return prepend(warnings, _evaluate(state))


def _waited_for_breaker(state: State, _event: Waited, now: datetime) -> Step:
    return _generate(state, now, delay=state.wait_seconds, again=True)


Handler = Callable[[State, Any, datetime], Step]

TABLE: Mapping[tuple[Phase, type[Any]], Handler] = {
    (Phase.NEW, Begin): _begin,
    (Phase.BASELINE, Checked): _baseline,
    (Phase.BASELINE, ReviewNeeded): review_needed,
    (Phase.GENERATE, Answered): _answered,
    (Phase.GENERATE, AgentFailed): _agent_failed,
    (Phase.GENERATE, Refused): _refused,
    (Phase.GENERATE, Malformed): _malformed,
    (Phase.GENERATE, Edited): _edited,
    (Phase.GENERATE, ReviewNeeded): review_needed,
    (Phase.VALIDATE, Validated): _validated,
    (Phase.VALIDATE, Drifted): _drifted,
    (Phase.VALIDATE, DriftReviewed): _drift_reviewed,
    (Phase.EXECUTE, Executed): _executed,
    (Phase.EXECUTE, ReviewNeeded): review_needed,
    (Phase.EVALUATE, Checked): _evaluated,
    (Phase.REGRESSION, Compared): _compared,
    (Phase.LAND, Merged): _landed,
    (Phase.LAND, ReviewNeeded): review_needed,
    (Phase.REFLECT, Reflected): reflected,
    (Phase.FIX, StrategyResult): _helped,
    (Phase.WAIT, Waited): _waited,
    (Phase.BREAKER, Waited): _waited_for_breaker,
    **{
        (phase, Interrupted): interrupted for phase in Phase if phase not in {Phase.NEW, Phase.DONE}
    },
}

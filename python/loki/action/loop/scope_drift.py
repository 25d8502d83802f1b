"""What the loop does where a proposal leaves its task; pure, as the loop itself.

Nothing of the proposal is applied. A return to reasoning is no failed attempt: it touches neither the
task's retries nor a pattern's, and what it cost counts for the budget.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from loki.action.loop.drift_event import Drifted, DriftReviewed, ReportDrift, ReviewDrift
from loki.action.loop.loop_end import finish
from loki.action.loop.loop_events import Effect, Keep, Validate
from loki.action.loop.loop_state import State, proposal_of, record, say
from loki.base.log import quoted
from loki.decision.drift.drift import Drift, worst
from loki.decision.drift.drift_policy import DriftResponse, decide
from loki.memory.attempt import DRIFT


def on_scope_drift(
    state: State, event: Drifted | DriftReviewed, now: datetime
) -> tuple[State, tuple[Effect, ...], bool]:
    """The state, what is to be done, and whether the agent is asked anew.

    Args:
        state: the state, an attempt in flight.
        event: what drifted, or what a review of it said.
        now: the time of day.
    """
    if isinstance(event, DriftReviewed):
        return _reviewed(state, event, now)
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
        after, ends = finish(state, now, "escalated", verdict.reason, trigger=DRIFT)
        return after, (line, ask, _kept(state, event.drifts, now), *ends), False
    if verdict.move is DriftResponse.REVIEW:
        return state, (line, report, ReviewDrift(proposal, event.drifts)), False
    if verdict.move is DriftResponse.PASS:
        return state, (line, report, Validate(proposal)), False
    after = _sent_back(state, event.drifts)
    return after, (line, report, _kept(state, event.drifts, now)), True


def _reviewed(
    state: State, event: DriftReviewed, now: datetime
) -> tuple[State, tuple[Effect, ...], bool]:
    said = "approved" if event.approved else "rejected"
    line = say(
        state,
        f"drift review={said} by={quoted(event.by)} reason={quoted(event.reason)}",
        warning=not event.approved,
    )
    if event.approved:
        return state, (line, Validate(proposal_of(state))), False
    return _sent_back(state, event.drifts), (line, _kept(state, event.drifts, now)), True


def _sent_back(state: State, drifts: tuple[Drift, ...]) -> State:
    """Back to reasoning: what was proposed may be proposed again, by who insists."""
    digest = proposal_of(state).change.digest()
    proposed = {key: shown for key, shown in state.proposed.items() if key != digest}
    return replace(state, drift=state.drift.sent_back(drifts), proposed=proposed)


def _kept(state: State, drifts: tuple[Drift, ...], now: datetime) -> Keep:
    said = "; ".join(drift.detected_drift for drift in drifts)
    return Keep(replace(record(state, now, DRIFT, None, None), error=said, phase=state.phase.value))

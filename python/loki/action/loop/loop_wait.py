"""What the closed loop may still spend, and how it waits for a service or a circuit breaker: pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from loki.action.loop.loop_end import finish
from loki.action.loop.loop_events import Effect, Refused, Wait
from loki.action.loop.loop_state import Phase, State, say, usage
from loki.base.time import isoformat
from loki.decision.loop_policy import Decision


def left(state: State, now: datetime) -> float | None:
    """Seconds of the time budget that are left, negative where it is spent; None: there is none."""
    limit = state.setting.task.budget.seconds
    if limit is None or state.started is None:
        return None
    return limit - (now - state.started).total_seconds()


def back_off(
    state: State, decision: Decision, now: datetime, retry_after: float | None
) -> tuple[State, tuple[Effect, ...]]:
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


def hold(state: State, refused: Refused, now: datetime) -> tuple[State, tuple[Effect, ...]]:
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

"""The moves of a pipeline's machine: into a stage, past its approval, through a try, to an end.

Pure, as the table that chooses among them (`loki.action.pipelines.pipeline_machine`).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from loki.action.pipelines.pipeline_spec import Retry
from loki.action.pipelines.pipeline_state import (
    SETTLED,
    AskApproval,
    Effect,
    End,
    Phase,
    ReadOutputs,
    RollBack,
    RollbackStep,
    RunStage,
    RunState,
    Say,
    page_of_approval,
    with_stage,
)
from loki.decision.backoff import Backoff

Step = tuple[RunState, tuple[Effect, ...]]


def enter(state: RunState, now: datetime) -> Step:
    """Go to the first stage that is not done; the run is done where there is none."""
    waiting = [s for s in state.spec.stages if state.of(s.id).status not in SETTLED]
    if not waiting:
        reason = "every stage is done"
        return end(replace(state, at=None), Phase.DONE, "success", reason)
    stage = waiting[0]
    state = replace(state, at=stage.id, resumes_in=None)
    if stage.condition is None:
        return admit(state, now)
    return replace(state, phase=Phase.CONDITION), (ReadOutputs(),)


def admit(state: RunState, now: datetime) -> Step:
    """Past the condition: ask a person where that is wanted, else begin."""
    stage, approval = state.here, state.current.approval
    if stage.requires_approval and (approval is None or approval.digest != stage.digest):
        page = page_of_approval(state, stage.id, now)
        waits = {"page": page, "trigger": "approval", "reason": "waits for a person's approval"}
        state = with_stage(state, stage.id, approval=None, digest=stage.digest, **waits)
        return ask(replace(state, phase=Phase.APPROVAL))
    return begin_try(state, now)


def ask(state: RunState) -> Step:
    """End for now: a person must say whether the stage may begin."""
    reason = f"stage {state.at} waits for a person's approval"
    after, effects = end(state, Phase.APPROVAL, "escalated", reason, "approval")
    return after, (AskApproval(state.here.id), *effects)


def begin_try(state: RunState, now: datetime) -> Step:
    """Begin a try of the stage, if there is something left of the run's limits."""
    stage, current = state.here, state.current
    spent = spent_limit(state)
    if spent:
        return fail(state, now, spent, "budget", roll_back=current.tries > 0)
    state = with_stage(
        state,
        stage.id,
        status="running",
        tries=current.tries + 1,
        digest=stage.digest,
        begun=current.begun or now,
        retry_at=None,
    )
    return run(state)


def run(state: RunState) -> Step:
    """Have the try in flight worked on."""
    stage = state.here
    state = replace(state, phase=Phase.RUNNING, resumes_in=None)
    state = with_stage(state, stage.id, status="running", retry_at=None)
    current = state.current
    left = None
    if state.max_attempts is not None:
        others = state.attempts - current.attempts
        left = state.max_attempts - others
    seconds = min(stage_left(state), run_left(state))
    tries = f"try={current.tries}/{stage.retry.max_attempts}"
    return state, (say(state, f"{tries} status=running"), RunStage(stage.id, left, seconds))


def stage_left(state: RunState) -> float:
    """Seconds that are left of the stage's time-out."""
    return max(0.0, state.here.timeout_seconds - state.current.spent)


def run_left(state: RunState) -> float:
    """Seconds that are left of the run's time."""
    return float("inf") if state.max_seconds is None else max(0.0, state.max_seconds - state.spent)


def spent_limit(state: RunState) -> str:
    """Which limit of the run is used up, in a sentence; "" where none is."""
    if state.max_attempts is not None and state.attempts >= state.max_attempts:
        return f"the run's limit of {state.max_attempts} attempts is spent"
    if run_left(state) <= 0:
        return f"the run's time of {state.max_seconds:g} s is spent"
    return ""


def delay(retry: Retry, tries: int, key: str = "") -> float:
    """Seconds before the next try of a stage; exponential ones are jittered, the others exact.

    Args:
        retry: how.
        tries: tries that failed, 1 or more.
        key: spreads stages that fail together.

    Example:
        >>> [delay(Retry(5, "linear", 10), tries) for tries in (1, 2, 3)]
        [10, 20, 30]
    """
    if retry.backoff == "exponential":
        return Backoff(retry.initial_delay_seconds).delay(tries, key, 1)
    return retry.initial_delay_seconds * (tries if retry.backoff == "linear" else 1)


def fail(
    state: RunState, now: datetime, reason: str, trigger: str, *, roll_back: bool = True
) -> Step:
    """The stage has finally failed, and the run with it."""
    stage = state.here
    state = with_stage(
        state, stage.id, status="failed", reason=reason, trigger=trigger, ended=now, retry_at=None
    )
    steps = _rollback(state) if roll_back else ()
    return next_rollback(replace(state, rollback=steps))


def _rollback(state: RunState) -> tuple[RollbackStep, ...]:
    """What is to be done, last work first."""
    what = state.here.rollback
    if not isinstance(what, str):
        return tuple(RollbackStep("command", command) for command in what)
    if what == "none":
        return ()
    ids = [stage.id for stage in state.spec.stages]
    earlier = [id_ for id_ in ids[: ids.index(state.here.id)] if state.of(id_).tries]
    undone = [*earlier, state.here.id] if what == "all" else [state.here.id]
    return tuple(RollbackStep("undo", id_) for id_ in reversed(undone))


def next_rollback(state: RunState) -> Step:
    """The next step of the rollback; the run has failed where there is none."""
    left = [found for found in state.rollback if not found.result]
    if not left:
        return end(state, Phase.FAILED, "failed", state.current.reason, state.current.trigger)
    return replace(state, phase=Phase.ROLLBACK, resumes_in=None), (RollBack(left[0]),)


def end(state: RunState, phase: Phase, status: str, reason: str, trigger: str = "") -> Step:
    """End the run, for good or for now."""
    state = replace(state, phase=phase, status=status, reason=reason, trigger=trigger)
    line = Say(f"run={state.run} status={status} total_attempts={state.attempts}")
    return state, (line, End())


def going_on(state: RunState) -> RunState:
    """Forget how it ended last time."""
    return replace(state, status="", reason="", trigger="")


def say(state: RunState, message: str) -> Say:
    """A log line about the stage that it stands at."""
    ids = [stage.id for stage in state.spec.stages]
    place = f"{ids.index(state.at) + 1}/{len(ids)}" if state.at in ids else ""
    return Say(f"run={state.run} stage={state.at} ({place}) {message}")

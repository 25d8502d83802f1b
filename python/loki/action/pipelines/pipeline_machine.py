"""A pipeline as a pure machine: (state, event, now) → (state, effects).

Stages run in the order of the list. Each passes its condition and, where it asks for one, a
person's approval, before its loop begins. A loop that failed has used up its own retries; the stage
may then be tried again, with a fresh inner budget, after a wait; at last what it did may be rolled
back. Nothing here touches the world or reads a clock: a session (`loki.execution.pipeline_session`)
performs the effects and brings the answers back as events.

Covered by tests/py/action/pipelines/test_pipeline_machine_table.py, every row of `TABLE`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from loki.action.pipelines.pipeline_file import StageView
from loki.action.pipelines.pipeline_state import (
    OVER,
    SETTLED,
    Approval,
    Approved,
    AskApproval,
    Effect,
    Event,
    Interrupted,
    OutputsRead,
    Phase,
    ReadOutputs,
    Redo,
    Rejected,
    Resumed,
    Retry,
    RollBack,
    RollbackStep,
    RolledBack,
    RunStage,
    RunState,
    Say,
    StageEnded,
    StageState,
    shared,
    with_stage,
)
from loki.base.machine import Begin, Row, Table, Wait, Waited, prepend, row
from loki.base.time import isoformat
from loki.decision.backoff import Backoff

# --- The moves: into a stage, past its approval, through a try, to an end -----------------------------

Step = tuple[RunState, tuple[Effect, ...]]


def enter(state: RunState, now: datetime) -> Step:
    """Go to the first stage that is not done; the run is done where there is none."""
    waiting = [s for s in state.spec.stages if state.of(s.id).status not in SETTLED]
    if not waiting:
        reason = "every stage is done"
        return end(replace(state, at=None), Phase.DONE, "success", reason)
    stage = waiting[0]
    state = replace(state, at=stage.id, resumes_in=None)
    if not stage.condition:
        return admit(state, now)
    return replace(state, phase=Phase.CONDITION), (ReadOutputs(),)


def admit(state: RunState, now: datetime) -> Step:
    """Past the condition: ask a person where that is wanted, else begin."""
    stage, approval = state.here, state.current.approval
    if stage.requires_approval and (approval is None or approval.digest != stage.digest):
        stamp = isoformat(now).replace("-", "").replace(":", "")
        page = f"escalations/{stamp}-{state.task_id(stage.id)}.md"
        waits = {"page": page, "trigger": "approval", "reason": "waits for a person's approval"}
        state = with_stage(state, stage.id, approval=None, digest=stage.digest, **waits)
        return ask(replace(state, phase=Phase.APPROVAL))
    return begin_try(state, now)


def ask(state: RunState) -> Step:
    """End for now: a person must say whether the stage may begin."""
    reason = f"stage {state.at} waits for a person's approval"
    ended = end(state, Phase.APPROVAL, "escalated", reason, "approval")
    return prepend((AskApproval(state.here.id),), ended)


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
        left = state.max_attempts - (state.attempts - current.attempts)
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
    return state, (Say(f"run={state.run} status={status} total_attempts={state.attempts}"),)


def going_on(state: RunState) -> RunState:
    """Forget how it ended last time."""
    return replace(state, status="", reason="", trigger="")


def say(state: RunState, message: str) -> Say:
    """A log line about the stage that it stands at."""
    ids = [stage.id for stage in state.spec.stages]
    place = f"{ids.index(state.at) + 1}/{len(ids)}" if state.at in ids else ""
    return Say(f"run={state.run} stage={state.at} ({place}) {message}")


# --- A step of the machine ----------------------------------------------------------------------------

WARNING_SHARE = 0.8
"""Of a limit: from there on a warning is logged, once a stage."""


def step(state: RunState, event: Event, now: datetime) -> Step:
    """The state after an event, and what is to be done.

    Args:
        state: the state before; not changed.
        event: what happened.
        now: the time of day.

    Raises:
        IllegalTransition: this phase does not expect this event.
    """
    does = row(TABLE, state.phase, event).does
    after: Step = does(_tick(state, event, now), event, now)
    return after


def _tick(state: RunState, event: Event, now: datetime) -> RunState:
    """Count the time since the last event as work, unless nobody was at work in it."""
    worked = 0.0
    if state.seen is not None and not isinstance(event, (Begin, Resumed, Approved, Rejected, Redo)):
        worked = max(0.0, (now - state.seen).total_seconds())
    if state.at is not None:
        state = with_stage(state, state.at, spent=state.current.spent + worked)
    return replace(state, seen=now, spent=state.spent + worked)


# --- Entering a stage ---------------------------------------------------------------------------------


def _begin(state: RunState, _event: Begin, now: datetime) -> Step:
    return enter(replace(going_on(state), begun=state.begun or now), now)


def _examined(state: RunState, event: OutputsRead, now: datetime) -> Step:
    stage = state.here
    views = {
        id_: StageView(stage.status, stage.files, event.outputs.get(id_, {}))
        for id_, stage in state.stages.items()
        if stage.status in SETTLED
    }
    wrong = [one for one in stage.condition if not one.holds(views, state.parameters)]
    if not wrong:
        return admit(state, now)
    reason = f"its condition does not hold: {wrong[0]}"
    state = with_stage(
        state, stage.id, status="skipped", reason=reason, digest=stage.digest, ended=now
    )
    return prepend((say(state, "status=skipped"),), enter(state, now))


def _approved(state: RunState, event: Approved, now: datetime) -> Step:
    stage = state.here
    if stage.digest != state.current.digest:
        line = Say(f"run={state.run} stage={stage.id} was edited since: asking anew", warning=True)
        return prepend((line,), admit(state, now))
    approval = Approval(event.by, now, event.note, stage.digest)
    state = with_stage(
        going_on(state), stage.id, approval=approval, trigger="", reason="", page=None
    )
    return prepend((say(state, f"approved by={event.by}"),), begin_try(state, now))


def _rejected(state: RunState, event: Rejected, now: datetime) -> Step:
    """A person ends the run; a stage that has run by then is rolled back as if it had failed."""
    reason = f"{event.by} rejected stage {state.at}" + (f": {event.note}" if event.note else "")
    state = going_on(state)
    has_run = state.phase is Phase.ESCALATED
    return fail(state, now, reason, "rejected", roll_back=has_run)


# --- Running ------------------------------------------------------------------------------------------


def _stage_ended(state: RunState, event: StageEnded, now: datetime) -> Step:
    known = ("success", "failed", "paused", "interrupted")
    status = event.status if event.status in known else "escalated"
    before, current = state.attempts, state.current
    changes = shared(event, StageState) | {
        "status": status,
        "attempts": max(event.attempts, current.attempts),
        "marker": event.marker or current.marker,
        "ended": now,
    }
    state = with_stage(state, state.here.id, **changes)
    line = say(state, f"status={status} attempts={state.current.attempts}")
    said = (line, *_warn_of_limit(state, before))
    return prepend(said, _AFTER[status](state, event, now))


def _succeeded(state: RunState, _event: StageEnded, now: datetime) -> Step:
    return enter(with_stage(state, state.here.id, context=""), now)


def _failed(state: RunState, event: StageEnded, now: datetime) -> Step:
    """The inner retries are spent: try the stage again where its file says so."""
    stage, current = state.here, state.current
    if spent := spent_limit(state):
        return fail(state, now, spent, "budget")
    if event.trigger == "budget":
        if stage_left(state) <= 0:
            return _out_of_time(state, now)
        return fail(state, now, event.reason, event.trigger)
    if current.tries >= stage.retry.max_attempts:
        return fail(state, now, event.reason, event.trigger)
    seconds = delay(stage.retry, current.tries, state.task_id(stage.id))
    if seconds >= min(stage_left(state), run_left(state)):
        return _out_of_time(state, now)
    state = with_stage(state, stage.id, retry_at=now + timedelta(seconds=seconds))
    reason = f"before try {current.tries + 1} of {stage.retry.max_attempts}"
    return replace(state, phase=Phase.RETRY_WAIT), (Wait(seconds, reason),)


def _out_of_time(state: RunState, now: datetime) -> Step:
    """The smaller of both limits is the one that ended it."""
    if run_left(state) <= stage_left(state):
        reason = f"the run's time of {state.max_seconds:g} s is spent"
        return fail(state, now, reason, "budget")
    minutes = state.here.timeout_seconds / 60
    reason = f"stage {state.at} was not done within its time-out of {minutes:g} min"
    return fail(state, now, reason, "timeout")


def _stopped(state: RunState, event: StageEnded, _now: datetime) -> Step:
    """Paused or interrupted: it goes on in the try that it was in."""
    phase = Phase.PAUSED if event.status == "paused" else Phase.INTERRUPTED
    state = replace(state, resumes_in=Phase.RUNNING)
    return end(state, phase, event.status, event.reason, event.trigger)


def _escalated(state: RunState, event: StageEnded, _now: datetime) -> Step:
    """A person must see to it: not tried again."""
    return end(state, Phase.ESCALATED, "escalated", event.reason, event.trigger)


_AFTER: Mapping[str, Callable[[RunState, StageEnded, datetime], Step]] = {
    "success": _succeeded,
    "failed": _failed,
    "paused": _stopped,
    "interrupted": _stopped,
    "escalated": _escalated,
}


def _waited(state: RunState, _event: Waited, now: datetime) -> Step:
    return begin_try(state, now)


def _rolled_back(state: RunState, event: RolledBack, _now: datetime) -> Step:
    steps = list(state.rollback)
    number = next(i for i, found in enumerate(steps) if not found.result)
    done = steps[number] = replace(steps[number], result=event.result, detail=event.detail)
    state = replace(state, rollback=tuple(steps))
    said = f"rollback {done.kind} {done.subject}: {event.result}"
    line = Say(
        f"run={state.run} stage={state.at} {said}" + (f", {event.detail}" if event.detail else ""),
        warning=event.result != "done",
    )
    return prepend((line,), next_rollback(state))


# --- Ending and going on ------------------------------------------------------------------------------


def _interrupted(state: RunState, _event: Interrupted, _now: datetime) -> Step:
    state = replace(state, resumes_in=state.phase)
    reason = "interrupted; run it again to go on"
    return end(state, Phase.INTERRUPTED, "interrupted", reason, "interrupted")


def _resumed(state: RunState, event: Resumed, now: datetime) -> Step:
    """Ask again for what was asked for last: its answer never came."""
    phase = state.resumes_in or state.phase
    if phase is Phase.ROLLBACK:
        return _resume_rollback(replace(state, phase=phase, resumes_in=None), now)
    state = replace(going_on(state), phase=phase, resumes_in=None)
    if phase is Phase.CONDITION:
        return enter(state, now)
    if phase is Phase.RETRY_WAIT:
        return _wait_on(state, now)
    if event.context:
        state = with_stage(state, state.here.id, context=event.context)
    return run(state)


def _resume_escalated(state: RunState, event: Resumed, _now: datetime) -> Step:
    """A person has seen to it: the same try goes on, with a fresh inner budget."""
    if spent := spent_limit(state):
        reason = f"{spent}: going on takes a higher one"
        return end(state, Phase.ESCALATED, "escalated", reason, "budget")
    context = event.context or state.current.context
    return run(with_stage(going_on(state), state.here.id, context=context))


def _wait_on(state: RunState, now: datetime) -> Step:
    """What is left of a wait; a clock that jumped makes it no longer than it was."""
    current, stage = state.current, state.here
    whole = delay(stage.retry, current.tries, state.task_id(stage.id))
    left = (current.retry_at - now).total_seconds() if current.retry_at else 0.0
    seconds = min(max(0.0, left), whole)
    return state, (Wait(seconds, f"before try {current.tries + 1} of {stage.retry.max_attempts}"),)


def _resume_rollback(state: RunState, now: datetime) -> Step:
    """An undo is done again, as twice is once; a command that may have run is not."""
    pending = next(found for found in state.rollback if not found.result)
    if pending.kind == "undo":
        return next_rollback(state)
    detail = "loki ended while it ran; it is not run a second time"
    return _rolled_back(state, RolledBack("unknown", detail), now)


def _resume_approval(state: RunState, _event: Resumed, now: datetime) -> Step:
    """Nothing has changed: it still waits; a stage that was edited since is asked for anew."""
    if state.here.digest != state.current.digest or not state.here.requires_approval:
        return admit(going_on(state), now)
    return ask(state)


def _redo(state: RunState, event: Redo, now: datetime) -> Step:
    """Begin again at a stage: it and those behind it forget what they did."""
    ids = [stage.id for stage in state.spec.stages]
    again = ids[ids.index(event.stage) :]
    stages = dict(state.stages)
    for id_ in again:
        if id_ in stages:
            has_run = stages[id_].tries > 0
            stages[id_] = StageState(round=stages[id_].round + has_run)
    state = replace(going_on(state), stages=stages, at=None, resumes_in=None, rollback=())
    return enter(state, now)


def _warn_of_limit(state: RunState, before: int) -> tuple[Say, ...]:
    """At 80 % of the attempts, once."""
    if state.max_attempts is None:
        return ()
    mark = WARNING_SHARE * state.max_attempts
    if not before < mark <= state.attempts < state.max_attempts:
        return ()
    said = f"{state.attempts} of the run's {state.max_attempts} attempts are used"
    return (Say(f"run={state.run} {said}", warning=True),)


# --- The table ----------------------------------------------------------------------------------------

_FAILS = (Phase.ROLLBACK, Phase.FAILED)
_TRIES = (Phase.RUNNING, *_FAILS)
_ADMITS = (Phase.APPROVAL, *_TRIES)
_ENTERS = (Phase.CONDITION, *_ADMITS, Phase.DONE)
"""The next stage is entered: where it has a condition, that is looked at; or there is none left."""

_GOES_ON = (*_ENTERS, Phase.RETRY_WAIT)

TABLE: Table[Phase] = {
    (Phase.NEW, Begin): Row(_begin, _ENTERS),
    (Phase.CONDITION, OutputsRead): Row(_examined, _ENTERS),
    (Phase.APPROVAL, Approved): Row(_approved, _ADMITS),
    (Phase.APPROVAL, Rejected): Row(_rejected, _FAILS),
    (Phase.APPROVAL, Resumed): Row(_resume_approval, _ADMITS),
    (Phase.RUNNING, StageEnded): Row(
        _stage_ended, (*_GOES_ON, Phase.ESCALATED, Phase.PAUSED, Phase.INTERRUPTED)
    ),
    (Phase.RETRY_WAIT, Waited): Row(_waited, _TRIES),
    (Phase.ROLLBACK, RolledBack): Row(_rolled_back, _FAILS),
    (Phase.ESCALATED, Resumed): Row(_resume_escalated, (Phase.RUNNING, Phase.ESCALATED)),
    (Phase.ESCALATED, Rejected): Row(_rejected, _FAILS),
    **{
        (phase, Interrupted): Row(_interrupted, (Phase.INTERRUPTED,))
        for phase in (Phase.CONDITION, Phase.RUNNING, Phase.RETRY_WAIT, Phase.ROLLBACK)
    },
    **{
        (phase, Resumed): Row(_resumed, _GOES_ON)  # after a crash, or where it was left
        for phase in (
            Phase.CONDITION,
            Phase.RUNNING,
            Phase.RETRY_WAIT,
            Phase.ROLLBACK,
            Phase.PAUSED,
            Phase.INTERRUPTED,
        )
    },
    **{
        (phase, Redo): Row(_redo, _ENTERS)
        for phase in Phase
        if phase not in {Phase.NEW, Phase.ROLLBACK}
    },
}
"""What a run does: by phase and event, the function for it and the phases that it leads to."""

assert {phase for phase, _ in TABLE} >= OVER  # what is over can be begun again

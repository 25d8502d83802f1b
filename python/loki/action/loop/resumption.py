"""Where a task stands before it is worked on, and how it goes on after a person stepped in.

Pure: records in, standing out. What stays through an intervention: numbering, history, signs, files,
and the tests that were seen failing. What begins anew: the retry budget, and which strategies count
as tried, because a person's help changes what they start from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loki.action.loop.loop_state import LoopSettings, ProgressMeasure, State, of_record
from loki.base.error import UsageError
from loki.decision.loop_policy import FailureHistory, PastFailure
from loki.memory.attempt import Attempt
from loki.memory.task_record import Intervention, Outcome, TaskRecord, last_attempt_before

ENDED = ("success", "failed", "escalated", "unverified")
"""Statuses after which the same task begins anew, unless a person resumes it."""

DONE = ("success", "unverified")
"""Statuses after which nothing is left to resume."""


@dataclass(frozen=True, slots=True)
class ResumptionStatus:
    """Where a task stands.

    Attributes:
        execution: the execution that goes on or begins, 1 or more.
        last_number: number of the last attempt in the task's life.
        made: attempts made in this execution since a person last stepped in.
        made_before: those before that.
        tokens, cost: what those since then took, as far as agents told.
        past: failures of this execution that count for the rules, oldest first.
        goes_on: the execution goes on: what it changed is part of it.
        seen_failing: (check, test) of tests that were seen failing.
        failing_files: files of tests that checks failed in.
        interventions: of the task's life, oldest first.
        stepped_in: a person stepped in just now.
        fewest: tests that were not mended when fewest were, since then; None: nobody counted.
    """

    execution: int = 1
    last_number: int = 0
    made: int = 0
    made_before: int = 0
    tokens: int = 0
    cost: float = 0.0
    past: tuple[PastFailure, ...] = ()
    goes_on: bool = False
    seen_failing: frozenset[tuple[str, str]] = frozenset()
    failing_files: frozenset[str] = frozenset()
    interventions: tuple[Intervention, ...] = ()
    stepped_in: bool = False
    fewest: int | None = None

    def state(
        self, setting: LoopSettings, files: tuple[str, ...], *, changed: bool = False
    ) -> State:
        """Where the machine begins.

        Args:
            setting: what stays the same.
            files: paths changed since the task began.
            changed: somebody changed the project since the task stopped.
        """

        return State(
            setting,
            last_number=self.last_number,
            made=self.made,
            made_before=self.made_before,
            tokens=self.tokens,
            cost=self.cost,
            past=FailureHistory.of(self.past),
            worked=(self.goes_on and bool(files)) or (self.stepped_in and changed),
            helped=self.stepped_in,
            fewest=None if self.fewest is None else ProgressMeasure(self.fewest),
            files=files,
            seen_failing=self.seen_failing,
        )


def resumption_status(
    record: TaskRecord,
    attempts: Sequence[Attempt],
    intervention: Intervention | None = None,
) -> ResumptionStatus:
    """Where a task stands, from what is kept of it.

    Args:
        record: what is kept of it.
        attempts: of the task's life, oldest first.
        intervention: a person steps in with this; its execution, attempt and status are filled in.

    Example:
        >>> resumption_status(TaskRecord(execution=0), []).execution
        1
        >>> resumption_status(TaskRecord(outcome=Outcome("t", "escalated", 1)), []).execution
        2
    """
    status = record.status
    # What waits for an approval goes on with it: nobody has to work on it again.
    stopped = status in ENDED and not awaits_approval(record)
    goes_on = bool(record) and (not stopped or intervention is not None)
    execution = record.execution + (0 if goes_on else 1)
    last = attempts[-1].attempt if attempts else 0
    interventions = record.interventions
    if intervention is not None:
        now = Intervention(
            intervention.at, intervention.kind, intervention.context, execution, last, status
        )
        interventions = (*interventions, now)
    since = last_attempt_before(interventions, execution)
    mine = [attempt for attempt in attempts if attempt.execution == execution]
    counted = [attempt for attempt in mine if attempt.attempt > since]
    return ResumptionStatus(
        execution,
        last,
        made=len(counted),
        made_before=len(mine) - len(counted),
        tokens=sum(attempt.tokens or 0 for attempt in counted),
        cost=sum(attempt.cost or 0.0 for attempt in counted),
        past=_failures(counted),
        goes_on=goes_on,
        seen_failing=record.seen_failing,
        failing_files=record.failing_files,
        interventions=interventions,
        stepped_in=intervention is not None,
        fewest=min(_measured(counted), default=None),
    )


def _failures(attempts: Sequence[Attempt]) -> tuple[PastFailure, ...]:
    return tuple(
        PastFailure(
            failure, attempt.strategy_used, attempt.infrastructure, of_record(attempt.progress)[0]
        )
        for attempt in attempts
        if attempt.result == "failed" and (failure := attempt.recognized()) is not None
    )


def _measured(attempts: Sequence[Attempt]) -> list[int]:
    found = (of_record(attempt.progress)[1] for attempt in attempts)
    return [count for count in found if count is not None]


def awaits_approval(record: TaskRecord) -> bool:
    """Whether nothing but a person's approval is missing."""
    return record.trigger == "approval"


def is_help(record: TaskRecord, context: str) -> bool:
    """Whether to resume a task is to step in: a person answers it, or has something to say.

    What was only interrupted or paused goes on as it stood.
    """
    return bool(context) or record.status in ENDED


def is_open(record: TaskRecord) -> bool:
    """Whether there is something of a task to go on with, or to be undone; a stage is its pipeline's."""
    is_over = record.run or record.trigger == "aborted" or record.status in DONE
    return bool(record) and not is_over


def must_be_resumable(record: TaskRecord) -> None:
    """Refuse what cannot be resumed.

    Raises:
        UsageError: nothing is left to do on the task; says what it is and what to do.
    """
    status, name = record.status, record.id
    if run := record.run:
        raise UsageError(
            f"task {name} is a stage of the run {run}: `loki pipeline resume {run}` goes on with it, "
            f"`loki cancel {run}` gives it up"
        )
    if status not in DONE:
        return
    raise UsageError(
        f"task {name} has ended: {status}, and nothing is left to resume. `loki show {name}` tells "
        "how; `loki run` with the same task begins it anew"
    )


def aborted(record: TaskRecord, at: str, why: str = "") -> TaskRecord:
    """A task's record after a person aborted it; its changes have been undone.

    Args:
        record: its record.
        at: when, ISO 8601 UTC.
        why: what they said, "" for nothing.
    """
    outcome = replace(
        record.outcome or Outcome(record.id, "", 0),
        status="failed",
        reason=f"aborted by a person, and its changes undone{f': {why}' if why else ''}",
        trigger="aborted",
        files=(),
    )
    now = Intervention(at, "abort", why, record.execution, 0, record.status)
    told = (*record.interventions, now)
    return replace(record, outcome=outcome, interventions=told, updated_at=at)

"""Where a task stands before it is worked on, and how it goes on after a person stepped in.

Pure: records in, standing out. What stays through an intervention: numbering, history, signs, files,
and the tests that were seen failing. What begins anew: the retry budget, and which strategies count
as tried, because a person's help changes what they start from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loki.action.loop.attempt_progress import Measure, of_record
from loki.base.error import UsageError
from loki.decision.failure_history import Past, PastFailure
from loki.memory.attempt import Attempt
from loki.memory.intervention import Intervention, from_record, last_attempt_before

if TYPE_CHECKING:
    from loki.action.loop.loop_state import Setting, State

ENDED = ("success", "failed", "escalated", "unverified")
"""Statuses after which the same task begins anew, unless a person resumes it."""

DONE = ("success", "unverified")
"""Statuses after which nothing is left to resume."""


@dataclass(frozen=True, slots=True)
class Standing:
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

    def state(self, setting: Setting, files: tuple[str, ...], *, changed: bool = False) -> State:
        """Where the machine begins.

        Args:
            setting: what stays the same.
            files: paths changed since the task began.
            changed: somebody changed the project since the task stopped.
        """
        from loki.action.loop.loop_state import State  # much to load for who only looks at a record

        return State(
            setting,
            last_number=self.last_number,
            made=self.made,
            made_before=self.made_before,
            tokens=self.tokens,
            cost=self.cost,
            past=Past.of(self.past),
            worked=(self.goes_on and bool(files)) or (self.stepped_in and changed),
            helped=self.stepped_in,
            fewest=None if self.fewest is None else Measure(self.fewest),
            files=files,
            seen_failing=self.seen_failing,
        )


def standing(
    record: Mapping[str, Any],
    attempts: Sequence[Attempt],
    intervention: Intervention | None = None,
) -> Standing:
    """Where a task stands, from what is kept of it.

    Args:
        record: its ``task.json``; empty where there is none.
        attempts: of the task's life, oldest first.
        intervention: a person steps in with this; its execution, attempt and status are filled in.

    Example:
        >>> standing({}, []).execution
        1
        >>> standing({"execution": 1, "outcome": {"status": "escalated"}}, []).execution
        2
    """
    status = status_of(record)
    # What waits for an approval goes on with it: nobody has to work on it again.
    stopped = status in ENDED and not awaits_approval(record)
    goes_on = bool(record) and (not stopped or intervention is not None)
    execution = int(record.get("execution", 0)) + (0 if goes_on else 1)
    last = attempts[-1].attempt if attempts else 0
    interventions = from_record(record)
    if intervention is not None:
        now = Intervention(
            intervention.at, intervention.kind, intervention.context, execution, last, status
        )
        interventions = (*interventions, now)
    since = last_attempt_before(interventions, execution)
    mine = [attempt for attempt in attempts if attempt.execution == execution]
    counted = [attempt for attempt in mine if attempt.attempt > since]
    return Standing(
        execution,
        last,
        made=len(counted),
        made_before=len(mine) - len(counted),
        tokens=sum(attempt.tokens or 0 for attempt in counted),
        cost=sum(attempt.cost or 0.0 for attempt in counted),
        past=_failures(counted),
        goes_on=goes_on,
        seen_failing=frozenset((str(c), str(t)) for c, t in record.get("seen_failing") or ()),
        failing_files=frozenset(map(str, record.get("failing_files") or ())),
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


def status_of(record: Mapping[str, Any]) -> str:
    """What a task ended with; "" where it did not: it runs, or was killed."""
    return str((record.get("outcome") or {}).get("status") or "")


def awaits_approval(record: Mapping[str, Any]) -> bool:
    """Whether nothing but a person's approval is missing."""
    return (record.get("outcome") or {}).get("trigger") == "approval"


def is_help(record: Mapping[str, Any], context: str) -> bool:
    """Whether to resume a task is to step in: a person answers it, or has something to say.

    What was only interrupted or paused goes on as it stood.
    """
    return bool(context) or status_of(record) in ENDED


def is_open(record: Mapping[str, Any]) -> bool:
    """Whether there is something of a task to go on with, or to be undone; a stage is its pipeline's."""
    aborted = (record.get("outcome") or {}).get("trigger") == "aborted"
    return not (record.get("run") or aborted or status_of(record) in DONE)


def must_be_resumable(record: Mapping[str, Any]) -> None:
    """Refuse what cannot be resumed.

    Raises:
        UsageError: nothing is left to do on the task; says what it is and what to do.
    """
    status, name = status_of(record), record.get("id")
    if run := record.get("run"):
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


def aborted(record: Mapping[str, Any], at: str, why: str = "") -> dict[str, Any]:
    """A task's record after a person aborted it; its changes have been undone.

    Args:
        record: its record.
        at: when, ISO 8601 UTC.
        why: what they said, "" for nothing.
    """
    outcome = {
        **(record.get("outcome") or {"task_id": record.get("id"), "attempts": 0}),
        "status": "failed",
        "reason": f"aborted by a person, and its changes undone{f': {why}' if why else ''}",
        "trigger": "aborted",
        "files_modified": [],
    }
    now = Intervention(at, "abort", why, int(record.get("execution", 1)), 0, status_of(record))
    told = [*(record.get("interventions") or ()), now.to_dict()]
    return {**record, "outcome": outcome, "interventions": told, "updated_at": at}

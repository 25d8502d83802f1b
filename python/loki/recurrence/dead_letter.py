"""A dead letter of the queue: what it says, whoever wrote it, and what loki writes into one. Pure.

A field that is missing or of another form than expected spoils only itself. What cannot be read is
never written over: only the fields that are named here are made anew.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from loki.memory.attempt import Attempt
from loki.recognition.failure import Failure
from loki.recurrence.queued import QueuedTask

SIMPLER, DEPENDENCY = "retry_with_simpler_approach", "dependency_blocked"
HUMAN, ABANDON = "requires_human_review", "permanent_abandon"
RESOLVED = "dependency_resolved"
"""What a dead letter's ``recovery_strategy`` may be; the last one once it is queued again."""

ERROR_TYPES: Mapping[str, str] = {
    **dict.fromkeys(("test-failure", "runtime-error", "regression-detected"), "test_failure"),
    **dict.fromkeys(("timeout-error", "network-error", "rate-limit"), "timeout"),
    **dict.fromkeys(("import-not-found", "version-mismatch", "env-missing"), "dependency"),
}
"""By kind of failure; all else is ``validation``. Source: the specification."""

VALIDATION = "validation"

PAST = "dead_letter"
"""Where a task that was queued again keeps what its dead letter said: the next one goes on with it."""

MOST_KEPT = 4000
"""Characters of an attempt's approach and of its error; chosen, not measured."""


@dataclass(frozen=True, slots=True)
class PastAttempt:
    """An attempt as a dead letter has it.

    Attributes:
        attempt_number: in the task's life, 1 or more.
        timestamp: ISO 8601 UTC, or "".
        approach: what was tried.
        error_type: test_failure, timeout, dependency or validation.
        error_message: what failed.
        agent_id: who tried.
    """

    attempt_number: int
    timestamp: str = ""
    approach: str = ""
    error_type: str = VALIDATION
    error_message: str = ""
    agent_id: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Letter:
    """A task among the dead letters.

    Attributes:
        task: the task, as the queue reads it.
        failure_count: failures that count: those since a new approach was last found.
        first_failure, last_failure: ISO 8601 UTC, or "".
        error_summary: one sentence.
        attempts: of its life, oldest first.
        recovery_strategy: as the specification names them; "" where nobody said.
        requeues: how often it was brought back.
        simpler_task: id of the task of reduced scope that was made of it, or "".
        recovered: why it was last brought back, as its review said so, or "".
    """

    task: QueuedTask
    failure_count: int = 0
    first_failure: str = ""
    last_failure: str = ""
    error_summary: str = ""
    attempts: tuple[PastAttempt, ...] = ()
    recovery_strategy: str = ""
    requeues: int = 0
    simpler_task: str = ""
    recovered: str = ""

    @property
    def total_attempts(self) -> int:
        """Attempts over its life, also those that count no more."""
        return max(len(self.attempts), self.failure_count, self.task.lifetime_attempts)

    @classmethod
    def of(cls, task: QueuedTask) -> Letter:
        """What a dead letter says.

        Args:
            task: as the queue reads it; its ``raw`` is what stands there.

        Example:
            >>> from loki.recurrence.queued_form import read
            >>> letter = Letter.of(read({"task_id": "a", "attempts": [{"error_message": "boom"}, 3]}))
            >>> letter.total_attempts, letter.attempts[0].error_message, letter.failure_count
            (2, 'boom', 1)
        """
        raw, before = task.raw, past_of(task)
        attempts = read_attempts(raw.get("attempts")) or before.attempts
        return cls(
            task,
            _count(raw.get("failure_count"), len(attempts)),
            _text(raw.get("first_failure")),
            _text(raw.get("last_failure")),
            _text(raw.get("error_summary")),
            attempts,
            _text(raw.get("recovery_strategy")),
            before.requeues,
            _text(raw.get("simpler_task")),
            _recovered(raw),
        )


@dataclass(frozen=True, slots=True)
class Before:
    """What a task's earlier dead letter said.

    Attributes:
        attempts: of that time; requeues: how often it was brought back by then.
        uncounted: attempts that count no more, as a new approach was found after them.
        first_failure: ISO 8601 UTC, or "".
    """

    attempts: tuple[PastAttempt, ...] = ()
    requeues: int = 0
    uncounted: int = 0
    first_failure: str = ""


def past_of(task: QueuedTask) -> Before:
    """What a task's earlier dead letter said; nothing where it had none."""
    inner = task.raw.get("task_data")
    kept = task.raw.get(PAST) or (inner.get(PAST) if isinstance(inner, Mapping) else None)
    if not isinstance(kept, Mapping):
        return Before()
    return Before(
        read_attempts(kept.get("attempts")),
        _count(kept.get("requeues")),
        _count(kept.get("uncounted")),
        _text(kept.get("first_failure")),
    )


def read_attempts(data: Any) -> tuple[PastAttempt, ...]:
    """The attempts of a dead letter; one that is no object is left out."""
    entries = [one for one in data if isinstance(one, Mapping)] if isinstance(data, list) else []
    return tuple(
        PastAttempt(
            _count(entry.get("attempt_number"), number) or number,
            _text(entry.get("timestamp")),
            _text(entry.get("approach")),
            _text(entry.get("error_type")) or VALIDATION,
            _text(entry.get("error_message")),
            _text(entry.get("agent_id")),
        )
        for number, entry in enumerate(entries, 1)
    )


def attempts_of(life: Sequence[Attempt], before: Sequence[PastAttempt] = ()) -> list[PastAttempt]:
    """The failed attempts of a task's life as a dead letter has them, numbered anew.

    Args:
        life: those that loki recorded, oldest first.
        before: those that an earlier dead letter told of; what loki did not record of them is kept.
    """
    recorded = [_attempt(one) for one in life if one.result == "failed"]
    known = {(one.timestamp, one.error_message) for one in recorded}
    told = [one for one in before if (one.timestamp, one.error_message) not in known]
    in_order = sorted((*told, *recorded), key=lambda one: one.timestamp)
    return [_numbered(one, number) for number, one in enumerate(in_order, 1)]


def entry(
    task: QueuedTask, life: Sequence[Attempt], summary: str, at: str, *, strategy: str
) -> dict[str, Any]:
    """What a dead letter says of a task, but for what was asked: ``task_data``.

    Args:
        task: the task.
        life: the attempts of its life that loki recorded, oldest first.
        summary: one sentence.
        at: when it was given up, ISO 8601 UTC.
        strategy: how it may be recovered.
    """
    before = past_of(task)
    attempts = attempts_of(life, before.attempts)
    times = [one.timestamp for one in attempts if one.timestamp]
    return {
        "task_id": task.id,
        "failure_count": max(0, len(attempts) - before.uncounted),
        "first_failure": before.first_failure or min(times, default=at),
        "last_failure": max(times, default=at),
        "error_summary": summary,
        "attempts": [one.to_dict() for one in attempts],
        "recovery_strategy": strategy,
    }


def requeued(letter: Letter, at: str, *, is_new_approach: bool) -> dict[str, Any]:
    """What a task says that is queued again, so that its next dead letter goes on with this one.

    Args:
        letter: its dead letter.
        at: when, ISO 8601 UTC.
        is_new_approach: its failures so far count no more.
    """
    uncounted = max(0, letter.total_attempts - letter.failure_count)
    return {
        "recovery_strategy": RESOLVED,
        "failure_count": 0 if is_new_approach else letter.failure_count,
        PAST: {
            "attempts": [one.to_dict() for one in letter.attempts],
            "requeues": letter.requeues + 1,
            "uncounted": letter.total_attempts if is_new_approach else uncounted,
            "first_failure": letter.first_failure,
            "requeued_at": at,
        },
    }


def strategy_for(error_type: str, *, waits: bool, is_hopeless: bool, needs_person: bool) -> str:
    """How a task may be recovered: the first of these that holds.

    Args:
        error_type: of its last attempt.
        waits: a task that it depends on is not completed.
        is_hopeless: a criterion to abandon it holds.
        needs_person: a trigger of an escalation holds.

    Example:
        >>> strategy_for("test_failure", waits=False, is_hopeless=False, needs_person=False)
        'retry_with_simpler_approach'
    """
    if waits or error_type == "dependency":
        return DEPENDENCY
    if is_hopeless:
        return ABANDON
    return HUMAN if needs_person else SIMPLER


def error_type(failure: Failure | None) -> str:
    """What kind of error a dead letter calls a failure.

    Example:
        >>> error_type(Failure.of("ModuleNotFoundError: No module named 'yaml'"))
        'dependency'
    """
    return ERROR_TYPES.get(failure.kind, VALIDATION) if failure else VALIDATION


def _attempt(attempt: Attempt) -> PastAttempt:
    failure = attempt.recognized()
    return PastAttempt(
        attempt.attempt,
        attempt.timestamp,
        attempt.action[:MOST_KEPT],
        error_type(failure),
        (failure.excerpt or failure.said if failure else attempt.error or "")[:MOST_KEPT],
        attempt.agent or attempt.model or "",
    )


def _numbered(one: PastAttempt, number: int) -> PastAttempt:
    return PastAttempt(**{**asdict(one), "attempt_number": number})


def _recovered(raw: Mapping[str, Any]) -> str:
    inner = raw.get("task_data")
    said = raw.get("recovered") or (inner.get("recovered") if isinstance(inner, Mapping) else None)
    return _text(said.get("reason")) if isinstance(said, Mapping) else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Any, otherwise: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return otherwise
    return int(value) if value >= 0 else otherwise

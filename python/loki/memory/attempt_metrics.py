"""What the attempts of a task amount to: figures per attempt and per execution, pure.

An execution is one pass of the closed loop over a task, from its begin to its end; interrupted or
paused and gone on with, it is still the same. docs/design/history.md says what each figure means,
and `loki.memory.summary` adds them up over many tasks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from loki.base.time import moment
from loki.memory.attempt import Attempt
from loki.memory.history import read_attempts
from loki.memory.strategy_use import Use, counts, uses
from loki.memory.task_record import TaskRecord

ENDED = frozenset({"success", "failed", "escalated", "unverified"})
"""Statuses that end an execution; after any other it may go on."""


@dataclass(frozen=True, slots=True)
class AttemptMetrics:
    """Figures of one attempt.

    Attributes:
        attempt_number: in the task's life, 1 or more.
        duration_ms: from asking the agent to the end of the checks.
        pattern_matched: id of its failure's pattern, or None.
        strategy_used: in answer to its failure, or None.
        success: every check passed.
        counts: it says something about the work: neither infrastructure's failure nor interrupted.
        validation_passed: None where VALIDATE did not take place.
        validation_gates_run: how many gates ran.
        validation_violations: how many violations they found, advisory ones included.
    """

    attempt_number: int
    duration_ms: int
    pattern_matched: str | None
    strategy_used: str | None
    success: bool
    counts: bool
    validation_passed: bool | None
    validation_gates_run: int
    validation_violations: int


@dataclass(frozen=True, slots=True)
class ExecutionMetrics:
    """Figures of one execution; only attempts that count are in them, except where it says so.

    Attributes:
        task, title: whose it is.
        execution: its number in the task's life, 1 or more.
        began, ended: ISO 8601 UTC: begin of its first attempt, end of what is known of it.
        final_status: success, failed, escalated or unverified; interrupted, paused or running where
            it may go on.
        reason: why it ended, in a sentence, or "".
        page: the dead-letter or escalation page below ``.loki/``, or None.
        is_dead_letter: it failed and was not only out of budget.
        total_attempts: attempts made.
        infrastructure_attempts: those that infrastructure failed; not among the total.
        time_to_success_ms: from the first attempt's begin to the end of the one that succeeded,
            waits and pauses included; None where none did.
        patterns_encountered, strategies_used, files_modified: each once, in order.
        uses: every strategy used, and what became of it.
        pre_validation_runs: how often VALIDATE took place.
        pre_validation_passed: how often it passed.
        regression_checks_run, regression_checks_skipped: how often.
        regressions_detected: tests that passed and then did not, over all checks.
        regressions_auto_fixed: those of them that a later attempt mended.
        tokens, cost: of all attempts, also those that do not count.
    """

    task: str
    title: str
    execution: int
    began: str
    ended: str
    final_status: str
    reason: str
    page: str | None
    is_dead_letter: bool
    total_attempts: int
    infrastructure_attempts: int
    time_to_success_ms: int | None
    patterns_encountered: tuple[str, ...]
    strategies_used: tuple[str, ...]
    files_modified: tuple[str, ...]
    uses: tuple[Use, ...]
    pre_validation_runs: int
    pre_validation_passed: int
    regression_checks_run: int
    regression_checks_skipped: int
    regressions_detected: int
    regressions_auto_fixed: int
    tokens: int
    cost: float

    @property
    def has_ended(self) -> bool:
        """It will not go on."""
        return self.final_status in ENDED

    @property
    def had_work(self) -> bool:
        """Something was to be done: not every check passed before the first attempt."""
        return self.total_attempts > 0 or self.final_status != "success"


def measure_attempt(attempt: Attempt) -> AttemptMetrics:
    """The figures of one attempt.

    Example:
        >>> measure_attempt(Attempt(1, "2026-04-04T10:15:30.000Z", "", "success")).success
        True
    """
    validation = _validation(attempt)
    return AttemptMetrics(
        attempt.attempt,
        int(attempt.duration_ms),
        attempt.pattern_matched,
        attempt.strategy_used,
        attempt.result == "success",
        counts(attempt),
        None if validation is None else bool(validation.get("passed")),
        0 if validation is None else len(_list(validation, "gates")),
        0 if validation is None else len(_list(validation, "violations")),
    )


def executions(
    task: str, log: Iterable[Mapping[str, Any]], record: TaskRecord | None = None
) -> Iterator[tuple[ExecutionMetrics, list[Attempt]]]:
    """The executions of a task, each with its attempts, oldest first.

    Args:
        task: id of the task.
        log: the records of its log, oldest first; read once. What tools printed is let go of at
            once, so that memory holds a task's attempts, not their outputs.
        record: what is kept of it; for the title, and where the log does not say how it ended.
    """
    ends: dict[int, Mapping[str, Any]] = {}
    latest = record.execution if record else 0
    if record and record.outcome:
        ends[latest] = {"outcome": record.outcome.to_dict(), "at": record.updated_at}
    grouped: dict[int, list[Attempt]] = {}
    for attempt in read_attempts(_light(log, ends), f"tasks/{task}/attempts.jsonl"):
        grouped.setdefault(attempt.execution, []).append(attempt)
    if record and record.outcome is None and _status_of(ends.get(latest)) not in ENDED:
        ends.pop(latest, None)  # paused or interrupted, and gone on with since
    newest = max([*grouped, *ends, latest])
    title = (record.title if record else "") or task
    for number in sorted({*grouped, *ends}):
        attempts = grouped.get(number, [])
        end = ends.get(number) or {}
        yield measure(task, title, number, attempts, end, is_newest=number == newest), attempts


def measure(
    task: str,
    title: str,
    execution: int,
    attempts: Sequence[Attempt],
    end: Mapping[str, Any],
    *,
    is_newest: bool = True,
) -> ExecutionMetrics:
    """The figures of one execution.

    Args:
        task, title, execution: whose they are.
        attempts: its attempts, oldest first.
        end: how it ended: ``outcome`` and ``at``; empty where nobody noted it, as before a crash.
        is_newest: no later execution of the task was begun: this one may be running.
    """
    found = end.get("outcome")
    outcome: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
    made = [attempt for attempt in attempts if counts(attempt)]
    status = _status_of(end) or _status(attempts, is_newest)
    page = outcome.get("page")
    used = tuple(uses(attempts))
    checked = [v for v in map(_validation, made) if v is not None]
    run, skipped, detected, fixed = _regressions(made)
    letter = status == "failed" and (page is not None if outcome else True)
    return ExecutionMetrics(
        task=task,
        title=title,
        execution=execution,
        began=attempts[0].timestamp if attempts else str(end.get("at") or ""),
        ended=str(end.get("at") or (attempts[-1].timestamp if attempts else "")),
        final_status=status,
        reason=str(outcome.get("reason") or _reason(attempts)),
        page=page if isinstance(page, str) else None,
        is_dead_letter=letter,
        total_attempts=len(made),
        infrastructure_attempts=sum(attempt.infrastructure for attempt in attempts),
        time_to_success_ms=_time_to_success(attempts),
        patterns_encountered=_once(a.pattern_matched for a in made),
        strategies_used=_once(use.strategy for use in used),
        files_modified=_once(path for a in attempts for path in a.files_modified),
        uses=used,
        pre_validation_runs=len(checked),
        pre_validation_passed=sum(bool(validation.get("passed")) for validation in checked),
        regression_checks_run=run,
        regression_checks_skipped=skipped,
        regressions_detected=detected,
        regressions_auto_fixed=fixed,
        tokens=sum(int(attempt.tokens or 0) for attempt in attempts),
        cost=sum(float(attempt.cost or 0) for attempt in attempts),
    )


def catches(validation: Mapping[str, Any]) -> list[str]:
    """Names of the gates that blocked, each once; none where it passed.

    Args:
        validation: what is kept of it. Its violations are objects with ``gate`` and ``severity``; older
            logs have sentences that end with the gate's name in brackets.

    Example:
        >>> catches({"passed": False, "violations": ["a.py:1: invalid syntax [syntax_check]"]})
        ['syntax_check']
    """
    if validation.get("passed"):
        return []
    found = []
    for violation in _list(validation, "violations"):
        if isinstance(violation, Mapping):
            if violation.get("severity", "blocking") == "blocking":
                found.append(str(violation.get("gate")))
        elif named := re.search(r"\[(\w+)\]\s*$", str(violation)):
            found.append(named[1])
    return list(dict.fromkeys(found)) or [str(g) for g in _list(validation, "gates")[-1:]]


_NEEDED = frozenset(
    (
        *("attempt", "timestamp", "action", "result", "error", "pattern_matched", "strategy_used"),
        *("duration_ms", "files_modified", "execution", "phase", "infrastructure", "failure"),
        *("fingerprint", "recognizer_version", "decision", "checks", "validation", "regression"),
        *("signature", "confidence", "agent", "model", "tokens", "cost", "delay_ms"),
        *("branch", "commit", "amends"),
    )
)
_BULKY = frozenset({"excerpt", "matches"})
"""Of a failure: what two of them are not compared by, but for the best match."""


def _slim_check(check: Any) -> Any:
    if not isinstance(check, dict):
        return check
    return {name: check[name] for name in ("name", "passed", "duration_ms") if name in check}


def _light(
    log: Iterable[Mapping[str, Any]], ends: dict[int, Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """The records without what no figure needs; where executions end is noted in ``ends``."""
    for record in log:
        if "ends" in record:
            if isinstance(record["ends"], int):
                ends[record["ends"]] = record
            continue
        slim = {name: value for name, value in record.items() if name in _NEEDED}
        failure, checks = record.get("failure"), record.get("checks")
        if isinstance(failure, dict):
            slim["failure"] = {k: v for k, v in failure.items() if k not in _BULKY}
            if matches := _list(failure, "matches"):
                slim["failure"]["matches"] = matches[:1]
        if isinstance(checks, list):
            slim["checks"] = [_slim_check(check) for check in checks]
        yield slim


def _status_of(end: Mapping[str, Any] | None) -> str:
    outcome = (end or {}).get("outcome")
    return str(outcome.get("status") or "") if isinstance(outcome, Mapping) else ""


def _status(attempts: Sequence[Attempt], is_newest: bool) -> str:
    """How an execution ended that nobody noted the end of, as far as its last attempt tells."""
    if not attempts:
        return "running" if is_newest else "interrupted"
    last = attempts[-1]
    if last.result in {"success", "unverified"}:
        return last.result
    action = (last.decision or {}).get("action")
    by_action = {"escalate": "escalated", "dead_letter": "failed", "pause": "paused"}
    if action in by_action:
        return by_action[action]
    return "running" if is_newest and last.result != "interrupted" else "interrupted"


def _reason(attempts: Sequence[Attempt]) -> str:
    decision = attempts[-1].decision if attempts else None
    return str((decision or {}).get("reason") or "")


def _time_to_success(attempts: Sequence[Attempt]) -> int | None:
    won = next((attempt for attempt in attempts if attempt.result == "success"), None)
    if won is None:
        return None
    begin, last = moment(attempts[0].timestamp), moment(won.timestamp)
    if begin is None or last is None:
        return None
    return max(0, (last - begin) // timedelta(milliseconds=1)) + int(won.duration_ms)


def _regressions(made: Sequence[Attempt]) -> tuple[int, int, int, int]:
    """(checks run, checks skipped, regressions found, regressions mended later)."""
    run = skipped = detected = fixed = pending = 0
    for attempt in made:
        said = attempt.regression
        if not said:
            continue
        count = said.get("regressions")
        found = count if isinstance(count, int) else 0
        run += bool(said.get("ran"))
        skipped += bool(said.get("skipped"))
        detected += found
        if said.get("fixed"):
            fixed += max(0, pending - found)
        if said.get("ran"):
            pending = found
    return run, skipped, detected, fixed


def _validation(attempt: Attempt) -> Mapping[str, Any] | None:
    """What VALIDATE said; None where it did not take place."""
    validation = attempt.validation
    return None if not validation or validation.get("skipped") else validation


def _list(data: Mapping[str, Any], key: str) -> list[Any]:
    value = data.get(key)
    return value if isinstance(value, list) else []


def _once(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))

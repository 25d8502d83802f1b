"""What attempts amount to: what became of each strategy, figures of an execution and over many; pure.

A use of a strategy is *cured* where the failure was not seen again in the execution and a later attempt
showed that it is gone: that attempt got as far as the phase that had failed, and the check that had failed
passed or failed otherwise. It is *not cured* where the failure was seen again, also later (A-B-A).
Else nobody knows: the execution ended, or no later attempt came that far.

An execution is one pass of the closed loop over a task, from its begin to its end; interrupted or
paused and gone on with, it is still the same. docs/design/history.md says what each figure means.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any

from loki.base.time import moment
from loki.memory.attempt import Attempt, read_attempts
from loki.memory.task_record import TaskRecord
from loki.recognition.failure import RECOGNIZER_VERSION, Failure
from loki.recognition.grouping import FailureIndex


def repeats(attempts: Iterable[tuple[Hashable, Hashable | None]]) -> Iterator[bool]:
    """Whether each attempt repeats a failure.

    Equal fingerprints count, and they alone: failures that `loki.same_failure` calls the same though
    their texts differ a little are left out, so that the answer is a lower bound, and quick.

    Args:
        attempts: of each, in order, its execution and the fingerprint of its failure; None where it
            did not fail, or where infrastructure failed it.

    Example:
        >>> list(repeats([("a", "f1"), ("a", "f2"), ("a", "f1"), ("b", "f1"), ("a", None)]))
        [False, False, True, False, False]
    """
    seen: set[tuple[Hashable, Hashable]] = set()
    for execution, fingerprint in attempts:
        if fingerprint is None:
            yield False
            continue
        yield (execution, fingerprint) in seen
        seen.add((execution, fingerprint))


# --- What became of the strategies of an execution ----------------------------------------------------

PHASES = ("generate", "validate", "execute", "evaluate")
"""In their order: an attempt that failed in one says nothing about those behind it."""


@dataclass(frozen=True, slots=True)
class Use:
    """One strategy, used once.

    Attributes:
        strategy: its name.
        attempt: number of the attempt whose failure it answered.
        pattern: id of that failure's pattern, or None.
        cured: whether it mended the failure; None where nobody knows.
    """

    strategy: str
    attempt: int
    pattern: str | None
    cured: bool | None


def counts(attempt: Attempt) -> bool:
    """Whether an attempt says something about the work: it was made to its end, on sound ground.

    Attempts that infrastructure failed or somebody interrupted do not count.
    """
    return not attempt.infrastructure and attempt.result in {"success", "failed", "unverified"}


def uses(attempts: Iterable[Attempt]) -> list[Use]:
    """The strategies used in one execution, in order, and what became of each.

    Args:
        attempts: of one execution, oldest first.

    Example:
        >>> when, failed = "2026-04-04T10:15:30.000Z", {"error": "x is not defined"}
        >>> one = Attempt(1, when, "", "failed", **failed, strategy_used="context_expand")
        >>> two = Attempt(2, when, "", "failed", **failed, strategy_used="analyze_then_fix")
        >>> [(use.strategy, use.cured) for use in uses([one, two, Attempt(3, when, "", "success")])]
        [('context_expand', False), ('analyze_then_fix', True)]
    """
    groups = _Groups()
    done: list[tuple[Attempt, bool | None]] = []
    open_: dict[object, Attempt] = {}  # by failure: used, and nobody knows yet
    gone: dict[object, Attempt] = {}  # by failure: shown to be gone
    for attempt in attempts:
        if not counts(attempt) or attempt.result == "unverified":
            continue
        seen = groups.of(attempt) if attempt.result == "failed" else None
        if seen is not None and (used := open_.pop(seen, None) or gone.pop(seen, None)):
            done.append((used, False))
        for failure in [f for f, used in open_.items() if _shows_gone(used, attempt)]:
            gone[failure] = open_.pop(failure)
        if seen is not None and attempt.strategy_used:
            open_[seen] = attempt
    done += [(used, True) for used in gone.values()]
    done += [(used, None) for used in open_.values()]
    return [
        Use(str(used.strategy_used), used.attempt, used.pattern_matched, cured)
        for used, cured in sorted(done, key=lambda pair: pair[0].attempt)
    ]


def _shows_gone(failed: Attempt, later: Attempt) -> bool:
    """Whether a later attempt, which failed otherwise or not at all, got past a failure."""
    if later.result == "success":
        return True
    if _rank(later) != _rank(failed):
        return _rank(later) > _rank(failed)
    if failed.phase == "validate":  # a gate that blocks keeps the others from running
        return _gates(failed)[-1:] == [] or _gates(failed)[-1] in _gates(later)
    check = _failed_check(failed)
    if check is None or check == _failed_check(later):
        return True
    return any(one.passed for one in later.checks if one.name == check)


def _rank(attempt: Attempt) -> int:
    return PHASES.index(attempt.phase) if attempt.phase in PHASES else len(PHASES)


def _failed_check(attempt: Attempt) -> str | None:
    """The check whose failure was analyzed: the first that failed."""
    return next((check.name for check in attempt.checks if not check.passed), None)


def _gates(attempt: Attempt) -> list[str]:
    gates = (attempt.validation or {}).get("gates")
    return [str(gate) for gate in gates] if isinstance(gates, list) else []


class _Groups:
    """Which failures of an execution are the same one.

    Most are told by their fingerprints alone; failures are only built where two of these differ.
    """

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._first: Attempt | None = None
        self._index: FailureIndex | None = None

    def of(self, attempt: Attempt) -> object:
        """What is equal for the same failures, and for them alone."""
        fingerprint = attempt.fingerprint or ""
        is_known = fingerprint in self._known
        if is_known and attempt.recognizer_version == RECOGNIZER_VERSION:
            return self._known[fingerprint]
        if attempt.failure and self._first is None:
            self._first = attempt
            if attempt.recognizer_version == RECOGNIZER_VERSION:
                self._known[fingerprint] = 0
            return 0
        failure = attempt.recognized()
        if failure is None:  # a record without the failure's fields
            return ("error", attempt.pattern_matched, attempt.error)
        return self._known.setdefault(failure.fingerprint, self._group(failure))

    def _group(self, failure: Failure) -> int:
        if self._index is None:
            self._index = FailureIndex()
            first = self._first.recognized() if self._first else None
            self._index.add(first or Failure.of("a record that cannot be read"), "")
        return self._index.add(failure, "")


def chain(used: Sequence[Use], longest: int = 5) -> tuple[str, ...]:
    """The strategies that followed one another, the last of them; empty where it was one alone.

    Args:
        used: of one execution, in order.
        longest: most strategies to name, the last ones. Chosen, not measured.

    Example:
        >>> chain([Use("auto_fix", 1, None, False), Use("context_expand", 2, None, False)])
        ('auto_fix', 'context_expand')
    """
    return tuple(use.strategy for use in used)[-longest:] if len(used) > 1 else ()


# --- Figures per attempt and per execution ------------------------------------------------------------

ENDED = frozenset({"success", "failed", "escalated", "unverified"})
"""Statuses that end an execution; after any other it may go on."""


@dataclass(frozen=True, slots=True)
class ExecutionMetrics:
    """Figures of one execution; only attempts that count are in them, except where it says so.

    Attributes:
        task, title: whose it is.
        execution: its number in the task's life, 1 or more.
        ended: end of what is known of it, ISO 8601 UTC.
        final_status: success, failed, escalated or unverified; interrupted, paused or running where
            it may go on.
        reason: why it ended, in a sentence, or "".
        page: the dead-letter or escalation page below ``.loki/``, or None.
        is_dead_letter: it failed and was not only out of budget.
        total_attempts: attempts made.
        time_to_success_ms: from the first attempt's begin to the end of the one that succeeded,
            waits and pauses included; None where none did.
        patterns_encountered, strategies_used: each once, in order.
        uses: every strategy used, and what became of it.
        pre_validation_runs: how often VALIDATE took place.
        pre_validation_passed: how often it passed.
        regression_checks_run, regression_checks_skipped: how often.
        regressions_detected: tests that passed and then did not, over all checks.
        regressions_auto_fixed: those of them that a later attempt mended.
    """

    task: str
    title: str
    execution: int
    ended: str
    final_status: str
    reason: str
    page: str | None
    is_dead_letter: bool
    total_attempts: int
    time_to_success_ms: int | None
    patterns_encountered: tuple[str, ...]
    strategies_used: tuple[str, ...]
    uses: tuple[Use, ...]
    pre_validation_runs: int
    pre_validation_passed: int
    regression_checks_run: int
    regression_checks_skipped: int
    regressions_detected: int
    regressions_auto_fixed: int

    @property
    def has_ended(self) -> bool:
        """It will not go on."""
        return self.final_status in ENDED

    @property
    def had_work(self) -> bool:
        """Something was to be done: not every check passed before the first attempt."""
        return self.total_attempts > 0 or self.final_status != "success"


def validation_figures(attempt: Attempt) -> dict[str, Any]:
    """What VALIDATE said of an attempt: whether it passed, None where it did not take place; how many
    gates ran; and how many violations they found, advisory ones included.

    Example:
        >>> validation_figures(Attempt(1, "2026-04-04T10:15:30.000Z", "", "success"))
        {'validation_passed': None, 'validation_gates_run': 0, 'validation_violations': 0}
    """
    validation = _validation(attempt)
    return {
        "validation_passed": None if validation is None else bool(validation.get("passed")),
        "validation_gates_run": len(_list(validation or {}, "gates")),
        "validation_violations": len(_list(validation or {}, "violations")),
    }


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
        ended=str(end.get("at") or (attempts[-1].timestamp if attempts else "")),
        final_status=status,
        reason=str(outcome.get("reason") or _reason(attempts)),
        page=page if isinstance(page, str) else None,
        is_dead_letter=letter,
        total_attempts=len(made),
        time_to_success_ms=_time_to_success(attempts),
        patterns_encountered=_once(a.pattern_matched for a in made),
        strategies_used=_once(use.strategy for use in used),
        uses=used,
        pre_validation_runs=len(checked),
        pre_validation_passed=sum(bool(validation.get("passed")) for validation in checked),
        regression_checks_run=run,
        regression_checks_skipped=skipped,
        regressions_detected=detected,
        regressions_auto_fixed=fixed,
    )


def catches(validation: Mapping[str, Any]) -> list[str]:
    """Names of the gates that blocked, each once; none where it passed.

    Args:
        validation: what is kept of it.

    Example:
        >>> violation = {"gate": "syntax_check", "severity": "blocking"}
        >>> catches({"passed": False, "violations": [violation]})
        ['syntax_check']
    """
    if validation.get("passed"):
        return []
    found = (
        str(violation.get("gate"))
        for violation in _list(validation, "violations")
        if isinstance(violation, Mapping) and violation.get("severity") == "blocking"
    )
    return list(dict.fromkeys(found)) or [str(g) for g in _list(validation, "gates")[-1:]]


_NOT_NEEDED = frozenset({"commands", "findings", "progress", "agent_confidence", "other"})
_NEEDED = frozenset({"amends", *(one.name for one in fields(Attempt))}) - _NOT_NEEDED
"""Of a record; what a newer version or another program wrote may be large."""

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


# --- Figures over many executions, in bounded memory --------------------------------------------------

ENOUGH_USES = 10
"""Uses of known outcome from which on a strategy is judged, as the specification has it."""

WEAK, RELIABLE = 0.3, 0.8
"""Success rates under and over which a strategy is flagged and called reliable; the same source."""

MOST_PAGES = 50
"""Dead letters, and escalations, that are named: the newest. Chosen, not measured."""

NO_PATTERN = "none"
"""Stands for the pattern of failures that matched none."""


@dataclass(slots=True)
class PatternTotals:
    """What became of the executions that met a pattern.

    Attributes:
        failures: attempts that failed so.
        executions: ended executions that met it.
        successes: those of them that succeeded.
        attempts: all attempts of these executions.
    """

    failures: int = 0
    executions: int = 0
    successes: int = 0
    attempts: int = 0

    @property
    def success_rate(self) -> float | None:
        """Share of the ended executions that succeeded; None where none has ended."""
        return _share(self.successes, self.executions)

    @property
    def mean_attempts(self) -> float | None:
        """Mean attempts of the ended executions."""
        return _share(self.attempts, self.executions)


@dataclass(slots=True)
class StrategyTotals:
    """What became of a strategy's uses.

    Attributes:
        uses: all of them.
        cured, not_cured: those that did and did not mend the failure; of the others nobody knows.
        executions, successes, attempts: of ended executions that used it, as for patterns.
    """

    uses: int = 0
    cured: int = 0
    not_cured: int = 0
    executions: int = 0
    successes: int = 0
    attempts: int = 0

    @property
    def success_rate(self) -> float | None:
        """Share of the uses of known outcome that mended their failure."""
        return _share(self.cured, self.cured + self.not_cured)

    @property
    def task_success_rate(self) -> float | None:
        """Share of the ended executions that used it and succeeded."""
        return _share(self.successes, self.executions)

    @property
    def mean_attempts(self) -> float | None:
        """Mean attempts of the ended executions that used it."""
        return _share(self.attempts, self.executions)

    @property
    def flag(self) -> str:
        """``"weak"``, ``"reliable"`` or "": judged from ten uses of known outcome on.

        Example:
            >>> StrategyTotals(uses=10, cured=2, not_cured=8).flag
            'weak'
        """
        rate = self.success_rate
        if rate is None or self.cured + self.not_cured < ENOUGH_USES:
            return ""
        return "weak" if rate < WEAK else "reliable" if rate > RELIABLE else ""


@dataclass(slots=True)
class ChainTotals:
    """Executions in which the same strategies followed one another: how many ended, how many failed."""

    executions: int = 0
    failures: int = 0


@dataclass(slots=True)
class CheckTotals:
    """What a check took: runs, those that failed, milliseconds in all and at most."""

    runs: int = 0
    failures: int = 0
    total_ms: int = 0
    most_ms: int = 0

    @property
    def mean_ms(self) -> float:
        """Mean milliseconds of a run."""
        return self.total_ms / self.runs if self.runs else 0.0


@dataclass(slots=True)
class AgentTotals:
    """What an agent, or one of its models, was asked and took."""

    attempts: int = 0
    tokens: int = 0
    cost: float = 0.0


@dataclass(slots=True)
class Ending:
    """An execution that a person should know of."""

    at: str
    task: str
    title: str
    reason: str
    page: str | None


@dataclass
class Summary:
    """Figures over the executions that were added.

    Attributes:
        statuses: executions by final status, those that had nothing to do left out.
        nothing_to_do: executions whose checks passed before the first attempt.
        tasks: how many tasks.
        attempts: by result, infrastructure's failures as ``infrastructure``.
        hours: the same by hour of their begin (``2026-04-04T10``).
        hourly_tokens: by hour.
        attempts_to_success: attempts of the executions that succeeded; with `statuses` their mean.
        times_to_success: milliseconds in all, and of how many executions.
        failures: attempts that failed and count.
        caught: those of them that VALIDATE caught before anything was written.
        catches: by gate.
        dead_letters, escalations: the newest, newest first; `statuses` and ``dead_letter_count`` count all.
    """

    statuses: Counter[str] = field(default_factory=Counter)
    nothing_to_do: int = 0
    tasks: int = 0
    attempts: Counter[str] = field(default_factory=Counter)
    hours: dict[str, Counter[str]] = field(default_factory=dict)
    hourly_tokens: Counter[str] = field(default_factory=Counter)
    patterns: dict[str, PatternTotals] = field(default_factory=dict)
    strategies: dict[str, StrategyTotals] = field(default_factory=dict)
    chains: dict[tuple[str, ...], ChainTotals] = field(default_factory=dict)
    checks: dict[str, CheckTotals] = field(default_factory=dict)
    agents: dict[str, AgentTotals] = field(default_factory=dict)
    infrastructure: Counter[str] = field(default_factory=Counter)
    waited_ms: int = 0
    attempts_to_success: int = 0
    times_to_success: tuple[int, int] = (0, 0)
    validation_runs: int = 0
    validation_passed: int = 0
    failures: int = 0
    caught: int = 0
    catches: Counter[str] = field(default_factory=Counter)
    regression_checks_run: int = 0
    regression_checks_skipped: int = 0
    regressions_detected: int = 0
    regressions_auto_fixed: int = 0
    dead_letter_count: int = 0
    first: str = ""
    last: str = ""
    _pages: dict[str, list[tuple[str, str, int, Ending]]] = field(default_factory=dict)
    _last_task: str | None = None

    def add(self, execution: ExecutionMetrics, attempts: Sequence[Attempt]) -> None:
        """Add an execution and its attempts; those of one task come one after the other."""
        if execution.task != self._last_task:
            self.tasks, self._last_task = self.tasks + 1, execution.task
        for attempt in attempts:
            self._add_attempt(attempt)
        if not execution.had_work:
            self.nothing_to_do += 1
            return
        self.statuses[execution.final_status] += 1
        self.validation_runs += execution.pre_validation_runs
        self.validation_passed += execution.pre_validation_passed
        self.regression_checks_run += execution.regression_checks_run
        self.regression_checks_skipped += execution.regression_checks_skipped
        self.regressions_detected += execution.regressions_detected
        self.regressions_auto_fixed += execution.regressions_auto_fixed
        for use in execution.uses:
            totals = self.strategies.setdefault(use.strategy, StrategyTotals())
            totals.uses += 1
            totals.cured += use.cured is True
            totals.not_cured += use.cured is False
        if execution.has_ended:
            unmatched = any(_failed(a) and not a.pattern_matched for a in attempts)
            met = (*execution.patterns_encountered, *([NO_PATTERN] if unmatched else []))
            self._add_end(execution, met)

    def _add_end(self, execution: ExecutionMetrics, patterns: Sequence[str]) -> None:
        won = execution.final_status == "success"
        of: list[PatternTotals | StrategyTotals] = [
            self.patterns.setdefault(name, PatternTotals()) for name in patterns
        ]
        of += [self.strategies[name] for name in execution.strategies_used]
        for totals in of:
            totals.executions += 1
            totals.successes += won
            totals.attempts += execution.total_attempts
        if links := chain(execution.uses):
            followed = self.chains.setdefault(links, ChainTotals())
            followed.executions += 1
            followed.failures += execution.final_status in {"failed", "escalated"}
        if won:
            self.attempts_to_success += execution.total_attempts
        if execution.time_to_success_ms is not None:
            total, count = self.times_to_success
            self.times_to_success = total + execution.time_to_success_ms, count + 1
        if execution.is_dead_letter:
            self.dead_letter_count += 1
            self._remember("dead letter", execution)
        elif execution.final_status == "escalated":
            self._remember("escalation", execution)

    def _add_attempt(self, attempt: Attempt) -> None:
        result = "infrastructure" if attempt.infrastructure else attempt.result
        hour = attempt.timestamp[:13]
        self.attempts[result] += 1
        self.hours.setdefault(hour, Counter())[result] += 1
        self.first = min(self.first or attempt.timestamp, attempt.timestamp)
        self.last = max(self.last, attempt.timestamp)
        self.waited_ms += int(attempt.delay_ms)
        name = " ".join(part for part in (attempt.agent, attempt.model or "") if part)
        agent = self.agents.setdefault(name, AgentTotals())
        agent.attempts += 1
        if attempt.tokens:
            agent.tokens += int(attempt.tokens)
            self.hourly_tokens[hour] += int(attempt.tokens)
        if attempt.cost:
            agent.cost += float(attempt.cost)
        for check in attempt.checks:
            took = self.checks.setdefault(check.name, CheckTotals())
            took.runs += 1
            took.failures += not check.passed
            took.total_ms += int(check.duration_ms)
            took.most_ms = max(took.most_ms, int(check.duration_ms))
        if attempt.infrastructure:
            self.infrastructure[attempt.pattern_matched or NO_PATTERN] += 1
        elif _failed(attempt):
            self._add_failure(attempt)

    def _add_failure(self, attempt: Attempt) -> None:
        self.failures += 1
        pattern = self.patterns.setdefault(attempt.pattern_matched or NO_PATTERN, PatternTotals())
        pattern.failures += 1
        if attempt.phase == "validate" and attempt.validation:
            self.caught += 1
            self.catches.update(catches(attempt.validation))

    def _remember(self, kind: str, execution: ExecutionMetrics) -> None:
        heap = self._pages.setdefault(kind, [])
        ending = Ending(
            execution.ended, execution.task, execution.title, execution.reason, execution.page
        )
        heapq.heappush(heap, (execution.ended, execution.task, execution.execution, ending))
        if len(heap) > MOST_PAGES:
            heapq.heappop(heap)

    @property
    def dead_letters(self) -> list[Ending]:
        """The newest dead letters, newest first."""
        return self._newest("dead letter")

    @property
    def escalations(self) -> list[Ending]:
        """The newest escalations, newest first."""
        return self._newest("escalation")

    def _newest(self, kind: str) -> list[Ending]:
        return [ending for *_, ending in sorted(self._pages.get(kind, ()), reverse=True)]

    @property
    def ended(self) -> int:
        """Executions that had work to do and ended."""
        return sum(self.statuses[name] for name in ENDED)

    @property
    def success_rate(self) -> float | None:
        """Share of the ended executions that succeeded."""
        return _share(self.statuses["success"], self.ended)

    @property
    def escalation_rate(self) -> float | None:
        """Share of the ended executions that asked a person."""
        return _share(self.statuses["escalated"], self.ended)

    @property
    def dead_letter_rate(self) -> float | None:
        """Share of the ended executions that ran out of attempts."""
        return _share(self.dead_letter_count, self.ended)

    @property
    def pre_validation_catch_rate(self) -> float | None:
        """Share of the failed attempts that VALIDATE caught before anything was written."""
        return _share(self.caught, self.failures)

    @property
    def mean_attempts_to_success(self) -> float | None:
        """Mean attempts of the executions that succeeded."""
        return _share(self.attempts_to_success, self.statuses["success"])

    @property
    def mean_time_to_success_ms(self) -> float | None:
        """Mean milliseconds from the first attempt's begin to success."""
        return _share(*self.times_to_success)

    @property
    def chains_into_failure(self) -> list[tuple[tuple[str, ...], ChainTotals]]:
        """Strategies that followed one another into failure, the most frequent first."""
        found = [(links, totals) for links, totals in self.chains.items() if totals.failures]
        return sorted(found, key=lambda one: (-one[1].failures, one[1].executions, one[0]))


def _failed(attempt: Attempt) -> bool:
    return counts(attempt) and attempt.result == "failed"


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None

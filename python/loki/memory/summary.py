"""Figures over many executions, added up one by one: memory does not grow with their number.

docs/design/history.md says what each figure means.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from loki.memory.attempt import Attempt
from loki.memory.attempt_metrics import ExecutionMetrics, catches
from loki.memory.strategy_use import chain, counts

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
        hourly_tokens, hourly_cost: by hour.
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
    hourly_cost: dict[str, float] = field(default_factory=dict)
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
            self.hourly_cost[hour] = self.hourly_cost.get(hour, 0.0) + float(attempt.cost)
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
        return [ending for *_, ending in sorted(self._pages.get("dead letter", ()), reverse=True)]

    @property
    def escalations(self) -> list[Ending]:
        """The newest escalations, newest first."""
        return [ending for *_, ending in sorted(self._pages.get("escalation", ()), reverse=True)]

    @property
    def ended(self) -> int:
        """Executions that had work to do and ended."""
        names = ("success", "failed", "escalated", "unverified")
        return sum(self.statuses[name] for name in names)

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

"""Figures over many executions, held against a slow and obvious reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki.memory.attempt import Attempt
from loki.memory.attempt_metrics import (
    MOST_PAGES,
    ExecutionMetrics,
    StrategyTotals,
    Summary,
    measure,
)
from support.history import attempts

Measured = tuple[ExecutionMetrics, list[Attempt]]

STATUSES = ("success", "failed", "escalated", "unverified", "paused", "interrupted")


@st.composite
def measured(draw: st.DrawFn) -> list[Measured]:
    """Executions of some tasks, those of one task together."""
    found = []
    for task in range(draw(st.integers(0, 4))):
        for execution in range(1, draw(st.integers(1, 3)) + 1):
            made = draw(attempts(5))
            page = draw(st.sampled_from([None, "tasks/t/dead-letter-t.md"]))
            outcome = {"status": draw(st.sampled_from(STATUSES)), "page": page}
            end = {"outcome": outcome, "at": f"2026-04-0{execution}T00:00:00.000Z"}
            found.append((measure(f"t{task}", "Title", execution, made, end), made))
    return found


def added_up(executions: Iterable[Measured]) -> Summary:
    summary = Summary()
    for execution, made in executions:
        summary.add(execution, made)
    return summary


def share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


@given(measured())
def test_rates_are_as_by_counting(executions: list[Measured]) -> None:
    got = added_up(executions)
    worked = [e for e, _ in executions if e.total_attempts or e.final_status != "success"]
    ended = [
        e for e in worked if e.final_status in {"success", "failed", "escalated", "unverified"}
    ]
    won = [e for e in ended if e.final_status == "success"]
    assert got.tasks == len({e.task for e, _ in executions})
    assert got.nothing_to_do == len(executions) - len(worked)
    assert got.statuses == Counter(e.final_status for e in worked)
    assert got.ended == len(ended)
    assert got.success_rate == share(len(won), len(ended))
    assert got.escalation_rate == share(
        sum(e.final_status == "escalated" for e in ended), len(ended)
    )
    assert got.dead_letter_rate == share(sum(e.is_dead_letter for e in ended), len(ended))
    assert got.mean_attempts_to_success == mean([e.total_attempts for e in won])
    times = [e.time_to_success_ms for e in ended if e.time_to_success_ms is not None]
    assert got.mean_time_to_success_ms == mean(times)
    assert len(got.dead_letters) == got.dead_letter_count == sum(e.is_dead_letter for e in ended)
    assert [e.at for e in got.escalations] == sorted((e.at for e in got.escalations), reverse=True)


@given(measured())
def test_patterns_and_strategies_are_as_by_counting(executions: list[Measured]) -> None:
    got = added_up(executions)
    worked = [
        (e, made) for e, made in executions if e.total_attempts or e.final_status != "success"
    ]
    failures = [
        (e, a)
        for e, made in executions
        for a in made
        if a.result == "failed" and not a.infrastructure
    ]
    ended = [e for e, _ in worked if e.has_ended]
    named = {a.pattern_matched or "none" for _, a in failures}
    assert {name for name, totals in got.patterns.items() if totals.failures} == named
    for name, totals in got.patterns.items():
        assert totals.failures == sum((a.pattern_matched or "none") == name for _, a in failures)
        met = [
            e
            for e in ended
            if any(f is e and (a.pattern_matched or "none") == name for f, a in failures)
        ]
        assert totals.success_rate == share(sum(e.final_status == "success" for e in met), len(met))
        assert totals.mean_attempts == mean([e.total_attempts for e in met])
    every = [use for e, _ in worked for use in e.uses]
    assert set(got.strategies) == {use.strategy for use in every}
    for name, strategy in got.strategies.items():
        mine = [use.cured for use in every if use.strategy == name]
        assert (strategy.uses, strategy.cured) == (len(mine), mine.count(True))
        known = [cured for cured in mine if cured is not None]
        assert strategy.success_rate == share(known.count(True), len(known))
        of = [e for e in ended if any(use.strategy == name for use in e.uses)]
        assert strategy.task_success_rate == share(
            sum(e.final_status == "success" for e in of), len(of)
        )
        assert strategy.mean_attempts == mean([e.total_attempts for e in of])
    for links, chained in got.chains.items():
        of = [
            e for e in ended if len(e.uses) > 1 and tuple(u.strategy for u in e.uses[-5:]) == links
        ]
        assert chained.executions == len(of)
        assert chained.failures == sum(e.final_status in {"failed", "escalated"} for e in of)


@given(measured())
def test_attempts_are_as_by_counting(executions: list[Measured]) -> None:
    got = added_up(executions)
    every = [a for _, made in executions for a in made]
    named = ["infrastructure" if a.infrastructure else a.result for a in every]
    assert got.attempts == Counter(named)
    assert sum(got.hours.values(), Counter()) == got.attempts
    assert got.waited_ms == sum(a.delay_ms for a in every)
    assert sum(agent.tokens for agent in got.agents.values()) == sum(a.tokens or 0 for a in every)
    assert sum(agent.cost for agent in got.agents.values()) == sum(a.cost or 0 for a in every)
    failed = [a for a in every if a.result == "failed" and not a.infrastructure]
    caught = [a for a in failed if a.phase == "validate" and a.validation]
    assert got.pre_validation_catch_rate == share(len(caught), len(failed))
    assert sum(got.infrastructure.values()) == named.count("infrastructure")
    for name, check in got.checks.items():
        took = [c.duration_ms for a in every for c in a.checks if c.name == name]
        assert (check.runs, check.mean_ms, check.most_ms) == (len(took), mean(took), max(took))


@pytest.mark.parametrize(
    ("cured", "not_cured", "flag"),
    [
        (0, 9, ""),
        (2, 8, "weak"),
        (3, 7, ""),
        (8, 2, ""),
        (9, 1, "reliable"),
        (0, 0, ""),
    ],
)
def test_a_strategy_is_judged_from_ten_uses_on(cured: int, not_cured: int, flag: str) -> None:
    """Under 30 % weak, over 80 % reliable; exactly 30 % and 80 % are neither."""
    assert StrategyTotals(uses=50, cured=cured, not_cured=not_cured).flag == flag


def test_only_the_newest_endings_are_kept() -> None:
    summary = Summary()
    for number in range(MOST_PAGES + 20):
        outcome: dict[str, Any] = {"status": "escalated", "page": "escalations/x.md"}
        at = f"2026-04-04T{number // 60:02}:{number % 60:02}:00.000Z"
        summary.add(measure("t", "Title", number + 1, [], {"outcome": outcome, "at": at}), [])
    assert len(summary.escalations) == MOST_PAGES
    assert summary.statuses["escalated"] == MOST_PAGES + 20
    assert summary.escalations[0].at == "2026-04-04T01:09:00.000Z"

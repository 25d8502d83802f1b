"""What plots add up is what `loki report` says, and comes to the right figures."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from benchmarks.history import make
from loki import Workspace, analysis
from loki.analysis import aggregates
from loki.analysis.arrow import of_rows
from loki.analysis.tables import Tables
from loki.cli.report import summarize
from loki.memory.attempt_metrics import Summary

NOON = datetime(2026, 4, 4, 12, tzinfo=timezone.utc)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with some 400 attempts."""
    root = tmp_path_factory.mktemp("project")
    make(root, 400)
    return root


@pytest.fixture(scope="module")
def tables(project: Path) -> Tables:
    return analysis.history(project)


@pytest.fixture(scope="module")
def report(project: Path) -> Summary:
    """What `loki report` shows of it."""
    return summarize(Workspace(project))


def test_attempts_by_result_and_pattern_are_the_reports(tables: Tables, report: Summary) -> None:
    found = aggregates.outcomes(tables.attempts)
    assert found.results == report.attempts
    assert found.patterns == {name: p.failures for name, p in report.patterns.items() if p.failures}
    assert found.patterns.total() == report.failures > 100


def test_strategies_are_the_reports(tables: Tables, report: Summary) -> None:
    found = aggregates.strategy_uses(tables.strategies)
    assert len({pattern for pattern, _ in found}) > 3
    for name, totals in report.strategies.items():
        own = [cell for (_, strategy), cell in found.items() if strategy == name]
        assert sum(cell.uses for cell in own) == totals.uses
        assert sum(cell.cured for cell in own) == totals.cured
        assert sum(cell.not_cured for cell in own) == totals.not_cured


def test_cost_is_the_reports(tables: Tables, report: Summary) -> None:
    found = aggregates.costs(tables.attempts)
    assert found.unit == "USD"
    assert found.total == pytest.approx(sum(agent.cost for agent in report.agents.values()))
    by_time = [sum(parts) for parts in zip(*found.by_result.values(), strict=True)]
    assert sum(by_time) == pytest.approx(found.total)


def attempt(number: int, **values: Any) -> dict[str, Any]:
    plain = {"task": "t", "execution": 1, "attempt": number, "result": "failed"}
    told = {"signature": "a:py:x", "fingerprint": "f", "infrastructure": False}
    times = {"timestamp": NOON.isoformat(), "duration_ms": 1000, "delay_ms": 0}
    return {**plain, **told, **times, **values}


def of_attempts(*rows: dict[str, Any]) -> Any:
    return of_rows("attempts", rows)


def test_time_lost_is_that_of_repeats_with_their_waits() -> None:
    found = aggregates.time_lost(
        of_attempts(
            attempt(1),
            attempt(2, duration_ms=500, delay_ms=40),
            attempt(3, infrastructure=True, duration_ms=9000),
            attempt(4, task="u"),
            attempt(5, result="success", fingerprint=None, signature=None, duration_ms=7),
        )
    )
    assert (found.again_ms, found.again, found.total_ms) == (540, 1, 11547)
    assert found.signatures == {"a:py:x": aggregates.LostTime(first_ms=2000, again_ms=540, again=1)}


def test_without_costs_tokens_are_counted() -> None:
    found = aggregates.costs(of_attempts(attempt(1, tokens=5), attempt(2, tokens=None)))
    assert (found.unit, found.total, found.told, found.attempts) == ("tokens", 5.0, 1, 2)


def failure(minute: int, fingerprint: str | None, **values: Any) -> dict[str, Any]:
    at = (NOON + timedelta(minutes=minute)).isoformat()
    plain = {"source": "attempt", "timestamp": at, "fingerprint": fingerprint, "message": "boom"}
    return {**plain, "task": f"t{minute}", "path": "src/a.py", **values}


def test_failures_that_come_back_most_often_come_first() -> None:
    seen = [(0, "once"), (1, "b"), (62, "b"), (3, "a"), (4, "a"), (130, "a"), (5, None)]
    rows = of_rows("failures", [failure(minute, one) for minute, one in seen])
    ((one,), more) = aggregates.recurring(rows, 1)
    assert (one.times, one.tasks, one.where, more) == (3, 3, "src/a.py", 1)
    assert [count for _, count in one.seen] == [2, 1]


def test_a_breakers_last_state_lasts_until_the_last_thing_known() -> None:
    changes = [("api", "OPEN", 0), ("api", "HALF_OPEN", 5), ("other", "OPEN", 9)]
    rows = [
        {"breaker": name, "after": state, "timestamp": (NOON + timedelta(minutes=at)).isoformat()}
        for name, state, at in changes
    ]
    found = aggregates.stretches(of_rows("transitions", rows), NOON + timedelta(minutes=20))
    ends = [(one.state, (one.end - NOON).total_seconds() / 60) for one in found["api"]]
    assert ends == [("OPEN", 5), ("HALF_OPEN", 20)]
    assert list(found) == ["api", "other"]


def test_times_beyond_reason_are_left_out() -> None:
    rows = [attempt(1, timestamp="9999-12-31T23:59:59Z", tokens=4), attempt(2, timestamp=None)]
    assert aggregates.costs(of_attempts(*rows)).total == 4.0

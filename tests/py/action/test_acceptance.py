"""What comes after every check passes: regressions, and people who have to approve."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loki.action.checks.check import Check, CheckResult, Report
from loki.action.checks.results.suite_results import Broken, Comparison, Count
from loki.action.loop.loop_events import (
    Ask,
    CheckRegressions,
    Execute,
    Keep,
    Observe,
    RunChecks,
    Say,
    TakeBaseline,
)
from loki.action.loop.loop_state import State
from support.loop import CHECK, PASS, MakeFailure, World, change, fail, setting

BROKEN = Broken("pytest -q", "tests.test_till.test_sell", "tests/test_till.py", "failed")
REGRESSION = Comparison(
    (BROKEN,), {BROKEN.file: Count(2, 2, 1, 2)}, 2, chains={BROKEN.file: (BROKEN.file, "a.py")}
)
WELL = Comparison(compared=2)

APPROVAL = Check.of("approval: the text reads well")
PENDING = CheckResult(APPROVAL, False, None, 0.0)
APPROVED = CheckResult(APPROVAL, True, None, 0.0)


def both(judged: CheckResult) -> Report:
    return Report((PASS.results[0], judged))


def said(world: World) -> list[str]:
    return [
        e.message.removeprefix("task=t ") for e in world.of(Say) if "regression_check" in e.message
    ]


def test_a_regression_is_a_failure_of_the_attempt(make_failure: MakeFailure) -> None:
    world = World(
        [fail(make_failure()), PASS, PASS],
        [change(), change("x = 2\n")],
        comparisons=[REGRESSION, WELL],
    )
    world.run(State(setting()))
    assert (world.outcome.status, world.outcome.attempts) == ("success", 2)
    first, second = (effect.attempt for effect in world.of(Keep))
    assert (first.phase, first.pattern_matched, first.strategy_used) == (
        "regression",
        "regression-detected",
        "context_expand",
    )
    assert first.regression == {"ran": True, "skipped": False, "regressions": 1, "fixed": False}
    assert second.regression == {"ran": True, "skipped": False, "regressions": 0, "fixed": True}
    assert len(world.of(Observe)) == 1
    assert said(world) == [
        "regression_check=failed complexity=medium",
        "regression_check=passed complexity=medium",
    ]


def test_the_baseline_is_taken_before_a_validated_change_is_applied(
    make_failure: MakeFailure,
) -> None:
    world = World([fail(make_failure()), PASS], [change()])
    world.run(State(setting()))
    order = [
        type(e) for e in world.seen if isinstance(e, (TakeBaseline, Execute, CheckRegressions))
    ]
    assert order == [TakeBaseline, Execute, CheckRegressions]
    assert world.of(TakeBaseline)[0].paths == ("a.py",)


@pytest.mark.parametrize(
    ("complexity", "enabled", "runs"),
    [("low", ("medium", "high"), False), ("low", ("low",), True), ("high", (), False)],
)
def test_it_runs_for_some_complexities(
    make_failure: MakeFailure, complexity: str, enabled: tuple[str, ...], runs: bool
) -> None:
    world = World([fail(make_failure()), PASS], [change()])
    world.run(State(replace(setting(complexity=complexity), regression_for=enabled)))
    assert bool(world.of(CheckRegressions)) is bool(world.of(TakeBaseline)) is runs
    outcome = "passed" if runs else "skipped"
    assert said(world) == [f"regression_check={outcome} complexity={complexity}"]


def test_what_an_earlier_execution_broke_is_not_done(make_failure: MakeFailure) -> None:
    """Every check passes before the first attempt, but not every test that passed before the task."""
    world = World([PASS, PASS], [change()], comparisons=[REGRESSION, WELL])
    world.run(State(setting(), files=("a.py",)))
    (ask,) = world.of(Ask)
    assert ask.failure.match.pattern == "regression-detected"
    assert (world.outcome.status, world.outcome.attempts) == ("success", 1)


def test_a_missing_approval_is_asked_for_last(make_failure: MakeFailure) -> None:
    """After the regression check: nobody is asked about work that is not well."""
    world = World(
        [fail(make_failure()), both(PENDING), both(PENDING)],
        [change(), change("x = 2\n")],
        comparisons=[REGRESSION, WELL],
    )
    world.run(State(setting(checks=(CHECK, APPROVAL))))
    outcome = world.outcome
    assert (outcome.status, outcome.trigger, outcome.exit_code) == ("escalated", "approval", 3)
    assert outcome.awaiting == ("the text reads well",)
    assert [effect.attempt.result for effect in world.of(Keep)] == ["failed", "unverified"]
    assert "a person has to approve: the text reads well" in outcome.reason


def test_an_approval_that_has_been_given_ends_it_without_an_attempt() -> None:
    world = World([both(APPROVED)])
    world.run(State(setting(checks=(CHECK, APPROVAL)), worked=True, files=("a.py",)))
    assert (world.outcome.status, world.outcome.attempts) == ("success", 0)
    assert world.of(RunChecks) == [RunChecks(judge=True)]


def test_nothing_is_judged_before_there_is_work() -> None:
    world = World([both(PENDING), both(APPROVED)], [change()])
    world.run(State(setting(checks=(CHECK, APPROVAL))))
    assert [effect.judge for effect in world.of(RunChecks)] == [False, True]
    assert (world.outcome.status, world.outcome.attempts) == ("success", 1)

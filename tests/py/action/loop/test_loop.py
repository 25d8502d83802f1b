"""Whole runs of the closed loop's machine in a scripted world."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loki.action.checks.check import CheckResult, Report
from loki.action.gates.gate import BLOCKING, Validation, Violation
from loki.action.loop.loop_events import (
    AgentFailed,
    Amend,
    Ask,
    Edited,
    Execute,
    Executed,
    Finish,
    Interrupted,
    Keep,
    Malformed,
    Observe,
    RunStrategy,
    StrategyResult,
    Validate,
)
from loki.action.loop.loop_state import State
from loki.base.machine import Wait
from loki.decision.budget import Budget
from loki.recognition.failure import Failure
from loki.recognition.pattern import PatternSet
from support.loop import (
    CHECK,
    NOTHING,
    PASS,
    MakeFailure,
    World,
    change,
    fail,
    passing,
    setting,
)

# --- the baseline -------------------------------------------------------------------------------------


def test_a_bug_that_is_not_there_is_nothing_to_do() -> None:
    world = World([PASS])
    world.run(State(setting()))
    assert (world.outcome.status, world.outcome.attempts) == ("success", 0)
    assert not world.of(Ask)


@pytest.mark.parametrize("kind", ["feature", "refactor", "security", "config_change"])
def test_other_tasks_want_a_change_even_where_every_check_passes(kind: str) -> None:
    world = World([PASS, PASS], [change()])
    world.run(State(setting(kind=kind)))
    assert (world.outcome.status, world.outcome.attempts) == ("success", 1)


def test_the_first_briefing_shows_what_fails_now(make_failure: MakeFailure) -> None:
    failure = make_failure()
    world = World([fail(failure), PASS], [change()])
    world.run(State(setting()))
    (ask,) = world.of(Ask)
    assert ask.failure is failure
    assert ask.strategy is None


# --- whole runs -----------------------------------------------------------------------------------------


def test_success_at_the_second_attempt(make_failure: MakeFailure) -> None:
    failure = make_failure()
    world = World([fail(failure), fail(failure), PASS], [change("x = 1\n"), change("x = 2\n")])
    world.run(State(setting()))
    assert (world.outcome.status, world.outcome.attempts, world.outcome.files) == (
        "success",
        2,
        ("a.py",),
    )
    kept = [effect.attempt for effect in world.of(Keep)]
    assert [(k.attempt, k.result, k.strategy_used) for k in kept] == [
        (1, "failed", "analyze_then_fix"),
        (2, "success", None),
    ]
    assert world.of(Ask)[1].strategy == "analyze_then_fix"
    assert world.of(Ask)[1].context == "some lines"


def test_every_attempt_is_kept_before_the_next_begins(make_failure: MakeFailure) -> None:
    failure = make_failure()
    world = World([fail(failure)] * 3 + [PASS], [change(f"x = {n}\n") for n in range(3)])
    world.run(State(setting()))
    order = [type(effect) for effect in world.seen if isinstance(effect, (Ask, Keep))]
    assert order == [Ask, Keep] * 3


def test_retries_that_are_spent_end_as_a_dead_letter(make_failure: MakeFailure) -> None:
    failures = [
        make_failure(f"error in part {'abc'[n] * 30}", error_code=f"TS{n}001") for n in range(3)
    ]
    world = World(list(map(fail, failures)), [change("x = 1\n"), change("x = 2\n")])
    world.run(State(setting(max_retries=1)))
    assert (world.outcome.status, world.outcome.attempts) == ("failed", 2)
    assert world.outcome.page == "tasks/t/dead-letter-t.md"
    assert world.outcome.exit_code == 4


def test_a_violation_is_caught_before_anything_is_written(make_failure: MakeFailure) -> None:
    bad = Validation(("change_check",), (Violation("change_check", BLOCKING, "../x", "leads out"),))
    world = World([fail(make_failure()), PASS], [change(), change("x = 2\n")], [bad])
    world.run(State(setting()))
    assert world.outcome.status == "success"
    assert len(world.of(Execute)) == 1
    assert world.of(Ask)[1].failure.message == "../x: leads out"


def test_an_edit_conflict_is_a_failure_of_the_attempt(make_failure: MakeFailure) -> None:
    conflict = Executed((), (), make_failure("a.py: somebody changed it meanwhile"))
    world = World(
        [fail(make_failure()), PASS], [change(), change("x = 2\n")], executions=[conflict]
    )
    world.run(State(setting()))
    assert world.outcome.status == "success"
    assert [k.attempt.phase for k in world.of(Keep)] == ["execute", ""]


# --- what is refused ------------------------------------------------------------------------------------


def test_the_same_change_again_is_refused(make_failure: MakeFailure) -> None:
    world = World(
        [fail(make_failure()), fail(make_failure()), PASS], [change(), change(), change("y\n")]
    )
    world.run(State(setting()))
    assert [k.attempt.error for k in world.of(Keep)][1] == (
        "the agent proposed the same change again, and nothing else has changed since"
    )
    assert len(world.of(Validate)) == 2


def test_a_change_may_come_back_after_another_one(make_failure: MakeFailure) -> None:
    failure = make_failure()
    answers = [change("x = 1\n"), change("x = 2\n"), change("x = 1\n")]
    world = World([fail(failure)] * 3 + [PASS], answers)
    world.run(State(setting()))
    assert len(world.of(Validate)) == 3


def test_an_empty_answer_is_a_failure(make_failure: MakeFailure) -> None:
    world = World([fail(make_failure()), PASS], [NOTHING, change()])
    world.run(State(setting()))
    assert world.of(Keep)[0].attempt.error == "the agent proposed no change"


def test_what_is_not_mended_is_told_again_after_an_empty_answer(make_failure: MakeFailure) -> None:
    failure = make_failure()
    world = World([fail(failure)], [NOTHING] * 3)
    world.run(State(setting(max_retries=2)))
    first, second, third = world.of(Ask)
    assert (first.failure, first.to_mend) == (failure, None)
    assert {second.failure.error_code, third.failure.error_code} == {"empty-change"}
    assert second.to_mend is third.to_mend is failure
    assert {one.failure for one in world.of(RunStrategy)} == {failure}, (
        "strategies look at what failed"
    )


def test_a_task_ends_with_what_its_checks_said_not_with_an_empty_answer(
    make_failure: MakeFailure,
) -> None:
    failure = make_failure()
    world = World([fail(failure)] * 2, [change(), NOTHING])
    world.run(State(setting(max_retries=1)))
    assert world.outcome.status == "failed"
    (finished,) = world.of(Finish)
    assert finished.failure is failure
    assert finished.answer.error_code == "empty-change"


def test_an_answer_that_changes_nothing_arms_no_sign(make_failure: MakeFailure) -> None:
    failure = make_failure()
    world = World([fail(failure)] * 2, [change(), change(), NOTHING])
    world.run(State(setting(max_retries=2)))
    assert [one.failure for one in world.of(Observe)] == [failure]


def test_after_a_fix_an_empty_answer_is_a_good_one(make_failure: MakeFailure) -> None:
    failure = make_failure()
    fixed = StrategyResult("analyze_then_fix", "ran the fixer", files=("a.py",))
    world = World([fail(failure), fail(failure), PASS], [change(), NOTHING], helps=[fixed])
    world.run(State(setting()))
    assert (world.outcome.status, world.outcome.attempts) == ("success", 2)


def test_a_malformed_answer_is_the_agents_failure(make_failure: MakeFailure) -> None:
    malformed = Malformed(make_failure("the agent answered with int; expected a Change"))
    world = World([fail(make_failure()), PASS], [malformed, change()])
    world.run(State(setting()))
    assert not world.of(Keep)[0].attempt.infrastructure
    assert world.outcome.attempts == 2


@pytest.mark.parametrize(
    ("now", "word"), [({}, "gone"), ({"a": "skipped"}, "skipped"), ({"b": "passed"}, "gone")]
)
def test_a_failing_test_that_is_gone_or_skipped_is_not_fixed(
    make_failure: MakeFailure, now: dict[str, str], word: str
) -> None:
    world = World(
        [fail(make_failure(), a="failed", b="passed"), passing(**now), passing(a="passed")],
        [change(), change("x = 2\n")],
    )
    world.run(State(setting(complexity="low")))
    assert world.outcome.attempts == 2
    assert word in world.of(Keep)[0].attempt.error


def test_a_failing_test_is_not_fixed_by_a_check_that_ends_well(make_failure: MakeFailure) -> None:
    """As behind `|| true`, or with a plugin that sets the exit code."""
    world = World(
        [fail(make_failure(), a="failed"), passing(a="failed"), passing(a="passed")],
        [change(), change("x = 2\n")],
    )
    world.run(State(setting(complexity="low")))
    assert (world.outcome.status, world.outcome.attempts) == ("success", 2)
    assert "still fails" in world.of(Keep)[0].attempt.error


def test_deleting_the_only_test_is_told_as_what_it_is(make_failure: MakeFailure) -> None:
    """The runner fails too ("no tests ran"), but that is not what the agent must hear."""
    ran_none = Report((CheckResult(CHECK, False, 5, 0.1, "", make_failure("no tests ran"), {}),))
    world = World(
        [fail(make_failure(), a="failed"), ran_none, passing(a="passed")],
        [change(), change("x = 2\n")],
    )
    world.run(State(setting()))
    assert "is now gone" in world.of(Keep)[0].attempt.error
    assert world.outcome.status == "success"


def test_success_without_any_change_is_no_success() -> None:
    edited = [Edited("I looked at it", ()), Edited("now I did", ("a.py",))]
    world = World([fail_nothing(), PASS, PASS], list(edited))
    world.run(State(setting()))
    assert world.of(Keep)[0].attempt.error == "every check passes, but nothing was changed"
    assert world.outcome.status == "success"


def fail_nothing() -> Report:
    from loki.recognition.failure import Failure

    return fail(Failure.of("the login test fails for a reason of its own"))


# --- infrastructure ---------------------------------------------------------------------------------------


def test_a_failing_agent_is_asked_again_after_growing_waits(make_failure: MakeFailure) -> None:
    lost = AgentFailed(make_failure("connection refused by the model's service"))
    world = World([fail(make_failure()), PASS], [lost, lost, lost, change()])
    world.run(State(setting(max_retries=0)))
    assert [wait.seconds for wait in world.of(Wait)] == [5, 10, 20]
    assert world.outcome.status == "success"
    assert not world.of(Observe)
    assert world.of(Keep)[3].attempt.delay_ms == 20_000


def test_it_is_given_up_after_five_waits(make_failure: MakeFailure) -> None:
    lost = AgentFailed(make_failure("connection refused by the model's service"))
    world = World([fail(make_failure())], [lost] * 6)
    world.run(State(setting()))
    assert (world.outcome.status, world.outcome.trigger) == ("escalated", "infrastructure")
    assert len(world.of(Wait)) == 5


def test_an_agent_that_cannot_go_on_is_for_a_person(make_failure: MakeFailure) -> None:
    broken = AgentFailed(make_failure("cannot run 'clod': no such program"), retryable=False)
    world = World([fail(make_failure())], [broken])
    world.run(State(setting()))
    assert (world.outcome.status, world.outcome.exit_code) == ("escalated", 3)
    assert not world.of(Wait)


def network(make_failure: MakeFailure) -> Failure:
    patterns = PatternSet.default()
    message = "ConnectionRefusedError: [Errno 111] Connection refused"
    from loki.recognition.failure import Failure

    return Failure.of(message, pattern="network-error", patterns=patterns)


def test_a_check_without_network_gets_the_same_change_again(make_failure: MakeFailure) -> None:
    world = World([fail(make_failure()), fail(network(make_failure)), PASS], [change()])
    world.run(State(setting(max_retries=0)))
    assert (world.outcome.status, world.outcome.attempts) == ("success", 2)
    assert len(world.of(Ask)) == 1
    assert len(world.of(Execute)) == 1


def test_a_command_without_network_is_run_again_without_its_edits(
    make_failure: MakeFailure,
) -> None:
    broken = Executed(("a.py",), ({"command": "pip install x"},), network(make_failure))
    done = Executed((), ({"command": "pip install x"},))
    world = World([fail(make_failure()), PASS], [change()], executions=[broken, done])
    world.run(State(setting(max_retries=0)))
    assert [execute.commands_only for execute in world.of(Execute)] == [False, True]
    assert world.outcome.status == "success"


def test_what_is_done_again_is_paid_once(make_failure: MakeFailure) -> None:
    lost = fail(network(make_failure))
    costly = replace(change(), tokens=1500, cost=0.5)
    world = World([fail(make_failure()), lost, lost, PASS], [costly])
    world.run(State(setting(budget=Budget(tokens=4000))))
    assert [kept.attempt.tokens for kept in world.of(Keep)] == [1500, None, None]
    assert [kept.attempt.cost for kept in world.of(Keep)] == [0.5, None, None]


def test_what_did_not_pass_the_gates_is_not_executed_after_a_wait(
    make_failure: MakeFailure,
) -> None:
    """Whatever a violation sounds like: the project has not changed, so nothing can be evaluated."""
    says = Violation("self_review", "blocking", "a.py", "connect ECONNREFUSED 127.0.0.1:80")
    world = World(
        [fail(make_failure()), PASS],
        [change(), change("x = 2\n")],
        validations=[Validation(("self_review",), (says,)), Validation(("self_review",))],
    )
    world.run(State(setting()))
    assert len(world.of(Ask)) == 2
    assert (world.outcome.status, world.outcome.files) == ("success", ("a.py",))


# --- strategies -------------------------------------------------------------------------------------------


def test_a_strategy_that_throws_is_skipped_and_the_record_amended(
    make_failure: MakeFailure,
) -> None:
    failure = make_failure()
    helps = [
        StrategyResult("analyze_then_fix", error="no such file"),
        StrategyResult("context_expand", context="lines"),
    ]
    world = World([fail(failure), fail(failure), PASS], [change(), change("x = 2\n")], helps=helps)
    state = world.run(State(setting()))
    assert world.of(Amend) == [Amend(1, "context_expand")]
    assert world.of(Ask)[1].strategy == "context_expand"
    assert state.past.last is not None
    assert state.past.last.answer == "context_expand"


def test_without_any_strategy_left_a_person_is_asked(make_failure: MakeFailure) -> None:
    helps = [
        StrategyResult("analyze_then_fix", error="no"),
        StrategyResult("context_expand", error="no"),
    ]
    world = World([fail(make_failure()), fail(make_failure())], [change()], helps=helps)
    world.run(State(setting()))
    assert (world.outcome.status, world.outcome.trigger) == ("escalated", "strategy")


# --- other ends -------------------------------------------------------------------------------------------


def test_the_time_budget_ends_it_without_a_dead_letter(make_failure: MakeFailure) -> None:
    world = World([fail(make_failure())] * 9, [change(f"x = {n}\n") for n in range(9)])
    world.run(State(setting(budget=Budget(seconds=8.0), max_retries=9)))
    assert (world.outcome.status, world.outcome.trigger, world.outcome.exit_code) == (
        "failed",
        "budget",
        5,
    )
    assert world.outcome.page is None


def test_a_timer_ahead_of_the_clock_ends_it_in_the_same_words(make_failure: MakeFailure) -> None:
    world = World([fail(make_failure())], [Interrupted(out_of_time=True)])
    world.run(State(setting(budget=Budget(seconds=900.0))))
    assert world.outcome.trigger == "budget"
    assert world.outcome.reason == "the budget of 900 s is spent (900 used)"


def test_a_claim_without_any_check_is_unverified() -> None:
    world = World([], [Edited("I did it", ("a.py",), ok=True)])
    world.run(State(setting(checks=())))
    assert world.outcome.status == "unverified"


def test_a_change_without_any_check_is_unverified() -> None:
    world = World([Report()], [change()])
    world.run(State(setting(checks=())))
    assert world.outcome.status == "unverified"
    assert world.of(Keep)[0].attempt.result == "unverified"


def test_a_claim_is_checked_where_there_are_checks(make_failure: MakeFailure) -> None:
    failure = make_failure()
    world = World(
        [fail(failure), fail(failure), PASS], [Edited("done!", ("a.py",), ok=True), change()]
    )
    world.run(State(setting()))
    assert world.outcome.attempts == 2
    assert world.of(Keep)[0].attempt.validation["skipped"]


def test_a_resumed_run_whose_change_was_applied_already_is_done() -> None:
    world = World([PASS])
    world.run(State(setting(), worked=True, files=("a.py",)))
    assert (world.outcome.status, world.outcome.files) == ("success", ("a.py",))

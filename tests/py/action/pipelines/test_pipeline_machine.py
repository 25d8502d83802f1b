"""The pipeline's machine: every row of its table, its limits, and what it promises of any story."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loki.action.pipelines.pipeline_machine import delay, step
from loki.action.pipelines.pipeline_state import (
    Approved,
    AskApproval,
    Event,
    Interrupted,
    Phase,
    Redo,
    Rejected,
    Resumed,
    Retry,
    RollBack,
    RolledBack,
    RunStage,
    Say,
    outcome_of,
)
from loki.base.machine import Begin, Wait, Waited
from support.examples import examples
from support.loop import NOON
from support.pipeline import FAILED, RETRY, PipelineWorld, at, begun, ended

# --- stories --------------------------------------------------------------------------------------


def test_stages_run_in_the_order_of_the_list() -> None:
    world = PipelineWorld([ended(), ended(attempts=2), ended()])
    state = world.run(begun("", "", ""))
    assert [effect.stage for effect in world.of(RunStage)] == ["s1", "s2", "s3"]
    outcome = outcome_of(state)
    assert (outcome.status, outcome.exit_code, outcome.attempts) == ("success", 0, 4)
    assert [stage.status for stage in outcome.stages] == ["success"] * 3


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ("{stage: s1, status: success}", "success"),
        ("{stage: s1, output: verdict, contains: stop}", "skipped"),
        ("{stage: s1, output: verdict, equals: ship}", "success"),
        ("{stage: s1, changed: a.py}", "success"),
        ("[{stage: s1, status: success}, {parameter: to, equals: nobody}]", "skipped"),
    ],
)
def test_a_condition_decides_whether_a_stage_runs(condition: str, status: str) -> None:
    state = begun(
        "outputs: [verdict]",
        f"condition: {condition}",
        "condition: {stage: s2, status: skipped}",
        head="parameters: {to: all}",
        parameters={"to": "all"},
    )
    first = ended(files=("a.py",), outputs=("verdict",))
    world = PipelineWorld([first, ended()], outputs={"s1": {"verdict": " ship\n"}})
    outcome = outcome_of(world.run(state))
    assert outcome.status == "success"
    assert outcome.stages[1].status == status
    assert {outcome.stages[1].status, outcome.stages[2].status} == {"success", "skipped"}


def test_approval_comes_before_execution() -> None:
    world = PipelineWorld([ended()])
    waiting = world.run(begun("requires_approval: true"))
    assert world.of(RunStage) == []
    assert world.of(AskApproval) == [AskApproval("s1")]
    outcome = outcome_of(waiting)
    assert (outcome.status, outcome.exit_code, outcome.trigger) == ("escalated", 3, "approval")
    assert outcome.page is not None
    again, effects = step(waiting, Resumed(), world.now)
    assert (again.phase, again.of("s1").page) == (Phase.APPROVAL, outcome.page)
    assert AskApproval("s1") in effects, "its page may not have been written"
    done = world.run(waiting, Approved("anna", "go"))
    given_ = done.of("s1").approval
    assert given_ is not None
    assert (given_.by, given_.at, given_.note) == ("anna", NOON, "go")
    assert done.phase is Phase.DONE


def test_approval_is_for_the_stage_as_it_was() -> None:
    waiting = PipelineWorld().run(begun("requires_approval: true"))
    edited = begun("requires_approval: true\ndescription: Do something else.")
    state, effects = step(replace(waiting, spec=edited.spec), Approved("anna"), NOON)
    assert state.phase is Phase.APPROVAL
    assert AskApproval("s1") in effects
    after, _ = step(state, Approved("anna"), NOON)
    assert after.phase is Phase.RUNNING


def test_a_rejected_stage_ends_the_run_and_has_nothing_to_roll_back() -> None:
    world = PipelineWorld([ended()])
    waiting = world.run(begun("", "requires_approval: true\nrollback: all"))
    state = world.run(waiting, Rejected("anna", "not on a Friday"))
    outcome = outcome_of(state)
    assert (outcome.status, outcome.exit_code, outcome.trigger) == ("failed", 4, "rejected")
    assert outcome.reason == "anna rejected stage s2: not on a Friday"
    assert world.of(RollBack) == []


def test_an_escalated_stage_that_a_person_rejects_is_rolled_back() -> None:
    world = PipelineWorld([ended("escalated")])
    state = world.run(begun(f"rollback: undo\n{RETRY}"))
    assert len(world.of(RunStage)) == 1, "escalated stages are not tried again"
    assert outcome_of(state).exit_code == 3
    state = world.run(state, Rejected("anna"))
    assert [effect.step.subject for effect in world.of(RollBack)] == ["s1"]
    assert outcome_of(state).trigger == "rejected"


@pytest.mark.parametrize(
    ("backoff", "delays"), [("fixed", [7, 7]), ("linear", [7, 14]), ("exponential", [7, 14])]
)
def test_a_failed_stage_is_tried_again_after_a_wait(backoff: str, delays: list[float]) -> None:
    world = PipelineWorld([FAILED, replace(FAILED, attempts=8), ended(attempts=9)])
    state = world.run(begun(RETRY.replace("fixed", backoff)))
    assert state.phase is Phase.DONE
    assert [w.seconds for w in world.of(Wait)] == pytest.approx(delays, rel=0.2)
    if backoff != "exponential":
        assert [w.seconds for w in world.of(Wait)] == delays
    assert (state.of("s1").tries, state.of("s1").attempts) == (3, 9)


def test_tries_end_and_the_last_failure_is_the_runs() -> None:
    state = PipelineWorld([FAILED] * 3).run(begun(RETRY, ""))
    outcome = outcome_of(state)
    assert (outcome.status, outcome.exit_code) == ("failed", 4)
    assert (outcome.reason, outcome.trigger) == (FAILED.reason, FAILED.trigger)
    assert outcome.stages[0].tries == 3
    assert outcome.stages[1].status == "waiting"


def test_an_unverified_end_needs_a_person() -> None:
    state = PipelineWorld([ended("unverified")]).run(begun(RETRY))
    assert state.phase is Phase.ESCALATED


def test_the_time_out_counts_all_tries_and_the_waits_between() -> None:
    world = PipelineWorld([FAILED, FAILED], [50, 10])
    state = world.run(begun(f"timeout_minutes: 1\n{RETRY}"))
    assert [run.max_seconds for run in world.of(RunStage)] == [60, 3]
    outcome = outcome_of(state)
    assert (outcome.status, outcome.trigger, outcome.exit_code) == ("failed", "timeout", 5)
    assert outcome.reason == "stage s1 was not done within its time-out of 1 min"


def test_time_in_which_nobody_worked_does_not_count() -> None:
    world = PipelineWorld([ended("paused"), ended()], [20, 1])
    paused = world.run(begun("timeout_minutes: 1"))
    assert outcome_of(paused).exit_code == 6
    world.works = [ended()]
    world.now += timedelta(hours=9)
    assert world.run(paused, Resumed()).phase is Phase.DONE
    assert world.of(RunStage)[-1].max_seconds == 40


def test_no_wait_begins_that_would_outlast_the_time_out() -> None:
    world = PipelineWorld([FAILED])
    state = world.run(begun(f"timeout_minutes: 0.1\n{RETRY}"))
    assert world.of(Wait) == []
    assert outcome_of(state).trigger == "timeout"


def test_a_time_limit_of_the_run_ends_it_with_5() -> None:
    world = PipelineWorld([ended(), FAILED], [40, 25])
    state = world.run(begun("", RETRY, head="max_time: 1m"))
    assert [run.max_seconds for run in world.of(RunStage)] == [60, 20]
    outcome = outcome_of(state)
    assert (outcome.trigger, outcome.exit_code) == ("budget", 5)
    assert outcome.reason == "the run's time of 60 s is spent"


def test_a_limit_on_attempts_ends_it_with_5_and_warns_at_four_fifths() -> None:
    world = PipelineWorld([ended(attempts=8), ended("failed", 2, trigger="budget")])
    state = world.run(begun("", RETRY, head="max_attempts: 10"))
    assert [run.max_attempts for run in world.of(RunStage)] == [10, 2]
    outcome = outcome_of(state)
    assert (outcome.attempts, outcome.trigger, outcome.exit_code) == (10, "budget", 5)
    said = [effect.message for effect in world.of(Say) if effect.warning]
    assert said == ["run=p-1 8 of the run's 10 attempts are used"]


def test_a_stage_that_finds_the_limit_spent_does_not_begin() -> None:
    world = PipelineWorld([ended(attempts=3)])
    state = world.run(begun("", "rollback: all", head="max_attempts: 3"))
    assert (outcome_of(state).trigger, len(world.of(RunStage))) == ("budget", 1)
    assert world.of(RollBack) == [], "it never ran"


def test_another_budget_of_the_task_is_told_as_it_is() -> None:
    inner = ended("failed", 2, trigger="budget", reason="the budget of $5.00 is spent")
    state = PipelineWorld([inner]).run(begun(RETRY))
    assert (outcome_of(state).reason, outcome_of(state).exit_code) == (inner.reason, 5)


@pytest.mark.parametrize(
    ("rollback", "expected"),
    [
        ("none", []),
        ("undo", [("undo", "s3")]),
        ("all", [("undo", "s3"), ("undo", "s1")]),
        ("[make clean, 'git stash']", [("command", "make clean"), ("command", "git stash")]),
    ],
)
def test_rollback(rollback: str, expected: list[tuple[str, str]]) -> None:
    results = [RolledBack("conflict", "a.py: somebody has changed it since"), RolledBack("done")]
    world = PipelineWorld([ended(), FAILED], results=results)
    state = world.run(begun("", "condition: {stage: s1, status: failed}", f"rollback: {rollback}"))
    assert [(e.step.kind, e.step.subject) for e in world.of(RollBack)] == expected
    assert state.phase is Phase.FAILED
    assert [found.result for found in state.rollback] == ["conflict", "done"][: len(expected)]
    assert outcome_of(state).reason == FAILED.reason


def test_after_a_crash_an_undo_is_done_again_and_a_command_is_not() -> None:
    undoing = at(begun("rollback: undo"), Begin(), FAILED)
    assert step(undoing, Resumed(), NOON)[1][-1] == RollBack(undoing.rollback[0])
    running = at(begun("rollback: [make clean, make tidy]"), Begin(), FAILED)
    state, effects = step(running, Resumed(), NOON)
    assert [found.result for found in state.rollback] == ["unknown", ""]
    assert effects[-1] == RollBack(state.rollback[1])
    interrupted = at(running, Interrupted())
    ended_ = at(interrupted, Resumed(), RolledBack("done"))
    assert (ended_.phase, outcome_of(ended_).reason) == (Phase.FAILED, FAILED.reason)


def test_a_person_goes_on_with_an_escalated_stage() -> None:
    world = PipelineWorld([ended("escalated", 3)])
    escalated = world.run(begun(RETRY))
    world.works = [ended(attempts=5)]
    state = world.run(escalated, Resumed("use the other key"))
    assert (state.phase, state.of("s1").tries) == (Phase.DONE, 1)
    running, _ = step(escalated, Resumed("use the other key"), NOON)
    assert running.of("s1").context == "use the other key"
    assert state.of("s1").context == "", "it was for this stage's work"


def test_a_person_does_not_go_on_beyond_a_limit() -> None:
    escalated = PipelineWorld([ended("escalated", 3)]).run(begun("", head="max_attempts: 3"))
    state = at(escalated, Resumed())
    assert (state.phase, state.trigger) == (Phase.ESCALATED, "budget")
    assert at(replace(escalated, max_attempts=4), Resumed()).phase is Phase.RUNNING


def test_after_a_crash_a_wait_goes_on_for_what_is_left() -> None:
    waiting = at(begun(RETRY), Begin(), FAILED)
    for passed, left in ((0, 7), (5, 2), (100, 0), (-3600, 7)):
        _, effects = step(waiting, Resumed(), NOON + timedelta(seconds=passed))
        assert effects == (Wait(left, "before try 2 of 3"),)


def test_what_is_begun_again_has_a_task_of_its_own_and_what_is_before_it_stays() -> None:
    world = PipelineWorld([ended(), ended(), FAILED])
    failed = world.run(begun("", "requires_approval: true", ""), Begin())
    failed = world.run(failed, Approved("anna")) if failed.phase is Phase.APPROVAL else failed
    world.works = [ended(), FAILED]
    failed = world.run(
        at(begun("", "requires_approval: true", ""), Begin(), ended()), Approved("a")
    )
    assert failed.phase is Phase.FAILED
    again = at(failed, Redo("s2"))
    assert (again.phase, again.at) == (Phase.APPROVAL, "s2"), "leave was for that time"
    assert again.of("s1").status == "success"
    assert [again.task_id(id_) for id_ in ("s1", "s2", "s3")] == ["p-1.s1", "p-1.s2.2", "p-1.s3.2"]


# --- promises of any story ------------------------------------------------------------------------


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_attempts_tries_and_waits_are_bounded(data: st.DataObject) -> None:
    """Whatever stages do, a run ends within tries times inner attempts, and within its limits."""
    inner = 4
    tries = data.draw(st.lists(st.integers(1, 10), min_size=1, max_size=3))
    limit = data.draw(st.none() | st.integers(1, 60))
    retry = "retry: {{max_attempts: {}, backoff: linear, initial_delay_seconds: 1}}"
    state = begun(*(retry.format(count) for count in tries), max_attempts=limit)
    now, made, resumes = NOON, dict.fromkeys(("s1", "s2", "s3"), 0), 0
    event: Event | None = Begin()
    while event is not None:
        state, effects = step(state, event, now)
        asked = effects[-1]
        if isinstance(asked, RunStage):
            most = inner
            if asked.max_attempts is not None:
                most = min(inner, asked.max_attempts - made[asked.stage])
                assert most >= 1 or isinstance(event, Resumed), "no try begins without attempts"
            made[asked.stage] += data.draw(st.integers(0, most))
            status = data.draw(st.sampled_from(["success", "failed", "paused", "interrupted"]))
            event = ended(status, made[asked.stage])
        elif isinstance(asked, Wait):
            assert 0 <= asked.seconds <= 10
            event = Waited()
        elif state.phase in {Phase.PAUSED, Phase.INTERRUPTED} and resumes < 5:
            resumes, event = resumes + 1, Resumed()
        else:
            event = None
        now += timedelta(seconds=1)
    for id_, count in zip(("s1", "s2", "s3"), tries, strict=False):
        assert state.of(id_).tries <= count
    assert state.attempts <= sum(tries) * inner + resumes * inner
    assert limit is None or state.attempts <= limit
    if state.phase is Phase.DONE:
        assert all(state.of(stage.id).status == "success" for stage in state.spec.stages)


@given(st.integers(1, 10), st.floats(1, 300), st.text(max_size=5))
def test_a_delay_never_shrinks_below_the_first(tries: int, initial: float, key: str) -> None:
    for backoff in ("exponential", "linear", "fixed"):
        assert delay(Retry(10, backoff, initial), tries, key) >= initial * (1 - 1e-9)

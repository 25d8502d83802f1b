"""Whether an attempt came nearer: fewer tests that are not mended, and no other way."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loki.action.checks.check import CheckResult, Report
from loki.action.loop.loop_driver import resumption_status
from loki.action.loop.loop_events import Ask, Keep
from loki.action.loop.loop_state import State, fewest_failing, still_failing
from loki.memory.attempt import Attempt
from support.loop import CHECK, MakeFailure, World, change, fail, setting
from support.task import task_of

SEEN = {(CHECK.name, "a"), (CHECK.name, "b")}


@pytest.mark.parametrize(
    ("tests", "left"),
    [
        ({"a": "passed", "b": "failed"}, {"b"}),
        ({"b": "failed"}, {"a", "b"}),
        ({"a": "skipped", "b": "failed"}, {"a", "b"}),
        ({"a": "passed", "b": "failed", "c": "failed"}, {"b", "c"}),
        (None, {"a", "b", ""}),
    ],
)
def test_what_is_deleted_or_skipped_is_not_mended(
    make_failure: MakeFailure, tests: dict[str, str] | None, left: set[str]
) -> None:
    report = fail(make_failure(), **(tests or {}))
    assert {test for _, test in still_failing(SEEN, report)} == left


def test_a_file_that_loads_again_and_a_check_that_starts_again_are_no_loss(
    make_failure: MakeFailure,
) -> None:
    report = fail(make_failure(), **{"m.a": "failed", "m.b": "failed", "m.c": "passed"})
    not_started = fail(make_failure())
    for before in ({(CHECK.name, "m")}, {(CHECK.name, "")}):
        now = still_failing(before - {(CHECK.name, "")}, report)
        assert {test for _, test in now} == {"m.a", "m.b"}
        fewest = fewest_failing(None, frozenset(before), not_started)
        assert fewest_failing(fewest, now, report).count == 2, "one was no count of tests"


def _run(make_failure: MakeFailure, failing: list[str], **task: int) -> World:
    """A run whose first and further reports have these tests failing, of a to h."""
    reports = []
    for names in failing:
        tests = {
            t: "failed" if t in names else "passed" for t in "abcdefgh" if t not in _gone(names)
        }
        failure = make_failure(
            f"assert {names!r} holds", error_code=f"E{names}", tests=tuple(names)
        )
        reports.append(fail(failure, **tests))
    world = World(reports, [change(f"x = {n}\n") for n in range(len(failing) - 1)])
    world.run(State(setting(**task)))
    return world


def _gone(names: str) -> set[str]:
    return set(names.partition("-")[2])


def test_each_mended_test_extends_the_budget(make_failure: MakeFailure) -> None:
    world = _run(make_failure, ["abcdefgh"[n:] for n in range(7)] + ["fh", "ah", "bg", "ch"])
    assert world.outcome.trigger == "retry_budget_exhausted"
    assert world.outcome.attempts == 6 + 4
    assert [ask.left for ask in world.of(Ask)] == [3] * 7 + [2, 1, 0]
    assert world.of(Keep)[0].attempt.progress == {"unmended": 7, "fewest_before": 8}


def test_the_same_number_does_not_nor_one_that_was_reached_before(
    make_failure: MakeFailure,
) -> None:
    world = _run(make_failure, ["abc", "abd", "abe", "abcd", "abc"])
    assert world.outcome.attempts == 4


def test_tests_that_are_deleted_do_not_extend_it(make_failure: MakeFailure) -> None:
    world = _run(make_failure, ["abcde", "abcd-e", "abc-de", "ab-cde", "a-bcde"])
    assert world.outcome.attempts == 4


def test_a_persons_number_is_neither_cut_nor_extended(make_failure: MakeFailure) -> None:
    failing = ["abcdefgh"[n:] for n in range(7)]
    assert _run(make_failure, failing, max_retries=4).outcome.attempts == 5
    stalled = _run(make_failure, ["a" + other for other in "bcdefgh"], max_retries=5)
    assert stalled.outcome.attempts == 6


def test_it_goes_on_from_the_records(make_failure: MakeFailure) -> None:
    world = _run(make_failure, ["abcdefgh"[n:] for n in range(6)] + ["agh", "bgh", "cgh", "dgh"])
    kept = [Attempt.from_dict(keep.attempt.to_dict()) for keep in world.of(Keep)]
    stands = resumption_status(task_of({"execution": 1}), kept[:6])
    state = stands.state(setting(), ())
    assert (state.past.work, state.past.stalled) == (6, 1)
    assert state.fewest is not None
    assert state.fewest.count == 3


def test_checks_without_tests_count_as_one_each(make_failure: MakeFailure) -> None:
    lint = replace(CHECK, kind="lint", name="ruff")
    bad = CheckResult(lint, False, 1, 0.1, "…", make_failure())
    report = Report((*fail(make_failure(), a="failed").results, bad))
    assert still_failing(set(), report) == {(CHECK.name, "a"), ("ruff", "")}

"""Figures of attempts and executions, held against a slow and obvious reference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki.action.gates.gate import ADVISORY, BLOCKING, Validation, Violation
from loki.memory.attempt import Attempt, CheckRecord, History
from loki.memory.attempt_metrics import (
    ExecutionMetrics,
    Use,
    catches,
    chain,
    executions,
    measure,
    uses,
    validation_figures,
)
from loki.recognition.failure import Failure
from loki.recognition.similarity import same_failure
from loki.stores.file_store import FileStore
from support.history import FAILURES, PHASES, attempts
from support.task import task_of

AT = "2026-04-04T10:15:30.000Z"


def attempt(number: int = 1, result: str = "failed", **fields: Any) -> Attempt:
    return Attempt(number, AT, "tried", result, **fields)


def failed(
    number: int, failure: Failure, strategy: str | None = "auto_fix", **fields: Any
) -> Attempt:
    plain: dict[str, Any] = {
        "phase": "evaluate",
        "error": failure.message,
        "failure": failure.to_dict(),
        "fingerprint": failure.fingerprint,
        "recognizer_version": failure.recognizer_version,
        "pattern_matched": failure.match.pattern if failure.match else None,
        "strategy_used": strategy,
    }
    return attempt(number, **{**plain, **fields})


def one(made: list[Attempt], **end: Any) -> ExecutionMetrics:
    return measure("t", "Title", 1, made, {"outcome": end, "at": AT} if end else {})


# --- what became of strategies ------------------------------------------------------------------------

A, B = FAILURES[0], FAILURES[2]


@pytest.mark.parametrize(
    ("made", "cured"),
    [
        ([failed(1, A)], [None]),
        ([failed(1, A), attempt(2, "success")], [True]),
        ([failed(1, A), failed(2, A, None)], [False]),
        ([failed(1, A), failed(2, FAILURES[1], None)], [False]),  # the same by its words
        ([failed(1, A), failed(2, B, None)], [True]),
        ([failed(1, A), failed(2, B), failed(3, A), failed(4, B, None)], [False, False, True]),
        ([failed(1, A), failed(2, A), attempt(3, "success")], [False, True]),
        ([failed(1, A), failed(2, B, None, phase="generate")], [None]),
        ([failed(1, A, phase="generate"), failed(2, B, None, phase="validate")], [True]),
        ([failed(1, A), failed(2, A, None, infrastructure=True)], [None]),
        ([failed(1, A, infrastructure=True), attempt(2, "success")], []),
        ([failed(1, A), attempt(2, "interrupted")], [None]),
        ([failed(1, A), attempt(2, "unverified")], [None]),
    ],
)  # fmt: skip
def test_what_became_of_a_strategy(made: list[Attempt], cured: list[bool | None]) -> None:
    assert [use.cured for use in uses(made)] == cured


def check(name: str, passed: bool) -> CheckRecord:
    return CheckRecord(name, "test", name, passed, 0, 1)


def test_another_check_that_fails_first_hides_what_was_to_be_mended() -> None:
    """All checks run, and the first that fails is analyzed: of the second one it says nothing."""
    tests = failed(1, A, checks=(check("lint", True), check("test", False)))
    lint_and_tests = failed(2, B, None, checks=(check("lint", False), check("test", False)))
    lint_alone = failed(2, B, None, checks=(check("lint", False), check("test", True)))
    assert uses([tests, lint_and_tests])[0].cured is None
    assert uses([tests, lint_alone])[0].cured is True


def test_a_gate_that_did_not_run_says_nothing() -> None:
    def refused(number: int, failure: Failure, *gates: str) -> Attempt:
        validation = {"passed": False, "gates": list(gates), "violations": []}
        return failed(number, failure, phase="validate", validation=validation)

    syntax = refused(1, A, "change_check", "syntax_check")
    assert uses([syntax, refused(2, B, "change_check")])[0].cured is None
    assert uses([syntax, refused(2, B, "change_check", "syntax_check")])[0].cured is True


def test_failures_that_another_version_kept_are_compared_anew() -> None:
    old = failed(1, A, fingerprint="0" * 32, recognizer_version=0)
    old = replace(old, failure={**A.to_dict(), "recognizer_version": 0, "fingerprint": "0" * 32})
    assert [use.cured for use in uses([old, failed(2, A, None)])] == [False]
    assert [use.cured for use in uses([failed(1, A), replace(old, attempt=2)])] == [False, None]


def test_records_without_the_failures_fields_are_compared_by_their_error() -> None:
    def bare(number: int, error: str) -> Attempt:
        return attempt(number, error=error, strategy_used="auto_fix")

    assert [u.cured for u in uses([bare(1, "x"), bare(2, "x"), bare(3, "y")])] == [
        False,
        True,
        None,
    ]


def test_a_failure_that_cannot_be_read_is_like_no_other() -> None:
    broken = attempt(
        1, strategy_used="auto_fix", error="a", failure={"frames": 1}, phase="evaluate"
    )
    assert uses([broken, failed(2, A, None), failed(3, B, None)])[0].cured is True


def _reference(made: list[Attempt]) -> list[Use]:
    """Every use against every later attempt, each pair of failures compared whole."""
    evidence = [a for a in made if a.result in {"success", "failed"} and not a.infrastructure]
    found = []
    for index, one in enumerate(evidence):
        if one.result != "failed" or not one.strategy_used:
            continue
        later = evidence[index + 1 :]
        again = any(b.result == "failed" and _same(one, b) for b in later)
        gone = any(_past(one, b) for b in later)
        cured = False if again else True if gone else None
        found.append(Use(one.strategy_used, one.attempt, one.pattern_matched, cured))
    return found


def _same(a: Attempt, b: Attempt) -> bool:
    one, other = a.recognized(), b.recognized()
    assert one is not None
    assert other is not None
    return same_failure(one, other)


def _past(one: Attempt, later: Attempt) -> bool:
    if later.result == "success":
        return True
    here, there = PHASES.index(one.phase), PHASES.index(later.phase)
    if here != there:
        return there > here
    if one.phase == "validate":
        gates = (one.validation or {}).get("gates") or []
        return not gates or gates[-1] in ((later.validation or {}).get("gates") or [])
    wrong = [c.name for c in one.checks if not c.passed]
    if not wrong:
        return True
    still = [c.name for c in later.checks if not c.passed]
    fine = [c.name for c in later.checks if c.passed]
    return wrong[0] in fine or still[:1] == wrong[:1]


@given(attempts())
def test_strategies_are_judged_as_by_comparing_everything(made: list[Attempt]) -> None:
    assert uses(made) == _reference(made)


def test_a_chain_is_two_or_more() -> None:
    used = [Use(name, n, None, False) for n, name in enumerate("abcdefg")]
    assert chain(used) == ("c", "d", "e", "f", "g")
    assert chain(used[:2]) == ("a", "b")
    assert chain(used[:1]) == ()


# --- attempts and executions ------------------------------------------------------------------------


def test_the_figures_of_an_attempt() -> None:
    validation = {"passed": False, "skipped": False, "gates": ["a", "b"], "violations": ["x [b]"]}
    assert validation_figures(failed(2, A, validation=validation)) == {
        "validation_passed": False,
        "validation_gates_run": 2,
        "validation_violations": 1,
    }
    skipped = attempt(1, "success", validation={"passed": True, "skipped": True})
    assert validation_figures(skipped)["validation_passed"] is None


def test_the_figures_of_an_execution() -> None:
    blocked = {"passed": False, "gates": ["syntax_check"], "violations": ["a.py: x [syntax_check]"]}
    fine = {"passed": True, "gates": ["syntax_check"], "violations": []}
    broke = {"ran": True, "skipped": False, "regressions": 2, "fixed": False}
    mended = {"ran": True, "skipped": False, "regressions": 0, "fixed": True}
    made = [
        failed(1, A, phase="validate", validation=blocked, files_modified=("a.py",), cost=0.5),
        failed(2, B, "context_expand", infrastructure=True, tokens=7),
        failed(3, B, "context_expand", validation=fine, regression=broke),
        attempt(4, "interrupted"),
        replace(
            attempt(5, "success", validation=fine, regression=mended, duration_ms=1500),
            timestamp="2026-04-04T10:16:30Z",
        ),
    ]
    got = one(made, status="success", reason="every check passes", page=None)
    assert got.total_attempts == 3
    assert got.time_to_success_ms == 61_500
    assert got.patterns_encountered == ("type-error", "lint-error")
    assert got.strategies_used == ("auto_fix", "context_expand")
    assert (got.final_status, got.reason, got.is_dead_letter) == (
        "success",
        "every check passes",
        False,
    )
    assert (got.pre_validation_runs, got.pre_validation_passed) == (3, 2)
    assert (got.regression_checks_run, got.regression_checks_skipped) == (2, 0)
    assert (got.regressions_detected, got.regressions_auto_fixed) == (2, 2)


@pytest.mark.parametrize(
    ("last", "status", "letter"),
    [
        (attempt(1, "success"), "success", False),
        (attempt(1, "unverified"), "unverified", False),
        (attempt(1, decision={"action": "escalate"}), "escalated", False),
        (attempt(1, decision={"action": "dead_letter"}), "failed", True),
        (attempt(1, decision={"action": "pause"}), "paused", False),
        (attempt(1, decision={"action": "fix"}), "running", False),
        (attempt(1, "interrupted"), "interrupted", False),
    ],
)
def test_an_end_that_nobody_noted_is_told_by_the_last_attempt(
    last: Attempt, status: str, letter: bool
) -> None:
    got = one([last])
    assert (got.final_status, got.is_dead_letter) == (status, letter)
    older = measure("t", "Title", 1, [last], {}, is_newest=False)
    assert older.final_status == ("interrupted" if status == "running" else status)


@pytest.mark.parametrize(
    ("outcome", "letter"),
    [
        ({"status": "failed", "trigger": "budget", "page": None}, False),
        ({"status": "failed", "page": "tasks/t/dead-letter-t.md"}, True),
        ({"status": "escalated", "page": "escalations/x.md"}, False),
    ],
)
def test_out_of_budget_is_no_dead_letter(outcome: dict[str, Any], letter: bool) -> None:
    assert one([failed(1, A)], **outcome).is_dead_letter is letter


def test_catches_are_blocking_violations_gates() -> None:
    def said(*violations: Any, passed: bool = False) -> list[str]:
        return catches({"passed": passed, "gates": ["a", "b"], "violations": list(violations)})

    blocking = {"gate": "a", "severity": "blocking"}
    assert said(blocking, {"gate": "b", "severity": "advisory"}, blocking) == ["a"]
    assert said() == ["b"]
    assert said(blocking, passed=True) == []
    assert catches({"violations": 3}) == []
    violations = (
        Violation("self_review", ADVISORY, "a.py", "left a print"),
        Violation("syntax_check", BLOCKING, "a.py", "invalid syntax", 3),
    )
    assert catches(Validation(("self_review", "syntax_check"), violations).record()) == [
        "syntax_check"
    ]


# --- a task's log -----------------------------------------------------------------------------------


def test_a_tasks_log_becomes_its_executions(tmp_path: Any) -> None:
    store = FileStore(tmp_path)
    history = History(store, "t")
    outcome = {"status": "failed", "reason": "all spent", "page": "tasks/t/dead-letter-t.md"}
    history.append(failed(1, A, "auto_fix", commands=({"command": "x"},)))
    history.amend(1, "context_expand")
    history.append(failed(2, A, None, checks=(check("lint", False),)))
    history.end(1, outcome, title="Mend it", at="2026-04-04T11:00:00.000Z")
    history.append(replace(attempt(3, "success"), execution=2))
    record = task_of({"title": "Mend it", "execution": 2, "outcome": None})
    first, second = executions("t", store.scan("tasks/t/attempts.jsonl"), record)
    assert first[0].strategies_used == ("context_expand",)
    assert (first[0].title, first[0].ended) == ("Mend it", "2026-04-04T11:00:00.000Z")
    assert (first[0].final_status, first[0].page) == ("failed", "tasks/t/dead-letter-t.md")
    assert [a.attempt for a in first[1]] == [1, 2]
    assert (second[0].execution, second[0].final_status) == (2, "success")
    assert first[1][0].commands == (), "what tools printed is let go of"


def test_gone_on_with_after_a_pause_it_is_not_paused_any_more() -> None:
    log = [failed(1, A).to_dict(), {"ends": 1, "at": AT, "outcome": {"status": "paused"}}]
    (paused,) = executions("t", log, task_of({"execution": 1, "outcome": {"status": "paused"}}))
    (running,) = executions("t", log, task_of({"execution": 1, "outcome": None}))
    assert (paused[0].final_status, running[0].final_status) == ("paused", "running")


def test_a_task_that_was_never_attempted() -> None:
    assert list(executions("t", [])) == []
    done = {"execution": 1, "outcome": {"status": "success"}, "updated_at": AT}
    ((got, made),) = executions("t", [], task_of(done))
    assert (got.final_status, got.had_work, got.has_ended, made) == ("success", False, True, [])


@given(st.lists(st.dictionaries(st.sampled_from(
    ["attempt", "timestamp", "action", "result", "ends", "amends", "outcome", "failure", "checks", "validation",
     "regression", "decision", "strategy_used", "execution", "tokens", "cost", "duration_ms", "at"]),
    st.none() | st.integers(-9, 9) | st.text(max_size=3) | st.just(AT) | st.lists(st.integers(), max_size=2)
    | st.floats() | st.dictionaries(st.sampled_from(["message", "gates", "status", "ran"]), st.integers()),
)))  # fmt: skip
def test_whatever_stands_in_a_log_it_can_be_measured(log: list[dict[str, Any]]) -> None:
    for got, _ in executions("t", log, task_of({"execution": "x", "outcome": 3})):
        assert got.total_attempts >= 0

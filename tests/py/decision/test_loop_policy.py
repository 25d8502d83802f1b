"""Every row of the policy's order, and the four worked examples of the closed-loop document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from loki.decision.loop_policy import (
    Action,
    Decision,
    FailureHistory,
    Limits,
    PastFailure,
    Situation,
    decide,
    is_retryable,
)

if TYPE_CHECKING:
    from loki.recognition.failure import Failure
    from loki.recognition.pattern import Pattern
    from support.loop import MakeFailure, MakePattern

OTHER = "Cannot assign 'undefined' to a value of type 'Preferences' in strict mode"


def situation(
    failure: Failure, *patterns: Pattern, past: Sequence[PastFailure] = (), **more: Any
) -> Situation:
    return Situation(
        failure, FailureHistory.of(past), {pattern.id: pattern for pattern in patterns}, **more
    )


# --- rule 1 -----------------------------------------------------------------------------------------


def test_a_stop_escalates_before_anything_else(make_failure: MakeFailure) -> None:
    decision = decide(situation(make_failure(), stop="the user aborted", limits=Limits(0)))
    assert (decision.action, decision.rule, decision.reason) == (
        Action.ESCALATE,
        1,
        "the user aborted",
    )


# --- rule 2 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [{"non_retryable": True}, {"strategy": "escalate"}])
@pytest.mark.parametrize(("confidence", "rule"), [(0.5, 2), (0.49, 6)])
def test_what_must_not_be_retried_escalates_from_confidence_one_half(
    make_failure: MakeFailure,
    make_pattern: MakePattern,
    how: dict[str, Any],
    confidence: float,
    rule: int,
) -> None:
    pattern = make_pattern("permission-error", **how)
    decision = decide(situation(make_failure(pattern=pattern, confidence=confidence), pattern))
    assert decision.rule == rule
    assert (decision.action is Action.ESCALATE) == (rule == 2)
    assert decision.strategy != "escalate"


def test_an_unsure_match_escalates_when_it_is_seen_again(
    make_failure: MakeFailure, make_pattern: MakePattern
) -> None:
    pattern = make_pattern("permission-error", non_retryable=True)
    earlier = PastFailure(make_failure(OTHER, pattern, 0.4), "analyze_then_fix")
    decision = decide(
        situation(make_failure(pattern=pattern, confidence=0.4), pattern, past=[earlier])
    )
    assert (decision.action, decision.rule) == (Action.ESCALATE, 2)


def test_must_not_retry_comes_before_spent_retries(
    make_failure: MakeFailure, make_pattern: MakePattern
) -> None:
    pattern = make_pattern("git-error", non_retryable=True)
    decision = decide(situation(make_failure(pattern=pattern), pattern, limits=Limits(0)))
    assert decision.rule == 2


# --- rule 3 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["network-error", "rate-limit", "infra-lost"])
def test_infrastructure_gets_the_same_again_after_a_wait(
    make_failure: MakeFailure, make_pattern: MakePattern, kind: str
) -> None:
    pattern = make_pattern(kind, strategy="retry_with_backoff")
    decision = decide(
        situation(make_failure(pattern=pattern, confidence=0.5), pattern, limits=Limits(0))
    )
    assert (decision.action, decision.strategy, decision.rule) == (
        Action.RETRY,
        "retry_with_backoff",
        3,
    )


def test_infrastructure_below_one_half_is_an_ordinary_failure(
    make_failure: MakeFailure, make_pattern: MakePattern
) -> None:
    pattern = make_pattern("network-error", strategy="retry_with_backoff")
    decision = decide(situation(make_failure(pattern=pattern, confidence=0.49), pattern))
    assert decision.rule == 6


def test_an_agent_that_failed_is_infrastructure(make_failure: MakeFailure) -> None:
    assert decide(situation(make_failure(), agent_failed=True)).rule == 3


def test_infrastructure_is_given_up_after_five_waits_in_a_row(make_failure: MakeFailure) -> None:
    failure = make_failure()
    lost = PastFailure(failure, "retry_with_backoff", infrastructure=True)
    assert decide(situation(failure, agent_failed=True, past=[lost] * 4)).action is Action.RETRY
    decision = decide(situation(failure, agent_failed=True, past=[lost] * 5))
    assert (decision.action, decision.rule, decision.trigger) == (
        Action.ESCALATE,
        3,
        "infrastructure",
    )


def test_an_open_circuit_is_a_pause_however_often_infrastructure_failed(
    make_failure: MakeFailure,
) -> None:
    lost = PastFailure(make_failure(), "retry_with_backoff", infrastructure=True)
    for past in ([], [lost] * 9):
        asked = situation(make_failure(), agent_failed=True, past=past, circuit="it is open")
        decision = decide(asked)
        assert (decision.action, decision.rule) == (Action.PAUSE, 3)
        assert (decision.reason, decision.trigger) == ("it is open", "circuit_open")
    stopped = situation(make_failure(), agent_failed=True, stop="wrong key", circuit="it is open")
    assert decide(stopped).action is Action.ESCALATE


def test_a_working_attempt_in_between_begins_the_count_anew(make_failure: MakeFailure) -> None:
    lost = PastFailure(make_failure(), "retry_with_backoff", infrastructure=True)
    worked = PastFailure(make_failure(OTHER), "context_expand")
    past = [*[lost] * 5, worked]
    assert decide(situation(make_failure(), agent_failed=True, past=past)).action is Action.RETRY


def test_infrastructure_touches_no_other_counter(
    make_failure: MakeFailure, make_pattern: MakePattern
) -> None:
    pattern = make_pattern(max_auto_retries=1)
    lost = PastFailure(make_failure(pattern=pattern), "retry_with_backoff", infrastructure=True)
    decision = decide(
        situation(make_failure(pattern=pattern), pattern, past=[lost] * 4, limits=Limits(1))
    )
    assert (decision.action, decision.rule) == (Action.FIX, 6)


# --- rule 4 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("max_retries", "dead_after"), [(0, 1), (1, 2), (3, 4)])
def test_max_retries_counts_the_attempts_after_the_first(
    make_failure: MakeFailure, max_retries: int, dead_after: int
) -> None:
    past: list[PastFailure] = []
    for number in range(1, dead_after + 1):
        failure = make_failure(f"{OTHER} {'abcdefgh'[number] * 40}", error_code=f"TS{number}001")
        decision = decide(situation(failure, past=past, limits=Limits(max_retries)))
        past.append(PastFailure(failure, decision.strategy))
    assert (decision.action, decision.rule) == (Action.DEAD_LETTER, 4)
    assert all(p.answer for p in past[:-1])


@pytest.mark.parametrize(("max_auto_retries", "dead_after"), [(0, 1), (2, 3)])
def test_a_patterns_retries_count_its_own_failures(
    make_failure: MakeFailure, make_pattern: MakePattern, max_auto_retries: int, dead_after: int
) -> None:
    pattern = make_pattern(max_auto_retries=max_auto_retries)
    other = PastFailure(make_failure(OTHER), "analyze_then_fix")
    same = PastFailure(make_failure(OTHER, pattern), "context_expand")
    past = [other, *[same] * (dead_after - 1)]
    decision = decide(situation(make_failure(pattern=pattern), pattern, past=past))
    assert (decision.action, decision.rule) == (Action.DEAD_LETTER, 4)
    if dead_after > 1:
        decision = decide(situation(make_failure(pattern=pattern), pattern, past=past[:-1]))
        assert decision.action is Action.FIX


def test_spent_retries_come_before_the_same_failure(
    make_failure: MakeFailure, make_pattern: MakePattern
) -> None:
    pattern = make_pattern(alternatives=())
    past = [PastFailure(make_failure(pattern=pattern), "context_expand")]
    decision = decide(
        situation(make_failure(pattern=pattern), pattern, past=past, limits=Limits(1))
    )
    assert decision.rule == 4


# --- rule 5 -----------------------------------------------------------------------------------------


def test_the_same_failure_with_the_same_answer_takes_the_first_untried(
    make_failure: MakeFailure, make_pattern: MakePattern
) -> None:
    pattern = make_pattern(alternatives=("dependency_check",), max_auto_retries=9)
    failure = make_failure(pattern=pattern)
    answers: list[str | None] = []
    past: list[PastFailure] = []
    for _ in range(4):
        decision = decide(situation(failure, pattern, past=past, limits=Limits(9)))
        answers.append(decision.strategy)
        past.append(PastFailure(failure, decision.strategy))
    assert answers == ["context_expand", "dependency_check", "analyze_then_fix", None]
    assert (decision.action, decision.rule, decision.trigger) == (
        Action.ESCALATE,
        5,
        "same_failure",
    )


def test_repetition_of_any_period_is_seen(
    make_failure: MakeFailure, make_pattern: MakePattern
) -> None:
    """A-B-A: the third failure is the first again."""
    pattern = make_pattern()
    a, b = make_failure(pattern=pattern), make_failure(OTHER, pattern, error_code="TS2322")
    past = [PastFailure(a, "context_expand"), PastFailure(b, "context_expand")]
    decision = decide(situation(a, pattern, past=past))
    assert (decision.strategy, decision.rule) == ("analyze_then_fix", 5)


def test_an_unspecific_failure_triggers_no_rule(make_failure: MakeFailure) -> None:
    failure = make_failure("failed", path=None, line=None, error_code=None)
    assert not failure.is_specific
    decision = decide(situation(failure, past=[PastFailure(failure, "analyze_then_fix")]))
    assert (decision.strategy, decision.rule) == ("analyze_then_fix", 6)


def test_an_alternative_may_be_to_escalate(
    make_failure: MakeFailure, make_pattern: MakePattern
) -> None:
    pattern = make_pattern(alternatives=("escalate",))
    failure = make_failure(pattern=pattern)
    decision = decide(situation(failure, pattern, past=[PastFailure(failure, "context_expand")]))
    assert (decision.action, decision.rule) == (Action.ESCALATE, 5)


# --- rule 6 -----------------------------------------------------------------------------------------


def test_a_new_failure_gets_its_patterns_strategy(
    make_failure: MakeFailure, make_pattern: MakePattern
) -> None:
    pattern = make_pattern(strategy="auto_fix")
    decision = decide(situation(make_failure(pattern=pattern), pattern))
    assert (decision.action, decision.strategy, decision.rule) == (Action.FIX, "auto_fix", 6)


@pytest.mark.parametrize(("confidence", "review"), [(0.7, False), (0.69, True), (0.3, True)])
def test_a_match_below_high_confidence_is_marked_for_review(
    make_failure: MakeFailure, make_pattern: MakePattern, confidence: float, review: bool
) -> None:
    pattern = make_pattern()
    decision = decide(situation(make_failure(pattern=pattern, confidence=confidence), pattern))
    assert decision.review is review


def test_no_pattern_is_analyzed(make_failure: MakeFailure) -> None:
    assert decide(situation(make_failure())).strategy == "analyze_then_fix"


# --- the worked examples ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Example:
    name: str
    pattern: dict[str, Any]
    max_retries: int | None
    same: bool
    """Whether the failures are the same, or different ones of one pattern."""
    expected: list[tuple[Action, str | None, int]]
    """(action, strategy, rule) attempt by attempt."""


FIX, ESCALATE, DEAD = Action.FIX, Action.ESCALATE, Action.DEAD_LETTER
TYPE_ERROR = {"id_": "type-error", "strategy": "context_expand"}
BUILD_ERROR = {"id_": "build-error", "strategy": "analyze_then_fix"}

EXAMPLES = [
    Example(
        "1: lint, fixed",
        {"id_": "lint-error", "strategy": "auto_fix"},
        3,
        True,
        [(FIX, "auto_fix", 6)],
    ),
    Example("2: type, context", TYPE_ERROR, 3, True, [(FIX, "context_expand", 6)]),
    Example(
        "3: build, no alternative: escalated after 2",
        {**BUILD_ERROR, "alternatives": ()},
        2,
        True,
        [(FIX, "analyze_then_fix", 6), (ESCALATE, None, 5)],
    ),
    Example(
        "3 with the usual alternatives: the budget ends it",
        BUILD_ERROR,
        2,
        True,
        [(FIX, "analyze_then_fix", 6), (FIX, "context_expand", 5), (DEAD, None, 4)],
    ),
    Example(
        "4: strategies run out before the budget: escalated",
        TYPE_ERROR,
        3,
        True,
        [(FIX, "context_expand", 6), (FIX, "analyze_then_fix", 5), (ESCALATE, None, 5)],
    ),
    Example(
        "4: the pattern's own budget: dead letter after 3",
        {**TYPE_ERROR, "max_auto_retries": 2},
        None,
        True,
        [(FIX, "context_expand", 6), (FIX, "analyze_then_fix", 5), (DEAD, None, 4)],
    ),
    Example(
        "4: a different error each time: dead letter after 4",
        TYPE_ERROR,
        3,
        False,
        [(FIX, "context_expand", 6)] * 3 + [(DEAD, None, 4)],
    ),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_worked_example(
    make_failure: MakeFailure, make_pattern: MakePattern, example: Example
) -> None:
    pattern = make_pattern(**example.pattern)
    past: list[PastFailure] = []
    came: list[tuple[Action, str | None, int]] = []
    for number in range(len(example.expected)):
        code = "TS2339" if example.same else f"TS100{number}"
        failure = make_failure(pattern=pattern, error_code=code)
        decision: Decision = decide(
            situation(failure, pattern, past=past, limits=Limits(example.max_retries))
        )
        came.append((decision.action, decision.strategy, decision.rule))
        past.append(PastFailure(failure, decision.strategy))
    assert came == example.expected


@pytest.mark.parametrize(
    ("more", "confidence", "expected"),
    [
        ({}, 0.9, True),
        ({"non_retryable": True}, 0.9, False),
        ({"strategy": "escalate"}, 0.5, False),
        ({"non_retryable": True}, 0.49, True),
    ],
)
def test_what_a_pattern_says_of_asking_again(
    make_failure: MakeFailure,
    make_pattern: MakePattern,
    more: dict[str, Any],
    confidence: float,
    expected: bool,
) -> None:
    pattern = make_pattern("p", **more)
    failure = make_failure(pattern=pattern, confidence=confidence)
    assert is_retryable(failure, {"p": pattern}) is expected
    assert is_retryable(failure, {})
    assert is_retryable(make_failure(), {"p": pattern})

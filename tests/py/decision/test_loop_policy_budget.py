"""How often a task is tried again: a person's number, else the pattern's, else three; and progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from loki.decision.loop_policy import Action, FailureHistory, Limits, PastFailure, Situation, decide

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


@pytest.mark.parametrize(
    ("said", "of_pattern", "dead_after"), [(8, 3, 9), (1, 5, 2), (None, 5, 6), (None, None, 4)]
)
def test_a_persons_number_comes_first_then_the_patterns_then_three(
    make_failure: MakeFailure,
    make_pattern: MakePattern,
    said: int | None,
    of_pattern: int | None,
    dead_after: int,
) -> None:
    patterns = [] if of_pattern is None else [make_pattern(max_auto_retries=of_pattern)]
    past: list[PastFailure] = []
    for number in range(20):
        failure = make_failure(
            f"{OTHER} {'abcdefghi'[number] * 40}", *patterns, error_code=f"TS{number}001"
        )
        decision = decide(situation(failure, *patterns, past=past, limits=Limits(said)))
        past.append(PastFailure(failure, decision.strategy))
        if decision.action is Action.DEAD_LETTER:
            break
    assert len(past) == dead_after


def test_only_what_came_no_nearer_counts_for_a_patterns_retries(
    make_failure: MakeFailure, make_pattern: MakePattern
) -> None:
    pattern = make_pattern(max_auto_retries=1)
    failure = make_failure(pattern=pattern)
    nearer = [PastFailure(make_failure(OTHER, pattern), "a", progress=True)] * 8
    stalled = PastFailure(make_failure(OTHER, pattern), "a")

    def action(*past: PastFailure, **more: Any) -> Action:
        return decide(situation(failure, pattern, past=[*nearer, *past], **more)).action

    assert action() is Action.FIX
    assert action(stalled, progress=True) is Action.FIX
    assert action(stalled) is Action.DEAD_LETTER
    assert action(progress=True, limits=Limits(8)) is Action.DEAD_LETTER, "a person's is a person's"

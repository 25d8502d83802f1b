"""What is remembered of earlier failures, equal to a slow look at all of them."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from loki.decision.loop_policy import REMEMBERED, FailureHistory, PastFailure
from loki.recognition.failure import Failure
from loki.recognition.similarity import same_failure

NAMES = ["login", "logout", "basket", "receipt"]
FAILURES = [
    Failure.of(
        f"the {name} page shows no form for the visitor", path=f"{name}.py", pattern="test-failure"
    )
    for name in NAMES
] + [Failure.of("failed"), Failure.of("network is unreachable", pattern="network-error")]
ANSWERS = [None, "context_expand", "analyze_then_fix", "retry_with_backoff"]

pasts = st.lists(
    st.builds(
        PastFailure,
        st.sampled_from(FAILURES),
        st.sampled_from(ANSWERS),
        st.booleans(),
    ),
    max_size=30,
)


def slow_answers(failures: list[PastFailure], failure: Failure) -> set[str]:
    if not failure.is_specific:
        return set()
    return {
        past.answer
        for past in failures
        if past.answer
        and not past.infrastructure
        and past.failure.is_specific
        and same_failure(past.failure, failure)
    }


def streak(failures: list[PastFailure], holds: str) -> int:
    count = 0
    for past in reversed(failures):
        if not (
            past.infrastructure
            if holds == "infrastructure"
            else past.answer == "retry_with_backoff"
        ):
            break
        count += 1
    return count


@given(pasts, st.sampled_from([None, "dependency_check", "context_expand"]))
def test_it_equals_a_look_at_every_failure(
    failures: list[PastFailure], amended: str | None
) -> None:
    past = FailureHistory.of(failures)
    if amended and failures:
        last = failures[-1]
        failures = [*failures[:-1], PastFailure(last.failure, amended, last.infrastructure)]
        past = past.amended(amended)
    assert past.work == sum(not one.infrastructure for one in failures)
    assert past.infrastructure_streak == streak(failures, "infrastructure")
    assert past.wait_streak == streak(failures, "wait")
    assert dict(past.answers) == Counter(one.answer for one in failures if one.answer)
    for failure in FAILURES:
        assert past.answers_to(failure) == slow_answers(failures, failure)
    for pattern in ("test-failure", "network-error", "none"):
        expected = sum(not one.infrastructure and one.pattern == pattern for one in failures)
        assert past.earlier(pattern) == expected


def test_counts_stay_exact_and_the_newest_failures_are_known_however_many_there_were() -> None:
    many = [
        PastFailure(
            Failure.of(f"case{n} of module{n} has no value for key{n}", path=f"f{n}.py"),
            "context_expand",
        )
        for n in range(3 * REMEMBERED)
    ]
    past = FailureHistory.of(many)
    assert past.work == 3 * REMEMBERED
    assert past.answers == {"context_expand": 3 * REMEMBERED}
    assert past.answers_to(many[-1].failure) == {"context_expand"}
    assert past.answers_to(many[0].failure) == set()

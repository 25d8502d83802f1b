"""The table of a request for a person's decision, every row."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from loki.base.time import isoformat
from loki.people.human_review import (
    TIMEOUT,
    Answered,
    Asked,
    Block,
    GiveUp,
    HumanReview,
    MakeDeadLetter,
    Notify,
    Resume,
    ReviewStatus,
    TimePassed,
    step,
)

NOON = datetime(2026, 4, 4, 12, tzinfo=timezone.utc)
REVIEW = HumanReview("review-1", isoformat(NOON), "cost_limit", "t", "May it go on?")
LATER = NOON + timedelta(hours=1)


def test_asked_blocks_the_task_and_tells_people() -> None:
    standing, effects = step(REVIEW, ReviewStatus.NEW, Asked(), NOON)
    assert standing is ReviewStatus.OPEN
    assert effects == (
        Block("t", "cost_limit: May it go on?"),
        Notify("human_review", "task t: cost_limit: May it go on?"),
    )


@pytest.mark.parametrize(
    ("answer", "note", "effect"),
    [
        (ReviewStatus.APPROVED, "", Resume("t")),
        (ReviewStatus.APPROVED, "fine", Resume("t", "A person (ann) approved: fine")),
        (ReviewStatus.CLARIFIED, "use staging", Resume("t", "use staging")),
        (
            ReviewStatus.REJECTED,
            "too dear",
            Resume(
                "t", "A person (ann) was asked, and said no: May it go on?\nTheir reason: too dear"
            ),
        ),
        (ReviewStatus.ABORTED, "", GiveUp("t", "ann gave it up: no reason given")),
        (ReviewStatus.CANCELLED, "", Resume("t")),
    ],
)
def test_an_answer(answer: ReviewStatus, note: str, effect: object) -> None:
    assert step(REVIEW, ReviewStatus.OPEN, Answered(answer, "ann", note), LATER) == (
        answer,
        (effect,),
    )


def test_nobody_is_waited_for_longer_than_a_day() -> None:
    just_before = NOON + TIMEOUT - timedelta(milliseconds=1)
    assert step(REVIEW, ReviewStatus.OPEN, TimePassed(), just_before) == (ReviewStatus.OPEN, ())
    standing, effects = step(REVIEW, ReviewStatus.OPEN, TimePassed(), NOON + TIMEOUT)
    reason = "nobody answered review-1 within 24 h: cost_limit: May it go on?"
    assert standing is ReviewStatus.EXPIRED
    assert effects == (MakeDeadLetter("t", reason), Notify("human_review_expired", reason))


def test_an_answer_that_comes_late_counts_until_somebody_noticed() -> None:
    late = NOON + 2 * TIMEOUT
    answered = Answered(ReviewStatus.APPROVED, "ann")
    assert step(REVIEW, ReviewStatus.OPEN, answered, late)[0] is ReviewStatus.APPROVED
    assert step(REVIEW, ReviewStatus.EXPIRED, answered, late) == (ReviewStatus.EXPIRED, ())


@pytest.mark.parametrize("standing", [one for one in ReviewStatus if one is not ReviewStatus.OPEN])
def test_nothing_happens_twice(standing: ReviewStatus) -> None:
    for answer in ReviewStatus:
        event = Answered(answer, "ann")
        assert step(REVIEW, standing, event, NOON + 2 * TIMEOUT) == (standing, ())
    assert step(REVIEW, standing, TimePassed(), NOON + 2 * TIMEOUT) == (standing, ())
    if standing is not ReviewStatus.NEW:
        assert step(REVIEW, standing, Asked(), NOON) == (standing, ())


def test_asked_twice_is_asked_once() -> None:
    assert step(REVIEW, ReviewStatus.OPEN, Asked(), LATER) == (ReviewStatus.OPEN, ())


def test_what_nobody_says_is_no_answer() -> None:
    event = Answered(ReviewStatus.APPROVED, " ")
    assert step(REVIEW, ReviewStatus.OPEN, event, LATER) == (ReviewStatus.OPEN, ())


def test_one_that_blocks_nothing_does_nothing_to_the_task() -> None:
    review = HumanReview("review-1", isoformat(NOON), "cost_limit", "t", blocking=False)
    assert [type(e) for e in step(review, ReviewStatus.NEW, Asked(), NOON)[1]] == [Notify]
    event = Answered(ReviewStatus.ABORTED, "ann")
    assert step(review, ReviewStatus.OPEN, event, LATER) == (ReviewStatus.ABORTED, ())
    assert [type(e) for e in step(review, ReviewStatus.OPEN, TimePassed(), NOON + TIMEOUT)[1]] == [
        Notify
    ]


# --- what others wrote --------------------------------------------------------------------------------


def test_what_is_not_said_is_filled_in_and_what_is_not_known_is_kept() -> None:
    data = {"reason": "security_decision", "x-mine": {"a": 1}, "severity": "CRITICAL"}
    review = HumanReview.from_dict(data, NOON)
    assert (review.timestamp, review.severity, review.blocking) == (
        isoformat(NOON),
        "critical",
        True,
    )
    assert review.to_dict()["x-mine"] == {"a": 1}
    assert HumanReview.from_dict(data, NOON).id == review.id
    assert HumanReview.from_dict(review.to_dict(), LATER) == review


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"timestamp": 7, "reason": None, "severity": [], "alternatives_considered": 3},
        {"timestamp": "2999-01-01T00:00:00Z", "alternatives_considered": "one"},
        {"task_id": "\udcff", "blocking": "no", "agent": None},
    ],
)
def test_whatever_stands_there_is_a_request(data: dict[str, object]) -> None:
    review = HumanReview.from_dict(data, NOON)
    assert review.id
    assert review.reason
    assert review.until() == NOON + TIMEOUT

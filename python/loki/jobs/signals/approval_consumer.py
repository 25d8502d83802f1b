"""A person's decision in ``HUMAN_APPROVED``: kept where it answers an open request, refused else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loki.jobs.inbox import human_review_answers
from loki.jobs.signals.signal_consumer import Consumer, Dispatch, Done, Waits
from loki.people.signal import HUMAN_APPROVED

if TYPE_CHECKING:
    from loki.people.signal import Signal


def answer(dispatch: Dispatch, signal: Signal) -> Done | Waits:
    """Keep what a person has decided, and do what follows; why one is refused is logged."""
    named = signal.string_field("request_id")
    taken = [
        one for one in human_review_answers.finish_reviews(dispatch.workspace) if one.id == named
    ]
    if taken:
        return Done(f"{named} is {taken[0].answer.value} by {taken[0].by}")
    return Done(f"refused: it answers no open request ({named or 'it names none'})")


CONSUMERS: dict[str, Consumer] = {HUMAN_APPROVED: answer}

"""The requests for a person's decision of a project, and what was decided.

The requests are the signal ``HUMAN_REVIEW_NEEDED``, one after the other; what became of them stands in
``logs/requests.jsonl`` (`loki.people.request`). The first answer in that log counts: so two
people who answer at once, or a process that is killed between its answer and the end of the signal,
leave one answer.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from secrets import token_hex
from typing import Any

from loki.base import codec
from loki.base.error import UsageError
from loki.base.secret import masked
from loki.base.time import Clock, isoformat, moment
from loki.memory.store import Masked, Store, readable
from loki.people.human_review import (
    HUMAN_REVIEW,
    NOTHING,
    TIMEOUT,
    Answered,
    HumanReview,
    ReviewStatus,
    TimePassed,
    id_of,
    step,
)
from loki.people.request import LOG, RequestLog
from loki.people.signal import HUMAN_APPROVED, HUMAN_REVIEW_NEEDED, Signal, render
from loki.people.signals import Signals

NOBODY = "nobody"
"""Who decides where the time is up."""

LONGEST = 8_000
"""Characters of what a request says; chosen, not measured."""

logger = logging.getLogger("loki")


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of a request.

    Attributes:
        id: of the request.
        answer: approved, clarified, rejected, aborted, cancelled or expired.
        by: who decided.
        at: when, ISO 8601 UTC.
        note: why, or what the agent has to know.
        review: the request.
        token: of this very decision.
    """

    id: str
    answer: ReviewStatus
    by: str
    at: str
    note: str
    review: HumanReview
    token: str = ""

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Decision:
        """A decision from the log.

        Raises:
            ValueError: it is none.
        """
        asked = record.get("review")
        at = moment(str(record.get("at")))
        if not isinstance(asked, Mapping) or not record.get("id") or at is None:
            raise ValueError("no decision: expected an id, a time and the request")
        return cls(
            str(record["id"]),
            ReviewStatus(record.get("answer")),
            str(record.get("by") or NOBODY),
            isoformat(at),
            str(record.get("note") or ""),
            HumanReview.from_dict(asked, at),
            str(record.get("token") or ""),
        )

    def to_dict(self) -> dict[str, Any]:
        """What its line in the log says, besides the id."""
        said = codec.fields_of(self)
        del said["id"]
        return {"kind": HUMAN_REVIEW, "task_id": self.review.task_id, **said}


class HumanReviews:
    """The requests of a project.

    Args:
        store: where they are kept.
        clock: the time.
        timeout: how long a person is waited for.

    Example:
        >>> from loki.testing import ManualClock, MemoryStore
        >>> reviews = HumanReviews(MemoryStore(), ManualClock())
        >>> asked = reviews.ask(reason="cost_limit", task_id="t", context="May it go on?")
        >>> [one.context for one in reviews.open()]
        ['May it go on?']
        >>> reviews.decide(asked.id, approved=True, by="ann").answer.value, reviews.open()
        ('approved', [])
    """

    def __init__(self, store: Store, clock: Clock, timeout: timedelta = TIMEOUT) -> None:
        self._clock = clock
        self._timeout = timeout
        self._signals = Signals(store, clock)
        self._log = RequestLog(store, clock)

    def ask(
        self,
        *,
        reason: str,
        task_id: str = "",
        context: str = "",
        severity: str = "high",
        agent: str = "",
        blocking: bool = True,
        alternatives: Sequence[str] = (),
        about: Mapping[str, Any] = NOTHING,
    ) -> HumanReview:
        """Ask a person; the same question that is open already is asked once.

        Args:
            reason: a short name for why.
            task_id: the task that it is about.
            context: what exactly has to be decided.
            severity: low, medium, high or critical.
            agent: who asks.
            blocking: the task does not go on before it is answered.
            alternatives: what else could be done.
            about: what an answer is about, for programs.

        Raises:
            StoreError: it could not be kept.
        """
        said = {"reason": reason, "task_id": task_id, "context": context[:LONGEST]}
        before = sum(_same(one.review, masked(said)) for one in self.decisions())
        id_ = id_of({**said, "before": before})
        if (there := self._by_id(id_)) is not None:
            return there
        now = isoformat(self._clock.now())
        others = tuple(alternatives)
        extra = {"about": dict(about)} if about else {}
        asked = HumanReview(
            id_, now, reason, task_id, said["context"], severity, agent, blocking, others, extra
        )
        self._signals.emit(HUMAN_REVIEW_NEEDED, data=asked.to_dict())
        return self._by_id(id_) or asked

    def open(self) -> list[HumanReview]:
        """What waits for an answer, the oldest first; one that has no id yet gets one."""
        decided = self._decided()
        found: dict[str, HumanReview] = {}
        for signal in self._signals.all(HUMAN_REVIEW_NEEDED):
            if signal.standing == "unreadable":
                continue
            review = self._read(signal)
            if review.id in decided:  # whoever decided was killed before it was gone
                self._signals.consume(signal)
            else:
                found.setdefault(review.id, review)
        return sorted(found.values(), key=lambda one: one.timestamp)

    def find(self, id_: str) -> HumanReview | None:
        """The request of an id, open or not; None where there is none."""
        there = self._by_id(id_)
        decided = self._decided().get(id_)
        return there or (decided.review if decided else None)

    def of_task(self, task_id: str) -> list[HumanReview]:
        """The requests that keep a task from going on."""
        return [one for one in self.open() if one.blocking and one.task_id == task_id]

    def decide(
        self,
        id_: str,
        *,
        by: str,
        approved: bool = True,
        note: str = "",
        answer: ReviewStatus | None = None,
    ) -> Decision:
        """Keep an answer; what follows from it is `loki.people.human_review.step`.

        Args:
            id_: of the request.
            by: who decides.
            approved: yes or no.
            note: why, or what the agent has to know.
            answer: another one than yes or no: clarified, aborted or cancelled.

        Raises:
            UsageError: there is no such request, it is answered already, or nobody answers it.
            StoreError: it could not be kept.
        """
        if not by.strip():
            raise UsageError(f"{id_}: expected who decides")
        said = answer or (ReviewStatus.APPROVED if approved else ReviewStatus.REJECTED)
        return self._keep(id_, Answered(said, by, note), by, note)

    def expired(self, now: datetime) -> list[HumanReview]:
        """The open requests that nobody is to be waited for any more."""
        return [
            one
            for one in self.open()
            if step(one, ReviewStatus.OPEN, TimePassed(), now, self._timeout)[0]
            is ReviewStatus.EXPIRED
        ]

    def expire(self, id_: str) -> Decision:
        """Close a request that nobody answered; see `decide`."""
        return self._keep(id_, TimePassed(), NOBODY, "")

    def decisions(self, task_id: str | None = None) -> list[Decision]:
        """What was decided, oldest first: one decision for each request.

        Args:
            task_id: only on this task.
        """
        found = self._decided().values()
        return [one for one in found if task_id is None or one.review.task_id == task_id]

    def answers(self) -> list[Decision]:
        """Take what people wrote to ``HUMAN_APPROVED``; what names no open request never acts.

        Returns:
            The decisions that they are.
        """
        taken = []
        for signal in self._signals.all(HUMAN_APPROVED):
            decision, problem = self._answer(signal)
            if problem:
                logger.warning(".loki/%s: refused and removed: %s", signal.file, problem)
            if decision is not None:
                taken.append(decision)
            self._signals.consume(signal)
        return taken

    def untold(self) -> list[HumanReview]:
        """Open requests of which nobody has said that people were told."""
        told = self._log.ids("told")
        return [one for one in self.open() if one.id not in told]

    def mark_notified(self, id_: str) -> None:
        """People were told of a request."""
        self._log.add("told", id_)

    # --- What follows from a decision is carried out once -------------------------------------------

    def undone(self) -> list[Decision]:
        """Decisions of which nobody has said that what follows from them is done."""
        done = self._log.ids("done")
        return [one for one in self.decisions() if one.id not in done]

    def done(self, id_: str) -> None:
        """What follows from a decision is done."""
        self._log.add("done", id_)

    # --- How it is kept -----------------------------------------------------------------------------

    def _by_id(self, id_: str) -> HumanReview | None:
        return next((one for one in self.open() if one.id == id_), None)

    def _read(self, signal: Signal) -> HumanReview:
        now = self._clock.now()
        given = isoformat(signal.given_at) if signal.given_at else ""
        review = HumanReview.from_dict({**signal.data, "timestamp": given}, now)
        # One that is said to be asked in the time to come is asked now: else it would wait for ever.
        if signal.data.get("id") != review.id or given > review.timestamp:
            text = Masked(render(masked(review.to_dict())))
            self._signals.rewrite(signal, text)
        return review

    def _decided(self) -> dict[str, Decision]:
        found: dict[str, Decision] = {}
        for decision in readable(LOG, self._log.all("decided"), Decision.from_record):
            found.setdefault(decision.id, decision)
        return found

    def _keep(self, id_: str, event: Answered | TimePassed, by: str, note: str) -> Decision:
        review, now = self._by_id(id_), self._clock.now()
        if review is None:
            raise UsageError(self._not_open(id_))
        status, _ = step(review, ReviewStatus.OPEN, event, now, self._timeout)
        if status is ReviewStatus.OPEN:
            raise UsageError(f"{id_} is waited for still")
        at = isoformat(now)
        mine = Decision(review.id, status, by, at, note.strip()[:LONGEST], review, token_hex(8))
        self._log.add("decided", review.id, **mine.to_dict())
        first = self._decided()[review.id]
        self._remove(review.id)
        if first.token != mine.token:
            raise UsageError(self._not_open(review.id))
        return first

    def _remove(self, id_: str) -> None:
        for signal in self._signals.all(HUMAN_REVIEW_NEEDED):
            if self._read(signal).id == id_:
                self._signals.consume(signal)

    def _not_open(self, id_: str) -> str:
        decided = self._decided().get(id_)
        if decided is not None:
            how = (
                "nobody answered it in time"
                if decided.answer is ReviewStatus.EXPIRED
                else (f"{decided.answer.value} by {decided.by}")
            )
            return f"{id_} is answered already: {how}, at {decided.at}"
        there = ", ".join(one.id for one in self.open()) or "nothing"
        return f"no request {id_!r} waits for a person; there waits: {there}"

    def _answer(self, signal: Signal) -> tuple[Decision | None, str]:
        """(the decision that a file is, or None; what is wrong with it, or "")."""
        if signal.standing == "unreadable":
            return None, signal.problem
        named, by = signal.string_field("request_id"), signal.string_field("by").strip()
        review = self._by_id(named) if named else None
        decided = self._decided().get(named)
        if decided is not None and by == decided.by:
            return None, ""  # taken before; whoever took it was killed
        if review is None:
            return None, self._not_open(named) if named else "it names no request"
        if not by:
            return None, f"it does not say who decided on {named} (by)"
        if signal.given_at is not None and isoformat(signal.given_at) < review.timestamp:
            return None, f"it is older than the request {named}"
        approved = signal.data.get("approved") is True
        return self.decide(named, approved=approved, by=by, note=signal.string_field("note")), ""


def _same(review: HumanReview, said: Mapping[str, Any]) -> bool:
    return all(getattr(review, name) == value for name, value in said.items())

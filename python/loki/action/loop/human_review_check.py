"""Asks a person before the loop goes on where a rule says so: the rules' facts, and their requests.

It stands before the effects: what fires, fires before checks run, before an agent is asked, or before
a change is made; the machine is told by one event, and knows nothing of rules. What a person approved
is not asked again: a command by its very words, a change by its digest. Such a change is kept, and
made as it was once it is approved.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from loki.action.agent_protocol import Proposal
from loki.action.changes.change import Change, Merge
from loki.action.changes.tree import Tree
from loki.action.loop.loop_events import (
    Answered,
    Ask,
    Effect,
    Event,
    Execute,
    ReviewNeeded,
    RunChecks,
)
from loki.action.loop.recorder import kept_change
from loki.action.task import TaskSpec
from loki.base import codec, documents
from loki.base.documents import kept_as
from loki.base.secret import mask_secrets, masked
from loki.memory.attempt import log_name
from loki.memory.store import Store
from loki.memory.task_record import Outcome
from loki.people import human_review
from loki.people.approval import Approvals
from loki.people.human_review import (
    COST,
    FAILED_RUNS,
    LOW_CONFIDENCE,
    HumanReview,
    Proposed,
    ReviewStatus,
    Rules,
    Trigger,
    is_about_done,
    of_commands,
    of_cost,
    of_failed_runs,
    of_proposal,
    of_question,
    of_security,
)
from loki.people.request import LONGEST, HumanReviews, review_page


@kept_as(r"tasks/[^/]+/withheld\.json")
@dataclass
class _Withheld:
    review: str = ""
    change: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""
    confidence: float | None = None
    agent: str | None = None
    model: str | None = None


@dataclass
class HumanReviewCheck:
    """Asks people about one task.

    Args:
        task: the task.
        rules: what the project wants to be asked about.
        reviews: where it is asked.
        store: what is known of the task.
        root: the project's folder.
        spent: US dollars that all tasks took in the last hour.
        allowed: tells whether the project lets a command run.
        asked: called where a request may be new.
        notify: told of each end.
    """

    task: TaskSpec
    rules: Rules
    reviews: HumanReviews
    store: Store
    root: str
    spent: Callable[[], float]
    allowed: Callable[[tuple[str, ...]], bool]
    asked: Callable[[], None]
    notify: Callable[[Outcome], None]

    def __post_init__(self) -> None:
        """Join the rooms."""
        self._approvals = Approvals(self.store, self.task.id)
        self._is_begun = False
        self._change: Change | None = None

    def before(self, effect: Effect) -> ReviewNeeded | None:
        """What a person has to decide before an effect is performed; None: nothing."""
        if isinstance(effect, RunChecks):
            is_first, self._is_begun = not self._is_begun, True
            return (self._open() or self._before_checks()) if is_first else None
        if isinstance(effect, Ask):
            return self._open() or self._ask(self._cost())
        if isinstance(effect, Execute) and not effect.commands_only:
            return self._open() or self._before_change(effect.proposal)
        return self._open() if isinstance(effect, Merge) else None

    def answered(self, event: Event) -> Event:
        """What an agent answered; where it asks a person, that."""
        if not isinstance(event, Answered):
            return event
        trigger = of_question(event.proposal.question, self.rules)
        # Or it gave the signal for it.
        needed = self._ask(trigger, event.proposal.agent) or self._open()
        return replace(needed, proposal=event.proposal) if needed else event

    def page(self, outcome: Outcome) -> str | None:
        """The page of what a person is asked, where a task ended with that."""
        review = self.reviews.find(outcome.review) if outcome.review else None
        if review is None:
            return None
        diff = self._change.diff(Tree.scan(Path(self.root))) if self._change else ""
        return review_page(review, self.task.title, outcome.files, mask_secrets(diff))

    def ended(self, outcome: Outcome) -> None:
        """Ask what has to be asked of a task that has ended."""
        self.notify(outcome)
        if outcome.status == "failed" and outcome.trigger != "aborted":
            self._ask(self._failed_runs())
        if outcome.awaiting and self.task.kind == "security" and self.rules.security:
            trigger = of_security(self.task.title, outcome.files)
            about = {"criteria": list(outcome.awaiting)}
            self._ask(replace(trigger, data=about))

    def pending_proposal(self) -> Proposal | None:
        """The change that was kept from being made and that a person approved since; once."""
        data = documents.load_as(_Withheld, self.store, self._document)
        approved = {one.id for one in self._decisions(ReviewStatus.APPROVED)} if data else ()
        if data is None or data.review not in approved:
            return None
        trouble = "the change that was approved cannot be read"
        change = kept_change(self.store, self._document, data.change, trouble)
        if change is None:
            return None
        self.store.update(self._document, lambda _: None)
        return Proposal(change, data.description, data.confidence, data.agent or "", data.model)

    # --- The rules ------------------------------------------------------------------------------

    def _open(self) -> ReviewNeeded | None:
        # One of security is about whether the work counts as done; that is looked at where it ends.
        there = [
            one
            for one in self.reviews.of_task(self.task.id)
            if not is_about_done(one) and not self._is_agents_own(one)
        ]
        if not there:
            return None
        self.asked()  # another program's, or an agent's, is new to us
        return ReviewNeeded(there[0].id, f"{there[0].reason}: {there[0].context}")

    def _is_agents_own(self, review: HumanReview) -> bool:
        """Whether it is a question of an agent's, which this project does not want to be asked."""
        is_ours = review.reason in human_review.REASONS
        return not is_ours and not self.rules.ambiguity

    def _before_checks(self) -> ReviewNeeded | None:
        commands = [check.command for check in self.task.checks if check.command]
        who = "A check of the task runs"
        found = of_commands(commands, self.rules, self.root, self._approved, who)
        return self._ask(found or self._failed_runs())

    def _before_change(self, proposal: Proposal) -> ReviewNeeded | None:
        change = proposal.change
        digest = change.digest()
        proposed = Proposed(
            self.task.kind,
            self.task.complexity,
            proposal.confidence,
            [edit.path for edit in change.edits if edit.after is None],
            # One that is not allowed is not run; whether it may be is asked for elsewhere.
            [words for words in change.commands if self.allowed(words)],
            proposal.description,
            digest,
        )
        rules = self.rules
        approved = self._decisions(ReviewStatus.APPROVED)
        unsure = [one for one in approved if one.reason == LOW_CONFIDENCE]
        if any(_about(one).get("digest") == digest for one in unsure):
            rules = replace(rules, low_confidence=False)
        needed = self._ask(of_proposal(proposed, rules, self.root, self._decided), proposal.agent)
        if needed is not None:
            self._keep(proposal, needed.review)
        return needed

    def _failed_runs(self) -> Trigger | None:
        decided = [
            one for one in self.reviews.decisions(self.task.id) if one.review.reason == FAILED_RUNS
        ]
        since = decided[-1].at if decided else ""
        records = self.store.scan(log_name(self.task.id)) if self.rules.failed_runs else ()
        runs = failed_runs(records, since)
        return of_failed_runs(len(runs), self.rules, runs[-1] if runs else "")

    def _cost(self) -> Trigger | None:
        """Whether too much is spent: by far more, too, than when a person said yes last."""
        trigger = of_cost(self.spent(), self.rules)
        if trigger is None:
            return None
        yes = (ReviewStatus.APPROVED, ReviewStatus.CLARIFIED)
        allowed = [one for answer in yes for one in self._decisions(answer) if one.reason == COST]
        return of_cost(self.spent(), self.rules, max(map(_dollars, allowed), default=0.0))

    # --- Asking ---------------------------------------------------------------------------------

    def _ask(self, trigger: Trigger | None, agent: str = "") -> ReviewNeeded | None:
        if trigger is None:
            return None
        about = trigger.data if len(json.dumps(dict(trigger.data))) < LONGEST else {}
        review = self.reviews.ask(
            reason=trigger.reason,
            task_id=self.task.id,
            context=trigger.context,
            severity=trigger.severity,
            agent=agent,
            alternatives=trigger.alternatives,
            about=about,
        )
        self.asked()
        return ReviewNeeded(review.id, trigger.context)

    def _decisions(self, answer: ReviewStatus) -> list[HumanReview]:
        return [one.review for one in self.reviews.decisions(self.task.id) if one.answer is answer]

    def _decided(self, words: Sequence[str]) -> bool:
        """Whether a person decided on exactly these words; a no is the executor's to say."""
        return self._approvals.of_command(words) is not None

    def _approved(self, words: Sequence[str]) -> bool:
        said = self._approvals.of_command(words)
        return said is not None and said.approved

    @property
    def _document(self) -> str:
        return f"tasks/{self.task.id}/withheld.json"

    def _keep(self, proposal: Proposal, review: str) -> None:
        self._change = proposal.change
        said = proposal.description, proposal.confidence, proposal.agent, proposal.model
        data = codec.write(_Withheld(review, proposal.change.to_dict(), *said))
        if masked(data) == data:  # with its secrets masked it would be another change
            self.store.write(self._document, json.dumps(data) + "\n")


def _about(review: HumanReview) -> Mapping[str, Any]:
    about = review.extra.get("about")
    return about if isinstance(about, Mapping) else {}


def _dollars(review: HumanReview) -> float:
    """What had been spent when a person was asked."""
    said = _about(review).get("dollars")
    return float(said) if isinstance(said, (int, float)) else 0.0


def failed_runs(records: Any, since: str = "") -> list[str]:
    """What ended each run of a task that failed, of those in a row up to the last.

    Args:
        records: of the task's log, oldest first.
        since: runs that ended before this, ISO 8601 UTC, do not count.

    Example:
        >>> ends = [{"ends": n, "at": "2026-04-04", "outcome": {"status": s, "reason": s}}
        ...         for n, s in enumerate(["failed", "success", "failed", "paused", "failed"], 1)]
        >>> failed_runs(ends)
        ['failed', 'failed']
    """
    last: dict[Any, tuple[str, str, str, str]] = {}
    for record in records:
        outcome = record.get("outcome")
        if "ends" in record and isinstance(outcome, Mapping):
            said = (outcome.get(key) for key in ("status", "trigger", "reason"))
            status, trigger, reason = (str(one or "") for one in said)
            last[record["ends"]] = (str(record.get("at")), status, trigger, reason)
    found: list[str] = []
    for at, status, trigger, reason in last.values():
        if status in {"success", "unverified"}:
            found = []
        elif status == "failed" and trigger != "aborted" and at > since:
            found.append(reason)
    return found

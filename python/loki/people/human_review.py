"""A request for a person's decision: ``HUMAN_REVIEW_NEEDED``, and what becomes of it; pure.

`step` is the table: (standing, event) → (standing, effects). The requests of a project are kept by
`loki.people.request`, the effects are carried out by ``loki.jobs.inbox``. When a person is asked
say six rules, each a function from facts to a `Trigger`, or None where it does not fire; a project switches
them in ``[review]`` of its ``config.toml``. Why it is so: ``docs/design/human-review.md``.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from types import MappingProxyType
from typing import Any, TypeAlias

from loki.base.text_format import escape_control_characters
from loki.base.time import isoformat, moment
from loki.people.approval import irreversible

TIMEOUT = timedelta(hours=24)
"""After which nobody is waited for any more, as the specification has it."""

HUMAN_REVIEW = "human_review"
"""The trigger of what waits for a person's decision."""

SEVERITIES = ("low", "medium", "high", "critical")

NOTHING: Mapping[str, Any] = MappingProxyType({})

PREFIX = "review-"
"""What ids of ours begin with."""

_ID = re.compile(r"[A-Za-z0-9_][\w.:@/+-]{0,99}")
"""Of other programs: what can be typed in a command as it is. Any other gets an id of ours."""

_KNOWN = (
    "id", "timestamp", "reason", "task_id", "context", "severity", "agent", "blocking",
    "alternatives_considered",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class HumanReview:
    """What a person is asked.

    Attributes:
        id: by which it is answered.
        timestamp: when it was asked, ISO 8601 UTC.
        reason: why a person: a short name, like ``low_confidence``.
        task_id: the task that it is about, or "".
        context: what exactly has to be decided, in sentences.
        severity: low, medium, high or critical.
        agent: who asks, or "".
        blocking: the task does not go on before it is answered.
        alternatives_considered: what else could be done, and why it was not.
        extra: fields that loki does not know.
    """

    id: str
    timestamp: str
    reason: str
    task_id: str = ""
    context: str = ""
    severity: str = "high"
    agent: str = ""
    blocking: bool = True
    alternatives_considered: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], otherwise: datetime) -> HumanReview:
        """A request as it was written, by whomever; what is not said is filled in.

        Args:
            data: the fields.
            otherwise: when it was asked, where it does not say so or names a time to come.
        """
        said = moment(str(data.get("timestamp", "")))
        at = isoformat(otherwise if said is None or said > otherwise else said)
        severity = str(data.get("severity", "")).lower()
        others = data.get("alternatives_considered") or ()
        others = (others,) if isinstance(others, str) else others
        id_ = str(data.get("id") or "")
        return cls(
            id_ if _ID.fullmatch(id_) else id_of({**data, "timestamp": at}),
            at,
            str(data.get("reason") or "not said"),
            str(data.get("task_id") or ""),
            str(data.get("context") or ""),
            severity if severity in SEVERITIES else "high",
            str(data.get("agent") or ""),
            data.get("blocking") is not False,
            tuple(map(str, others)) if isinstance(others, (list, tuple)) else (),
            {name: value for name, value in data.items() if name not in _KNOWN},
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form, as ``HUMAN_REVIEW_NEEDED`` has it."""
        known = {name: getattr(self, name) for name in _KNOWN}
        others = list(self.alternatives_considered)
        return {**self.extra, **known, "alternatives_considered": others}

    @property
    def asked(self) -> str:
        """What a person is to decide, in words; a reason that is a mere name is left out.

        Example:
            >>> HumanReview("r", "", "cost", context="Go on?").asked
            'Go on?'
            >>> HumanReview("r", "", "May I use the key?", context="It is of production").asked
            'May I use the key? It is of production'
        """
        reason = self.reason.strip()
        if not self.context or " " not in reason:
            return self.context or reason
        return f"{reason}{' ' if reason[-1] in '.:;!?' else ': '}{self.context}"

    def until(self, timeout: timedelta = TIMEOUT) -> datetime | None:
        """When nobody is waited for any more; None: its time cannot be read."""
        asked = moment(self.timestamp)
        return asked + timeout if asked else None


def id_of(data: Mapping[str, Any]) -> str:
    """An id for a request: the same for the same fields, whoever makes it.

    Example:
        >>> id_of({"reason": "cost"}) == id_of({"reason": "cost"}), len(id_of({}))
        (True, 13)
    """
    text = json.dumps(data, sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{PREFIX}{digest[:6]}"


# --- The table: (standing, event) → (standing, effects) ---------------------------------------------


class ReviewStatus(str, Enum):
    """Where a request stands."""

    NEW = "new"
    OPEN = "open"
    APPROVED = "approved"
    CLARIFIED = "clarified"
    REJECTED = "rejected"
    ABORTED = "aborted"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Asked:
    """Somebody asks."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A person answers.

    Attributes:
        answer: approved, clarified, rejected, aborted or cancelled.
        by: who decides.
        note: why, or what the agent has to know.
    """

    answer: ReviewStatus
    by: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class TimePassed:
    """Nothing happened; it is later."""


@dataclass(frozen=True, slots=True)
class Block:
    """The task is not to be worked on."""

    task_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Resume:
    """The task may go on; the agent is told this, "" for nothing."""

    task_id: str
    told: str = ""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The task is given up, its changes are undone."""

    task_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class MakeDeadLetter:
    """The task becomes a dead letter."""

    task_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Notify:
    """People are told.

    Attributes:
        kind: see `loki.people.notification`.
        sentence: what happened.
    """

    kind: str
    sentence: str


Event: TypeAlias = Asked | Answered | TimePassed
Effect: TypeAlias = Block | Resume | GiveUp | MakeDeadLetter | Notify
Step: TypeAlias = "tuple[ReviewStatus, tuple[Effect, ...]]"


def step(
    review: HumanReview,
    standing: ReviewStatus,
    event: Event,
    now: datetime,
    timeout: timedelta = TIMEOUT,
) -> Step:
    """Where a request stands after an event, and what is to be done.

    What is answered stays as it is: an answer that comes later, or twice, does nothing. So does one
    that nobody has given. A late answer counts as long as nobody has noticed that the time is up.

    Args:
        review: the request.
        standing: where it stands; not changed.
        event: what happened.
        now: the time of day.
        timeout: how long a person is waited for.

    Example:
        >>> from datetime import timezone
        >>> noon = datetime(2026, 4, 4, 12, tzinfo=timezone.utc)
        >>> review = HumanReview("review-1", isoformat(noon), "cost", "t")
        >>> step(review, ReviewStatus.OPEN, Answered(ReviewStatus.APPROVED, "ann"), noon)[1]
        (Resume(task_id='t', told=''),)
        >>> step(review, ReviewStatus.OPEN, TimePassed(), noon + TIMEOUT)[0].value
        'expired'
    """
    if standing is ReviewStatus.NEW and isinstance(event, Asked):
        return ReviewStatus.OPEN, (*_on_task(review, Block, _why(review)), _asked(review))
    if standing is not ReviewStatus.OPEN:
        return standing, ()
    until = review.until(timeout)
    if isinstance(event, TimePassed) and until is not None and now >= until:
        return _expired(review, timeout)
    if isinstance(event, Answered) and event.by.strip():
        return _ANSWERS[event.answer](review, event)
    return standing, ()


def _expired(review: HumanReview, timeout: timedelta) -> Step:
    hours = timeout.total_seconds() / 3600
    reason = f"nobody answered {review.id} within {hours:g} h: {_why(review)}"
    return ReviewStatus.EXPIRED, (
        *_on_task(review, MakeDeadLetter, reason),
        Notify("human_review_expired", reason),
    )


def notice(review: HumanReview, answer: ReviewStatus, by: str, note: str) -> str:
    """What whoever works on the task is told of an answer; "" where it holds no word for them.

    Args:
        review: what was asked.
        answer: what was answered.
        by: who did; note: why, or what the agent has to know.

    Example:
        >>> print(notice(HumanReview("r", "", "cost", context="Go on?"), ReviewStatus.REJECTED, "ann", ""))
        A person (ann) was asked, and said no: Go on?
    """
    if answer is ReviewStatus.APPROVED:
        return f"A person ({by}) approved: {note}" if note else ""
    if answer is ReviewStatus.REJECTED:
        no = f"A person ({by}) was asked, and said no: {review.asked}"
        return f"{no}\nTheir reason: {note}" if note else no
    return note if answer is ReviewStatus.CLARIFIED else ""


def _goes_on(review: HumanReview, event: Answered) -> Step:
    words = notice(review, event.answer, event.by, event.note)
    return event.answer, _on_task(review, Resume, words)


def _rejected(review: HumanReview, event: Answered) -> Step:
    """With a reason the agent can look for another way; a plain no leaves it nothing to do."""
    if event.note.strip():
        return _goes_on(review, event)
    return event.answer, _on_task(review, Block, f"{event.by} said no: {_why(review)}")


def _aborted(review: HumanReview, event: Answered) -> Step:
    reason = f"{event.by} gave it up: {event.note or 'no reason given'}"
    return ReviewStatus.ABORTED, _on_task(review, GiveUp, reason)


_ANSWERS: Mapping[ReviewStatus, Callable[[HumanReview, Answered], Step]] = {
    ReviewStatus.APPROVED: _goes_on,
    ReviewStatus.CLARIFIED: _goes_on,
    ReviewStatus.REJECTED: _rejected,
    ReviewStatus.ABORTED: _aborted,
    ReviewStatus.CANCELLED: _goes_on,
}


def _on_task(
    review: HumanReview, what: Callable[[str, str], Effect], text: str
) -> tuple[Effect, ...]:
    """Something that is done to the task, where there is one that waits."""
    return (what(review.task_id, text),) if review.task_id and review.blocking else ()


def _why(review: HumanReview) -> str:
    is_name = " " not in review.reason.strip()
    return f"{review.reason}: {review.context}" if is_name and review.context else review.asked


def _asked(review: HumanReview) -> Notify:
    about = f"task {review.task_id}: " if review.task_id else ""
    return Notify("human_review", f"{about}{_why(review)}")


# --- When a person is asked before work goes on -----------------------------------------------------

LOW_CONFIDENCE = "low_confidence"
SECURITY = "security_decision"
IRREVERSIBLE = "irreversible_operation"
FAILED_RUNS = "failed_runs"
AMBIGUITY = "blocking_ambiguity"
COST = "cost_limit"

REASONS = frozenset({LOW_CONFIDENCE, SECURITY, IRREVERSIBLE, FAILED_RUNS, AMBIGUITY, COST})
"""Of requests that loki makes itself."""

MANY = 10
"""Names of files that a sentence lists; chosen, not measured."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a person is asked about; the defaults are the specification's.

    Attributes:
        low_confidence: where an agent is unsure of a critical decision.
        min_confidence: under this it is unsure.
        security: before a change of a security task counts as done.
        irreversible: before a command that no undo reaches.
        failed_runs: after so many failed runs of a task in a row; 0: never.
        ambiguity: where an agent asks.
        cost_per_hour: US dollars in an hour that all tasks together may take; 0: any.
    """

    low_confidence: bool = True
    min_confidence: float = 0.40
    security: bool = True
    irreversible: bool = True
    failed_runs: int = 3
    ambiguity: bool = True
    cost_per_hour: float = 100.0


@dataclass(frozen=True, slots=True)
class Trigger:
    """Why a person is asked, and what.

    Attributes:
        reason: its short name, as a request has it.
        context: what happened, and what exactly has to be decided.
        severity: low, medium, high or critical.
        alternatives: what else could be done.
        data: what an answer is about, JSON-able: kept with the request.
    """

    reason: str
    context: str
    severity: str = "high"
    alternatives: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Proposed:
    """What an agent proposes, as far as a person has to do with it.

    Attributes:
        kind, complexity: of the task.
        confidence: what the agent says of it, 0 to 1; None: it does not say.
        removes: paths that it removes.
        commands: words of each command that it runs, as far as the project lets it.
        description: what it says it does.
        digest: of exactly this change.
    """

    kind: str
    complexity: str
    confidence: float | None = None
    removes: Sequence[str] = ()
    commands: Sequence[Sequence[str]] = ()
    description: str = ""
    digest: str = ""


Decided = Callable[[Sequence[str]], bool]
"""Whether a person has decided on exactly these words."""


def of_proposal(proposed: Proposed, rules: Rules, root: str, decided: Decided) -> Trigger | None:
    """Whether a person has to look before a proposal is carried out.

    Args:
        proposed: the proposal.
        rules: what the project wants to be asked about.
        root: the project's folder, absolute.
        decided: tells whether a person has decided on a command, word by word.

    Example:
        >>> unsure = Proposed("bug_fix", "medium", 0.3, removes=["a.py"], digest="d")
        >>> of_proposal(unsure, Rules(), "/p", lambda words: False).reason
        'low_confidence'
        >>> of_proposal(Proposed("bug_fix", "medium", 0.3), Rules(), "/p", lambda words: False)
    """
    found = of_commands(proposed.commands, rules, root, decided, "The change wants to run")
    return found or _low_confidence(proposed, rules, root)


def of_commands(
    commands: Sequence[Sequence[str]], rules: Rules, root: str, decided: Decided, who: str
) -> Trigger | None:
    """Whether a command is among them that cannot be taken back, and that nobody has decided on."""
    if not rules.irreversible:
        return None
    for words in commands:
        operation = irreversible(words, root)
        if operation is None or decided(words):
            continue
        shown = escape_control_characters(shlex.join(words))
        return Trigger(
            IRREVERSIBLE,
            f"{who} `{shown}`: {operation.why}, and `loki undo` cannot restore that. Decide whether "
            "exactly this command may run.",
            "critical",
            ("Run it yourself, and go on without it",),
            {"command": list(words), "operation": operation.id},
        )
    return None


def _low_confidence(proposed: Proposed, rules: Rules, root: str) -> Trigger | None:
    confidence = proposed.confidence
    if not rules.low_confidence or confidence is None or not confidence < rules.min_confidence:
        return None
    why = _critical(proposed, root)
    if not why:
        return None
    does = escape_control_characters(proposed.description.strip())
    return Trigger(
        LOW_CONFIDENCE,
        f"The agent is {confidence:.0%} sure of its proposal, less than {rules.min_confidence:.0%}, "
        f"and {why}. It would: {does or '(it does not say what)'}. Decide whether this change is to "
        "be made.",
        "high",
        ("Say what the agent lacks (a clarification), and have it propose again",),
        {"digest": proposed.digest},
    )


def _critical(proposed: Proposed, root: str) -> str:
    """Why a decision is critical, a clause; "" where it is not."""
    if proposed.kind == "security":
        return "the task is about security"
    if proposed.complexity == "high":
        return "the task is of high complexity"
    if proposed.removes:
        listed = ", ".join(map(escape_control_characters, proposed.removes[:MANY]))
        more = len(proposed.removes) - MANY
        return f"it removes {listed}{f' and {more} more' if more > 0 else ''}"
    for words in proposed.commands:
        if operation := irreversible(words, root):
            return f"it runs `{escape_control_characters(shlex.join(words))}`: {operation.why}"
    return ""


def of_failed_runs(count: int, rules: Rules, last: str = "") -> Trigger | None:
    """Whether so many runs of a task in a row have failed that a person has to look.

    Args:
        count: runs that failed, one after the other, up to the last.
        rules: what the project wants.
        last: what failed last.

    Example:
        >>> of_failed_runs(3, Rules()).severity, of_failed_runs(2, Rules())
        ('high', None)
    """
    if not rules.failed_runs or count < rules.failed_runs:
        return None
    failed = f" The last one: {escape_control_characters(last)}." if last else ""
    return Trigger(
        FAILED_RUNS,
        f"{count} runs of this task in a row have failed.{failed} Decide whether it is to be tried "
        "again, with what help, or given up.",
        "high",
        ("Make the task smaller", "Mend it by hand"),
        {"runs": count},
    )


def of_question(question: str, rules: Rules) -> Trigger | None:
    """Whether an agent asks something that a person has to answer before it goes on."""
    if not rules.ambiguity or not question.strip():
        return None
    return Trigger(
        AMBIGUITY,
        f"The agent asks: {escape_control_characters(question.strip())} Answer it.",
        "medium",
    )


def of_cost(dollars: float, rules: Rules, allowed: float = 0.0) -> Trigger | None:
    """Whether all tasks together have taken more in the last hour than they may without asking.

    Args:
        dollars: US dollars in the last hour.
        rules: what the project wants.
        allowed: what they had taken when a person let the task go on: it may until they take the
            limit more.

    Example:
        >>> of_cost(120, Rules()).context.split(":")[0]
        'Agents took $120.00 in the last hour, over the limit of $100.00 ([review] cost_per_hour)'
    """
    if not rules.cost_per_hour or dollars <= allowed + rules.cost_per_hour:
        return None
    return Trigger(
        COST,
        f"Agents took ${dollars:,.2f} in the last hour, over the limit of "
        f"${rules.cost_per_hour:,.2f} ([review] cost_per_hour): all tasks of the project counted. "
        "Decide whether this one goes on.",
        "high",
        ("Wait: what was spent over an hour ago does not count",),
        {"dollars": dollars},
    )


def is_about_done(review: HumanReview) -> bool:
    """Whether a request of ours asks whether work counts as done; others ask before it goes on."""
    about = review.extra.get("about")
    return review.reason == SECURITY and isinstance(about, Mapping) and "criteria" in about


def of_security(title: str, files: Sequence[str]) -> Trigger:
    """What a person is asked before the change of a security task counts as done."""
    listed = ", ".join(map(escape_control_characters, files[:MANY])) or "nothing"
    return Trigger(
        SECURITY,
        f"“{escape_control_characters(title)}” is about security, and every other check passes. It changed "
        f"{listed}. Look at the change, and decide whether it counts as done.",
        "critical",
    )

"""What waits for a person: one form for whatever asks, with the commands that answer it.

What kinds there are, and what an answer to each does, is `loki.jobs.inbox.inbox`. A page tells what
happened, the ways to answer with the command for each, and what exactly the person must decide; what it
quotes is hostile and stays in its place.

The log, ``logs/requests.jsonl``, says who was told of a request, its number, what was answered, by whom, and
whether what follows is done. The first line about a thing counts, whoever wrote it: so processes agree
without waiting for each other, and one that is killed leaves a line or none. Why it is so:
``docs/design/human-review.md``.

Requests for a decision are the signal ``HUMAN_REVIEW_NEEDED``, one after the other; what became of them
stands in that log, too: two people who answer at once, or a process that is killed between its answer and
the end of the signal, leave one answer.
"""

from __future__ import annotations

import hashlib
import logging
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from secrets import token_hex
from typing import Any, Literal, TypeAlias

from loki.base import codec, documents
from loki.base.documents import Masked, kept_as, readable
from loki.base.error import UsageError
from loki.base.markup import bullets, code, fence, inline, quotation
from loki.base.secret import masked
from loki.base.time import Clock, isoformat, moment
from loki.memory.store import Store
from loki.people.human_review import (
    HUMAN_REVIEW,
    NOTHING,
    TIMEOUT,
    Answered,
    HumanReview,
    ReviewStatus,
    TimePassed,
    id_of,
    is_about_done,
    step,
)
from loki.people.signal import HUMAN_APPROVED, HUMAN_REVIEW_NEEDED, Signal, render
from loki.people.signals import Signals

RequestKind: TypeAlias = Literal[
    "rule",
    "human_review",
    "approval",
    "command",
    "stage",
    "escalation",
    "dead_letter",
    "recurring",
    "candidate",
    "blocked",
    "stuck",
    "signal",
    "stopped",
    "breaker",
]
"""What asks."""


@dataclass(frozen=True, slots=True)
class Option:
    """One way to answer.

    Attributes:
        name: what it is, in a word or two.
        command: the command that does it, as it is typed.
        follows: what comes of it, and what speaks for and against it; "" where the name says it.
    """

    name: str
    command: str
    follows: str = ""

    @property
    def verb(self) -> str:
        """approve or reject; "" for a command of another kind."""
        words = self.command.split(maxsplit=2)
        return words[1] if words[:1] == ["loki"] and words[1] in {"approve", "reject"} else ""

    @property
    def takes(self) -> str:
        """What words with it are: context for the agent, a note why; "" where it takes none."""
        return next((word for word in ("context", "note") if f"--{word}" in self.command), "")

    @property
    def aborts(self) -> bool:
        """Whether its task is given up."""
        return "--abort" in self.command

    def typed(self, id_: str, number: int) -> str:
        """The command as a person types it: by the number, the words without their option.

        Args:
            id_: of the request.
            number: of the request; 0: it has none.

        Example:
            >>> Option("no", 'loki reject t --note "why"').typed("t", 3)
            'loki reject 3 "why"'
        """
        long = f"loki {self.verb} {shlex.quote(id_)}"
        if not (number and self.verb and self.command.startswith(long)):
            return self.command
        return self.command.replace(long, f"loki {self.verb} {number}").replace(
            f" --{self.takes} ", " "
        )


@dataclass(frozen=True, slots=True)
class Evidence:
    """Something to look at before answering.

    Attributes:
        kind: what it is: ``changed`` a path, ``asks`` who, ``severity``, ``instead`` what else could be
            done, ``source`` what it was drawn from.
        text: it.
    """

    kind: Literal["changed", "asks", "severity", "instead", "source"]
    text: str


@dataclass(frozen=True, slots=True)
class Request:
    """Something that waits for a person.

    Attributes:
        id: by which it is answered.
        kind: what asks.
        title: of the task, or what it is about.
        question: what has to be decided, in a sentence or a few.
        since: when it was asked, ISO 8601 UTC, or "".
        options: how to answer, the likeliest first.
        task_id: the task, or "".
        until: when nobody is waited for any more, or "".
        expires: what happens then, a clause.
        page: that tells more, relative to ``.loki/``, or "".
        target: what an answer acts on, where that is not the id: a criterion, a run.
        others: ids of further tasks that the same answer is for.
        evidence: what to look at besides.
        number: by which it can be answered, too; 0: it has none yet.
    """

    id: str
    kind: RequestKind
    title: str
    question: str
    since: str
    options: tuple[Option, ...]
    task_id: str = ""
    until: str = ""
    expires: str = "it is given up"
    page: str = ""
    target: str = ""
    others: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    number: int = 0

    @property
    def takes_words(self) -> bool:
        """Whether whoever works on it is told what a person knows."""
        return any(option.takes == "context" for option in self.options)

    @property
    def tasks(self) -> tuple[str, ...]:
        """All tasks that it is about."""
        return tuple(filter(None, (self.task_id, *self.others)))

    @property
    def key(self) -> str:
        """What tells it from every other, and from itself where it asks something else by now."""
        text = "\0".join((self.kind, self.id, self.since, self.question))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        said = asdict(self)
        said["asked"], said["answers"] = said.pop("question"), said.pop("options")
        return said


def yes_or_no(
    id_: str, yes: str, no: str, more: str = "", *others: Option, reason: bool = True
) -> tuple[Option, ...]:
    """The options of most requests: a yes, a yes with words where that is one, others, and a no.

    Args:
        id_: by which it is answered.
        yes, no: what they mean; more: what a yes with words does, or "".
        others: further ones.
        reason: a no says why.

    Example:
        >>> for one in yes_or_no("a b", "go on", "give up"):
        ...     print(one.command)
        loki approve 'a b'
        loki reject 'a b' --note "why"
    """
    word = shlex.quote(id_)
    with_words = (Option(more, f'loki approve {word} --context "…"'),) if more else ()
    return (
        Option(yes, f"loki approve {word}"),
        *with_words,
        *others,
        Option(no, f"loki reject {word}" + (' --note "why"' if reason else "")),
    )


def request_id(kind: RequestKind, *words: str) -> str:
    """A short id for what has none of its own: the same for the same words.

    Example:
        >>> request_id("approval", "t", "the text reads well")
        'approval-63560a'
    """
    text = "\0".join(words).encode("utf-8", "surrogatepass")
    return f"{kind}-{hashlib.sha256(text).hexdigest()[:6]}"


# --- The page by which a person is asked ------------------------------------------------------------

AWAITING = "### Awaiting"
"""The last heading of a page that nobody has answered yet."""


def page(
    heading: str,
    facts: Iterable[tuple[str, str]],
    sections: Iterable[tuple[str, str]],
    options: str,
    decide: str,
) -> str:
    """A page.

    Args:
        heading: its title; facts: names and values below it, a line each.
        sections: headings and bodies.
        options: the ways to answer; see `ways`.
        decide: what exactly the person must decide.

    Every text is Markdown: what is hostile comes through `loki.base.markup`.

    Example:
        >>> print(page("Escalation: a", [("Task ID", "t")], [], "1. **Go on.**", "Decide."))
        ## Escalation: a
        <BLANKLINE>
        **Task ID:** t
        <BLANKLINE>
        ### Recommended Options
        <BLANKLINE>
        1. **Go on.**
        <BLANKLINE>
        ### Awaiting
        <BLANKLINE>
        Decide.
        <BLANKLINE>
    """
    top = f"## {heading}\n\n" + "\n".join(f"**{name}:** {value}" for name, value in facts)
    parts = [
        f"### {name}\n\n{body}" for name, body in (*sections, ("Recommended Options", options))
    ]
    return "\n\n".join([top, *parts, f"{AWAITING}\n\n{decide}\n"])


def ways(options: Iterable[Option], first: int = 1) -> str:
    """The ways to answer as a list, with what follows of each."""
    return "\n".join(
        f"{number}. **{inline(one.name[:1].upper() + one.name[1:])}.**"
        f"{f' {code(one.command)}' if one.command else ''}\n   {one.follows}"
        for number, one in enumerate(options, first)
    )


def options_of(review: HumanReview, *, can_end: bool = True) -> tuple[Option, ...]:
    """How a request for a decision is answered.

    Args:
        review: the request.
        can_end: there is work of its task that can be undone.
    """
    yes, no = f"loki approve {shlex.quote(review.id)}", f"loki reject {shlex.quote(review.id)}"
    more = Option("say more", f'{yes} --context "…"', "The agent is told, and proposes anew.")
    end = Option("give up", f"{no} --abort", "The task's files are restored as they were.")
    return (
        Option("approve", yes, "The task goes on with exactly what is shown."),
        Option("reject", f'{no} --note "why"', "The agent is told why, and looks for another way."),
        *(() if is_about_done(review) else (more,)),
        *((end,) if can_end else ()),
    )


def review_page(review: HumanReview, title: str, files: Sequence[str], diff: str = "") -> str:
    """The page of a request for a decision before work goes on.

    Args:
        review: the request.
        title: of the task.
        files: paths that the task has changed so far.
        diff: of a change that is kept from being made, "" where there is none.

    Example:
        >>> from loki.people.human_review import HumanReview
        >>> review = HumanReview("review-1", "2026-04-04T10:00:00.000Z", "cost_limit", "t", "Go on?")
        >>> print(review_page(review, "fix it", ["a.py"]).splitlines()[0])
        ## Human review: fix it
    """
    asked = inline(review.asked)
    if review.alternatives_considered:
        asked += f"\n\nInstead:\n\n{bullets(map(inline, review.alternatives_considered))}"
    changed = f"Files changed so far, left as they are:\n\n{bullets(map(code, files))}"
    if diff:
        changed = f"The change, which is not made:\n\n{fence(diff.rstrip(), 'diff')}\n\n{changed}"
    facts = {
        "Request": review.id,
        "Task ID": review.task_id,
        "Trigger": f"human_review: {review.reason}",
        "Severity": review.severity,
        "Asked at": review.timestamp + (f" by {review.agent}" if review.agent else ""),
    }
    return page(
        f"Human review: {inline(title)}",
        [(name, inline(value)) for name, value in facts.items()],
        [("What is asked", asked), ("What was changed", changed)],
        ways(options_of(review)),
        "Decide what is asked above; then take one of the options. The task does not go on before that. "
        "If\nnobody answers within the time that `loki inbox` shows, it becomes a dead letter.",
    )


def approval_page(
    task_id: str,
    title: str,
    criteria: Sequence[tuple[str, str]],
    files: Sequence[str],
    diff: str,
    digest: str,
) -> str:
    """The page of criteria that wait for a person: what to approve, of which change, and how.

    Args:
        task_id, title: the task.
        criteria: (name, what has to hold) of each.
        files: paths changed.
        diff: the change, in the unified format.
        digest: of what the task has made of the project: what an approval is about.
    """
    asked = [
        f"**{inline(name)}**" + (f": {inline(said)}" if said != name else "")
        for name, said in criteria
    ]
    options = [
        replace(one, name=f"{one.name}: {name}")
        for name, _ in criteria
        for one in criterion_options(task_id, name)
    ]
    changed = f"{bullets(map(code, files))}\n\n{fence(diff.rstrip(), 'diff')}"
    trigger = "approval: every other check passes; these criteria wait for a person"
    undo = Option("give up", f"loki undo {task_id}", "The files are restored as they were.")
    return page(
        f"Approval: {inline(title)}",
        [("Task ID", inline(task_id)), ("Trigger", trigger)],
        [("What has to hold", bullets(asked)), ("What was changed", changed)],
        ways([*options, undo]),
        f"Look at the change, then say yes or no to each; {code(f'loki resume {task_id}')} goes on. An "
        f"approval is of exactly this change ({code(digest[:12])}): once\nanything of it is different, it "
        "is asked for again.",
    )


def criterion_options(task_id: str, criterion: str) -> tuple[Option, ...]:
    """How a criterion of a task is answered that only a person can approve."""
    yes, no = yes_or_no(request_id("approval", task_id, criterion), "approve", "reject")
    return replace(yes, follows="It holds."), replace(
        no, follows="The agent is told, and works on."
    )


def stage_page(
    run: str,
    pipeline: str,
    stage: str,
    task_id: str,
    agent: str,
    mode: str,
    description: str,
    may: Sequence[str],
    done: Sequence[str],
    inputs: Sequence[str],
) -> str:
    """The page by which a person is asked whether a stage of a pipeline may begin.

    Args:
        run: id of the run; pipeline: name of the pipeline.
        stage: id of the stage; task_id: of the task in which it would work.
        agent, mode, description: of the stage.
        may: what it would be allowed to do, in sentences, Markdown.
        done: what earlier stages did, a line each.
        inputs: files of what it is given.
    """
    command = f"loki pipeline resume {shlex.quote(run)}"
    trigger = f"the pipeline {inline(pipeline)} asks for a person's leave before this stage"
    would = f"Agent {inline(agent)}, mode {inline(mode)}:\n\n{quotation(description)}"
    may = may or ["It may do nothing else."]
    yes = "The stage begins; the leave is for this stage of this run alone, and is void if it is edited."
    no = "The run ends as failed; nothing of this stage has run, and what earlier stages changed stays."
    edit = "Edit the pipeline or what the stage is given; the same command goes on."
    return page(
        f"Approval: stage {inline(stage)} of {inline(run)}",
        [("Task ID", inline(task_id)), ("Failure Count", "0"), ("Trigger", f"approval: {trigger}")],
        [
            ("What would be done", f"{would}\n\n{bullets(may)}"),
            ("What has been done so far", bullets(map(inline, done))),
            ("What it is given", bullets(map(code, inputs))),
        ],
        ways(
            [
                Option("approve", f"{command} --approve", yes),
                Option("change it first", "", edit),
                Option("reject", f'{command} --reject --note "why"', no),
            ]
        ),
        f"Decide whether stage {code(stage)} may begin.",
    )


# --- The log of what waits for a person -------------------------------------------------------------

LOG = "logs/requests.jsonl"
OLDER_LOG, OLDER_NUMBERS = "logs/human-reviews.jsonl", "state/waiting.json"
"""Where decisions, and numbers, were kept before; read, and never written."""


@kept_as(r"state/waiting\.json")
@dataclass
class _OlderNumbers:
    given: dict[str, tuple[int, str]] = field(default_factory=dict)
    left: frozenset[str] = frozenset()


class RequestLog:
    """The log of a project.

    Args:
        store: where it is kept.
        clock: the time.

    Example:
        >>> from loki.stores.memory_store import MemoryStore
        >>> from loki.testing import ManualClock
        >>> log = RequestLog(MemoryStore(), ManualClock())
        >>> log.add("told", "review-1")
        >>> log.ids("told")
        {'review-1'}
        >>> log.number({"8d1f": "blocked a", "77aa": "blocked b"})
        {'8d1f': (1, 'blocked a'), '77aa': (2, 'blocked b')}
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def add(self, event: str, id_: str, *, durable: bool = True, **said: Any) -> None:
        """Add a line.

        Args:
            event: told, numbered, left, decided, done or answered.
            id_: of the request.
            durable: it outlives a crash of the machine.
            said: what else the line says.

        Raises:
            StoreError: it could not be kept.
        """
        at = isoformat(self._clock.now())
        line = masked({"event": event, "id": id_, "at": at, **said})
        self._store.append(LOG, line, durable=durable)

    def all(self, event: str) -> Iterator[Mapping[str, Any]]:
        """The lines of an event, the oldest first."""
        for log in (OLDER_LOG, LOG):
            for record in self._store.scan(log):
                if record.get("event") == event:
                    yield record

    def ids(self, event: str) -> set[str]:
        """What there is a line of an event about."""
        return {str(record.get("id")) for record in self.all(event)}

    def number(self, wanted: Mapping[str, str]) -> dict[str, tuple[int, str]]:
        """The numbers that were given, and to what, by keys; whatever has none yet gets one.

        Args:
            wanted: what is to have a number, by keys of its own.
        """
        given = self.numbers()
        while missing := [key for key in wanted if key not in given]:
            first = max((number for number, _ in given.values()), default=0) + 1
            for number, key in enumerate(missing, first):
                # A machine that goes down loses what was shown, not what is asked.
                self.add("numbered", wanted[key], durable=False, key=key, number=number)
            given = self.numbers()
        return given

    def numbers(self) -> dict[str, tuple[int, str]]:
        """The same, of those that have one: a number is given once, and to one thing."""
        given = self._older.given
        taken = {number for number, _ in given.values()}
        for record in self.all("numbered"):
            key, number = str(record.get("key")), record.get("number")
            if type(number) is int and key not in given and number not in taken:
                given[key] = (number, str(record.get("id")))
                taken.add(number)
        return given

    def left(self) -> frozenset[str]:
        """Keys of what a person wants left as it is."""
        return self._older.left | {str(one.get("key")) for one in self.all("left")}

    @property
    def _older(self) -> _OlderNumbers:
        return documents.load_as(_OlderNumbers, self._store, OLDER_NUMBERS) or _OlderNumbers()


# --- The requests for a decision, as signals ----------------------------------------------------------

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

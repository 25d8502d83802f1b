"""Keeps what the loop learns: attempts, signs, the task's record and its pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from loki.action.loop import episodic, task_specification
from loki.action.loop.loop_events import Amend, Finish, Keep, Note, Observe
from loki.action.task import TaskSpec
from loki.base.log import log_event
from loki.base.time import Clock, isoformat
from loki.memory import task_record
from loki.memory.attempt import Attempt
from loki.memory.attempt_summary import AttemptSummary
from loki.memory.dead_letter import DeadLetter, Source, blocked_reason
from loki.memory.dead_letter_log import DeadLetterLog
from loki.memory.history import History
from loki.memory.intervention import Intervention, last_attempt_before, words_of
from loki.memory.learning.learned_rules import Learned
from loki.memory.reflection import Reflections
from loki.memory.signs import Signs
from loki.memory.store import Store
from loki.memory.task_outcome import Outcome
from loki.memory.task_record import Awaited
from loki.people.escalation import Escalation
from loki.people.escalation_answer import answer_sentence, with_answer
from loki.people.escalations import Escalations
from loki.people.human_review import HUMAN_REVIEW
from loki.people.request_page import approval_page
from loki.recognition.pattern import PatternSet

Findings = tuple[Mapping[str, Any], ...]


@dataclass
class Recorder:
    """Memory's side of the loop; what it returns from is on disk.

    Args:
        task: the task.
        store: where memory is kept.
        signs: the branch's signs.
        clock: the time.
        execution: which execution of the task this is.
        position: tells (branch, commit) of the project, each None where there is none.
        seen_failing: (check, test) of tests that were seen failing before.
        failing_files: files of tests that checks failed in before.
        patterns: the pattern set.
        changes: tells how each path that differs was changed: created, modified or deleted.
        interventions: how people stepped in, oldest first.
        agent: what is known of the agent that works on it, to go on with it later.
        tree: digest of the project where the task ended last, or "".
        digest, diff: of what the task has made of the project.
        ended: told how the task ended, with its dead letter where it has one, before that is kept;
            told again where somebody was killed in between.
        source: tells how the task came to be worked on.
        answers: what people answered to questions about the task, oldest first.
        review_page: the page of what a person is asked to decide; None: there is none.
        described: what criteria ask that are none of the task's own, by name.
    """

    task: TaskSpec
    store: Store
    signs: Signs
    clock: Clock
    execution: int = 1
    position: Callable[[], tuple[str | None, str | None]] = lambda: (None, None)
    seen_failing: frozenset[tuple[str, str]] = frozenset()
    failing_files: frozenset[str] = frozenset()
    patterns: PatternSet = field(default_factory=PatternSet.default)
    changes: Callable[[], Mapping[str, str]] = dict
    interventions: tuple[Intervention, ...] = ()
    agent: Mapping[str, Any] | None = None
    tree: str = ""
    digest: Callable[[], str] = lambda: ""
    diff: Callable[[], str] = lambda: ""
    ended: Callable[[Outcome, DeadLetter | None], None] = lambda _outcome, _letter: None
    source: Callable[[], Source] = lambda: "loop"
    answers: Callable[[], Sequence[str]] = tuple
    review_page: Callable[[Outcome], str | None] = lambda _: None
    described: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Join the rooms."""
        self.history = History(self.store, self.task.id)
        self.reflections = Reflections(self.store, self.task.id)
        self.learned = Learned(self.store)
        self.escalations = Escalations(self.store, self.clock)
        self._tried: AttemptSummary | None = None
        self._findings: Findings | None = None

    @property
    def tried(self) -> AttemptSummary:
        """The attempts of this execution, summed up; read from the disk once."""
        if self._tried is None:
            since = last_attempt_before(self.interventions, self.execution)
            self._tried = AttemptSummary.of(self.attempts(), since)
        return self._tried

    def attempts(self) -> list[Attempt]:
        """The attempts of this execution, oldest first."""
        return [a for a in self.history.attempts() if a.execution == self.execution]

    @property
    def said(self) -> tuple[str, ...]:
        """What people said in this execution, and answered in the task's life."""
        told = words_of(self.interventions, self.execution)
        new = (one for one in self.answers() if not any(one in words for words in told))
        return (*new, *told)

    @property
    def findings(self) -> Findings:
        """What the last attempt's agent said of its work that is to be countered."""
        if self._findings is None:
            said = [a.findings for a in self.attempts() if _is_answer(a)]
            self._findings = said[-1] if said else ()
        return self._findings

    def saw_agent(self, agent: Mapping[str, Any]) -> None:
        """Remember who works on the task, on disk where that is new."""
        if agent != self.agent:
            self.agent = agent
            self.save_task(None)

    def saw_failing(self, tests: Set[tuple[str, str]], files: Set[str] = frozenset()) -> None:
        """Remember tests, and files of tests, that were seen failing; on disk what is new."""
        seen, failed_in = self.seen_failing | tests, self.failing_files | files
        if (seen, failed_in) != (self.seen_failing, self.failing_files):
            self.seen_failing, self.failing_files = seen, failed_in
            self.save_task(None)

    def keep(self, effect: Keep) -> None:
        """Put an attempt's record on disk."""
        tried = self.tried
        branch, commit = self.position()
        self.history.append(replace(effect.attempt, branch=branch, commit=commit))
        self._tried = tried.after(effect.attempt)
        self._document(effect.attempt)

    def _document(self, attempt: Attempt) -> None:
        """Say which rationalizations and red flags an attempt showed, and keep them on a page."""
        if _is_answer(attempt):
            self._findings = attempt.findings
        if attempt.findings:
            ids = ",".join(dict.fromkeys(finding["id"] for finding in attempt.findings))
            log_event(self.task.id, f"attempt={attempt.attempt} findings={ids}", warning=True)
            episodic.document(self.store, self.task.id, self.task.title, attempt)

    def amend(self, effect: Amend) -> None:
        """Note that another strategy than the recorded one was used."""
        tried = self.tried
        self.history.amend(effect.attempt, effect.strategy)
        self._tried = tried.amended(effect.attempt, effect.strategy)

    def observe(self, effect: Observe) -> None:
        """Remember a failure and what led to it; a second time makes it a sign."""
        sighting = self.signs.observe(
            effect.failure, effect.approach, self.task.id, command=effect.command
        )
        if sighting.is_sign:
            log_event(
                self.task.id, f"sign seen={sighting.count} failure={effect.failure.signature}"
            )

    def note(self, effect: Note) -> None:
        """Keep a reflection on a failed attempt."""
        self.reflections.add(effect.reflection)

    def finish(self, effect: Finish) -> None:
        """Write the pages of a task that ended."""
        now = isoformat(self.clock.now())
        outcome, made = effect.outcome, self.attempts()
        letter = None
        if outcome.status == "failed" and outcome.page and effect.failure:
            reason, changes = blocked_reason(outcome.trigger), self.changes()
            files = {path: changes.get(path, "restored") for path in outcome.files}
            task = self.task
            letter = DeadLetter.of(
                task.id,
                task.title,
                made,
                effect.failure,
                reason,
                now,
                files,
                self.source(),
            )
            DeadLetterLog(self.store, self.patterns).add(letter, made, outcome.page)
        if outcome.trigger == "approval" and outcome.page:
            self.store.put(outcome.page, self._approval_page(outcome))
        elif outcome.page and (page := self.review_page(outcome)) is not None:
            self.store.put(outcome.page, page)
        elif outcome.status == "escalated" and outcome.page:
            self.escalations.put(outcome.page, self._escalation(effect, made))
        elif outcome.status == "success":
            self.escalations.answer(self.task.id, "the task succeeded")
        self.ended(outcome, letter)
        self.history.end(self.execution, outcome.to_dict(), title=self.task.title, at=now)
        self.save_task(outcome)

    def answered(self, outcome: Outcome | None) -> None:
        """Note a person's answer on the page that asked for it.

        Args:
            outcome: what the task had ended with; its last intervention is the answer.
        """
        if not self.interventions:
            return
        answer = answer_sentence(self.interventions[-1])
        self.escalations.answer_with(self.task.id, answer)
        has_own_page = outcome is not None and outcome.trigger in {"approval", HUMAN_REVIEW}
        page = outcome.page if outcome is not None and has_own_page else None
        text = self.store.get(page) if page else None
        if page and text:
            self.store.put(page, with_answer(text, answer))

    def _escalation(self, effect: Finish, made: Sequence[Attempt]) -> Escalation:
        outcome = effect.outcome
        return Escalation(
            self.task.id,
            self.task.title,
            outcome.trigger,
            outcome.reason,
            effect.failure,
            made,
            outcome.files,
            self.said,
            self.task.run,
            effect.answer.message if effect.answer else "",
        )

    def _awaited(self, outcome: Outcome | None) -> Awaited | None:
        """What a person has to approve, and of which content."""
        if outcome is None or not outcome.awaiting:
            return None
        about = {name: said for name, said in self.described.items() if name in outcome.awaiting}
        return Awaited(outcome.awaiting, self.digest(), about)

    def _approval_page(self, outcome: Outcome) -> str:
        own = {check.name: check.description for check in self.task.checks}
        described = {**self.described, **own}
        criteria = [(name, described.get(name, name)) for name in outcome.awaiting]
        task, changed = self.task, (outcome.files, self.diff(), self.digest())
        return approval_page(task.id, task.title, criteria, *changed)

    def save_task(self, outcome: Outcome | None) -> None:
        """Keep what the task is and how it stands."""
        record = replace(
            task_specification.record_of(self.task),
            agent=self.agent,
            execution=self.execution,
            updated_at=isoformat(self.clock.now()),
            seen_failing=self.seen_failing,
            failing_files=self.failing_files,
            interventions=self.interventions,
            tree=self.tree,
            outcome=outcome,
            approval=self._awaited(outcome),
        )
        task_record.save(self.store, record)


def _is_answer(attempt: Attempt) -> bool:
    """Whether an agent answered in it: what was said before an outage or a stop still is to be told of."""
    return bool(attempt.action) and not attempt.infrastructure

"""The review of a project's dead letters, joined: facts in, decisions out, and what they change.

Every step can be done twice: whoever is killed leaves a task in exactly one list, and the next review
goes on. Several reviews at once decide alike; the queue lets one of them move a task.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from loki.action.agent_protocol import Question
from loki.base.error import AgentError, BreakerOpen, LokiError, UsageError
from loki.base.log import log_event
from loki.execution.resolve import ways
from loki.jobs.dead_letters.dead_letter_review import (
    INSTRUCTIONS,
    Answers,
    Decision,
    Facts,
    Scope,
    answers,
    decide,
    is_due,
    review_question,
    wanted,
)
from loki.jobs.dead_letters.fact_finder import FactFinder
from loki.jobs.queue.queue import queue_of
from loki.jobs.queue.queue_index import document
from loki.jobs.queue.queued_task import QueuedTask
from loki.memory.attempt import Attempt
from loki.memory.dead_letter import HUMAN, DeadLetter, PastAttempt
from loki.memory.dead_letter_log import LETTERS
from loki.people.escalation import Escalation, Escalations, options
from loki.people.request import Option, request_id

if TYPE_CHECKING:
    from loki.config import NotificationKind
    from loki.workspace import Workspace


# --- The page by which a review asks a person ---------------------------------------------------------


def dead_letter_escalation(workspace: Workspace, looked: Reviewed) -> Escalation:
    """What a person is asked about a dead letter that shows a trigger.

    Args:
        workspace: the project.
        looked: the dead letter, and what was found about it.
    """
    letter, decision = looked.letter, looked.decision
    finder = FactFinder(workspace)
    life = finder.life(letter.task_id) or list(map(_told, letter.attempts))
    others = decision.trigger.others if decision.trigger else ()
    return Escalation(
        letter.task_id,
        letter.title,
        decision.rule,
        decision.reason,
        looked.facts.case.failure,
        life,
        tuple(dict.fromkeys(path for one in life for path in one.files_modified)),
        others=others,
        evidence=decision.evidence,
        ways=escalation_ways(letter.task_id, tuple(one for one in others if one in finder.letters))
        + tuple(_go_on(one) for one in others if one not in finder.letters),
        failures=letter.failure_count,
    )


def escalation_ways(task_id: str, others: tuple[str, ...] = ()) -> tuple[Option, ...]:
    """How a person can go on with a dead letter, with what speaks for and against each.

    Args:
        task_id: the task.
        others: further dead letters with the same root cause.

    Example:
        >>> escalation_ways("fix-login")[0].command
        'loki dead-letters retry fix-login --fixed-by COMMIT'
    """
    ids = shlex.join([task_id, *others])
    retry, abandon = f"loki dead-letters retry {ids}", f"loki dead-letters abandon {ids}"
    return (
        Option(
            "Mend the cause, then retry",
            f"{retry} --fixed-by COMMIT",
            "Costs your time; most certain where rights, credentials, data or a design are concerned. "
            "The retries begin anew, with everything on record that was tried.",
        ),
        Option(
            "Retry with another approach",
            f'{retry} --approach "…"',
            "Cheapest where you know what the agent does not. It stands in the task's description; may "
            "end here again where knowledge was not what is missing.",
        ),
        Option(
            "Reduce the scope",
            f'loki dead-letters retry {shlex.quote(task_id)} --simpler "…"',
            "Gets you a part soon: a new, smaller task is queued that names this one. What it leaves "
            "out is not done; this task stays here until the smaller one is completed.",
        ),
        Option(
            "Abandon",
            f'{abandon} --reason "…"',
            "Costs nothing more. The task moves to abandoned.json with your reason; its attempts, "
            "pages and edits stay, and `loki undo` restores the files.",
        ),
    )


def _go_on(task_id: str) -> Option:
    """A task that stopped for the same reason, and is no dead letter."""
    by_hand, *_ = options(task_id)
    return Option(f"Go on with {task_id}", by_hand.command, "It stopped for the same reason.")


def _told(one: PastAttempt) -> Attempt:
    """An attempt that another program told of, as loki's own pages show attempts."""
    return Attempt(
        one.attempt_number,
        one.timestamp,
        one.approach,
        "failed",
        one.error_message.partition("\n")[0][:300] or one.error_type,
        agent=one.agent_id,
    )


# --- The review ---------------------------------------------------------------------------------------

logger = logging.getLogger("loki")

NO_ANSWERS = Answers()

_OF_SIMPLER = (
    "priority", "kind", "complexity", "checks", "scope", "agent", "agent_command", "max_attempts", "tags",
)  # fmt: skip
"""What a task of reduced scope has of the one that it came from."""


@dataclass(frozen=True, slots=True)
class Reviewed:
    """What a review made of a dead letter.

    Attributes:
        letter: what it said; task: as the queue has it.
        facts: what was found about it, and answered.
        decision: what becomes of it.
        page: of its open escalation, or "".
        asked: tasks that this page asked about before the review.
        new_task: id of the task of reduced scope that was made of it, or "".
        done: the decision was carried out, or there was nothing to do; else somebody else was quicker,
            or it was only to be looked at.
    """

    letter: DeadLetter
    task: QueuedTask
    facts: Facts
    decision: Decision
    page: str = ""
    asked: tuple[str, ...] = ()
    new_task: str = ""
    done: bool = False

    @property
    def task_id(self) -> str:
        """The task."""
        return self.letter.task_id


class DeadLetters:
    """The dead letters of a project: reviewed, tried again, abandoned.

    Args:
        workspace: the project.
        reviewers: agents that answer what no fact decides, the preferred one first; none: nobody does.
        by: who answers with flags, or gives a task up.

    Attributes:
        queue: the project's queue.
    """

    def __init__(
        self, workspace: Workspace, reviewers: Sequence[object] = (), by: str = ""
    ) -> None:
        self.workspace = workspace
        self.queue = queue_of(workspace)
        self.escalations = Escalations(workspace.strict_store, workspace.clock)
        self._reviewers = reviewers
        self.by = by

    def ids(self) -> list[str]:
        """The tasks that are dead letters now."""
        return [task.id for task in self.queue.tasks("dead-letter")]

    def is_due(self) -> bool:
        """Whether the dead letters are to be looked at before new work."""
        return is_due(self.queue.dead_letter_metadata(), self.workspace.clock.now())

    def review(
        self,
        tasks: Sequence[str] | None = None,
        said: Mapping[str, Answers] | None = None,
        *,
        dry_run: bool = False,
        notify: Callable[[Reviewed], object] = lambda _: None,
    ) -> list[Reviewed]:
        """Review dead letters: all of them, or some.

        Args:
            tasks: ids; None: all, and the time of the review is kept.
            said: what the operator answers, by task; under "" for those that are not named.
            dry_run: only look; nothing is changed, nobody is asked.
            notify: told of each as it is done.

        Raises:
            StoreError: what was decided could not be kept.
        """
        if not dry_run:
            self.complete()
        finder = FactFinder(self.workspace)
        given, found = said or {}, []
        for id_, letter in finder.letters.items():
            if tasks is not None and id_ not in tasks:
                continue
            own = given.get(id_, given.get("", NO_ANSWERS))
            looked = self._look(finder, letter, own, ask=not dry_run)
            found.append(looked if dry_run else self._carry_out(looked))
            notify(found[-1])
        if tasks is None and not dry_run:
            self.queue.reviewed()
        return found

    def complete(self) -> None:
        """Add what the list of dead letters lacks; see
        `loki.jobs.dead_letters.dead_letter_intake.complete`."""
        from loki.jobs.dead_letters.dead_letter_intake import complete

        for id_ in complete(self.workspace):
            self._notify("dead_letter", f"given up: {id_}", id_)

    def escalate(self, task_id: str) -> Reviewed | None:
        """Ask a person at once about a task that was just given up, where a trigger is shown.

        Returns:
            What was done; None where nobody is to be asked. Everything else waits for a review.
        """
        finder = FactFinder(self.workspace)
        letter = finder.letters.get(task_id)
        if letter is None:
            return None
        looked = self._look(finder, letter, NO_ANSWERS, ask=False)
        return self._carry_out(looked) if looked.decision.action == "escalate" else None

    def retry(
        self, task_id: str, approach: str = "", *, simpler: str = "", fixed_by: str = ""
    ) -> Reviewed:
        """Queue a task again, as a person wants it.

        Args:
            task_id: the task.
            approach: a new one: its failures so far count no more.
            simpler: or a smaller task that is worth having: it is queued instead.
            fixed_by: or the commit that fixed what blocked it.

        Raises:
            UsageError: the queue does not know it.
        """
        scope = Scope(simpler) if simpler else None
        said = Answers(approach, scope, fixed_by=fixed_by, by=self.by)
        person = Decision("retry", "person", "a person wants it")
        return self._decided(task_id, next(wanted(said), person))

    def abandon(self, task_id: str, reason: str) -> Reviewed:
        """Give a task up for good, as a person says.

        Raises:
            UsageError: the queue does not know it.
        """
        return self._decided(task_id, Decision("abandon", "person", reason))

    def _decided(self, task_id: str, decision: Decision) -> Reviewed:
        finder = FactFinder(self.workspace)
        task = finder.lists.find(task_id)
        if task is None:
            raise UsageError(f"no task {task_id!r} in the queue: `loki queue` lists them")
        letter = finder.letter(task)
        facts = finder.facts(letter, Answers(by=self.by))
        return self._carry_out(Reviewed(letter, task, facts, decision))

    # --- one dead letter ------------------------------------------------------------------------------

    def _look(
        self, finder: FactFinder, letter: DeadLetter, said: Answers, *, ask: bool
    ) -> Reviewed:
        by = said.by or (self.by if said != NO_ANSWERS else "")
        facts = finder.facts(letter, replace(said, by=by))
        decision = decide(letter, facts)
        if ask and self._reviewers and decision.action in {"stay", "escalate"}:
            facts = replace(facts, answers=facts.answers.over(self._ask(letter, facts)))
            decision = decide(letter, facts)
        open_ = finder.asked.get(letter.task_id)
        page, tasks = (open_.page, open_.tasks) if open_ else ("", ())
        return Reviewed(letter, finder.task(letter), facts, decision, page, tasks)

    def _ask(self, letter: DeadLetter, facts: Facts) -> Answers:
        """What a reviewer says; nothing where it cannot be asked."""
        from loki.agents.fallback_agent import ask

        id_, workspace = letter.task_id, self.workspace
        name = ", ".join(str(getattr(one, "name", "a reviewer")) for one in self._reviewers)
        asked = Question(
            review_question(letter, facts.dependencies),
            id_,
            workspace.root,
            instructions=INSTRUCTIONS,
            sees_project=True,
        )
        try:
            said = ask(self._reviewers, asked, workspace.once(ways))
        except (AgentError, BreakerOpen) as error:
            logger.warning("dead-letter review of %s: %s could not be asked: %s", id_, name, error)
            return NO_ANSWERS
        return answers(said.text, id_, name)

    def _carry_out(self, looked: Reviewed) -> Reviewed:
        action, id_ = looked.decision.action, looked.task_id
        if action == "stay":
            return replace(looked, done=True)
        perform = {
            "retry": self._retry,
            "abandon": self._abandon,
            "simplify": self._simplify,
            "escalate": self._escalate,
        }[action]
        try:
            done = perform(looked)
        except UsageError as error:  # it is no dead letter any more: somebody else was quicker
            logger.warning("dead-letter review of %s: nothing to do any more: %s", id_, error)
            return looked
        log_event(id_, f"dead_letter action={action} rule={looked.decision.rule}")
        return replace(done, done=True)

    def _retry(self, looked: Reviewed) -> Reviewed:
        decision = looked.decision
        why = {"condition": decision.rule, "reason": decision.reason}
        said: dict[str, Any] = {"recovered": {**why, "by": looked.facts.answers.by}}
        if decision.commit:
            said["fix_commit"] = decision.commit
        if decision.approach:
            said["approach"] = decision.approach
            said["description"] = _with_approach(looked.letter, decision.approach)
        self._answer(looked, "queued again", decision.approach)
        self.queue.requeue(looked.task_id, said=said, reset=bool(decision.approach))
        return looked

    def _abandon(self, looked: Reviewed) -> Reviewed:
        self._answer(looked, "abandoned", looked.decision.reason)
        self.queue.abandon(looked.task_id, looked.decision.reason)
        return looked

    def _simplify(self, looked: Reviewed) -> Reviewed:
        task, scope = looked.task, looked.decision.scope
        assert scope is not None
        new = f"{task.id}-simpler-{looked.letter.total_attempts}"
        asked = {name: getattr(task, name) for name in _OF_SIMPLER}
        simpler = QueuedTask(new, scope.title, scope.description, after=task.id, **asked)
        if self.queue.where(new) is None:  # else somebody was killed before they could say so
            self.queue.submit(simpler)
        self.queue.dead_letter({"task_id": task.id, "simpler_task": new})
        self._answer(looked, f"a simpler task was made of it: {new}", scope.title)
        return replace(looked, new_task=new)

    def _escalate(self, looked: Reviewed) -> Reviewed:
        raw, trigger = looked.task.raw, looked.decision.trigger
        needed = {looked.task_id, *(trigger.others if trigger else ())}
        is_told = raw.get("escalation") == looked.page and raw.get("recovery_strategy") == HUMAN
        if is_told and needed <= set(looked.asked):
            return looked
        before = self.escalations.of(looked.task_id)
        name = self.escalations.ask(dead_letter_escalation(self.workspace, looked))
        self.queue.dead_letter(
            {"task_id": looked.task_id, "recovery_strategy": HUMAN, "escalation": name}
        )
        if before is None:
            text = f"{looked.letter.title}: {looked.decision.reason}"
            self._notify("escalation", text, looked.task_id, name)
        return replace(looked, page=name)

    def _answer(self, looked: Reviewed, what: str, words: str) -> None:
        """What its escalation asked is answered: by a person, or by what has changed since."""
        by = looked.facts.answers.by
        self.escalations.answer(looked.task_id, f"{what}{by and f', by {by}'}", words)

    def _notify(self, kind: NotificationKind, text: str, task_id: str, page: str = "") -> None:
        """Tell people; who cannot be told finds it in ``loki status`` all the same.

        Of a loop's own end they are told where it ends.
        """
        from loki.execution.notify_channels import notifier

        about, answer = task_id, f"loki dead-letters show {shlex.quote(task_id)}"
        if kind == "escalation":
            about, answer = request_id("escalation", page or task_id), "loki status"
        notifier(self.workspace).notify(kind, text, task_id=task_id, id=about, answer=answer)


def _with_approach(letter: DeadLetter, approach: str) -> str:
    how = f"Go about it in this way, which was not tried yet: {approach.strip()}"
    return "\n\n".join(filter(None, (letter.description.strip(), how)))


# --- The review where it is due -----------------------------------------------------------------------

LOOK = 600.0
"""Seconds between two looks at whether a review is due, which it is once a day. Chosen."""


def review_when_due(
    workspace: Workspace, notify: Callable[[Reviewed], object] = lambda _: None
) -> list[Reviewed]:
    """Review the dead letters before new work, where the last review is over 24 hours old.

    Args:
        workspace: the project.
        notify: told of each dead letter as it is done.

    Returns:
        What was reviewed; none where it is not due, or nothing was ever given up.

    Raises:
        StoreError: what was decided could not be kept.

    Example:
        >>> import tempfile
        >>> from loki.workspace import Workspace
        >>> review_when_due(Workspace(tempfile.mkdtemp()))
        []
    """
    store = workspace.store
    if store.read(document("dead-letter")) is None and not any(store.scan(LETTERS)):
        return []  # as nearly always, and quick
    letters = DeadLetters(workspace)
    return letters.review(notify=notify) if letters.is_due() else []


class Daily:
    """Reviews the dead letters for whoever works on for days; called as often as is convenient.

    Args:
        workspace: the project.
        notify: told of each dead letter as it is done.
    """

    def __init__(self, workspace: Workspace, notify: Callable[[Reviewed], object]) -> None:
        self._workspace, self._notify = workspace, notify
        self._looked = workspace.clock.monotonic()

    def __call__(self, *_: object) -> None:
        """Review them where that is due; nothing, and at once, where that was looked at just now."""
        now = self._workspace.clock.monotonic()
        if now - self._looked < LOOK:
            return
        self._looked = now
        try:
            review_when_due(self._workspace, notify=self._notify)
        except LokiError as error:  # the other work goes on, and this is tried again
            logger.warning("the dead letters could not be reviewed: %s", error)

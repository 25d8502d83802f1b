"""What a person is asked about the tasks of a project, and what follows from the answer."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from loki.action.loop.resumption import is_open
from loki.base.error import LokiError, UsageError
from loki.base.time import isoformat
from loki.execution.assembly import human_reviews
from loki.jobs.inbox.request_kind import Kind, ProjectSnapshot, Result, Said
from loki.jobs.inbox.settled_reviews import block, is_waiting_in_queue, unblock
from loki.memory import task_record
from loki.people.approval import Approvals
from loki.people.human_review import (
    IRREVERSIBLE,
    Answered,
    Asked,
    Block,
    Effect,
    GiveUp,
    HumanReview,
    MakeDeadLetter,
    Notify,
    Resume,
    ReviewStatus,
    TimePassed,
    is_about_done,
    step,
)
from loki.people.request import Decision, Evidence, Request, options_of

if TYPE_CHECKING:
    from loki.workspace import Workspace

logger = logging.getLogger("loki")

ANSWER = "loki approve {id}"


def tell(workspace: Workspace) -> None:
    """Do what follows where a request is new: its task is blocked, people are told."""
    here = human_reviews(workspace)
    for review in here.untold():
        here.mark_notified(review.id)  # before: people who are told twice are told too often
        _, effects = step(review, ReviewStatus.NEW, Asked(), workspace.clock.now())
        for effect in effects:
            _perform(workspace, review, effect)


def answer(workspace: Workspace, id_: str, said: ReviewStatus, by: str, note: str = "") -> Decision:
    """Keep a person's answer, and do what follows from it.

    Args:
        workspace: the project.
        id_: of the request.
        said: approved, clarified, rejected, aborted or cancelled.
        by: who answers.
        note: why, or what the agent has to know.

    Raises:
        UsageError: there is no such request, or it is answered already, or this is no answer to it.
        StoreError: the answer could not be kept.
    """
    here = human_reviews(workspace, strict=True)
    review = next((one for one in here.open() if one.id == id_), None)
    if review is not None and is_about_done(review) and said is ReviewStatus.CLARIFIED:
        raise UsageError(
            f"{id_} asks whether the work counts as done: expected a yes, or `loki reject {id_} "
            '--note "what is missing"`, which the agent is told'
        )
    decision = here.decide(id_, by=by, note=note, answer=said)
    carry_out(workspace, decision)
    return decision


def finish_reviews(workspace: Workspace) -> list[Decision]:
    """Take what people wrote to ``HUMAN_APPROVED``, give up what nobody answered in time, and do
    what follows from answers where a process was killed before it had.

    Returns:
        The decisions that something was done for.
    """
    here = human_reviews(workspace)
    tell(workspace)
    here.answers()
    for review in here.expired(workspace.clock.now()):
        try:
            here.expire(review.id)
        except UsageError:  # somebody answered just now
            continue
    done = []
    for decision in here.undone():
        try:
            carry_out(workspace, decision)
        except LokiError as error:
            logger.warning("%s: left for later: %s", decision.id, error)
            continue
        done.append(decision)
    return done


def carry_out(workspace: Workspace, decision: Decision) -> None:
    """Do what follows from a decision; done twice, it is done once.

    Raises:
        LokiError: it could not be done now.
    """
    _keep_approvals(workspace, decision)
    for effect in _effects(workspace, decision):
        _perform(workspace, decision.review, effect)
    human_reviews(workspace).done(decision.id)


def _effects(workspace: Workspace, decision: Decision) -> Sequence[Effect]:
    if decision.answer is ReviewStatus.EXPIRED:
        timeout = timedelta(seconds=workspace.config.review.timeout)
        until = decision.review.until(timeout) or workspace.clock.now()
        return step(decision.review, ReviewStatus.OPEN, TimePassed(), until, timeout)[1]
    event = Answered(decision.answer, decision.by, decision.note)
    return step(decision.review, ReviewStatus.OPEN, event, workspace.clock.now())[1]


def _keep_approvals(workspace: Workspace, decision: Decision) -> None:
    """What a decision is about: a command, by its very words; criteria, of the content shown."""
    from loki.jobs.work.task_interventions import approve  # how work is done is much to load

    review, yes = decision.review, decision.answer is ReviewStatus.APPROVED
    if not yes and decision.answer is not ReviewStatus.REJECTED:
        return
    about = review.extra.get("about")
    about = about if isinstance(about, Mapping) else {}
    if review.reason == IRREVERSIBLE and (words := _strings(about.get("command"))):
        commands = Approvals(workspace.strict_store, review.task_id)
        commands.decide(words, yes, decision.by, decision.at, decision.note)
    if is_about_done(review):
        for criterion in _strings(about.get("criteria")):
            try:
                approve(
                    workspace,
                    review.task_id,
                    criterion,
                    approved=yes,
                    by=decision.by,
                    note=decision.note,
                )
            except UsageError as error:  # it waits for that no longer
                logger.warning("%s: %s", review.id, error)


def _strings(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else []


# --- the kind of request ------------------------------------------------------------------------------


def _open(workspace: Workspace, look: ProjectSnapshot) -> Iterator[Request]:
    """Open requests: HUMAN_REVIEW_NEEDED."""
    timeout = timedelta(seconds=workspace.config.review.timeout)
    for review in human_reviews(workspace).open():
        record = look.records.get(review.task_id)
        until = review.until(timeout)
        evidence = [Evidence("severity", review.severity)]
        evidence += [Evidence("asks", review.agent)] if review.agent else []
        evidence += [Evidence("instead", other) for other in review.alternatives_considered]
        yield Request(
            review.id,
            "human_review",
            (record and record.title) or review.task_id or review.reason,
            review.asked,
            review.timestamp,
            options_of(review, can_end=bool(record and not record.run)),
            review.task_id,
            isoformat(until) if until else "",
            "its task becomes a dead letter" if review.blocking else "it is withdrawn",
            page=look.page_of(review.task_id),
            evidence=tuple(evidence),
        )


def _approve(workspace: Workspace, one: Request, said: Said) -> Result:
    answered = ReviewStatus.CLARIFIED if said.context else ReviewStatus.APPROVED
    answer(workspace, one.id, answered, said.by, said.words)
    return Result(f"{answered.value}: {one.id}", goes_on=True)


def _reject(workspace: Workspace, one: Request, said: Said) -> Result:
    answered = ReviewStatus.ABORTED if said.abort else ReviewStatus.REJECTED
    answer(workspace, one.id, answered, said.by, said.note)
    if said.abort:
        return Result(f"given up: {one.task_id or one.id}; its files are as they were")
    return Result(f"rejected: {one.id}", goes_on=True)


HUMAN_REVIEW_KIND = Kind("review", _open, _approve, _reject, asks=True, wants_why=False)


def keep_words(workspace: Workspace, one: Request, said: Said) -> None:
    """Keep what a person knows with a task, for every briefing of it."""
    if said.words.strip():
        here = human_reviews(workspace, strict=True)
        asked = here.ask(reason=one.kind, task_id=one.task_id, context=one.question, blocking=False)
        here.decide(asked.id, by=said.by, note=said.words, answer=ReviewStatus.CLARIFIED)
        here.mark_notified(asked.id)
        here.done(asked.id)


# --- effects ----------------------------------------------------------------------------------------


def _perform(workspace: Workspace, review: HumanReview, effect: Effect) -> None:
    from loki.execution.notify_channels import notifier

    if isinstance(effect, Block):
        block(workspace, effect.task_id, effect.reason)
    elif isinstance(effect, Resume):
        if not human_reviews(workspace).of_task(effect.task_id):  # else another question keeps it
            unblock(workspace, effect.task_id)
    elif isinstance(effect, GiveUp):
        give_up(workspace, effect.task_id, effect.reason)
    elif isinstance(effect, MakeDeadLetter):
        from loki.jobs.dead_letters.dead_letter_intake import expire

        expire(workspace, effect.task_id, effect.reason)
    else:
        assert isinstance(effect, Notify)
        kind: Any = effect.kind
        command = ANSWER.format(id=shlex.quote(review.id)) if effect.kind == "human_review" else ""
        notifier(workspace).notify(
            kind, effect.sentence, task_id=review.task_id, id=review.id, answer=command
        )


def give_up(workspace: Workspace, task_id: str, why: str = "") -> None:
    """Give a task up, and undo its changes.

    Args:
        workspace: the project.
        task_id: the task.
        why: what the queue says of one that was never worked on here; "" for nothing.

    Raises:
        UsageError: files changed since; nothing was done.
    """
    from loki.jobs.work.task_interventions import abort  # how work is done is much to load

    if not is_open(task_record.load(workspace.store, task_id)) and not (
        is_waiting_in_queue(workspace, task_id)
    ):
        return  # it ended well meanwhile, or a pipeline's run ends it, or there was nothing to undo
    undone = abort(workspace, task_id, why=why or "given up by a person")
    if undone.conflicts:
        listing = "; ".join(f"{c.path}: {c.reason}" for c in undone.conflicts)
        raise UsageError(
            f"nothing of {task_id} was undone, because files changed since ({listing}); "
            f"`loki resume {task_id} --abort --force` overwrites them"
        )

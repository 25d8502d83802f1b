"""What is asked about a task, settled by what a person does with it; and where the queue has it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from loki.base.error import UsageError
from loki.execution.assembly import human_reviews
from loki.jobs.queue.queue import queue_of
from loki.memory import task_record
from loki.people.approval import Approvals
from loki.people.human_review import HumanReview, ReviewStatus, is_about_done

if TYPE_CHECKING:
    from loki.workspace import Workspace


def resumed(workspace: Workspace, task_id: str, context: str, by: str) -> None:
    """A person goes on with a task: what it waited for is answered by that.

    Args:
        workspace: the project.
        task_id: the task.
        context: what they said; "" for nothing.
        by: who.
    """
    here = human_reviews(workspace)
    for review in here.of_task(task_id):
        said = ReviewStatus.CLARIFIED if context else ReviewStatus.CANCELLED
        if is_about_done(review):
            if (decided := _security_decided(workspace, review)) is None:
                continue
            said = decided
        _quietly(workspace, review, said, by, context)


def given_up(workspace: Workspace, task_id: str, by: str) -> None:
    """A task is given up: nobody is asked about it any more."""
    for review in human_reviews(workspace).of_task(task_id):
        _quietly(workspace, review, ReviewStatus.ABORTED, by, "")


def _quietly(
    workspace: Workspace, review: HumanReview, said: ReviewStatus, by: str, note: str
) -> None:
    """Keep an answer whose consequences are under way already."""
    here = human_reviews(workspace)
    try:
        here.decide(review.id, by=by, note=note, answer=said)
    except UsageError:  # somebody answered just now
        return
    here.done(review.id)
    unblock(workspace, review.task_id)


def _security_decided(workspace: Workspace, review: HumanReview) -> ReviewStatus | None:
    """What people said of the criteria that a request is about; None: not all is said."""
    awaited = task_record.load(workspace.store, review.task_id).approval or task_record.Awaited()
    approvals = Approvals(workspace.store, review.task_id)
    said = [approvals.current(name, awaited.digest) for name in awaited.criteria]
    if any(one is not None and not one.approved for one in said):
        return ReviewStatus.REJECTED
    return ReviewStatus.APPROVED if said and all(said) else None


def block(workspace: Workspace, task_id: str, reason: str) -> None:
    """The task is not claimed from the queue; nothing where it is in none."""
    with suppress(UsageError):
        queue_of(workspace).block(task_id, reason)


def unblock(workspace: Workspace, task_id: str) -> None:
    """The task may be claimed again; nothing where it is in no queue."""
    with suppress(UsageError):
        queue_of(workspace).unblock(task_id)


def is_queued(workspace: Workspace, task_id: str) -> bool:
    """Whether a worker will take the task by itself."""
    return bool(task_id) and queue_of(workspace).where(task_id) in {"pending", "in-progress"}


def is_waiting_in_queue(workspace: Workspace, task_id: str) -> bool:
    """Whether the queue has a task that is not achieved and not abandoned."""
    where = queue_of(workspace).where(task_id) if task_id else None
    return where not in {None, "completed", "abandoned"}

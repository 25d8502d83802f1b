"""What people are asked about a task before its loop goes on, and what they answered in its life."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from loki.base.secret import mask_secrets
from loki.execution.spending import spending
from loki.memory.intervention import MAX_CONTEXT
from loki.people.approval import Approvals
from loki.people.human_review import HUMAN_REVIEW, notice
from loki.people.human_review_store import HumanReviews
from loki.people.review_trigger import Rules

if TYPE_CHECKING:
    from loki.action.changes.executor import Executor
    from loki.action.loop.human_review_check import HumanReviewCheck
    from loki.action.task import TaskSpec
    from loki.memory.task_outcome import Outcome
    from loki.workspace import Workspace


def human_reviews(workspace: Workspace, *, strict: bool = False) -> HumanReviews:
    """The requests of a project.

    Args:
        workspace: the project.
        strict: for answers: one that cannot be kept is none.
    """
    store = workspace.strict_store if strict else workspace.store
    timeout = timedelta(seconds=workspace.config.review.timeout)
    return HumanReviews(store, workspace.clock, timeout)


def reviewing(workspace: Workspace, spec: TaskSpec, executor: Executor) -> HumanReviewCheck:
    """What asks a person about a task before the loop goes on."""
    from loki.action.loop.human_review_check import HumanReviewCheck

    own = {"timeout", "changed_tests", "feature"}
    rules = Rules(**workspace.config.review.model_dump(exclude=own))
    return HumanReviewCheck(
        spec,
        rules,
        human_reviews(workspace),
        workspace.store,
        str(workspace.root),
        spending(workspace) if rules.cost_per_hour else lambda: 0.0,
        executor.is_allowed,
        workspace.listener.asked,
        lambda outcome: tell_end(workspace, spec, outcome),
    )


def tell_end(workspace: Workspace, spec: TaskSpec, outcome: Outcome) -> None:
    """Tell people of a task that needs one, or was given up; of requests `tell` does."""
    is_security = spec.kind == "security" and workspace.config.review.security
    is_asked = outcome.trigger == HUMAN_REVIEW or (is_security and bool(outcome.awaiting))
    if outcome.status == "escalated" and not is_asked:
        kind: Any = "escalation"
    elif outcome.status == "failed" and outcome.page:
        kind = "dead_letter"
    else:
        return
    text, id_ = f"{spec.title}: {outcome.reason}", outcome.task_id
    from loki.execution.notify_channels import notifier  # what it sends with is much to load

    notifier(workspace).notify(kind, text, task_id=id_, answer="loki status")


def answers(workspace: Workspace, task_id: str, since: str = "") -> list[str]:
    """What people's answers tell whoever works on a task, the oldest first.

    Args:
        workspace: the project.
        task_id: the task.
        since: only of answers at or after this, ISO 8601 UTC.
    """
    found = [
        notice(one.review, one.answer, one.by, one.note).strip()
        for one in human_reviews(workspace).decisions(task_id)
        if one.at >= since
    ]
    return list(filter(None, (*found, Approvals(workspace.store, task_id).told(since))))


def heard(workspace: Workspace, task_id: str) -> list[str]:
    """What people answered in a task's life, for whoever works on it; the newest where it is too much.

    It holds wherever the task stands: never begun, interrupted, given up and tried again.
    """
    found: list[str] = []
    for words in map(mask_secrets, reversed(answers(workspace, task_id))):
        if sum(map(len, found)) + len(words) > MAX_CONTEXT:
            break
        found.append(words)
    return found[::-1]

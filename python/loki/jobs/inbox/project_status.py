"""How a project stands, on one page: what waits for a person, what runs, and how the rest does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from loki.base import codec
from loki.jobs.inbox import human_review_answers
from loki.jobs.inbox.inbox import requests
from loki.jobs.inbox.queue_requests import summary
from loki.jobs.inbox.request_kind import ProjectSnapshot, numbered
from loki.jobs.queue.queued_task import LISTS
from loki.memory.task_record import TaskRecord
from loki.people.request import Request
from loki.people.signal import HUMAN_APPROVED, HUMAN_REVIEW_NEEDED
from loki.people.signals import Signals

if TYPE_CHECKING:
    from loki.jobs.queue.queue_index import Lists
    from loki.workspace import Workspace

LAST = 5
"""Outcomes that are shown; chosen, not measured."""


@dataclass(frozen=True, slots=True)
class Status:
    """How a project stands.

    Attributes:
        project: its folder.
        waiting: what waits for a person, the most urgent first.
        running: ids of tasks that a worker has now, with what is known of it.
        begun: tasks that have not ended: they run, or were killed.
        queue: how many tasks stand in each list, and of the pending ones are blocked; empty where
            there is no queue.
        breakers: circuit breakers that are not closed.
        signals: how many of each kind are pending.
        outcomes: of the tasks that ended last, the newest first.
        unread: what of it cannot be read, and why: what stands there is missing above.
        recurring: how each recurring task stands, the one that runs next first.
    """

    project: str
    waiting: list[Request]
    running: list[dict[str, Any]] = field(default_factory=list)
    begun: list[dict[str, Any]] = field(default_factory=list)
    queue: dict[str, int] = field(default_factory=dict)
    breakers: list[dict[str, Any]] = field(default_factory=list)
    signals: dict[str, int] = field(default_factory=dict)
    outcomes: list[dict[str, Any]] = field(default_factory=list)
    recurring: list[dict[str, Any]] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return codec.fields_of(self)


def status(workspace: Workspace, *, settles: bool = True) -> Status:
    """How a project stands now.

    Args:
        workspace: the project.
        settles: what nobody answered in time is given up first; else nothing is written.

    Example:
        >>> import tempfile
        >>> from loki import Workspace
        >>> status(Workspace(tempfile.mkdtemp())).waiting
        []
    """
    if settles:
        human_review_answers.finish_reviews(workspace)
    look = ProjectSnapshot(workspace)
    waits = numbered(workspace, requests(workspace, look), gives=settles)
    told = {one.task_id for one in waits}
    running, queue = _queue(look.lists)
    return Status(
        str(workspace.root),
        waits,
        running,
        [
            {"id": id_, "title": one.title, "since": one.updated_at}
            for id_, one in look.records.items()
            if one and not one.outcome and id_ not in told
        ],
        queue,
        _breakers(look),
        _signals(workspace),
        _outcomes(look.records),
        summary(look),
        [look.unread] if look.unread else [],
    )


def _queue(lists: Lists) -> tuple[list[dict[str, Any]], dict[str, int]]:
    counts: dict[str, int] = {name: lists.count(name) for name in LISTS}
    counts["blocked"] = len(lists.blocked())
    running: list[dict[str, Any]] = [
        {
            "id": task.id,
            "title": task.title,
            "worker": task.claim.worker if task.claim else "",
            "since": task.claim.since if task.claim else "",
        }
        for task in lists.of("in-progress")
    ]
    return running, counts if any(counts.values()) else {}


def _breakers(look: ProjectSnapshot) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "state": one.state,
            "retry_after": one.retry_after,
            "last_error": one.last_error,
        }
        for name, one in look.breakers.items()
        if one.state != "CLOSED"
    ]


def _signals(workspace: Workspace) -> dict[str, int]:
    branch = workspace.position()[0]
    found = Signals(workspace.store, workspace.clock, branch=branch).pending()
    asked = {HUMAN_REVIEW_NEEDED, HUMAN_APPROVED}  # shown as what waits for a person
    return dict(Counter(one.label for one in found if one.kind not in asked))


def _outcomes(records: Mapping[str, TaskRecord]) -> list[dict[str, Any]]:
    ended = [(id_, one, one.outcome) for id_, one in records.items() if one.outcome]
    ended.sort(key=lambda found: found[1].updated_at, reverse=True)
    return [
        {
            "id": id_,
            "title": one.title,
            "status": outcome.status,
            "reason": outcome.reason,
            "at": one.updated_at,
        }
        for id_, one, outcome in ended[:LAST]
    ]

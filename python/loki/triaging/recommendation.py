"""What triages recommend and nobody has decided on: settings are a person's."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING

from loki.base.time import isoformat
from loki.people.waiting import Answer, Waiting, answers_of
from loki.recurrence.verdict import RECOMMEND_CONFIG

if TYPE_CHECKING:
    from loki.recurrence.recurring import RecurringTask
    from loki.workspace import Workspace


def recommendations(workspace: Workspace, tasks: Iterable[RecurringTask]) -> list[Waiting]:
    """Settings that the last triage of a task wants changed, as long as the task fails.

    Args:
        workspace: the project.
        tasks: those that failed when they ran last.

    Example:
        >>> import tempfile
        >>> from loki import Workspace
        >>> recommendations(Workspace(tempfile.mkdtemp()), [])
        []
    """
    return [found for task in tasks if (found := _recommended(workspace, task)) is not None]


def _recommended(workspace: Workspace, task: RecurringTask) -> Waiting | None:
    if task.paused is not None or task.stopped is not None or not task.triages:
        return None
    from loki.triaging.evidence import records

    last = records(workspace, task.id, task.triages)[-1:]
    if not last or last[0].verdict != RECOMMEND_CONFIG:
        return None
    record, id_ = last[0], shlex.quote(task.id)
    return Waiting(
        task.id,
        "recurring",
        task.title or task.id,
        f"It failed {task.consecutive_failures} times in a row. Its triage recommends: "
        f"{record.recommendation}. Change the setting, or let it go on as it is.",
        isoformat(record.ended_at or record.started_at),
        answers_of(
            task.id,
            "forgive its failures, once the setting is changed",
            "leave it as it is",
            "",
            Answer("read the triage", f"loki show {record.id}"),
            Answer("pause it", f"loki pause {id_}"),
            reason="",
        ),
    )

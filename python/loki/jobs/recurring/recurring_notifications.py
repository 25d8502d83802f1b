"""Tells the people of a project what happened to its recurring tasks."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

from loki.jobs.recurring.recurring_outcome import STOPPED

if TYPE_CHECKING:
    from loki.jobs.recurring.recurring_outcome import Notice
    from loki.settings import NotificationKind
    from loki.workspace import Workspace

logger = logging.getLogger("loki")


def paused(workspace: Workspace) -> Callable[[str, str], None]:
    """Tells that a task was paused: its id, and why."""

    def tell(id_: str, text: str) -> None:
        _tell(workspace, "recurring_paused", id_, text)

    return tell


def noticed(workspace: Workspace) -> Callable[[str, Notice], None]:
    """Tells that a task stopped by itself; what else happens to it stands in the scheduler's log."""

    def tell(id_: str, notice: Notice) -> None:
        if notice.event == STOPPED:
            _tell(workspace, "recurring_stopped", id_, f"stopped: {notice.text}")

    return tell


def _tell(workspace: Workspace, kind: NotificationKind, id_: str, text: str) -> None:
    from loki.execution.notify_channels import notifier  # few tasks ever stop

    said, answer = f"The recurring task {id_} {text}", f"loki resume {shlex.quote(id_)}"
    logger.warning("[recurrence] %s; %s", said, answer)
    notifier(workspace).notify(kind, said, task_id=id_, id=id_, answer=answer)

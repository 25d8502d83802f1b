"""What is done before new work: dead letters that are due for a review, answers, signals."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loki.jobs.dead_letters.dead_letters import Reviewed
    from loki.workspace import Workspace


def run_maintenance(workspace: Workspace, notify: Callable[[Reviewed], object]) -> None:
    """Review the dead letters where that is due, and act on answers and signals that wait.

    Args:
        workspace: the project.
        notify: told of each dead letter as it is done.

    Raises:
        StoreError: they cannot be read or written.
    """
    from loki.jobs.dead_letters.daily_review import review_when_due
    from loki.jobs.signals.signal_follower import attend

    review_when_due(workspace, notify=notify)
    attend(workspace)

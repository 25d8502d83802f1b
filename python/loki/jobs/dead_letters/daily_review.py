"""The review of the dead letters where it is due: for whoever starts work, and for who goes on with it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from loki.base.error import LokiError
from loki.jobs.queue.queue_lists import document
from loki.memory.dead_letter_log import LETTERS

if TYPE_CHECKING:
    from loki.jobs.dead_letters.dead_letters import Reviewed
    from loki.workspace import Workspace

logger = logging.getLogger("loki")

LOOK = 600.0
"""Seconds between two looks at whether a review is due, which it is once a day. Chosen."""


def review_when_due(
    workspace: Workspace,
    reviewers: Sequence[object] = (),
    notify: Callable[[Reviewed], object] = lambda _: None,
) -> list[Reviewed]:
    """Review the dead letters before new work, where the last review is over 24 hours old.

    Args:
        workspace: the project.
        reviewers: agents that answer what no fact decides; none: nobody does.
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
    if store.get(document("dead-letter")) is None and not any(store.scan(LETTERS)):
        return []  # as nearly always, and quick
    from loki.jobs.dead_letters.dead_letters import DeadLetters

    letters = DeadLetters(workspace, reviewers)
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

"""The review of the dead letters where it is due: for whoever starts work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from loki.memory.dead_letters import LETTERS
from loki.recurrence.queue_lists import document

if TYPE_CHECKING:
    from loki.dead_letters.reviewing import Reviewed
    from loki.workspace import Workspace


def review_when_due(
    workspace: Workspace,
    reviewers: Sequence[object] = (),
    told: Callable[[Reviewed], None] = lambda _: None,
) -> list[Reviewed]:
    """Review the dead letters before new work, where the last review is over 24 hours old.

    Args:
        workspace: the project.
        reviewers: agents that answer what no fact decides; none: nobody does.
        told: told of each dead letter as it is done.

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
    from loki.dead_letters.reviewing import Reviews

    reviews = Reviews(workspace, reviewers)
    return reviews.review(told=told) if reviews.is_due() else []

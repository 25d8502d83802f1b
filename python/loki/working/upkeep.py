"""What is done before new work, and beside it: dead letters that are due for a review, signals."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from loki.base.error import LokiError

if TYPE_CHECKING:
    from loki.dead_letters.reviewing import Reviewed
    from loki.workspace import Workspace

logger = logging.getLogger("loki")


def before_work(workspace: Workspace, told: Callable[[Reviewed], None]) -> None:
    """Review the dead letters where that is due, and act on the signals that wait.

    Args:
        workspace: the project.
        told: told of each dead letter as it is done.

    Raises:
        StoreError: they cannot be read or written.
    """
    from loki.dead_letters.reviewing import review_when_due
    from loki.signalling.handling import handle

    review_when_due(workspace, told=told)
    handle(workspace)


def after_work(workspace: Workspace) -> None:
    """Act on the signals that the last tasks gave."""
    from loki.signalling.handling import handle

    handle(workspace)


@contextmanager
def signals_followed(workspace: Workspace) -> Iterator[None]:
    """Act on signals as soon as they come, in a thread of its own."""
    over = threading.Event()
    thread = threading.Thread(target=_follow, args=(workspace, over), name="loki-signals")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _follow(workspace: Workspace, over: threading.Event) -> None:
    from loki.people.signal import FOLDER
    from loki.signalling.handling import handle
    from loki.signalling.watch import changes

    try:
        for _ in changes(workspace.folder / FOLDER, over, notice=False):
            handle(workspace, cancelled=over)
    except (LokiError, OSError) as error:
        logger.warning("signals are not acted on any more: %s", error)

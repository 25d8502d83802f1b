"""Acts on signals, and on what people decided, as they come, beside other work."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING

from loki.base.background_thread import in_background
from loki.base.error import LokiError
from loki.jobs.inbox import human_review_answers
from loki.jobs.signals.signal_handling import handle
from loki.jobs.signals.signal_watcher import changes
from loki.people.signal import FOLDER

if TYPE_CHECKING:
    from loki.workspace import Workspace

logger = logging.getLogger("loki")


def attend(workspace: Workspace, cancelled: threading.Event | None = None) -> None:
    """Act on the signals that wait, do what people decided, and give up what nobody answered in time.

    Args:
        workspace: the project.
        cancelled: ends whatever runs for a signal when set.
    """
    human_review_answers.finish_reviews(workspace)
    handle(workspace, cancelled=cancelled)


def followed(
    workspace: Workspace, also: Callable[[], object] = lambda: None
) -> AbstractContextManager[None]:
    """Inside, signals are acted on as soon as they come, in a thread of its own.

    What runs for one at the end is ended; the signal waits for the next dispatcher.

    Args:
        workspace: the project.
        also: called after each look, every few seconds: what is done now and then beside work.
    """
    follow = partial(_follow, workspace, also)
    return in_background(follow, "loki-signals", daemon=False)


def _follow(workspace: Workspace, also: Callable[[], object], over: threading.Event) -> None:
    try:
        for _ in changes(workspace.folder / FOLDER, over):
            attend(workspace, over)
            also()
    except (LokiError, OSError) as error:
        logger.warning("signals are not acted on any more: %s", error)

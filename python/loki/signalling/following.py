"""Acts on signals as they come, beside other work."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from loki.base.error import LokiError
from loki.people.signal import FOLDER
from loki.signalling.handling import handle
from loki.signalling.watch import changes

if TYPE_CHECKING:
    from loki.workspace import Workspace

logger = logging.getLogger("loki")


@contextmanager
def followed(workspace: Workspace) -> Iterator[None]:
    """Inside, signals are acted on as soon as they come, in a thread of its own.

    What runs for one at the end is ended; the signal waits for the next dispatcher.

    Args:
        workspace: the project.
    """
    over = threading.Event()
    thread = threading.Thread(target=_follow, args=(workspace, over), name="loki-signals")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _follow(workspace: Workspace, over: threading.Event) -> None:
    try:
        for _ in changes(workspace.folder / FOLDER, over):
            handle(workspace, cancelled=over)
    except (LokiError, OSError) as error:
        logger.warning("signals are not acted on any more: %s", error)

"""The queue of a project: joins it with the project's files and clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loki.recurrence.queue import Queue
from loki.stores.files import FileStore

if TYPE_CHECKING:
    from loki.workspace import Workspace


def queue_of(workspace: Workspace) -> Queue:
    """The queue of tasks that all workers of a project share.

    Example:
        >>> import tempfile
        >>> from loki.workspace import Workspace
        >>> queue_of(Workspace(tempfile.mkdtemp())).tasks()
        []
    """
    # Not the store that goes on in memory: a claim that is not kept is none.
    return Queue(FileStore(workspace.folder), workspace.clock)

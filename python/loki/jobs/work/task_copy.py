"""A copy of the project for one task: taken whole, begun afresh when the project moves on."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from loki.action.changes.scratch_copy import update
from loki.action.changes.scratch_folder import remove_folder, scratch_folder
from loki.action.changes.tree import Tree
from loki.action.checks.task_changes import link_dependency_folders
from loki.stores.project_lock import hold_project

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator


class Copy:
    """The project as it was at one moment, in a folder of its own.

    Attributes:
        root: where the project is in it.
        base: its files as they were taken.
    """

    def __init__(self, project: Path, destination: str) -> None:
        """Take it; whoever does holds the project.

        Args:
            project: the project's folder.
            destination: a folder that does not exist.

        Raises:
            OSError: it could not be written.
        """
        self.project = project
        self._destination = destination
        self._seen: Tree | None = None
        self._take()

    def _take(self) -> None:
        self.base = self.now().copy_to(self._destination)
        self.root = Path(self.base.root)
        link_dependency_folders(self.project, self.root)

    def now(self) -> Tree:
        """The project as it is now."""
        self._seen = Tree.scan(self.project, self._seen)
        return self._seen

    def catch_up(self) -> None:
        """What has changed in the project comes into the copy; what was done there stays.

        Needs the project, and that nothing of it was done to the same paths.

        Raises:
            OSError: it could not be written; the copy is of no use then.
        """
        self.base = update(self.base, self.now())

    def begin_again(self) -> None:
        """The project as it is now, in the same place. Needs the project.

        Raises:
            OSError: it could not be written.
        """
        remove_folder(self._destination)
        self._take()


@contextmanager
def copy_of(project: Path, folder: Path, cancelled: threading.Event) -> Iterator[Copy]:
    """A copy of a project; gone afterwards, or, after a crash, when the next one is made.

    Args:
        project: the project's folder; folder: its ``.loki``.
        cancelled: ends the wait for the project.

    Raises:
        Stopped: the wait was ended.
        OSError: it could not be written.
    """
    with scratch_folder() as place:
        with hold_project(folder, cancelled):
            copy = Copy(project, os.path.join(place, project.name or "project"))
        yield copy

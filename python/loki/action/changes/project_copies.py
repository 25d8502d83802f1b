"""Copies of a project for whoever works on a task: one is kept from attempt to attempt, as new each time."""

from __future__ import annotations

import logging
import os
import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from loki.action.changes.scratch_copy import refresh_copy, scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loki.action.changes.tree import Tree


logger = logging.getLogger("loki")


class ProjectCopies:
    """Copies of one project; nothing is written before the first is asked for.

    Example:
        >>> import tempfile
        >>> from loki.action.changes.tree import Tree
        >>> copies = ProjectCopies()
        >>> with copies.copy(Tree.scan(tempfile.mkdtemp())) as copy:
        ...     sorted(copy.entries)
        []
        >>> copies.close()
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._folder = ""
        self._given: Tree | None = None
        self._is_over = False

    @contextmanager
    def copy(self, tree: Tree) -> Iterator[Tree]:
        """A copy of the project as it is, of which nobody else knows; what is done in it is thrown away.

        Args:
            tree: the project.

        Raises:
            OSError: it could not be written.
        """
        if not self._lock.acquire(blocking=False):  # somebody who is asked at the same time
            with scratch_folder() as folder:
                yield tree.copy_to(_place(folder, tree))
            return
        try:
            yield self._as_new(tree)
        finally:
            self._lock.release()
            if self._is_over:
                self.close()

    def close(self) -> None:
        """Remove what is kept; where somebody works in it, when they are done."""
        self._is_over = True
        if self._lock.acquire(blocking=False):
            try:
                self._stack.close()
                self._given = None
            finally:
                self._lock.release()

    def _as_new(self, tree: Tree) -> Tree:
        given, self._given = self._given, None
        if given is not None:
            try:
                self._given = refresh_copy(given, tree, os.path.join(self._folder, "aside"))
            except OSError as error:
                logger.debug("the copy of %s is made anew: %s", tree.root, error)
        if self._given is None:
            self._stack.close()
            self._folder = self._stack.enter_context(scratch_folder())
            place = _place(self._folder, tree)
            copied = tree.copy_to(place)
            if str(copied.root) != os.path.realpath(place):  # a part of a larger repository
                return copied
            self._given = copied
        return self._given


def _place(folder: str, tree: Tree) -> str:
    return os.path.join(folder, os.path.basename(tree.root) or "project")

"""What a strategy works on, and how it says that it cannot."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from loki.action.changes.change import Change
from loki.action.changes.tree import Tree
from loki.action.checks.check import Check
from loki.action.checks.imports import Files, imports_of, resolve
from loki.action.loop.recorder import with_draft
from loki.action.processes.process import CommandResult
from loki.base.error import LokiError
from loki.recognition.failure import Failure
from loki.recognition.pattern import PatternSet

MAX_FILE_BYTES = 512 * 1024
"""A larger file is not read; chosen, not measured."""

MAX_READ_BYTES = 64 * 1024 * 1024
"""Of all files together that one strategy reads; chosen, not measured."""


class StrategyNotApplicable(LokiError):
    """A strategy has nothing to work on; the next one is tried."""


@dataclass(frozen=True)
class StrategyContext:
    """What a strategy works on.

    Attributes:
        root: the project's folder.
        failure: what failed.
        check: the check that failed, or None where none ran.
        patterns: the pattern set.
        run_fix: runs a command in the project and gives its result and the paths that it changed.
        passes_now: runs a check again and tells whether it passes.
        output: all that the failing check printed, "" where nothing is known of it.
        changed: paths that the task has changed so far.
        allowed: globs of commands that may be run without a person's leave.
        seen: the project as it was seen last; what has not changed since is not read again.
        draft: what was proposed and refused, and the next attempt begins with; None: nothing is.
    """

    root: Path
    failure: Failure
    check: Check | None
    patterns: PatternSet
    run_fix: Callable[[tuple[str, ...]], tuple[CommandResult, tuple[str, ...]]]
    passes_now: Callable[[Check], bool]
    output: str = ""
    changed: Sequence[str] = ()
    allowed: Sequence[str] = ()
    seen: Tree | None = None
    draft: Change | None = None

    @functools.cached_property
    def project(self) -> Project:
        """The project's files as the next attempt finds them."""
        return Project(self.root, self.seen, self.draft)

    @property
    def looked_at(self) -> Tree | None:
        """The project as a strategy saw it, or None where none has looked."""
        project = self.__dict__.get("project")
        return project.scanned if isinstance(project, Project) else None

    @property
    def text(self) -> str:
        """What the check printed, the excerpt first, as the rest may be very long."""
        return f"{self.failure.excerpt}\n{self.output}"


class Project:
    """The files of a project, read as text within limits.

    Args:
        root: its folder.
        seen: it as it was seen last, or None.
        draft: what its files are taken for, though nothing of it is applied; None: nothing.

    Example:
        >>> Project(Path("/usr/include/arpa")).read("no-such-file")
        ''
    """

    def __init__(self, root: Path, seen: Tree | None = None, draft: Change | None = None) -> None:
        self.root = root
        self.scanned = Tree.scan(root, seen)
        self.tree = with_draft(self.scanned, draft)
        self._left = MAX_READ_BYTES
        self._read: dict[str, str] = {}

    def __contains__(self, path: str) -> bool:
        return path in self.tree.entries

    @property
    def paths(self) -> Sequence[str]:
        """All paths, relative to the root, in order."""
        return list(self.tree.entries)

    def read(self, path: str) -> str:
        """The text of a file; "" where there is none, or it is too large or no plain file."""
        if path not in self._read:
            self._read[path] = self._text(path)
        return self._read[path]

    @functools.cached_property
    def files(self) -> Files:
        """The same project, as imports and detection see it."""
        return Files.of(self.tree)

    def imported_by(self, path: str) -> list[str]:
        """The files of the project that a file imports."""
        content = self.read(path).encode("utf-8", "replace")
        found = (resolve(each, path, self.files) for each in imports_of(path, content))
        return list(dict.fromkeys(imported for paths in found for imported in paths))

    def import_lines(self, path: str) -> set[int]:
        """The lines on which a file's imports begin."""
        content = self.read(path).encode("utf-8", "replace")
        return {each.line for each in imports_of(path, content)}

    def lines(self, path: str) -> list[str]:
        """Its lines, without their ends."""
        return self.read(path).splitlines()

    def _text(self, path: str) -> str:
        entry = self.tree.entries.get(path)
        if entry is None or entry.is_symlink or entry.size > min(MAX_FILE_BYTES, self._left):
            return ""
        self._left -= entry.size
        try:
            return self.tree.read(path).decode("utf-8", "replace")
        except OSError:
            return ""

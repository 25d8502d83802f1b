"""What a task has made of the project, beside how it found it."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path

from loki.action.changes.change import file_diff
from loki.action.changes.executor import Executor
from loki.action.changes.safe_path import PathState, SafeFolder, ancestors
from loki.action.changes.tree import Tree
from loki.action.checks.imports import Files
from loki.base import path_containment

MAX_DIFF = 200_000
"""Characters of a difference that is shown to a reviewer; chosen, not measured."""

BORROWED = ("node_modules", ".venv", "venv", "vendor")
"""Folders of dependencies: git ignores them, and a copy links to them, as nothing runs without."""


@dataclass
class TaskChanges:
    """The difference that a task has made so far.

    Args:
        executor: knows what the task has done.
    """

    executor: Executor

    def digest(self) -> str:
        """Digest of what the files that the task has changed hold now; what else is there is not in it."""
        digest = hashlib.sha256()
        for path in self.paths():
            content = _read(self.executor.root, path)
            state = "gone" if content is None else hashlib.sha256(content).hexdigest()
            digest.update(f"{path}\0{state}\n".encode("utf-8", "surrogateescape"))
        return digest.hexdigest()

    def paths(self) -> tuple[str, ...]:
        """The paths that the task has left different."""
        return tuple(sorted(self.executor.start()))

    def diff(self) -> str:
        """The difference as text, unified; at its end a line where it is too long to be shown."""
        parts: list[str] = []
        for path, before in sorted(self.executor.start().items()):
            old = before[1] if before else None
            parts.append(file_diff(path, old, _read(self.executor.root, path)))
        text = "".join(parts)
        if len(text) <= MAX_DIFF:
            return text
        return f"{text[:MAX_DIFF]}\n… {len(text) - MAX_DIFF} characters left out …\n"

    def texts(self) -> dict[str, tuple[str | None, str | None]]:
        """What the files that the task has left different held, and hold; None: not there, or no text."""
        start = self.executor.start()
        return {
            path: (_text(before[1] if before else None), self.text(path))
            for path, before in start.items()
        }

    def text(self, path: str) -> str | None:
        """What a file holds now; None where it is not there, or is no text."""
        return _text(_read(self.executor.root, path))

    def before(self, tree: Tree) -> Files:
        """The project's files as the task found them.

        Args:
            tree: the project as it is now.
        """
        start = self.executor.start()
        gone = {path for path, state in start.items() if state is None}
        paths = {*tree.entries, *start} - gone
        kept = {path: state for path, state in start.items() if state}

        def read(path: str) -> bytes:
            return kept[path][1] if path in kept else tree.read(path)

        def hash_of(path: str) -> str | None:
            return kept[path][0].hash if path in kept else tree.hash_of(path)

        return Files(paths, read, hash_of)

    def copy_before(self, tree: Tree, destination: str) -> Path:
        """Copy the project as the task found it to a folder that does not exist.

        Args:
            tree: the project as it is now.
            destination: the folder.

        Returns:
            Where the project is in the copy.

        Raises:
            OSError: it could not be written.
        """
        root = Path(tree.copy_to(destination).root)
        for path, state in sorted(self.executor.start().items()):  # what became a link: first
            _write(SafeFolder(root), path, state)
        link_dependency_folders(self.executor.root, root)
        return root


def _text(content: bytes | None) -> str | None:
    if content is None or b"\0" in content[:8_000]:
        return None
    return content.decode("utf-8", "replace").replace("\r\n", "\n")


def _read(root: Path, path: str) -> bytes | None:
    full = root / path
    try:
        return os.fsencode(os.readlink(full)) if full.is_symlink() else full.read_bytes()
    except OSError:
        return None


def _write(place: SafeFolder, path: str, before: tuple[PathState, bytes] | None) -> None:
    """Have a path be what it was; a link on the way is an error, for it may lead into the original."""
    place.remove_quietly(path)
    if before is None:
        return
    for folder in ancestors(path):
        place.make_folder(folder, None)
    state, content = before
    place.stage(path, content, replace(state, mode=state.mode | 0o600))


def dependency_folders(root: Path) -> list[str]:
    """The dependencies that copies of a project link to: of its own folder, as real paths."""
    return [os.path.realpath(root / name) for name in BORROWED if (root / name).is_dir()]


def link_dependency_folders(root: Path, copy: Path) -> None:
    """Link the copy to the dependencies of the original, wherever one of its folders has some."""
    leave = frozenset({".git", *BORROWED})
    for folder in path_containment.folders(copy, leave):
        for name in BORROWED:
            source, target = os.path.join(root, folder, name), os.path.join(copy, folder, name)
            if os.path.isdir(source) and not os.path.exists(target):
                os.symlink(os.path.realpath(source), target)

"""Bringing files from one state to another, all or none: a write-ahead log.

In order: (1) a record,
"applying", says which paths go from what to what, and brings what the files hold and will hold to
the shelf; (2) the new files are staged under temporary names; (3) paths are removed and replaced,
one at a time; (4) the record says "applied". Nobody waits for the disk at (4): a record that never
got there, though every path is as it would have left it, has got there. Any other is rolled back, path
by path, and only where the path is as the record would have left it.
"""

from __future__ import annotations

import contextlib
import hashlib
import stat
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from loki.action.changes.journal_storage import JournalStorage, Kind, Record, Step
from loki.action.changes.safe_path import PathState, SafeFolder, ancestors, current_umask
from loki.base.atomic_file import temporary_name
from loki.base.error import LokiError, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from loki.action.changes.change import Edit
    from loki.action.changes.tree import Tree


@dataclass(frozen=True, slots=True)
class Conflict:
    """A path that was left alone, and why, in a sentence."""

    path: str
    reason: str


class ApplyError(LokiError):
    """The project's files could not be changed; they are as they were, unless it says otherwise."""


class EditConflict(ApplyError):
    """Files are not what the change expects.

    Attributes:
        conflicts: which, and why.
    """

    def __init__(self, conflicts: Sequence[Conflict]) -> None:
        """Args: conflicts: which files, and why."""
        self.conflicts = tuple(conflicts)
        super().__init__("; ".join(f"{c.path}: {c.reason}" for c in conflicts))


def unexpected(edit: Edit, is_there: bool) -> str:
    """Why an edit does not fit what is there, in a sentence."""
    if edit.before is None:
        return "exists, though the change takes it for new; nobody has looked at what it holds"
    return "was changed meanwhile" if is_there else "was deleted meanwhile"


@dataclass(frozen=True, slots=True)
class Transaction:
    """How records are carried out and rolled back.

    Attributes:
        shelf: where records and contents are kept.
        place: the project.
        observe: called with the name of each step before it is made.
    """

    storage: JournalStorage
    place: SafeFolder
    observe: Callable[[str], None]

    def record(self, kind: Kind, steps: Sequence[Step]) -> Record:
        """A record for steps that are about to be made."""
        new = {f for step in steps if step.after for f in ancestors(step.path)}
        gone = {f for step in steps if step.after is None for f in ancestors(step.path)}
        modes = {folder: self.place.folder_mode(folder) for folder in sorted(gone)}
        return Record(
            number=self.storage.next_number(),
            kind=kind,
            stage="applying",
            steps=tuple(steps),
            made=tuple(sorted(f for f in new if self.place.folder_mode(f) is None)),
            folders={folder: mode for folder, mode in modes.items() if mode is not None},
            temporaries=self._temporaries(steps),
        )

    def _temporaries(self, steps: Sequence[Step]) -> tuple[str, ...]:
        # In the closest folder that is already there: a rename must stay on one file system.
        paths = []
        for step in steps:
            folder, name = self.place.nearest(step.path), temporary_name()
            paths.append(f"{folder}/{name}" if folder else name)
        return tuple(paths)

    def carry_out(
        self,
        record: Record,
        contents: Mapping[str, bytes],
        removable: Iterable[str],
        modes: Mapping[str, int] | None = None,
    ) -> None:
        """Make a record's steps, all or none.

        Args:
            record: as `record` made it.
            contents: by hash, what its paths hold, and will hold unless that is on the shelf.
            removable: folders that go when they become empty.
            modes: permission bits for folders that have to be made; else as the umask says.

        Raises:
            ApplyError: the files could not be changed.
            StoreError: the record could not be written.
        """
        self.observe("record")
        self.storage.save(record, contents)
        try:
            self._stage(record.steps, record.temporaries, contents)
            self._move(record.steps, record.temporaries, modes or {}, removable)
            self.observe("done")
            self.storage.reach(record.number, "applied")
        except BaseException as error:
            # Where somebody's own edit stopped us, it stays, and that is all that is left.
            known = {c.path for c in error.conflicts} if isinstance(error, EditConflict) else ()
            left = [c for c in self.roll_back(record) if c.path not in known]
            if left:
                names = ", ".join(f"{conflict.path} ({conflict.reason})" for conflict in left)
                raise ApplyError(f"{error}; and could not be taken back: {names}") from error
            if isinstance(error, OSError):
                raise apply_error(error) from error
            raise

    def is_carried_out(self, record: Record) -> bool:
        """Whether every path is as a record leaves it: all that it was to do is done, and on the disk.

        A command never is: what its record says of paths is how far it got.
        """
        if record.kind == "command":
            return False
        try:
            return all(self.place.stat(step.path) == step.after for step in record.steps)
        except OSError:
            return False

    def complete(self, record: Record, removable: Iterable[str]) -> None:
        """Say of a record that is carried out that it is.

        Args:
            record: whose writer, or machine, went down before it could say so.
            removable: folders that go when they become empty.

        Raises:
            StoreError: that cannot be written.
        """
        for folder in sorted(removable, reverse=True):
            self.place.remove_folder(folder)
        self.storage.reach(record.number, "applied")

    def roll_back(self, record: Record) -> list[Conflict]:
        """Take back what a record has done so far; what somebody else changed stays.

        Returns:
            The paths that could not be taken back.
        """
        self.clear([record])
        back, conflicts = [], []
        for step in record.steps:
            reason = self._obstacle(step)
            if reason:
                conflicts.append(Conflict(step.path, reason))
            elif self.place.stat(step.path) != step.before:
                back.append(step.reversed())
        temporaries = self._temporaries(back)
        # Should this be interrupted too, it starts again from the same record. That must not
        # depend on a disk that may be full: the files come first.
        with contextlib.suppress(StoreError):
            self.storage.save(replace(record, temporaries=(*record.temporaries, *temporaries)))
        try:
            self._stage(back, temporaries, {})
            self._move(back, temporaries, record.folders, record.made)
        except (OSError, LokiError) as error:
            for temporary in temporaries:
                self.place.remove_quietly(temporary)
            return [*conflicts, *(Conflict(step.path, str(error)) for step in back)]
        with contextlib.suppress(StoreError):
            self.storage.reach(record.number, "rolled back")
        return conflicts

    def clear(self, records: Iterable[Record]) -> None:
        """Remove what records had staged and not put in its place."""
        for record in records:
            for temporary in record.temporaries:
                self.place.remove_quietly(temporary)

    def _obstacle(self, step: Step) -> str:
        """Why a step cannot be taken back; "" where it can, or need not."""
        try:
            present = self.place.stat(step.path)
        except OSError as error:
            return f"cannot be read: {error.strerror or error}"
        if present == step.before:
            return ""
        if present != step.after:
            return "changed since by somebody else"
        if step.before and self.storage.get(step.before.hash) is None:
            return "what it was before is missing or damaged"
        return ""

    def _move(
        self,
        steps: Sequence[Step],
        temporaries: Sequence[str],
        modes: Mapping[str, int],
        removable: Iterable[str],
    ) -> None:
        """Bring paths from ``before`` to ``after``, which is staged: remove, then put in place."""
        for step in steps:
            if self.place.stat(step.path) != step.before:
                raise EditConflict([Conflict(step.path, "somebody changed it just now")])
        for step in steps:
            if step.after is None:
                self.observe(f"remove {step.path}")
                self.place.remove(step.path)
        for folder in sorted(removable, reverse=True):
            self.place.remove_folder(folder)
        for step, temporary in zip(steps, temporaries, strict=True):
            if step.after is not None:
                for folder in ancestors(step.path):
                    self.place.make_folder(folder, modes.get(folder))
                self.observe(f"replace {step.path}")
                self.place.replace(temporary, step.path)

    def _stage(
        self, steps: Sequence[Step], temporaries: Sequence[str], contents: Mapping[str, bytes]
    ) -> None:
        for step, temporary in zip(steps, temporaries, strict=True):
            if step.after is None:
                continue
            data = contents.get(step.after.hash)
            data = self.storage.get(step.after.hash) if data is None else data
            if data is None:
                raise OSError(f"{step.path}: the content kept for it is missing or damaged")
            self.observe(f"stage {step.path}")
            self.place.stage(temporary, data, step.after)


def apply_error(error: OSError) -> ApplyError:
    """The error for a file system that refused."""
    where = f"{error.filename}: " if error.filename else ""
    return ApplyError(f"{where}{error.strerror or error}; nothing was changed")


def state_of(tree: Tree, path: str) -> PathState:
    """What a tree saw at a path."""
    entry, seen = tree.entries[path], tree.stamp(path)
    mode = stat.S_IMODE(seen[4]) if seen and not entry.is_symlink else 0o777
    return PathState(entry.hash, mode, entry.is_symlink)


def state_after(edit: Edit, present: PathState | None) -> PathState | None:
    """What an edit makes of what is there; new files are made as the umask says."""
    if edit.after is None:
        return None
    name = hashlib.sha256(edit.after).hexdigest()
    if edit.mode == "symlink":
        return PathState(name, 0o777, is_symlink=True)
    if present is None or present.is_symlink:
        bits = (0o777 if edit.mode == "executable" else 0o666) & ~current_umask()
    elif edit.mode == "executable":  # whoever may read it may run it
        bits = present.mode | (present.mode & 0o444) >> 2
    elif edit.mode == "file":
        bits = present.mode & ~0o111
    else:
        bits = present.mode
    return PathState(name, bits)

"""What a task does to the project's files: done all or nothing, recovered after a crash, undone.

In order: (1) a record, "applying", says which paths go from what to what, and brings what the files hold
and will hold to the storage; (2) the new files are staged under temporary names; (3) paths are removed
and replaced, one at a time; (4) the record says "applied". Nobody waits for the disk at (4): a record
that never got there, though every path is as it would have left it, has got there. Any other is rolled
back, path by path, and only where the path is as the record would have left it.

What is kept, and where: `loki.action.changes.journal_storage`.
"""

from __future__ import annotations

import contextlib
import stat
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from loki.action.changes.change import UNKNOWN, Change, Edit, file_diff
from loki.action.changes.journal_storage import (
    DiskJournalStorage,
    JournalStorage,
    Kind,
    MemoryJournalStorage,
    Record,
    Step,
)
from loki.action.changes.safe_path import PathState, SafeFolder, ancestors, current_umask
from loki.action.changes.tree import Tree, content_hash
from loki.base import path_containment
from loki.base.atomic_file import temporary_name
from loki.base.error import LokiError, StoreError
from loki.base.threads import in_background

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path


# --- From one state to another, all or none: a write-ahead log ----------------------------------------


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
        storage: where records and contents are kept.
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
            contents: by hash, what its paths hold, and will hold unless that is kept already.
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
    name = content_hash(edit.after)
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


# --- Back from a project as it is to how a task found it: the inverse of its records ------------------


@dataclass(frozen=True, slots=True)
class UndoResult:
    """What an undo did; or a recovery, of which nothing is told where nothing was interrupted.

    Attributes:
        restored: paths that are again as they were before the task, or before the interrupted change
            or command.
        conflicts: paths that somebody else has changed; where an undo finds any and nobody insisted,
            nothing was restored at all.
        damaged: a sentence about each record that cannot be read.
    """

    restored: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    damaged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NetChange:
    """What the records say about one path, from first to last.

    Attributes:
        start: what it was before the task.
        end: what the task has made of it.
        is_foreign: not every record began where the one before it had ended: somebody else
            changed the path in between.
    """

    start: PathState | None
    end: PathState | None
    is_foreign: bool = False


def net(records: Iterable[Record]) -> dict[str, NetChange]:
    """What the applied records have done, by path; what an undo took back is forgotten."""
    found: dict[str, NetChange] = {}
    for record in records:
        for step in record.steps if record.stage == "applied" else ():
            known = found.get(step.path)
            if known is None:
                found[step.path] = NetChange(step.before, step.after)
            elif step.after == known.start and record.kind == "undo":
                del found[step.path]
            else:
                is_foreign = known.is_foreign or known.end != step.before
                found[step.path] = NetChange(known.start, step.after, is_foreign)
    return found


def steps_to_start(
    records: Iterable[Record], place: SafeFolder, storage: JournalStorage, *, force: bool
) -> tuple[list[Step], list[Conflict], dict[str, bytes]]:
    """How to get back to the start.

    Args:
        records: of the task.
        place: the project.
        storage: where its contents are kept.
        force: go back over what somebody else has done, too.

    Returns:
        The steps, the paths where somebody else has changed something or the content to go back to
        is missing, and what the paths of the steps hold now, by hash.
    """
    steps: list[Step] = []
    conflicts: list[Conflict] = []
    contents: dict[str, bytes] = {}
    for path, known in sorted(net(records).items()):
        try:
            found = place.read(path)
        except OSError as error:
            conflicts.append(Conflict(path, f"cannot be read: {error.strerror or error}"))
            continue
        present = found[0] if found else None
        if present == known.start:
            continue
        can_restore = known.start is None or storage.get(known.start.hash) is not None
        reason = _objection(present, known)
        if not can_restore:
            conflicts.append(Conflict(path, "what it was before is missing or damaged"))
        elif reason:
            conflicts.append(Conflict(path, reason))
        if can_restore and (force or not reason):
            steps.append(Step(path, present, known.start))
            contents.update({found[0].hash: found[1]} if found else {})
    return steps, conflicts, contents


def _objection(present: PathState | None, known: NetChange) -> str:
    if present != known.end:
        return "somebody has changed it since" if present else "somebody has deleted it since"
    return "somebody changed it between two attempts" if known.is_foreign else ""


# --- The journal --------------------------------------------------------------------------------------

MAX_KEPT = 100_000_000
"""Bytes: what commands do to larger files cannot be undone. Chosen, not measured."""

HEARTBEAT = 1.0
"""Seconds between signs of life while a command runs. Chosen, not measured."""

AFTERMATH = 5.0
"""Seconds that a command may have gone on writing after loki's last sign of life.

A heartbeat, the supervisor's grace, and a margin. What was written later is somebody else's.
"""


@dataclass
class External:
    """Work on the project that loki does not do itself.

    Attributes:
        record: its record while it goes on.
        tree: the project before it.
        applied: the paths that are different by it; None: it is not over.
    """

    record: Record
    tree: Tree
    applied: tuple[str, ...] | None = None
    _open: contextlib.ExitStack = field(default_factory=contextlib.ExitStack, repr=False)


class Journal:
    """What one task did to the project."""

    def __init__(
        self,
        folder: str | os.PathLike[str] | None,
        root: str | os.PathLike[str],
        observe: Callable[[str], None] | None = None,
    ) -> None:
        """A journal; nothing is read or written yet.

        Args:
            folder: where it is kept (``.loki/tasks/<id>/undo``); None: in memory, so that no
                other process can recover or undo.
            root: the project.
            observe: called with the name of each step before it is made; what it raises counts as
                a failure of the step. For tests of crashes and full disks.
        """
        self._storage: JournalStorage = (
            MemoryJournalStorage() if folder is None else DiskJournalStorage(folder)
        )
        self._place = SafeFolder(root)
        self._observe = observe or (lambda _: None)
        self._transaction = Transaction(self._storage, self._place, self._observe)
        self._tree: Tree | None = None

    # --- Changes -------------------------------------------------------------------------------

    def apply(self, change: Change) -> tuple[str, ...]:
        """Make a change's edits, all or none; its commands are the caller's business.

        That they are made is there whatever becomes of the process. If the machine goes down before
        `finish`, or before the next change, the next `recover` sees by the files that they are.

        What is refused altogether (`loki.action.changes.forbidden_changes`) is not looked for again;
        whether files are as the change expects is, and no link can lead out of the project.

        Returns:
            The paths that are different now.

        Raises:
            EditConflict: a file is not what the change expects; nothing was changed.
            ApplyError: the files cannot be written; nothing was changed.
            StoreError: the journal cannot be written; nothing was changed.
        """
        with self._storage.lock():
            contents: dict[str, bytes] = {}
            try:
                steps = self._plan(change, contents)
            except OSError as error:
                raise apply_error(error) from error
            record = self._transaction.record("change", steps)
            # Like git: a folder goes with its last file.
            self._transaction.carry_out(record, contents, _removable(record, ()))
        return tuple(step.path for step in steps)

    def finish(self) -> None:
        """Have on disk that what was done is done.

        Raises:
            StoreError: the journal cannot be written.
        """
        self._storage.finish()

    def _plan(self, change: Change, contents: dict[str, bytes]) -> tuple[Step, ...]:
        steps, conflicts = [], []
        for edit in change.edits:
            if edit.size != len(edit.after or b""):
                raise OSError(f"{edit.path}: too large: its content is not in the change")
            found = self._place.read(edit.path)
            present = found[0] if found else None
            if edit.before is not UNKNOWN and edit.before != (present.hash if present else None):
                conflicts.append(Conflict(edit.path, unexpected(edit, present is not None)))
                continue
            if found:
                contents[found[0].hash] = found[1]
            after = state_after(edit, present)
            if after and edit.after is not None:
                contents[after.hash] = edit.after
            if after != present:
                steps.append(Step(edit.path, present, after))
        if conflicts:
            raise EditConflict(conflicts)
        return tuple(steps)

    # --- Commands ------------------------------------------------------------------------------

    def begin_external(self) -> External:
        """Keep the whole tree (what is new in it), before a command runs in the project.

        Until `end_external`, no other loki can change or undo anything of this task.

        Raises:
            StoreError: the journal cannot be written.
        """
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._storage.lock())
            tree = Tree.scan(self._place.root, previous=self._tree)
            states = self._keep(tree, tree.entries)
            steps = tuple(Step(path, state, None) for path, state in states.items())
            folders = {f for path in states for f in ancestors(path)}
            modes = {f: self._place.folder_mode(f) or 0o755 for f in sorted(folders)}
            number = self._storage.next_number()
            record = Record(number, "command", "running", steps, folders=modes)
            self._observe("begin")
            self._storage.save(record)
            stack.enter_context(in_background(self._beat, "loki-heartbeat"))
            self._observe("begun")
            return External(record, tree, _open=stack.pop_all())

    def _beat(self, over: threading.Event) -> None:
        while not over.wait(HEARTBEAT):
            self._storage.touch()

    def end_external(self, work: External) -> tuple[str, ...]:
        """Record what became different since `begin_external`; which paths those are.

        Raises:
            StoreError: the journal cannot be written; the next `recover` goes back to the start.
        """
        with work._open:
            after = Tree.scan(self._place.root, previous=work.tree)
            steps, made = self._steps_since(work.record, work.tree, after)
            modes = {
                folder: mode
                for folder, mode in work.record.folders.items()
                if any(step.path.startswith(f"{folder}/") for step in steps)
            }
            self._observe("end")
            self._storage.save(
                replace(work.record, stage="applied", steps=steps, made=made, folders=modes)
            )
            self._tree = after
        return tuple(step.path for step in steps)

    def _steps_since(
        self, record: Record, before: Tree, after: Tree
    ) -> tuple[tuple[Step, ...], tuple[str, ...]]:
        then = {step.path: step.before for step in record.steps}
        paths = before.difference(after).paths
        now = self._keep(after, [path for path in paths if path in after.entries])
        steps = tuple(Step(path, then.get(path), now.get(path)) for path in paths)
        return steps, _made(record, steps)

    def _keep(self, tree: Tree, paths: Mapping[str, object] | list[str]) -> dict[str, PathState]:
        """Put files of a tree on the shelf unless they are there; their states."""
        states = {path: state_of(tree, path) for path in paths}
        missing = [
            path
            for path, state in states.items()
            if tree.entries[path].size <= MAX_KEPT
            and not self._storage.has(state.hash, tree.entries[path].size)
        ]
        read: list[str] = []

        def contents() -> Iterator[bytes]:
            for path in missing:
                try:
                    data = tree.read(path)
                except OSError:  # gone or locked meanwhile: then it cannot be restored either
                    continue
                read.append(path)
                yield data

        for path, name in zip(read, self._storage.put(contents()), strict=False):
            states[path] = replace(states[path], hash=name)
        return states

    # --- Recover and undo ----------------------------------------------------------------------

    def recover(self) -> UndoResult:
        """Bring files that a crash left in the middle back to where they were; what was done stays.

        Raises:
            StoreError: the journal cannot be read, or another loki is at work on this task.
        """
        with self._storage.lock():
            return self._recover()

    def _recover(self) -> UndoResult:
        self._storage.tidy()
        records, damaged = self._storage.load()
        # Of one that is done, too: that a name is gone may not have come to the disk.
        self._transaction.clear(records)
        restored: list[str] = []
        conflicts: list[Conflict] = []
        for record in reversed(records):
            if record.stage == "running":
                interrupted, foreign = self._interrupted(record)
                conflicts += foreign
            elif record.stage == "applying":
                interrupted = record
                if self._transaction.is_carried_out(record):
                    self._transaction.complete(record, _removable(record, records))
                    continue
            else:
                continue
            left = self._transaction.roll_back(interrupted)
            conflicts += left
            kept = {conflict.path for conflict in left}
            restored += [step.path for step in interrupted.steps if step.path not in kept]
        return UndoResult(tuple(sorted(restored)), tuple(conflicts), tuple(damaged))

    def _interrupted(self, record: Record) -> tuple[Record, list[Conflict]]:
        """A command's record as if loki had made the steps itself; and what others did since."""
        until = self._storage.touched() + AFTERMATH
        then = {step.path: step.before for step in record.steps}
        tree = Tree.scan(self._place.root, also=then)
        now = {path: state_of(tree, path) for path in tree.entries}
        paths = [path for path in sorted({*then, *now}) if then.get(path) != now.get(path)]
        later = {p for p in paths if p in now and self._place.touched(p) > until}
        ours = [path for path in paths if path not in later]
        self._keep(tree, [path for path in ours if path in now])
        steps = tuple(Step(path, then.get(path), now.get(path)) for path in ours)
        conflicts = [
            Conflict(path, "changed after a command was interrupted")
            for path in sorted(later)
            if path in then
        ]
        found = replace(record, stage="applying", steps=steps, made=_made(record, steps))
        return found, conflicts

    def undo(self, *, force: bool = False) -> UndoResult:
        """Bring every file that the task changed back to what it was before the task.

        Args:
            force: also where somebody else has changed a file since; what it holds now stays in
                the journal.

        Raises:
            ApplyError: the files cannot be written; nothing was changed.
            StoreError: the journal cannot be written, or another loki is at work on this task.
        """
        with self._storage.lock():
            self._recover()
            records, damaged = self._storage.load()
            steps, conflicts, found = steps_to_start(
                records, self._place, self._storage, force=force
            )
            if conflicts and not force:
                return UndoResult((), tuple(conflicts), tuple(damaged))
            if steps:
                modes = {f: m for record in reversed(records) for f, m in record.folders.items()}
                record = self._transaction.record("undo", steps)
                self._transaction.carry_out(record, found, _removable(record, records), modes)
                self._storage.finish()
        return UndoResult(tuple(s.path for s in steps), tuple(conflicts), tuple(damaged))

    def changes(self) -> dict[str, str]:
        """Paths that the task has left different, each with how: created, modified or deleted.

        Raises:
            StoreError: the journal cannot be read.
        """
        return {
            path: "created" if one.start is None else "modified" if one.end else "deleted"
            for path, one in self._net().items()
        }

    def start(self) -> dict[str, tuple[PathState, bytes] | None]:
        """What the paths that the task has left different were before it; None: nothing was there.

        A path whose content was not kept (it was too large, or is damaged) is left out.

        Raises:
            StoreError: the journal cannot be read.
        """
        found: dict[str, tuple[PathState, bytes] | None] = {}
        for path, one in self._net().items():
            content = self._content(one.start)
            if one.start is None:
                found[path] = None
            elif content is not None:
                found[path] = (one.start, content)
        return found

    def diff(self) -> str:
        """What the task has changed so far, as a unified diff for people to read.

        Raises:
            StoreError: the journal cannot be read.
        """
        return "".join(
            file_diff(path, self._content(one.start), self._content(one.end))
            for path, one in sorted(self._net().items())
        )

    def _net(self) -> dict[str, NetChange]:
        """What the records amount to, of the paths that are different by them."""
        found = net(self._storage.load()[0])
        return {path: one for path, one in found.items() if one.start != one.end}

    def _content(self, state: PathState | None) -> bytes | None:
        return self._storage.get(state.hash) if state else None


def _removable(record: Record, records: Iterable[Record]) -> Iterable[str]:
    """Folders that a record takes away once they are empty: like git's, or what the task had made."""
    if record.kind == "undo":
        return {folder for one in records for folder in one.made}
    return record.folders


def _made(record: Record, steps: tuple[Step, ...]) -> tuple[str, ...]:
    """The folders that were not there when a command began, and are now."""
    folders = {f for step in steps if step.after for f in ancestors(step.path)}
    return tuple(sorted(folders - record.folders.keys()))


def undo_journal(folder: Path, task: str) -> Journal:
    """What a task has changed in the project itself.

    Raises:
        StoreError: its id can name no folder.
    """
    return Journal(
        path_containment.path(folder, "tasks", path_containment.part(task), "undo"), folder.parent
    )

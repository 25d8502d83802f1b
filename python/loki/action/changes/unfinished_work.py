"""What a task has done in a copy and not landed: kept, so that it goes on from there.

The copy's journal stands in the task's folder, ``.loki/tasks/<id>/work``, and outlives the copy. Who
goes on with the task, in a newer copy or in the project itself, applies what it amounts to; where the
project has become another one under it, the task begins anew and the change stays as a patch.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from loki.action.changes.change import Change, Edit
from loki.action.changes.executor import Executor
from loki.action.changes.journal import EditConflict, Journal, net, undo_journal
from loki.action.changes.journal_storage import DiskJournalStorage
from loki.action.changes.safe_path import PathState, SafeFolder
from loki.base import path_containment
from loki.base.error import StoreError
from loki.base.log import log_event

if TYPE_CHECKING:
    from loki.memory.store import Store


WORK, BEFORE, GONE = "work", "work.before", "gone"
"""Folders of a task: the journal of its copy, that of the copy before while its work moves over, and one
that is just being removed."""


def patch_name(task: str) -> str:
    """Where a person finds what is unfinished, relative to ``.loki/``."""
    return f"tasks/{task}/unfinished-{task}.patch"


def work_folder(folder: Path, task: str) -> Path:
    """Where the journal of a task's copy stands."""
    return _of(folder, task, WORK)


def _of(folder: Path, task: str, name: str) -> Path:
    return Path(path_containment.path(folder, "tasks", path_containment.part(task), name))


def _remove(folder: Path, task: str, name: str) -> None:
    """Remove a folder; for whoever looks in one step: half a journal would be taken for a whole one."""
    gone = f"tasks/{path_containment.part(task)}/{GONE}"
    try:
        path_containment.remove_tree(folder, gone)  # of somebody who was killed here
        with suppress(FileNotFoundError):
            os.rename(_of(folder, task, name), folder / gone)
        path_containment.remove_tree(folder, gone)
    except (OSError, StoreError) as error:
        log_event(task, f"{error}; it can be removed by hand", warning=True)


def change_in(work: str | os.PathLike[str]) -> Change:
    """What the records of a copy's journal amount to; a path whose content is lost is left out.

    Raises:
        StoreError: they cannot be read.
    """
    storage = DiskJournalStorage(work)
    edits = []
    for path, known in sorted(net(storage.load()[0]).items()):
        if known.start == known.end:
            continue
        before = known.start.hash if known.start else None
        after = storage.get(known.end.hash) if known.end else None
        if known.end is None:
            edits.append(Edit(path, None, before))
        elif after is not None:
            edits.append(Edit(path, after, before, _mode(known.end)))
    return Change(tuple(edits))


def _mode(state: PathState) -> Literal["file", "executable", "symlink"]:
    if state.is_symlink:
        return "symlink"
    return "executable" if state.mode & 0o100 else "file"


def unapplied_part(change: Change, root: Path) -> Change:
    """The edits of a change that a folder does not hold already."""
    place = SafeFolder(root)
    return Change(tuple(edit for edit in change.edits if not _is_there(place, edit)))


def _is_there(place: SafeFolder, edit: Edit) -> bool:
    found = place.read(edit.path)
    if found is None or edit.after is None:
        return found is None and edit.after is None
    return found[1] == edit.after and _mode(found[0]) == edit.mode


def move_over(folder: Path, task: str, change: Change, root: Path) -> Journal:
    """A new journal for a copy that was taken anew, with a change applied to it.

    Args:
        folder: the workspace's folder; task: the task.
        change: what is to be in the copy.
        root: the copy.

    Raises:
        EditConflict: it does not fit; the journal is new and empty.
        StoreError: the journal cannot be written.
    """
    work, before = work_folder(folder, task), _of(folder, task, BEFORE)
    if before.exists():  # somebody was killed here: it holds all that the newer one may lack
        _remove(folder, task, WORK)
    elif work.exists():
        with path_containment.parent(folder, f"tasks/{path_containment.part(task)}/{WORK}") as (
            above,
            name,
        ):
            os.rename(name, BEFORE, src_dir_fd=above, dst_dir_fd=above)
    journal = Journal(work, root)
    try:
        if change.edits:
            journal.apply(change)
    finally:
        _remove(folder, task, BEFORE)
    return journal


def unfinished_change(folder: Path, task: str) -> Change:
    """What a task has left unfinished.

    Raises:
        StoreError: it cannot be read.
    """
    before = _of(folder, task, BEFORE)
    return change_in(before if before.exists() else work_folder(folder, task))


def forget(folder: Path, store: Store, task: str) -> None:
    """What was unfinished is in the project."""
    for name in (WORK, BEFORE):
        _remove(folder, task, name)
    store.update(patch_name(task), lambda _: None)


def keep_patch(folder: Path, store: Store, task: str, root: Path) -> None:
    """Write what is unfinished for a person to read; nothing where there is nothing."""
    text = Journal(work_folder(folder, task), root).diff()
    store.update(patch_name(task), lambda _: text or None)


@dataclass
class ContinuingExecutor(Executor):
    """Goes on with what the task left unfinished.

    Args:
        folder: the workspace's folder; store: where memory is kept; task: the task's id.
        goes_on: the execution is one that stopped; else it begins anew.
        is_copy: it works in a copy; else in the project itself.
    """

    folder: Path = Path()
    store: Store | None = None
    task: str = ""
    goes_on: bool = False
    is_copy: bool = False

    def recover(self) -> None:
        """Mend what a crash left, and bring in what is unfinished."""
        change = unfinished_change(self.folder, self.task) if self.goes_on else Change.nothing()
        change = unapplied_part(change, self.root)
        if not self.is_copy:
            super().recover()
        try:
            if self.is_copy:
                self.journal = move_over(self.folder, self.task, change, self.root)
            elif change.edits:
                self.journal.apply(change)
        except EditConflict as conflict:
            page = patch_name(self.task)
            message = (
                f"what was unfinished does not fit any more ({conflict}); it stays in .loki/{page}"
            )
            log_event(self.task, message, warning=True)
            return
        if change.edits:
            log_event(self.task, f"goes on with what it had changed: {', '.join(change.paths)}")
            if not self.is_copy:
                assert self.store is not None
                forget(self.folder, self.store, self.task)

    def changes(self) -> dict[str, str]:
        """What the task has changed, landed or not."""
        found = super().changes()
        if self.is_copy:
            found = {**undo_journal(self.folder, self.task).changes(), **found}
        return found

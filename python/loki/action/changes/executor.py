"""Applies changes and runs commands in the project; everything that it does can be undone.

The copy's journal stands in the task's folder, ``.loki/tasks/<id>/work``, and outlives the copy. Who
goes on with the task, in a newer copy or in the project itself, applies what it amounts to; where the
project has become another one under it, the task begins anew and the change stays as a patch.
"""

from __future__ import annotations

import fnmatch
import logging
import os
import shlex
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from loki.action.changes.change import Change, Edit
from loki.action.changes.journal import EditConflict, Journal, net, undo_journal
from loki.action.changes.journal_storage import DiskJournalStorage
from loki.action.changes.safe_path import PathState, SafeFolder
from loki.action.gates.syntax_check import broken_files
from loki.action.loop.loop_events import Executed
from loki.action.processes import process
from loki.action.processes.command_guard import command_guard_of
from loki.action.processes.process import CommandResult
from loki.base import path_containment
from loki.base.error import LokiError, StoreError, UsageError
from loki.base.log import log_event
from loki.base.path_exists import path_exists
from loki.memory.attempt import shorten
from loki.people.approval import Approvals, irreversible
from loki.recognition.failure import Failure, recognize
from loki.recognition.pattern import PatternSet

if TYPE_CHECKING:
    from loki.memory.store import Store


logger = logging.getLogger("loki")

_T = TypeVar("_T")


@dataclass
class Executor:
    """The EXECUTE phase: edits through the journal, commands under its watch.

    Args:
        root: the project's folder.
        journal: applies changes and undoes them.
        patterns: to name failures with.
        allowed: globs of commands that a change may run.
        command_seconds: how long such a command may take.
        approvals: what people said of other commands; None: nobody is asked.
        cancelled: ends a running command when set.
    """

    root: Path
    journal: Journal
    patterns: PatternSet
    allowed: Sequence[str] = ()
    command_seconds: float = 600.0
    approvals: Approvals | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)

    def recover(self) -> None:
        """Mend what a crash left: every edit is wholly done or wholly undone after this."""
        recovered = self._journaled(Journal.recover)
        for path in recovered.restored:
            logger.warning("%s: restored after an interrupted change", path)
        for conflict in recovered.conflicts:
            logger.warning("%s: %s", conflict.path, conflict.reason)
        for sentence in recovered.damaged:
            logger.warning("%s", sentence)

    def finish(self) -> None:
        """Have on disk that what was done to the project is done."""
        self._journaled(Journal.finish)

    def changed_files(self) -> tuple[str, ...]:
        """Paths that the task has changed so far."""
        return tuple(sorted(self.changes()))

    def changes(self) -> dict[str, str]:
        """The same paths, each with how: created, modified or deleted."""
        return self._journaled(Journal.changes)

    def start(self) -> dict[str, tuple[PathState, bytes] | None]:
        """What the paths that the task has left different were before it; see `Journal.start`."""
        return self._journaled(Journal.start)

    def watch(self) -> Callable[[], tuple[str, ...]]:
        """Record what somebody else does to the project, until the returned function is called.

        Returns:
            A function that ends the watch and gives the paths that changed; called again, none.
        """
        work = self._journaled(Journal.begin_external)
        journal = self.journal

        def close() -> tuple[str, ...]:
            if work.applied is not None:
                return ()
            work.applied = journal.end_external(work)
            return work.applied

        return close

    def _journaled(self, work: Callable[[Journal], _T]) -> _T:
        """Work with the journal; where it cannot be written, go on with one in memory."""
        try:
            return work(self.journal)
        except StoreError as error:
            logger.warning(
                "Could not persist: %s. Going on; `loki undo` will not know of it.", error
            )
            self.journal = Journal(None, self.root)
            return work(self.journal)

    def execute(self, change: Change, *, commands_only: bool = False) -> Executed:
        """Apply a change and run its commands, as far as they come.

        Args:
            change: what to do; each edit knows what it replaces.
            commands_only: its edits are in the project already.
        """
        files: tuple[str, ...] = ()
        if not commands_only:
            try:
                files = self._journaled(lambda journal: journal.apply(change))
            except (LokiError, OSError) as error:
                refused = Failure.of(str(error), tool="loki", error_code="not-applied")
                return Executed((), (), refused, was_applied=False)
        commands: list[Mapping[str, Any]] = []
        written: list[str] = []
        for command in change.commands:
            ran, touched, failure = self._run_command(command)
            written += touched
            files = tuple(dict.fromkeys((*files, *touched)))
            if ran is not None:
                commands.append(ran)
            if failure is not None:
                return Executed(files, tuple(commands), failure)
        return Executed(files, tuple(commands), self._config_failure(written))

    def _run_command(
        self, command: tuple[str, ...]
    ) -> tuple[Mapping[str, Any] | None, tuple[str, ...], Failure | None]:
        shown = shlex.join(command)
        if refused := self._refused(command, shown):
            return None, (), Failure.of(refused, tool="loki", error_code="command-not-allowed")
        try:
            finished, files = self.run(command)
        except UsageError as error:
            return None, (), Failure.of(str(error), tool="loki", error_code="command-not-found")
        ran = {
            "command": shown,
            "exit_code": finished.exit_code,
            "stdout": shorten(finished.stdout.decode("utf-8", "replace")),
            "stderr": shorten(finished.stderr.decode("utf-8", "replace")),
        }
        if finished.is_success:
            return ran, files, None
        failure = recognize(
            finished.output,
            command=shown,
            exit_code=finished.exit_code,
            root=str(self.root),
            patterns=self.patterns,
            exists=path_exists(self.root),
        )
        if not failure.message:
            failure = Failure.of(f"`{shown}` ended with exit code {finished.exit_code}")
        return ran, files, failure

    def is_allowed(self, command: tuple[str, ...]) -> bool:
        """Whether the project's configuration lets a command run."""
        shown = shlex.join(command)
        return any(fnmatch.fnmatchcase(shown, glob) for glob in self.allowed)

    def _refused(self, command: tuple[str, ...], shown: str) -> str:
        """Why a command is not run, or "": it is on the list, or a person approved its very words."""
        said = self.approvals.of_command(command) if self.approvals else None
        # A person's no to what cannot be taken back holds whatever the list says.
        is_barred = said is not None and not said.approved and irreversible(command, str(self.root))
        if self.is_allowed(command) and not is_barred:
            return ""
        if said is not None and said.approved:
            return ""
        message = (
            f"the command `{shown}` is not allowed here; allowed are: "
            f"{', '.join(self.allowed) or 'none'}"
        )
        if said is not None:
            return f"{message}; {said.by} rejected it: {said.note or 'no reason given'}"
        if self.approvals is None:
            return message
        self.approvals.ask(command)
        return f"{message}; a person can approve it"

    def run(self, command: tuple[str, ...]) -> tuple[CommandResult, tuple[str, ...]]:
        """Run a command in the project; what it changes is recorded and can be undone."""
        close = self.watch()
        try:
            with command_guard_of(self.root).over(command, self.root, "command") as box:
                finished = process.run(
                    command,
                    cwd=self.root,
                    timeout=self.command_seconds,
                    cancelled=self.cancelled,
                    box=box,
                ).masked()
        finally:
            files = close()
        return finished, files

    def _config_failure(self, files: Sequence[str]) -> Failure | None:
        """Configs that a command wrote must parse too; proposed ones were checked before."""
        if not files:
            return None
        found = broken_files(self.root, files)
        return found.failure(self.patterns) if not found.passed else None


# --- What a task has done in a copy and not landed ----------------------------------------------------

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

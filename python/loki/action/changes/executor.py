"""Applies changes and runs commands in the project; everything that it does can be undone."""

from __future__ import annotations

import fnmatch
import logging
import shlex
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from loki.action.changes.change import Change
from loki.action.changes.journal import Journal
from loki.action.changes.safe_path import PathState
from loki.action.gates.syntax_check import broken_files
from loki.action.loop.loop_events import Executed
from loki.action.processes import process
from loki.action.processes.command_guard import command_guard_of
from loki.action.processes.process import CommandResult
from loki.base.error import LokiError, StoreError, UsageError
from loki.base.path_exists import path_exists
from loki.memory.attempt import shorten
from loki.people.approval import Approvals
from loki.people.irreversible import irreversible
from loki.recognition.failure import Failure, recognize
from loki.recognition.pattern import PatternSet

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

"""A project and its ``.loki/`` as data: paths, configuration, store, clock."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from loki.base.error import UsageError
from loki.base.manual_clock import clock_of
from loki.base.time import Clock
from loki.stores.file_store import ForgivingStore, exclusive, open_store

if TYPE_CHECKING:
    from loki.action.changes.git import GitHead
    from loki.action.changes.journal import Journal
    from loki.action.gates.gate import Gates
    from loki.action.task import TaskSpec
    from loki.config import Config
    from loki.memory.attempt import Attempt, History
    from loki.memory.attempt_metrics import ExecutionMetrics
    from loki.memory.dead_letter import DeadLetter, Source
    from loki.memory.task_record import Outcome
    from loki.recognition.pattern import PatternSet

T = TypeVar("T")

FOLDER = ".loki"
CONFIG, GATES = "config.toml", "verification-gates.yml"
PATTERNS = ("failure-patterns.yml", "learned-patterns.yml")


class TaskListener:
    """Hears what happens to tasks; whoever has a queue for them does something about it, this one nothing."""

    def source_of(self, task: str, run: str) -> Source:  # noqa: ARG002
        """How a task came to be worked on.

        Args:
            task: its id.
            run: id of the pipeline's run that it is a stage of, or "".
        """
        return "pipeline" if run else "loop"

    def asked(self) -> None:
        """A person is asked something new."""

    def ended(
        self,
        spec: TaskSpec,
        outcome: Outcome,
        letter: DeadLetter | None,
        agent: Mapping[str, Any] | None,
    ) -> None:
        """A task ended; called before that is kept.

        Args:
            spec: the task.
            outcome: how it ended.
            letter: what is left of one that was given up.
            agent: what is known of who worked on it.
        """


class Workspace:
    """A project and what loki keeps of it; `loki.Workspace` is this with everything that can be done in it.

    Args:
        path: the project's folder.
        clock: where time comes from; the machine's where nothing is said, or the one that starts
            at the environment variable ``LOKI_NOW``, which is meant for tests.
        folder: the ``.loki`` of the project that ``path`` is a copy of; None: it is the project.

    Attributes:
        root: the folder that is worked in; folder: the project's ``.loki``.
        store: what it remembers; where that cannot be kept, it goes on in memory, and says so.
        strict_store: the same, where what cannot be kept is an error: a person's decision, a lease.
        listener: hears what happens to tasks.

    Raises:
        UsageError: there is no such folder.
        ConfigError: a file in ``.loki/`` that a person wrote cannot be used.

    Example:
        >>> import tempfile
        >>> Workspace(tempfile.mkdtemp()).tasks()
        []
    """

    def __init__(
        self, path: str | Path = ".", *, clock: Clock | None = None, folder: Path | None = None
    ) -> None:
        self.root = Path(path).resolve()
        if not self.root.is_dir():
            raise UsageError(f"no such project: {path} is not a folder")
        self.is_copy = folder is not None
        self.folder = folder or self.root / FOLDER
        self.clock: Clock = clock or clock_of(os.environ)
        self.is_configured = (self.folder / CONFIG).exists()
        if self.is_configured:
            _ = self.config  # a person's mistakes are told at once
        if any((self.folder / name).exists() for name in PATTERNS):
            _ = self.patterns
        if (self.folder / GATES).exists():
            _ = self.gates
        self.strict_store = open_store(self.folder)
        self.store = ForgivingStore(self.strict_store)
        self.listener = TaskListener()
        self._made: dict[Callable[..., Any], Any] = {}

    @cached_property
    def config(self) -> Config:
        """``.loki/config.toml``, as it was when the workspace was made; where there is none, loaded late."""
        from loki.config import Config, load

        return load(self.folder / CONFIG) if self.is_configured else Config()

    @cached_property
    def patterns(self) -> PatternSet:
        """Kinds of failure known here: the project's own or those that loki brings, and learned ones."""
        from loki.recognition.pattern import PatternSet

        return PatternSet.of_project(self.folder)

    @cached_property
    def gates(self) -> Gates:
        """Which gates run; read once a task needs them, as most callers of a workspace need none."""
        from loki.action.gates import gate

        return gate.load_gates(self.folder / GATES)

    def once(self, make: Callable[[Workspace], T]) -> T:
        """What a function makes of this workspace: made when it is first asked for, and then kept."""
        if make not in self._made:
            self._made[make] = make(self)
        found: T = self._made[make]
        return found

    @property
    def project(self) -> Path:
        """The project's folder, also where the work is done in a copy of it."""
        return self.folder.parent

    def tasks(self) -> list[str]:
        """Ids of all tasks that the workspace remembers."""
        return sorted({n.split("/")[1] for n in self.store.keys("tasks/") if n.count("/") > 1})

    def history(self, task: str) -> History:
        """The attempts of a task."""
        from loki.memory.attempt import History

        return History(self.store, task)

    def executions(
        self, tasks: Iterable[str] | None = None
    ) -> Iterator[tuple[ExecutionMetrics, list[Attempt]]]:
        """Every execution with its figures and its attempts, task by task, oldest first in each.

        Args:
            tasks: ids of the tasks; all where nothing is said.
        """
        from loki.memory import attempt_metrics, task_record
        from loki.memory.attempt import log_name

        for task in self.tasks() if tasks is None else tasks:
            record = task_record.load(self.store, task)
            yield from attempt_metrics.executions(task, self.store.scan(log_name(task)), record)

    def journal(self, task: str) -> Journal:
        """What a task has changed, and how to undo it."""
        from loki.action.changes.journal import undo_journal

        return undo_journal(self.folder, task)

    def position(self) -> tuple[str | None, str | None]:
        """(branch, commit) of the project in git; None for each that there is not."""
        return self._head()

    @cached_property
    def _head(self) -> GitHead:
        from loki.action.changes.git import GitHead

        return GitHead(str(self.project))

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """One run at a time in a project: two would take each other's edits for a user's.

        Raises:
            UsageError: another run is at work here.
        """
        from loki.stores.project_lock import recover

        with exclusive(self.folder, time.time()):  # as files are stamped, whatever the clock says
            recover(self.folder)
            yield

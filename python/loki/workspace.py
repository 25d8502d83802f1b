"""A project and its ``.loki/``: the place where the rooms are joined."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loki.action.changes.git_head import Position
from loki.action.processes.command_guard_provider import register
from loki.base.error import UsageError
from loki.base.manual_clock import clock_of
from loki.base.time import Clock, Duration
from loki.execution import assembly, resilience, resolve
from loki.memory.store import ForgivingStore
from loki.recognition.pattern import PatternSet
from loki.stores import open_store
from loki.stores.file_store import exclusive

if TYPE_CHECKING:
    from loki.action.agent_protocol import Reviewer
    from loki.action.changes.journal import Journal
    from loki.action.changes.undo import Undone
    from loki.action.checks.check import Check
    from loki.action.checks.command_detection import Command, Detector
    from loki.action.gates.gate_config import Gates
    from loki.action.loop.performer import Performer
    from loki.action.processes.command_guard import Ward
    from loki.action.task import TaskSpec
    from loki.agents.command_agent import CommandAgent
    from loki.agents.endpoint import Ways
    from loki.agents.fallback_agent import FallbackAgent
    from loki.agents.model_agent import ModelAgent
    from loki.config import Config
    from loki.decision.breakers import Breakers
    from loki.execution.task_session import Task
    from loki.execution.workspace_runs import Runs
    from loki.memory.attempt import Attempt
    from loki.memory.attempt_metrics import ExecutionMetrics
    from loki.memory.history import History
    from loki.memory.learning.weekly_review import Review
    from loki.memory.signs import Signs
    from loki.memory.task_record import TaskRecord
    from loki.people.approval import Approval

FOLDER = ".loki"
CONFIG, GATES = "config.toml", "verification-gates.yml"


class Workspace:
    """A project whose failures loki handles.

    Args:
        path: the project's folder.
        clock: where time comes from; the machine's where nothing is said, or the one that starts
            at the environment variable ``LOKI_NOW``, which is meant for tests.
        folder: the ``.loki`` of the project that ``path`` is a copy of; None: it is the project.

    Attributes:
        root: the folder that is worked in; folder: the project's ``.loki``.
        store: what it remembers; where that cannot be kept, it goes on in memory, and says so.
        strict_store: the same, where what cannot be kept is an error: a person's decision, a lease.

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
        own = self.folder / "failure-patterns.yml"
        self.patterns = PatternSet.load(own) if own.exists() else PatternSet.default()
        if (self.folder / GATES).exists():
            _ = self.gates
        self.strict_store = open_store(self.folder)
        self.store = ForgivingStore(self.strict_store)
        self._position = Position(str(self.project))
        register(self.root, self)

    @cached_property
    def config(self) -> Config:
        """``.loki/config.toml``, as it was when the workspace was made; where there is none, loaded late."""
        from loki.config import Config, load

        return load(self.folder / CONFIG) if self.is_configured else Config()

    @cached_property
    def gates(self) -> Gates:
        """Which gates run; read once a task needs them, as most callers of a workspace need none."""
        from loki.action.gates import gate_config

        return gate_config.load(self.folder / GATES)

    @cached_property
    def ward(self) -> Ward:
        """How commands of agents and checks run here, and what they must leave as it is."""
        return assembly.ward(self)

    @cached_property
    def detector(self) -> Detector:
        """Finds the project's own commands; `commands` gives them."""
        return assembly.detector(self)

    @property
    def project(self) -> Path:
        """The project's folder, also where the work is done in a copy of it."""
        return self.folder.parent

    def task(
        self,
        title: str,
        *,
        kind: str = "bug_fix",
        checks: Sequence[str | Check] = (),
        complexity: str = "medium",
        max_attempts: int | None = None,
        max_time: Duration | None = None,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        wait: bool | None = None,
        scope: Sequence[str] = (),
        reviewer: Reviewer | None = None,
        id: str | None = None,  # noqa: A002 - the name of the field everywhere else
    ) -> Task:
        """A task of this project, to be worked on inside ``with``.

        Args:
            title: what is to be achieved, in a person's words.
            kind: bug_fix, feature, refactor, security or config_change.
            checks: commands that must exit with 0; without any, success cannot be verified.
            complexity: low, medium or high.
            max_attempts: attempts in all, 1 or more; where neither it nor the configuration says how
                many: the failing pattern's ``max_auto_retries``, else 4, without those that made progress.
            max_time: wall time for all of them: seconds or text like ``"2h"``.
            max_tokens: tokens for all of them, as far as the agent tells how many it took.
            max_cost: US dollars for all of them, likewise; else the ``[limits]`` of the configuration.
            wait: whether to wait while the agent's circuit breaker is open, as long as
                ``max_time`` allows; None: only where there is a ``max_time``. Else the task is
                paused, and goes on when it is run again.
            scope: files, folders and globs that the task is about: what a change does elsewhere is
                pointed out as scope creep; nothing is where nothing is said.
            reviewer: a `loki.action.agent_protocol.Reviewer` for criteria that no command can check.
            id: names the task's folder; made from the title where nothing is said, so that the
                same title goes on with the same task.

        Raises:
            UsageError: an argument is outside its range, a check's program does not exist, or a
                criterion wants a reviewer and there is none.
        """
        from loki.execution.task_session import Task

        spec = assembly.task_spec(
            self,
            title,
            kind=kind,
            checks=checks,
            complexity=complexity,
            max_attempts=max_attempts,
            max_time=max_time,
            max_tokens=max_tokens,
            max_cost=max_cost,
            wait=wait,
            scope=scope,
            reviewer=reviewer,
            id=id,
        )
        return Task(self, spec, reviewer=reviewer)

    def resume(
        self,
        task: str,
        *,
        context: str = "",
        checks: Sequence[str | Check] | None = None,
        max_attempts: int | None = None,
        max_time: Duration | None = None,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        wait: bool | None = None,
        reviewer: Reviewer | None = None,
    ) -> Task:
        """A task that stopped, to be gone on with inside ``with``: what it was asked to do is kept.

        Its attempts, signs, files and the tests that were seen failing stay. Where it had ended, or
        where there is context, its retries begin anew; else it goes on as it stood. Its checks run
        first: what a person has mended by hand is success.

        Args:
            task: its id.
            context: what a person knows and the agent cannot; every later briefing has it.
            checks, max_attempts, max_time, max_tokens, max_cost, wait: instead of what the task was
                begun with, as for `task`. Limits count from here on, where a person steps in.
            reviewer: judges criteria that no command can check.

        Raises:
            UsageError: there is no such task, nothing is left to do, or a check held a secret.

        Example:
            >>> import tempfile
            >>> workspace = Workspace(tempfile.mkdtemp())
            >>> with workspace.task("try", checks=["false"], max_attempts=1) as task:
            ...     task.run(lambda briefing: {"a.txt": "a"}).status
            'failed'
            >>> with workspace.resume(task.spec.id, context="b.txt is wanted, too") as task:
            ...     task.run(lambda briefing: {"b.txt": "b"}).attempts
            2
        """
        from loki.jobs.work import task_interventions

        return task_interventions.resume(
            self,
            self._record(task),
            context,
            checks,
            max_attempts,
            max_time,
            max_tokens,
            max_cost,
            wait,
            reviewer,
        )

    def abort(self, task: str, *, force: bool = False, why: str = "") -> Undone:
        """Give a task up: its changes are undone, and what asked for a person is answered.

        Whoever works on it, in whichever process, is ended first; nothing of it lands.

        Args:
            task: its id, or that of a task of the queue.
            force: restore also files that somebody changed since; why: for whoever wonders later.

        Returns:
            What was restored; where there are conflicts and no ``force``, nothing was done at all.

        Raises:
            UsageError: there is none, it has ended well, or whoever works on it does not end.
        """
        from loki.jobs.work import task_interventions

        return task_interventions.abort(self, task, force=force, why=why)

    def _record(self, task: str) -> TaskRecord:
        from loki.memory import task_record

        if task in self.tasks() and (record := task_record.load(self.store, task)):
            return record
        raise UsageError(f"no task {task!r} here: `loki show` lists them")

    def tasks(self) -> list[str]:
        """Ids of all tasks that the workspace remembers."""
        return sorted({n.split("/")[1] for n in self.store.names("tasks/") if n.count("/") > 1})

    def history(self, task: str) -> History:
        """The attempts of a task."""
        from loki.memory.history import History

        return History(self.store, task)

    def executions(
        self, tasks: Iterable[str] | None = None
    ) -> Iterator[tuple[ExecutionMetrics, list[Attempt]]]:
        """Every execution with its figures and its attempts, task by task, oldest first in each.

        Args:
            tasks: ids of the tasks; all where nothing is said.
        """
        from loki.memory import attempt_metrics, task_record
        from loki.memory.history import log_name

        for task in self.tasks() if tasks is None else tasks:
            record = task_record.load(self.store, task)
            yield from attempt_metrics.executions(task, self.store.scan(log_name(task)), record)

    def journal(self, task: str) -> Journal:
        """What a task has changed, and how to undo it."""
        from loki.action.changes.journal import undo_journal

        return undo_journal(self.folder, task)

    def review(self) -> Review:
        """What loki would like to learn here, for a person to decide on."""
        return assembly.review(self)

    def signs(self, branch: str | None = None, **rules: Any) -> Signs:
        """The signs of a run, for callers with a loop of their own: what led nowhere twice.

        Args:
            branch: the git branch whose run it is; the current one by default.
            rules: as `loki.memory.sign.SignRules` takes them: ``threshold``, ``thresholds``,
                ``exempt``, ``exempt_kinds``; the configuration's ``[signs]`` says the others.

        Raises:
            UsageError: a threshold is under 2.
        """
        return self.runs().signs(branch, **rules)

    def runs(self) -> Runs:
        """The runs of this project: all work on one git branch, until it is closed."""
        from loki.execution.workspace_runs import Runs

        return Runs(self)

    def breakers(self, calls: Mapping[str, Any] | None = None, **knobs: Any) -> Breakers:
        """The circuit breakers of this project, shared by all processes at work in it.

        Args:
            calls: arguments of `loki.Breaker` for calls of models and tools, beside the configuration's.
            knobs: as `loki.Breakers` takes them, for all of them; in place of what the configuration
                says, and of what is usual for calls.
        """
        return resilience.breakers(self, calls, **knobs)

    @cached_property
    def ways(self) -> Ways:
        """How models and agents are asked here: breakers, waits, prices, records of calls."""
        return resilience.ways(self)

    def agent(
        self, name: str, *, timeout: Duration | None = None, reflect: bool = False
    ) -> CommandAgent | ModelAgent | FallbackAgent:
        """An agent by its name.

        Args:
            name: as in ``[agents.<name>]`` of ``.loki/config.toml``; ``claude``, ``codex``,
                ``gemini`` or ``aider``: the program, started so that it asks nobody; or
                ``provider:model``; or several with commas, which stand in for each other.
            timeout: for one answer; None: as the configuration says.
            reflect: ask it once more after each attempt that failed what went wrong.

        Raises:
            UsageError: there is none of that name, its program does not exist, its provider's
                client is not installed, or there is no key.
        """
        return resolve.named_agent(self, name, timeout, reflect=reflect)

    def approve(
        self, task: str, criterion: str, *, approved: bool = True, by: str = "", note: str = ""
    ) -> Approval:
        """Keep a person's decision on a task that waits for one; `resume` goes on with it.

        Args:
            task: its id.
            criterion: what is decided on, as the task names it; a command that a proposal may not
                run by itself is named ``command: pip install x``.
            approved: yes or no.
            by: who decides; the user of this machine where nothing is said.
            note: why; where it is a no, the agent is told.

        Raises:
            UsageError: there is no such task, or it does not wait for this.
        """
        from loki.jobs.work import task_interventions

        return task_interventions.approve(self, self._record(task), criterion, approved, by, note)

    def position(self) -> tuple[str | None, str | None]:
        """(branch, commit) of the project in git; None for each that there is not."""
        return self._position()

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

    def performer(self, spec: TaskSpec, execution: int, cancelled: threading.Event) -> Performer:
        """Performs the loop's effects in this project."""
        return assembly.performer(self, spec, execution, cancelled)

    def commands(self) -> Mapping[str, Command]:
        """The commands that the project checks, builds and mends itself with, by kind."""
        return assembly.commands(self)

    def default_checks(
        self, kind: str, complexity: str = "medium", reviewer: Reviewer | None = None
    ) -> tuple[Check, ...]:
        """The checks of a task that names none; `assembly.default_checks` says more."""
        return assembly.default_checks(self, kind, complexity, reviewer)

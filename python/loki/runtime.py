"""A project's rooms put together: the public face of a workspace, and the whole loop in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from loki.base.error import UsageError
from loki.base.time import Clock, Duration
from loki.execution import assembly
from loki.jobs.task_listener import attach
from loki.workspace import Workspace

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from loki.action.agent_protocol import Reviewer
    from loki.action.changes.journal import UndoResult
    from loki.action.checks.check import Check
    from loki.action.checks.command_detection import Command
    from loki.action.loop.agent_call import AnyAgent
    from loki.action.processes.command_guard import CommandGuard
    from loki.agents.command_agent import CommandAgent
    from loki.agents.fallback_agent import FallbackAgent
    from loki.agents.fallback_chain import ChainOptions
    from loki.agents.model_agent import ModelAgent
    from loki.decision.breakers import Breakers
    from loki.execution.task_session import AgentLike, Task
    from loki.memory.learning.learned_rules import Review
    from loki.memory.sign import Signs
    from loki.memory.task_record import Outcome
    from loki.people.approval import Approval


class TaskOptions(TypedDict, total=False):
    """What `loki.Workspace.task` takes besides a title and checks; it says what each means."""

    kind: str
    complexity: str
    max_attempts: int | None
    max_time: Duration | None
    max_tokens: int | None
    max_cost: float | None
    wait: bool | None
    scope: Sequence[str]
    reviewer: Reviewer | None
    id: str | None


class Runtime(Workspace):
    """A project whose failures loki handles; public as `loki.Workspace`.

    Args:
        path: the project's folder.
        clock: where time comes from; the machine's where nothing is said, or the one that starts
            at the environment variable ``LOKI_NOW``, which is meant for tests.

    Raises:
        UsageError: there is no such folder.
        ConfigError: a file in ``.loki/`` that a person wrote cannot be used.

    Example:
        >>> import tempfile
        >>> Runtime(tempfile.mkdtemp()).tasks()
        []
    """

    def __init__(
        self, path: str | Path = ".", *, clock: Clock | None = None, folder: Path | None = None
    ) -> None:
        super().__init__(path, clock=clock, folder=folder)
        attach(self)

    @property
    def command_guard(self) -> CommandGuard:
        """How commands of agents and checks run here, and what they must leave as it is."""
        return assembly.guard(self)

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
        from loki.execution.task_session import new_task

        request = assembly.TaskRequest(
            title,
            checks=checks,
            kind=kind,
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
        return new_task(self, request)

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
            >>> import loki, tempfile
            >>> workspace = loki.Workspace(tempfile.mkdtemp())
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
            task,
            context=context,
            checks=checks,
            max_attempts=max_attempts,
            max_time=max_time,
            max_tokens=max_tokens,
            max_cost=max_cost,
            wait=wait,
            reviewer=reviewer,
        )

    def abort(self, task: str, *, force: bool = False, why: str = "") -> UndoResult:
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

    def review(self) -> Review:
        """What loki would like to learn here, for a person to decide on."""
        return assembly.review(self)

    def signs(self, branch: str | None = None, **rules: Any) -> Signs:
        """The signs of a run, for callers with a loop of their own: what led nowhere twice.

        Args:
            branch: the git branch whose run it is; the current one by default.
            rules: as `loki.memory.sign.SignRules` takes them: ``threshold``, ``thresholds``,
                ``exempt``; the configuration's ``[signs]`` says the others.

        Raises:
            UsageError: a threshold is under 2.
        """
        return self.runs().signs(branch, **rules)

    def runs(self) -> assembly.Runs:
        """The runs of this project: all work on one git branch, until it is closed."""
        return assembly.Runs(self)

    def breakers(self, calls: Mapping[str, Any] | None = None, **settings: Any) -> Breakers:
        """The circuit breakers of this project, shared by all processes at work in it.

        Args:
            calls: arguments of `loki.Breaker` for calls of models and tools, beside the configuration's.
            settings: as `loki.Breakers` takes them, for all of them; in place of what the configuration
                says, and of what is usual for calls.
        """
        from loki.execution import resolve

        return resolve.breakers(self, calls, **settings)

    @property
    def ways(self) -> ChainOptions:
        """How models and agents are asked here: breakers, waits, prices, records of calls."""
        from loki.execution.resolve import ways

        return self.once(ways)

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
        from loki.execution import resolve

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

        return task_interventions.approve(
            self, task, criterion, approved=approved, by=by, note=note
        )

    def commands(self) -> Mapping[str, Command]:
        """The commands that the project checks, builds and mends itself with, by kind."""
        return assembly.commands(self)

    def default_checks(
        self, kind: str, complexity: str = "medium", reviewer: Reviewer | None = None
    ) -> tuple[Check, ...]:
        """The checks of a task that names none; `assembly.default_checks` says more."""
        return assembly.default_checks(self, kind, complexity, reviewer)


def run(
    task: str | Task,
    *,
    agent: AgentLike,
    checks: Sequence[str | Check] = (),
    path: str = ".",
    **options: Unpack[TaskOptions],
) -> Outcome:
    """The whole closed loop: ask the agent, apply, check, until it ends.

    Args:
        task: what is to be achieved, or a task of a workspace.
        agent: a `loki.Agent`, a function from briefing to change, a `loki.LLM`, or a name as for
            `loki.Workspace.agent`, like ``anthropic:claude-opus-4-5``; or several of them: the next
            one is asked where the one before cannot be.
        checks: commands that must exit with 0; only where ``task`` is text. Without any, those of its
            kind, by the project's own commands.
        path: the project's folder; only where ``task`` is text.
        options: kind, complexity, max_attempts, max_time, max_tokens, max_cost, wait, scope, reviewer
            and id, as for `loki.Workspace.task`; only where ``task`` is text.

    Returns:
        The outcome; a task that fails is a value, not an exception.

    Raises:
        UsageError: the task cannot be run as asked: no checks, a program that does not exist, a
            model without a key. Nothing has been run then.
        ConfigError: a file in ``.loki/`` cannot be used.
    """
    prepared, worker = _prepared(task, agent, checks, path, options)
    with prepared as entered:
        return entered.run(worker)


async def arun(
    task: str | Task,
    *,
    agent: AgentLike,
    checks: Sequence[str | Check] = (),
    path: str = ".",
    **options: Unpack[TaskOptions],
) -> Outcome:
    """The same without blocking the event loop."""
    prepared, worker = _prepared(task, agent, checks, path, options)
    with prepared as entered:
        return await entered.arun(worker)


def _prepared(
    task: str | Task,
    agent: AgentLike,
    checks: Sequence[str | Check],
    path: str,
    options: TaskOptions,
) -> tuple[Task, AnyAgent]:
    """The task, and who works on it; refused where either cannot be as asked."""
    from loki.execution import resolve

    if isinstance(task, str):
        workspace = Runtime(path)
        kind, complexity = options.get("kind", "bug_fix"), options.get("complexity", "medium")
        given = checks or workspace.default_checks(kind, complexity, options.get("reviewer"))
        found = workspace.task(task, checks=given, **options)
    else:
        found = task
    if not found.spec.checks:
        raise UsageError(assembly.NO_CHECK)
    return found, resolve.agent(found.workspace, agent)

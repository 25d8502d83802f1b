"""Joins the rooms that a task of a workspace needs: what performs the loop's effects, and its checks."""

from __future__ import annotations

import logging
import math
import os
import shlex
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loki.base.error import AgentError, UsageError
from loki.base.secret import passed_environment
from loki.base.time import Duration, isoformat, moment
from loki.memory.attempt import log_name
from loki.memory.call_log import LOG
from loki.people.notification import Channel, Notifier, Webhook

if TYPE_CHECKING:
    from loki.action.agent_protocol import Reviewer
    from loki.action.changes.tree import Tree
    from loki.action.checks.check import Check
    from loki.action.checks.command_detection import Command, Detector
    from loki.action.loop.performer import Performer
    from loki.action.processes.command_guard import CommandGuard, RestoredRule
    from loki.action.task import TaskSpec
    from loki.memory.learning.learned_rules import Review
    from loki.workspace import Workspace


# --- What agents took in the last hour, in all tasks of a project together ----------------------------

HOUR = timedelta(hours=1)

EVERY = 60.0
"""Seconds for which a sum is good: the logs may be long. Chosen, not measured."""


def spending(workspace: Workspace) -> Callable[[], float]:
    """Tells US dollars of the last hour, read from the logs once a minute at most."""
    last: list[tuple[float, float]] = []

    def spent() -> float:
        at = workspace.clock.monotonic()
        if not last or at - last[0][0] >= EVERY:
            last[:] = [(at, spent_since(workspace, workspace.clock.now() - HOUR))]
        return last[0][1]

    return spent


def spent_since(workspace: Workspace, since: datetime) -> float:
    """US dollars that agents took since a moment.

    Calls to models are in the log of calls, and again in the attempts that they were for; programs
    that say what they took only there. So of each task the larger sum counts.
    """
    store = workspace.store
    calls: dict[str, float] = defaultdict(float)
    for call in store.scan(LOG):
        calls[str(call.get("task", ""))] += _cost(call, "at", since)
    total = calls.pop("", 0.0)
    for task in workspace.tasks():
        log = log_name(task)
        written = store.written_at(log)
        is_old = written is not None and written < since.timestamp()
        attempts = 0.0 if is_old else _sum(store.scan(log), since)
        total += max(attempts, calls.pop(task, 0.0))
    return total + sum(calls.values())


def _sum(records: Iterable[Mapping[str, Any]], since: datetime) -> float:
    return sum(_cost(record, "timestamp", since) for record in records)


def _cost(record: Mapping[str, Any], when: str, since: datetime) -> float:
    cost, at = record.get("cost"), str(record.get(when) or "")
    if not isinstance(cost, (int, float)) or not math.isfinite(cost) or cost <= 0:
        return 0.0
    # Ours are all written in one form; what others wrote may name a zone.
    is_ours = at.endswith("Z")
    then = None if is_ours else moment(at)
    said = isoformat(then) if then else at
    return float(cost) if said >= isoformat(since) else 0.0


# --- How the people of a project are told: the channels of ``[notify]`` in its configuration ----------


def notifier(workspace: Workspace) -> Notifier:
    """Tells the people of a project, as its ``[notify]`` says; nobody where it says nothing.

    Example:
        >>> import tempfile
        >>> from loki import Workspace
        >>> notifier(Workspace(tempfile.mkdtemp())).channels
        []
    """
    config = workspace.config.notify
    channels: list[Channel] = []
    if config.command is not None:
        channels.append(NotifyCommand(config.command, workspace.project, config.timeout))
    if config.webhook is not None:
        channels.append(Webhook(config.webhook, config.timeout))
    return Notifier(channels, config.kinds, str(workspace.project), workspace.clock)


@dataclass
class NotifyCommand:
    """Runs a program that reads the notification on its standard input; no shell reads its words.

    Args:
        command: the program and its arguments.
        root: the folder that it runs in.
        timeout: seconds, after which it and all that it started is ended.
    """

    command: str
    root: Path
    timeout: float

    @property
    def name(self) -> str:
        """The program alone: its arguments may hold secrets."""
        return f"the command {shlex.split(self.command)[0]!r}"

    def send(self, body: bytes) -> None:
        """Run it.

        Raises:
            AgentError: it did not end with 0, or not in time.
            UsageError: there is no such program.
        """
        from loki.action.processes import process

        words = shlex.split(self.command)
        done = process.run(words, cwd=self.root, timeout=self.timeout, stdin=body)
        if done.timed_out:
            raise AgentError(f"it took longer than {self.timeout:g} s")
        if not done.is_success:
            raise AgentError(f"it ended with exit code {done.exit_code}")


# ------------------------------------------------------------------------------------------------------
# Joins the rooms that a task of a workspace needs: what performs the loop's effects, and its
# checks.

logger = logging.getLogger("loki")

NO_CHECK = (
    "nothing can tell when the task is done: no command of the project was found for it. Name at least "
    "one check that must exit with 0, like 'pytest -q', or 'approval: what a person has to approve'"
)


def command_guard(workspace: Workspace) -> CommandGuard:
    """How commands of agents and checks run in a project, and what they must leave as it is."""
    from loki.action.checks.task_changes import dependency_folders
    from loki.action.processes.command_guard import CommandGuard, Rules, hook_settings

    more = tuple(hook_settings(workspace.project, os.environ))
    rules = Rules(workspace.project, workspace.folder, more)
    return CommandGuard(
        rules,
        workspace.clock,
        lambda one: _tell_of_rule(workspace, one),
        workspace.config.sandbox,
        dependency_folders(workspace.project),
        workspace.is_copy,
    )


def guard(workspace: Workspace) -> CommandGuard:
    """The one of a workspace."""
    return workspace.once(command_guard)


def _tell_of_rule(workspace: Workspace, one: RestoredRule) -> None:
    """Tell people of a file that was put back, as the project's ``[notify]`` says."""
    from loki.action.processes.command_guard import restored_text

    notifier(workspace).notify("human_review", restored_text(one), id=one.id, answer="loki status")


def performer(
    workspace: Workspace, spec: TaskSpec, execution: int, cancelled: threading.Event
) -> Performer:
    """What performs the loop's effects in a project.

    Args:
        workspace: the project.
        spec: the task.
        execution: which execution of the task it is, 1 or more.
        cancelled: ends whatever runs when set.
    """
    from loki.action.changes.project_copies import ContinuingExecutor
    from loki.action.checks.check_runner import CheckRunner, search_environment
    from loki.action.checks.feature_evidence import FeatureEvidence
    from loki.action.checks.judge import Judge
    from loki.action.checks.judging.touched_tests import JudgingWatch
    from loki.action.checks.regression import RegressionCheck
    from loki.action.checks.task_changes import TaskChanges
    from loki.action.loop.briefing import Limits
    from loki.action.loop.conversation_context import Conversation
    from loki.action.loop.drift_detector import DriftDetector, Settings
    from loki.action.loop.performer import Performer
    from loki.action.loop.recorder import Recorder
    from loki.decision.drift import drift
    from loki.execution.task_session import Runs, heard, reviewing
    from loki.memory import task_record
    from loki.people.approval import Approvals
    from loki.people.human_review_store import HumanReviews
    from loki.people.signals import Signals

    root, patterns, config = workspace.root, workspace.patterns, workspace.config
    store, clock, loop = workspace.store, workspace.clock, workspace.config.loop
    record = task_record.load(store, spec.id)
    guard(workspace).rules.tasks.add(spec.id)
    guard(workspace).sandbox_wall(
        network=config.sandbox.network
    )  # refused before anything is begun
    executor = ContinuingExecutor(
        root,
        workspace.journal(spec.id),
        patterns,
        config.execute.allow_commands,
        loop.command_timeout,
        Approvals(store, spec.id),
        cancelled,
        workspace.folder,
        store,
        spec.id,
        goes_on=record.execution == execution,
        is_copy=workspace.is_copy,
    )
    work = TaskChanges(executor)
    recorder = Recorder(
        spec,
        store,
        Runs(workspace).signs(workspace.position()[0]),
        clock,
        execution,
        workspace.position,
        patterns=patterns,
        changes=executor.changes,
        digest=work.digest,
        diff=work.diff,
        source=lambda: workspace.listener.source_of(spec.id, spec.run),
        answers=lambda: heard(workspace, spec.id),
    )
    recorder.ended = lambda outcome, letter: workspace.listener.ended(
        spec, outcome, letter, recorder.agent
    )
    checks = CheckRunner(
        root,
        patterns,
        cancelled,
        loop.check_parallelism,
        loop.test_reports,
        {
            **passed_environment(os.environ, loop.pass_environment),
            **(search_environment(root) if workspace.is_copy else {}),
        },
        executor.changed_files,
    )
    judge = Judge(
        spec, root, patterns, Approvals(store, spec.id), work.digest, work.diff, cancelled=cancelled
    )
    judge.evidence = FeatureEvidence(spec.id, work, checks, store, execution)
    regressions = RegressionCheck(
        spec.id,
        spec.checks,
        work,
        checks,
        store,
        clock,
        workspace.gates.regression_detection,
        lambda tree: _test_command(workspace, tree),
    )
    signals = Signals(store, clock, branch=workspace.position()[0])
    return Performer(
        spec,
        executor,
        recorder,
        checks,
        judge,
        regressions,
        patterns,
        clock,
        workspace.gates,
        cancelled,
        Limits(**config.briefing.model_dump()),
        signals,
        DriftDetector(
            spec,
            signals,
            judge,
            Settings(**config.drift.model_dump()),
            HumanReviews(store, clock),
        ),
        Conversation(recorder, signals, drift.Limits(**config.context.model_dump())),
        reviewing=reviewing(workspace, spec, executor),
        judging=JudgingWatch(spec.checks, spec.id, work, store, config.review.changed_tests),
    )


def review(workspace: Workspace) -> Review:
    """What loki would like to learn in a project."""
    from loki.memory.dead_letter_log import DeadLetterLog
    from loki.memory.learning.candidate import Candidates
    from loki.memory.learning.learned_rules import Review

    # Not the store that goes on in memory: a decision that is not kept is none.
    store = workspace.strict_store
    letters = DeadLetterLog(workspace.store, workspace.patterns)
    return Review(Candidates(store), letters, workspace.folder / "failure-patterns.yml")


def detector(workspace: Workspace) -> Detector:
    """Finds the commands of a project."""
    from loki.action.checks.command_detection import Detector

    return Detector({str(kind): words for kind, words in workspace.gates.commands.items()})


def commands(workspace: Workspace) -> Mapping[str, Command]:
    """The commands that a project checks, builds and mends itself with, by kind."""
    from loki.action.changes.tree import Tree

    return workspace.once(detector)(Tree.scan(workspace.root))


def _test_command(workspace: Workspace, tree: Tree) -> tuple[str, ...] | None:
    """The project's own test command, where it can run."""
    from loki.action.processes.command_line import why_not_runnable

    found = workspace.once(detector)(tree).get("test")
    if found is None or why_not_runnable(found.words, workspace.root) is not None:
        return None
    return found.words


def task_spec(  # noqa: PLR0913 - those of a task
    workspace: Workspace,
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
) -> TaskSpec:
    """What a task is to achieve, without who works on it; its arguments are those of `loki.Workspace.task`.

    Raises:
        UsageError: as there.
    """
    from loki.action.task import TaskSpec, limited, retries_of, safe_id, task_id
    from loki.decision.budget import Budget

    loop, limits = workspace.config.loop, workspace.config.limits
    budget = Budget(limits.attempts, limits.time, limits.tokens, limits.cost)
    default = loop.max_retries if "max_retries" in loop.model_fields_set else None
    return TaskSpec(
        safe_id(id) if id else task_id(title),
        title,
        with_review(workspace, resolved(workspace, checks, reviewer), kind, reviewer),
        kind,
        complexity,
        default if max_attempts is None else retries_of(max_attempts),
        limited(budget, max_time, max_tokens, max_cost),
        wait,
        scope=tuple(scope),
    )


def with_review(
    workspace: Workspace, checks: tuple[Check, ...], kind: str, reviewer: Reviewer | None
) -> tuple[Check, ...]:
    """The checks of a task; of kind security, somebody looks at its change before that is done.

    Of kind feature, somebody looks where nothing shows that the feature is there.

    Where a reviewer or a person is asked already, nobody is asked a second time.
    """
    from loki.action.checks.check import EVIDENCE, Check

    review = workspace.config.review
    is_wanted = {"security": review.security, "feature": review.feature}.get(kind, False)
    if not is_wanted or not checks or any(check.is_judged for check in checks):
        return checks
    judge = "custom" if reviewer is not None else "approval"
    name, said = "security_review", "the change is right, and opens no hole"
    if kind == "feature":
        name = EVIDENCE
        said = (
            "a check that failed before passes, or a new test fails without the change; else somebody "
            "sees that it works"
        )
    return (*checks, Check((), judge, name, description=said))


def default_checks(
    workspace: Workspace, kind: str, complexity: str, reviewer: Reviewer | None
) -> tuple[Check, ...]:
    """The checks of a task that names none; where they come from is logged.

    Args:
        workspace: the project.
        kind: of the task; complexity: low, medium or high.
        reviewer: judges what no command can check.

    Raises:
        UsageError: nothing can tell when such a task is done, or there is no such kind.
    """
    from loki.action.checks.command_detection import default_criteria
    from loki.action.task import KINDS, one_of

    one_of("kind", kind, KINDS)  # else it would be the checks that are said to be missing
    found = default_criteria(
        kind,
        workspace.patterns.success_criteria.get(kind, ()),
        commands(workspace),
        workspace.root,
        has_reviewer=reviewer is not None,
        with_builds=complexity in workspace.gates.build_checks.enabled_for_complexity,
        timeout=workspace.config.loop.check_timeout,
    )
    for note in found.notes:
        logger.info("[closed-loop] %s", note)
    for warning in found.warnings:
        logger.warning("[closed-loop] %s", warning)
    if not found.checks:
        raise UsageError(NO_CHECK)
    return found.checks


def resolved(
    workspace: Workspace, checks: Sequence[str | Check], reviewer: Reviewer | None
) -> tuple[Check, ...]:
    """Checks as a task has them.

    Raises:
        UsageError: a check's program does not exist, or nobody can judge it.
    """
    from loki.action.checks.check import Check, missing_programs

    timeout = workspace.config.loop.check_timeout
    found = tuple(c if isinstance(c, Check) else Check.of(c, timeout) for c in checks)
    if missing := missing_programs(found, workspace.root):
        raise UsageError(missing[0])
    reviewed = [c for c in found if c.is_judged and c.kind == "custom"]
    if reviewed and reviewer is None:
        raise UsageError(f"nobody can judge {reviewed[0].name!r}: expected a reviewer")
    return found

"""What a project has one of, joined from the rooms below: its runs, its checks, its channels to people.

Light to load: how work is done is `loki.execution.task_session`.
"""

from __future__ import annotations

import logging
import math
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from loki.base.error import UsageError
from loki.base.time import Duration, isoformat, moment

if TYPE_CHECKING:
    from loki.action.agent_protocol import Reviewer
    from loki.action.changes.tree import Tree
    from loki.action.checks.check import Check
    from loki.action.checks.command_detection import Command, Detector
    from loki.action.processes.command_guard import CommandGuard, RestoredRule
    from loki.action.task import TaskSpec
    from loki.memory.learning.learned_rules import Review
    from loki.memory.run_close import Closed
    from loki.memory.sign import Run, Signs
    from loki.people.request import HumanReviews
    from loki.people.signals import Signals
    from loki.workspace import Workspace


# --- What agents took in the last hour ----------------------------------------------------------------

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
    from loki.memory.attempt import log_name
    from loki.memory.call_log import LOG

    store = workspace.store
    calls: dict[str, float] = defaultdict(float)
    for call in store.scan(LOG):
        calls[str(call.get("task", ""))] += _cost(call, "at", since)
    total = calls.pop("", 0.0)
    for task in workspace.tasks():
        log = log_name(task)
        written = store.written_at(log)
        is_old = written is not None and written < since.timestamp()
        records = () if is_old else store.scan(log)
        attempts = sum(_cost(record, "timestamp", since) for record in records)
        total += max(attempts, calls.pop(task, 0.0))
    return total + sum(calls.values())


def _cost(record: Mapping[str, Any], when: str, since: datetime) -> float:
    cost, at = record.get("cost"), str(record.get(when) or "")
    if not isinstance(cost, (int, float)) or not math.isfinite(cost) or cost <= 0:
        return 0.0
    # Ours are all written in one form; what others wrote may name a zone.
    then = None if at.endswith("Z") else moment(at)
    said = isoformat(then) if then else at
    return float(cost) if said >= isoformat(since) else 0.0


# --- The runs of a workspace, joined with git ---------------------------------------------------------

logger = logging.getLogger("loki")


class Runs:
    """All work on one git branch until it is closed, for each branch of a project.

    A run is open from its first failure on. It ends by `close`, or because its branch is merged or
    deleted; on the default branch, and where there is none, because another branch was merged into it, or
    by age. The next one on the same branch begins without signs.

    Args:
        workspace: the project.

    Example:
        >>> import tempfile
        >>> from loki import Workspace
        >>> runs = Workspace(tempfile.mkdtemp()).runs()
        >>> for approach in ("added a default", "caught the error"):
        ...     seen = runs.signs().observe("FAILED t.py::test_a - KeyError: 'next'", approach)
        >>> closed = runs.close()
        >>> closed.signs, len(closed.candidates), runs.open()
        (1, 1, [])
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._store = workspace.store
        self._root = str(workspace.project)

    @property
    def branch(self) -> str | None:
        """The branch that is checked out; None outside git and where the head is detached."""
        return self._workspace.position()[0]

    def signs(self, branch: str | None = None, **rules: Any) -> Signs:
        """The signs of a run; see `loki.Workspace.signs`."""
        from loki.action.changes.git import start_of
        from loki.memory.sign import SignRules, Signs

        here = self.branch if branch is None else branch
        if self._workspace.is_configured:
            configured = self._workspace.config.signs.model_dump(exclude={"max_age"})
            rules = {**configured, **rules}
        known = SignRules(**rules)
        return Signs(
            self._store,
            here,
            known,
            is_open=lambda task: not self._succeeded(task),
            start=lambda: {**start_of(self._root, here), "at": isoformat(self._now())},
        )

    def open(self) -> list[Run]:
        """The runs that have seen a failure and are not closed."""
        from loki.memory.sign import open_runs

        return open_runs(self._store)

    def close(self, branch: str | None = None, *, reason: str = "closed") -> Closed | None:
        """Close a run: its signs become candidates for lasting rules where a task did not succeed.

        Args:
            branch: whose run; the current branch's by default.
            reason: closed, merged or deleted.

        Returns:
            What was closed; None where no failure was seen in it.
        """
        return self._close(self.branch if branch is None else branch, reason)

    def _close(self, here: str | None, reason: str) -> Closed | None:
        from loki.memory.run_close import close
        from loki.people.signals import Signals

        now = self._now()
        closed = close(self._store, here, succeeded=self._succeeded, now=now, reason=reason)
        signals = Signals(self._store, self._workspace.clock, branch=self.branch)
        for signal in signals.clear_run(here):
            logger.info("signal %s removed: its run is over", signal.label)
        return closed

    def close_ended(self) -> list[Closed]:
        """Close the runs that are over: whose branches are merged or deleted, or that are too old."""
        closed = []
        current = self.branch
        for run in self.open():
            reason = self._end_of(run, current)
            found = self._close(run.branch, reason) if reason else None
            if found is not None:
                closed.append(found)
                logger.info(
                    "closed the run on %s, which is %s: %d signs, %d candidates for rules",
                    run.branch or "no branch",
                    reason,
                    found.signs,
                    len(found.candidates),
                )
        return closed

    def _end_of(self, run: Run, current: str | None) -> str:
        """How a run ended, or "" where it has not."""
        from loki.action.changes.git import MERGED_INTO, OLD, default_branch, end_of, has_taken_in

        main = default_branch(self._root)
        if run.branch is not None and run.branch != current:
            ended = end_of(self._root, run.branch, run.start)
            if ended and run.branch != main:
                return ended
        if run.branch is not None and main and run.branch != main:
            return ""
        if run.branch is not None and has_taken_in(self._root, run.branch, run.start):
            return MERGED_INTO
        begun = moment(str(run.start.get("at")))
        most = self._workspace.config.signs.max_age
        return OLD if begun and (self._now() - begun).total_seconds() > most else ""

    def _now(self) -> datetime:
        return self._workspace.clock.now()

    def _succeeded(self, task: str) -> bool:
        from loki.memory import task_record

        return task_record.load(self._store, task).status == "success"


# --- What a project has one of ------------------------------------------------------------------------


def signals_of(workspace: Workspace) -> Signals:
    """The signals of a project, on the branch that is checked out now.

    Not in the store that goes on in memory: a signal that nobody else sees is none.

    Args:
        workspace: the project.

    Example:
        >>> import tempfile
        >>> from loki import Workspace
        >>> signals = signals_of(Workspace(tempfile.mkdtemp()))
        >>> signals.emit("DOCS_NEEDED", data={"description": "the API"}).label
        'DOCS_NEEDED'
    """
    from loki.people.signals import Signals

    return Signals(workspace.strict_store, workspace.clock, branch=workspace.position()[0])


def human_reviews(workspace: Workspace, *, strict: bool = False) -> HumanReviews:
    """The requests of a project.

    Args:
        workspace: the project.
        strict: for answers: one that cannot be kept is none.
    """
    from loki.people.request import HumanReviews

    store = workspace.strict_store if strict else workspace.store
    timeout = timedelta(seconds=workspace.config.review.timeout)
    return HumanReviews(store, workspace.clock, timeout)


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
    from loki.execution.notify_channels import notifier

    notifier(workspace).notify("human_review", restored_text(one), id=one.id, answer="loki status")


def review(workspace: Workspace) -> Review:
    """What loki would like to learn in a project."""
    from loki.memory.dead_letter_log import DeadLetterLog
    from loki.memory.learning.candidate import Candidates
    from loki.memory.learning.learned_rules import Review

    # Not the store that goes on in memory: a decision that is not kept is none.
    store = workspace.strict_store
    letters = DeadLetterLog(workspace.store, workspace.patterns)
    return Review(Candidates(store), letters, workspace.folder)


def detector(workspace: Workspace) -> Detector:
    """Finds the commands of a project."""
    from loki.action.checks.command_detection import Detector

    return Detector({str(kind): words for kind, words in workspace.gates.commands.items()})


def commands(workspace: Workspace) -> Mapping[str, Command]:
    """The commands that a project checks, builds and mends itself with, by kind."""
    from loki.action.changes.tree import Tree

    return workspace.once(detector)(Tree.scan(workspace.root))


def test_command(workspace: Workspace, tree: Tree) -> tuple[str, ...] | None:
    """The project's own test command, where it can run."""
    from loki.action.processes.command_line import why_not_runnable

    found = workspace.once(detector)(tree).get("test")
    if found is None or why_not_runnable(found.words, workspace.root) is not None:
        return None
    return found.words


# --- What is asked of a task, and its checks ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TaskRequest:
    """What is asked of a task; `loki.Workspace.task` says what each means."""

    title: str
    checks: Sequence[str | Check] = ()
    kind: str = "bug_fix"
    complexity: str = "medium"
    max_attempts: int | None = None
    max_time: Duration | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    wait: bool | None = None
    scope: Sequence[str] = ()
    reviewer: Reviewer | None = None
    id: str | None = None


def task_spec(workspace: Workspace, request: TaskRequest) -> TaskSpec:
    """What a task is to achieve, without who works on it.

    Raises:
        UsageError: as `loki.Workspace.task` says.
    """
    from loki.action.task import TaskSpec, limited, retries_of, safe_id, task_id
    from loki.decision.budget import Budget

    loop, limits = workspace.config.loop, workspace.config.limits
    budget = Budget(limits.attempts, limits.time, limits.tokens, limits.cost)
    default = loop.max_retries if "max_retries" in loop.model_fields_set else None
    return TaskSpec(
        safe_id(request.id) if request.id else task_id(request.title),
        request.title,
        _reviewed_checks(workspace, request),
        request.kind,
        request.complexity,
        default if request.max_attempts is None else retries_of(request.max_attempts),
        limited(budget, request.max_time, request.max_tokens, request.max_cost),
        request.wait,
        scope=tuple(request.scope),
    )


def _reviewed_checks(workspace: Workspace, request: TaskRequest) -> tuple[Check, ...]:
    """The checks of a task; of kind security, somebody looks at its change before that is done.

    Of kind feature, somebody looks where nothing shows that the feature is there.

    Where a reviewer or a person is asked already, nobody is asked a second time.
    """
    from loki.action.checks.check import EVIDENCE, Check

    review, kind = workspace.config.review, request.kind
    checks = resolved(workspace, request.checks, request.reviewer)
    is_wanted = {"security": review.security, "feature": review.feature}.get(kind, False)
    if not is_wanted or not checks or any(check.is_judged for check in checks):
        return checks
    judge = "custom" if request.reviewer is not None else "approval"
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

"""Criteria that no command can check: a reviewer judges them, a person approves, or evidence shows a feature.

A feature is there where a check that failed before the first attempt passes, or a new test that fails
without the change does. The latter is seen by running it: on a copy of the project as the task found it,
with nothing but the changed tests laid on it (of a file of the program that ends with tests, its end); and
on that copy with the whole change, as what cannot run in a copy says nothing.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from loki.action.agent_protocol import Reviewer, ReviewRequest, Verdict
from loki.action.changes.scratch_copy import scratch_folder
from loki.action.changes.tree import Tree
from loki.action.checks.check import EVIDENCE, RUN_TESTS, Check, CheckResult, Report
from loki.action.checks.check_runner import CheckRunner, Narrowed
from loki.action.checks.judging.touched_tests import judging_knowledge
from loki.action.checks.results.suite_results import PASSED
from loki.action.checks.task_changes import TaskChanges
from loki.action.loop.agent_call import result_of
from loki.action.task import TaskSpec
from loki.base import codec, documents, path_containment
from loki.base.documents import kept_as
from loki.base.error import AgentError
from loki.base.secret import mask_secrets
from loki.memory.store import Store
from loki.people.approval import Approvals
from loki.recognition.failure import Failure, is_test_path
from loki.recognition.pattern import PatternSet

if TYPE_CHECKING:
    from loki.decision.breakers import SharedBreaker


# --- Whether a feature is there -----------------------------------------------------------------------

logger = logging.getLogger("loki")


@kept_as(r"tasks/[^/]+/before\.json")
@dataclass
class _Before:
    """How the checks did before the task."""

    execution: int = -1
    failed: tuple[str, ...] = ()
    tests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    flaws: tuple[str, ...] = ()


@dataclass
class FeatureEvidence:
    """What shows that the feature of a task is there.

    Args:
        task_id: the task.
        work: what it has done to the project.
        runner: runs checks in it.
        store: where it is kept how the checks did before it.
        execution: which execution of the task this is.
    """

    task_id: str
    work: TaskChanges
    runner: CheckRunner
    store: Store
    execution: int = 1
    _before: _Before | None = field(default=None, init=False)

    def started(self, report: Report) -> None:
        """Take how the checks did before the first attempt of an execution.

        Where it goes on, or an earlier one has left work, what was taken then still holds.
        """
        if self._before is not None:
            return
        kept = documents.load_as(_Before, self.store, self._document)
        if kept is None or kept.flaws:
            kept = _Before()  # what is not known shows nothing
        if kept.execution == self.execution or self.work.paths():
            self._before = kept
            return
        self._before = _Before(
            self.execution,
            tuple(r.check.name for r in report.results if not r.passed and not r.is_pending),
            {r.check.name: tuple(sorted(r.tests)) for r in report.results if r.tests is not None},
        )
        data = {"version": 1, **codec.write(self._before)}
        self.store.write(self._document, json.dumps(data) + "\n")

    def found(self, results: Iterable[CheckResult]) -> str:
        """What shows it, a sentence; "" where nothing does.

        Args:
            results: of the checks, all of which pass.
        """
        before, passed = self._before or _Before(), [result for result in results if result.passed]
        if red := next((r for r in passed if r.check.name in before.failed), None):
            return f"{red.check.name} failed before the change, and passes with it"
        for result in passed:
            old = before.tests.get(result.check.name)
            tests = result.tests or {}
            new = [t for t, how in tests.items() if how == PASSED and t not in (old or ())]
            # Of a runner that told nothing before, nobody knows which tests are new.
            if new and old is not None and result.check.kind in RUN_TESTS:
                failing = self._failing_without(result, new)
                if failing:
                    return f"{failing[0]} is new, and fails without the change"
        return ""

    def _failing_without(self, result: CheckResult, new: Sequence[str]) -> list[str]:
        """Those of some new tests that pass with the change only."""
        changed = self.work.paths()
        laid = [path for path in changed if is_test_path(path)]
        inside = self._tests_inside(laid)
        narrowed = Narrowed.of(result.check.command, self.runner.root)
        check = result.check
        if narrowed is not None and not narrowed.is_selective and (own := narrowed.tests(laid)):
            check = replace(check, command=narrowed.for_files(own))
        if not (laid or inside) or len(laid) == len(changed):
            return []  # the tests are all that is new
        logger.info("[closed-loop] task=%s new tests=%d run without it", self.task_id, len(new))
        with scratch_folder() as folder:
            try:
                tree = Tree.scan(self.runner.root)
                root = self.work.copy_before(tree, os.path.join(folder, "tree"))
                self._lay(root, laid)
                for path, text in inside.items():
                    (root / path).write_text(text, encoding="utf-8")
                runner = self.runner.in_copy(root)
                without = runner.run_one(check).tests or {}
                if all(without.get(test) == PASSED for test in new):
                    return []
                self._lay(root, [path for path in changed if path not in laid])
            except OSError as error:
                logger.warning("no copy of the starting tree to run new tests in: %s", error)
                return []
            beside = runner.run_one(check).tests or {}
        return [t for t in new if without.get(t) != PASSED and beside.get(t) == PASSED]

    def _tests_inside(self, laid: Sequence[str]) -> dict[str, str]:
        """Files of the program that end with tests: as they were, with the tests that they have now."""
        found = {}
        for path, (before, after) in self.work.texts().items():
            marker = judging_knowledge().inside.get(os.path.splitext(path)[1])
            if marker is None or before is None or after is None or path in laid:
                continue
            old, new = marker.search(before), marker.search(after)
            if new is not None:
                end = old.start() if old is not None else len(before)
                found[path] = before[:end] + after[new.start() :]
        return found

    def _lay(self, root: Path, paths: Sequence[str]) -> None:
        """Have files of a copy as they are in the project now."""
        for path in paths:
            source, target = self.runner.root / path, root / path
            if os.path.realpath(target.parent) != os.fspath(target.parent):
                raise NotADirectoryError(f"{path} lies beyond a link in the copy")
            with suppress(FileNotFoundError), path_containment.parent(root, path) as (above, name):
                os.unlink(name, dir_fd=above)
            if source.is_symlink() or not source.is_file():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
            target.chmod(source.stat().st_mode & 0o777 | 0o600)

    @property
    def _document(self) -> str:
        return f"tasks/{self.task_id}/before.json"


# --- Who judges, or approves --------------------------------------------------------------------------

LOST = "infra-lost"
"""The pattern of a reviewer that could not be asked: infrastructure, not the work."""


REJECTED = "rejected"
"""Code of a failure that is a reviewer's, or a person's, no."""

OUTAGES = (AgentError, OSError)
"""What a reviewer's breaker counts; a defect of its own is nobody's outage."""


@dataclass
class Judge:
    """Asks those who judge, once everything that a command can tell is well.

    Args:
        task: the task.
        root: the project's folder.
        patterns: to name failures with.
        approvals: what people have decided.
        digest: tells the digest of what the task has made of the project.
        diff: tells the same as text.
        reviewer: whom to ask; None where there is none.
        breaker: what its calls pass; None: nothing.
        cancelled: set when the run is being stopped.
        evidence: shows that a feature is there; None: nobody looks for it.
        can_stop: given what ends a reviewer that is awaited, from any thread.
    """

    task: TaskSpec
    root: Path
    patterns: PatternSet
    approvals: Approvals
    digest: Callable[[], str]
    diff: Callable[[], str]
    reviewer: Reviewer | None = None
    breaker: SharedBreaker | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)
    can_stop: Callable[[Callable[[], None]], object] = lambda _: None
    evidence: FeatureEvidence | None = None

    def complete(
        self,
        ran: Report,
        *,
        ask: bool,
        tell: Callable[[CheckResult], None] = lambda _: None,
        also: tuple[Check, ...] = (),
    ) -> Report:
        """The report with what reviewers and people say, in the order of the task's checks.

        Args:
            ran: results of the checks that are commands.
            ask: whether there is work to be judged; else all that is judged is pending.
            tell: told of each judgement as it comes.
            also: what has to be judged besides.
        """
        results: dict[Check, CheckResult] = {result.check: result for result in ran.results}
        checks = (*self.task.checks, *also)
        judged = [check for check in checks if check.is_judged]
        if not judged:
            return ran
        if self.evidence is not None and any(check.name == EVIDENCE for check in judged):
            self.evidence.started(ran)
        ask = ask and ran.first_failure is None and not self.cancelled.is_set()
        # People last: they are not asked for what a reviewer rejects.
        for check in sorted(judged, key=lambda check: check.kind == "approval"):
            result = self._judge(check, results) if ask else pending(check)
            if ask:
                tell(result)
            results[check] = result
            ask = ask and result.failure is None
        return Report(tuple(results[c] for c in checks if c in results))

    def asked(
        self, check: Check, results: tuple[CheckResult, ...], diff: str | None = None
    ) -> ReviewRequest:
        """What a reviewer is asked, whoever asks: no secret of a change reaches it.

        Args:
            check: the criterion; results: of the task's other checks.
            diff: what is judged; None: what the task has changed.
        """
        shown = mask_secrets(self.diff() if diff is None else diff)
        return ReviewRequest(check, self.task, shown, results, self.root, self.cancelled)

    @property
    def can_review(self) -> bool:
        """Whether a reviewer agent can be asked."""
        return self.reviewer is not None and not self.cancelled.is_set()

    def review_proposal(self, criterion: str, diff: str) -> tuple[bool, str, str]:
        """(approved, by whom, why) of what is not applied yet, where there is a reviewer.

        Args:
            criterion: what has to hold.
            diff: the proposal, in the unified format.
        """
        assert self.reviewer is not None
        check = Check((), "custom", "the proposal serves the task", description=criterion)
        approved, said, _ = self._review(self.reviewer, check, (), diff)
        return approved, self.reviewer.name, said

    def _judge(self, check: Check, results: Mapping[Check, CheckResult]) -> CheckResult:
        if check.name == EVIDENCE and self.evidence is not None:
            began = time.monotonic()
            if said := self.evidence.found(results.values()):
                return CheckResult(check, True, None, time.monotonic() - began, said)
        if check.kind == "approval":
            return self._approval(check)
        if self.reviewer is None:
            return pending(check)
        began = time.monotonic()
        passed, said, failure = self._review(self.reviewer, check, tuple(results.values()))
        return CheckResult(check, passed, None, time.monotonic() - began, said, failure)

    def _approval(self, check: Check) -> CheckResult:
        decision = self.approvals.current(check.name, self.digest())
        if decision is None:
            return pending(check)
        how = "approved" if decision.approved else "rejected"
        said = f"{how} by {decision.by} at {decision.at}: {decision.note or 'no note'}"
        failure = None if decision.approved else self._rejection(check, decision.by, decision.note)
        return CheckResult(check, decision.approved, None, 0.0, said, failure)

    def _review(
        self,
        reviewer: Reviewer,
        check: Check,
        results: tuple[CheckResult, ...],
        diff: str | None = None,
    ) -> tuple[bool, str, Failure | None]:
        """(approved, what was said, the failure or None)."""
        request = self.asked(check, results, diff)
        permit = self.breaker.try_acquire() if self.breaker else None
        if self.breaker is not None and permit is None:
            return self._lost(f"{reviewer.name} is not asked: its circuit breaker is open")
        try:
            verdict = result_of(reviewer.review(request), self.can_stop)
        except BaseException as error:
            if permit is not None and isinstance(error, OUTAGES):
                permit.failure(str(error))
            elif permit is not None:
                permit.ignore()
            if why := _why_lost(error):
                return self._lost(f"{reviewer.name} {why}")
            raise
        if permit is not None:
            permit.success()
        # Only a clear yes is one: whatever else came back approves nothing.
        if isinstance(verdict, Verdict) and verdict.approved is True:
            return True, f"approved by {reviewer.name}: {verdict.reason}", None
        reason = verdict.reason if isinstance(verdict, Verdict) else "it gave no verdict"
        said = f"rejected by {reviewer.name}: {reason}"
        return False, said, self._rejection(check, reviewer.name, reason)

    def _rejection(self, check: Check, by: str, why: str) -> Failure:
        message = f"{check.name}: rejected by {by}: {why or 'no reason given'}"
        return Failure.of(message, tool="loki", error_code=REJECTED, excerpt=message)

    def _lost(self, message: str) -> tuple[bool, str, Failure | None]:
        known = LOST if LOST in self.patterns.patterns else None
        failure = Failure.of(message, tool="loki", pattern=known, patterns=self.patterns)
        return False, message, failure


def _why_lost(error: BaseException) -> str:
    """Why there is no verdict; "" where that ends the run."""
    if isinstance(error, asyncio.CancelledError):
        return "was stopped with the run"
    if isinstance(error, OUTAGES):
        return f"could not review: {error}"
    return f"raised {type(error).__name__}: {error}" if isinstance(error, Exception) else ""


def pending(check: Check) -> CheckResult:
    """A criterion that nobody has judged yet."""
    who = "a person's approval" if check.kind == "approval" else "a reviewer"
    return CheckResult(check, False, None, 0.0, f"waits for {who}")

"""Criteria that no command can check: a reviewer judges them, or a person approves."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from loki.action.agent_protocol import Reviewer, ReviewRequest, Verdict
from loki.action.checks.check import EVIDENCE, Check, CheckResult, Report
from loki.action.loop.agent_call import result_of
from loki.action.task import TaskSpec
from loki.base.error import AgentError
from loki.base.secret import mask_secrets
from loki.people.approval import Approvals
from loki.recognition.failure import Failure
from loki.recognition.pattern import PatternSet

if TYPE_CHECKING:
    from loki.action.checks.feature_evidence import FeatureEvidence
    from loki.decision.breakers import SharedBreaker


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
        permit = self.breaker.try_acquire() if self.breaker else None
        if self.breaker is not None and permit is None:
            return self._lost(f"{reviewer.name} is not asked: its circuit breaker is open")
        shown = mask_secrets(self.diff() if diff is None else diff)
        request = ReviewRequest(check, self.task, shown, results, self.root, self.cancelled)
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

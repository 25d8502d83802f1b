"""Performs the effects of the closed loop: the one place where the loop touches the world.

What signals agents may give says `loki.people.signal`; what they may not give stays in the change, and
is refused there.
"""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from loki.action.agent_protocol import WORKS, Briefing, Proposal, ReflectionRequest
from loki.action.changes.change import Edit, Merge, Merged
from loki.action.changes.executor import Executor
from loki.action.changes.scratch_copy import ProjectCopies
from loki.action.changes.tree import Tree
from loki.action.checks.check import Check, CheckResult, Report
from loki.action.checks.check_runner import CheckRunner
from loki.action.checks.judge import Judge
from loki.action.checks.judging.touched_tests import JudgingWatch
from loki.action.checks.regression import RegressionCheck
from loki.action.gates.gate import Gates, validate
from loki.action.loop import briefing
from loki.action.loop.agent_call import approach
from loki.action.loop.briefing import Facts, reflection_question
from loki.action.loop.conversation_context import Conversation, DriftDetector
from loki.action.loop.human_review_check import HumanReviewCheck
from loki.action.loop.loop_events import (
    Amend,
    Ask,
    Checked,
    CheckRegressions,
    Compared,
    Effect,
    Event,
    Execute,
    Finish,
    Keep,
    Note,
    Observe,
    Reflect,
    ReportDrift,
    ReviewDrift,
    RunChecks,
    RunStrategy,
    Say,
    TakeBaseline,
    Validate,
    Validated,
)
from loki.action.loop.loop_state import error_field
from loki.action.loop.recorder import Recorder, RefusedProposal, RefusedProposalStore
from loki.action.processes.process import CommandResult
from loki.action.strategies import strategy
from loki.action.task import TaskSpec
from loki.base.error import LokiError
from loki.base.log import log_event, quoted, write
from loki.base.machine import Wait, Waited
from loki.base.time import Clock
from loki.decision.budget import UNLIMITED, Budget
from loki.decision.loop_policy import Subject, bearing
from loki.people import signal
from loki.people.request import HumanReviews
from loki.people.signal import HUMAN_REVIEW_NEEDED, signal_instructions
from loki.people.signals import Signals
from loki.recognition.pattern import PatternSet

if TYPE_CHECKING:
    from loki.config import BriefingConfig

# --- Signals in a proposal are given, not written to the project --------------------------------------


def emit_signals(
    proposal: Proposal, task: TaskSpec, signals: Signals
) -> tuple[Proposal, tuple[str, ...]]:
    """Give the signals of a proposal; from whom they come and for which task is said by loki.

    Args:
        proposal: what an agent answered.
        task: what it worked on.
        signals: where they go.

    Returns:
        The proposal without them, and the names of what was given.
    """
    kept: list[Edit] = []
    found: list[str] = []
    for edit in proposal.change.edits:
        if edit.after is None or not _is_signal(edit):
            kept.append(edit)
            continue
        given = signal.emitted_signals(
            edit.path, edit.after, agent=proposal.agent, task_id=task.id, goal=task.title
        )
        for one in given:
            try:
                found.append(_give(one, signals))
            except LokiError as error:
                log_event(task.id, f"signal {one.kind} could not be given: {error}", warning=True)
    if len(kept) == len(proposal.change.edits):
        return proposal, ()
    for label in found:
        log_event(task.id, f"signal={quoted(label)} agent={quoted(proposal.agent or 'caller')}")
    change = replace(proposal.change, edits=tuple(kept))
    return replace(proposal, change=change), tuple(found)


def _give(given: signal.EmittedSignal, signals: Signals) -> str:
    data = given.data
    if given.kind != HUMAN_REVIEW_NEEDED:
        return signals.emit(given.kind, given.name, data).label
    # Asked once more by the next attempt, it still is one question.
    asked = HumanReviews(signals.store, signals.clock).ask(
        reason=data["reason"],
        task_id=data["task_id"],
        context=data.get("context", ""),
        severity=data["severity"],
        agent=data["agent"],
        blocking=data["blocking"],
        alternatives=data.get("alternatives_considered", ()),
    )
    return f"{given.kind} {asked.id}"


def _is_signal(edit: Edit) -> bool:
    return (
        edit.path.startswith(signal.AGENT_SIGNALS)
        and edit.mode != "symlink"
        and edit.size == len(edit.after or b"")
        and not signal.why_signal_refused(edit.path, edit.after)
    )


# --- The effects --------------------------------------------------------------------------------------


@dataclass
class Performer:
    """Everything that the loop's effects need of the world.

    Args:
        task: the task.
        executor: applies changes and runs commands.
        recorder: keeps what is learned.
        checks: runs checks.
        judge: asks those who judge what no command can check.
        regressions: compares tests with how they did before the task.
        patterns: the pattern set.
        clock: the time.
        gates: which gates run, and how much they count.
        cancelled: ends whatever runs when set.
        limits: how long a briefing may be.
        signals: where the signals in a proposal go.
        drifts: looks for drift.
        conversation: what was said, and when it is begun anew.
        reviewing: asks a person before it goes on.
        judging: knows when the work touches what judges it.
        land: brings the work into the project; None: it is done there.
    """

    task: TaskSpec
    executor: Executor
    recorder: Recorder
    checks: CheckRunner
    judge: Judge
    regressions: RegressionCheck
    patterns: PatternSet
    clock: Clock
    gates: Gates
    cancelled: threading.Event
    limits: BriefingConfig
    signals: Signals
    drifts: DriftDetector
    conversation: Conversation
    reviewing: HumanReviewCheck
    judging: JudgingWatch
    land: Callable[[], Merged] | None = None

    def __post_init__(self) -> None:
        """Join the rooms."""
        self.root, recorder = self.executor.root, self.recorder
        recorder.review_page = self.reviewing.page
        self.drafts = RefusedProposalStore(
            recorder.store, self.task.id, recorder.execution, self.root
        )
        self.copies = ProjectCopies()
        self._report = Report()
        self._failed_check: Check | None = None
        self._failed_output = ""
        self._seen: Tree | None = None
        self._fresh: Tree | None = None
        self._warned: set[str] = set()
        self._touched: set[str] | None = None
        self._is_started = False
        self._performs: Mapping[type[Any], Callable[[Any], Event | None]] = {
            RunChecks: self._run_checks,
            Validate: self._validate,
            TakeBaseline: lambda effect: self.regressions.prepare(effect.paths, self._shown()),
            CheckRegressions: self._check_regressions,
            Execute: self._execute,
            Merge: self._land,
            RunStrategy: self._help,
            Wait: self._wait,
            Keep: self._keep_attempt,
            ReviewDrift: lambda effect: self.drifts.review(effect, self._shown()),
            ReportDrift: self.drifts.report,
            Amend: self._amend,
            Observe: self.recorder.observe,
            Note: self.recorder.note,
            Say: self._say,
            Finish: self._finish,
        }

    def perform(self, effect: Effect) -> Event | None:
        """Perform an effect; the answer, where it has one."""
        self._fresh = None  # a wait, a check or a command: the project may be another one after it
        if (held := self.held(effect)) is not None:
            return held
        return self._performs[type(effect)](effect)

    def held(self, effect: Effect) -> Event | None:
        """What stands against an effect: a person has to decide first; None: nothing."""
        return self.reviewing.before(effect)

    def briefing(self, ask: Ask, left: Budget = UNLIMITED) -> Briefing:
        """What the agent is told; what it is shown of the project is remembered.

        Args:
            ask: the question.
            left: what may still be spent.
        """
        self._log(f"attempt={ask.attempt} asking the agent")
        # Where a strategy that only read was the last effect, the project has just been looked at.
        self._seen = self._fresh or Tree.scan(self.root, self._seen)
        self._fresh = None
        session_context = self.conversation.begin(self.drifts)
        draft = self.drafts.current(self._seen)
        cleared = self.conversation.cleared
        results = self._report.results
        failing = [r.check.name for r in results if not r.passed and not r.is_pending]
        tried, seen = self.recorder.tried, self.recorder.signs.seen
        subject = Subject(self.task.id, (ask.to_mend, ask.failure), self.task.scope)
        signs, cycle = bearing(seen, subject)
        described = self.patterns.strategies.get(ask.strategy or "")
        facts = briefing.Facts(
            title=self.task.title,
            kind=self.task.kind,
            scope=self.task.scope,
            checks=[_shown(check) for check in self.task.checks],
            number=ask.attempt,
            left=ask.left,
            said=self.recorder.said,
            signs=signs,
            cycle=cycle,
            other_signs=[one for one in seen.signs if one not in signs],
            rules=self.recorder.learned.rules(),
            failure=ask.failure,
            to_mend=ask.to_mend,
            also_failing=failing[1:],
            strategy=ask.strategy,
            steps=described.steps if described else (),
            reason=ask.reason,
            findings=self.recorder.findings,
            done=ask.done,
            context=self.conversation.context(ask.context),
            tried=tried.later(cleared) if cleared else tried,
            reflections=[r for r in self.recorder.reflections.last() if r.attempt > cleared],
            session_context=session_context,
            drifts=[(one.severity, one.detected_drift) for one in self.drifts.reported()],
            signals=signal_instructions(self.task.kind),
            refused=draft.told if draft else "",
        )
        made = self._briefing(facts, left, 0, draft)
        self.conversation.received(made.text)
        return made

    def _briefing(
        self, facts: Facts, left: Budget, work: int, draft: RefusedProposal | None = None
    ) -> Briefing:
        """The briefing for as much of the work as one of `WORKS` says."""
        facts = replace(facts, work=WORKS[work])
        text = briefing.compose(facts, self.limits.budget_tokens)
        simpler = None
        if work + 1 < len(WORKS):
            simpler = partial(self._briefing, facts, left, work + 1, draft)
        return Briefing(
            text,
            self.task.id,
            facts.number,
            self.root,
            self.cancelled,
            left,
            simpler,
            facts.work,
            self.conversation.is_fresh,
            draft.change if draft else None,
            0.0 if self.task.wait is False else None,
            self._seen,
            self.copies,
        )

    def reflection_request(self, effect: Reflect) -> ReflectionRequest:
        """What the agent is asked about an attempt that failed."""
        text, attempt = reflection_question(effect, self.task.title), effect.facts.attempt
        return ReflectionRequest(text, self.task.id, attempt, self.root, self.cancelled)

    # --- The phases ---------------------------------------------------------------------------------

    def _run_checks(self, effect: RunChecks) -> Event:
        ran = self.checks.run(self.task.checks, self._tell_check)
        also = self._also_judged(ran) if effect.judge else ()
        self._report = self.judge.complete(ran, ask=effect.judge, tell=self._tell_check, also=also)
        if not self._is_started:
            self._is_started = True
            self.regressions.started(self._report)
        first = self._report.first_failure
        self._failed_check, self._failed_output = None, ""
        self.judging.saw(self._report)
        if first is not None:
            self._failed_check, self._failed_output = first.check, first.output
        files = {path for path in self._report.failing_files if (self.root / path).exists()}
        self.recorder.saw_failing(self._report.failing_tests, files)
        failed_in = self.recorder.failing_files
        gone = frozenset(path for path in failed_in if not (self.root / path).exists())
        return Checked(self._report, gone)

    def _also_judged(self, ran: Report) -> tuple[Check, ...]:
        """What somebody has to look at because the work touches what judges it."""
        check = self.judging.criterion(ran, reviewed=self.judge.reviewer is not None)
        if check is None:
            return ()
        self.recorder.described = {check.name: check.description}
        return (check,)

    def _check_regressions(self, _effect: CheckRegressions) -> Event:
        found = self.regressions.compare(self._report)
        if found.skipped or found.unchecked:
            self._log(f"regression_check: {found.skipped or found.unchecked}")
        self._failed_check = None if found.regressions else self._failed_check
        return Compared(found)

    def _tell_check(self, result: CheckResult) -> None:
        said = "passed" if result.passed else "pending" if result.is_pending else "failed"
        line = (
            f"check={quoted(result.check.name)} {said} duration_ms={round(result.seconds * 1000)}"
        )
        self._log(line + (error_field(result.failure) if result.failure else ""))

    def _log(self, message: str) -> None:
        log_event(self.task.id, message)

    def _keep_attempt(self, effect: Keep) -> None:
        self.recorder.keep(effect)
        self.conversation.saw(effect.attempt)

    def _amend(self, effect: Amend) -> None:
        self.recorder.amend(effect)
        self.conversation.amended()

    def _validate(self, effect: Validate) -> Event:
        shown = self._shown()
        drifted = self.drifts.look(
            effect.proposal,
            shown,
            said=self.recorder.said,
            failure=self._report.first_failure.failure if self._report.first_failure else None,
            known={*self.recorder.failing_files, *self._own_files()},
            runs=self.executor.is_allowed,
        )
        if drifted is not None:
            return drifted
        change = effect.proposal.change.based_on(shown)
        validation = validate(
            change,
            self.root,
            shown,
            kind=self.task.kind,
            complexity=self.task.complexity,
            scope=self.task.scope,
            config=self.gates,
            cancelled=self.cancelled,
        )
        for warning in dict.fromkeys(validation.warnings):
            if warning not in self._warned:
                log_event(self.task.id, warning, warning=True)
        self._warned.update(validation.warnings)
        if not validation.passed:
            self.drafts.refused(change, shown, validation)
        return Validated(validation)

    def _execute(self, effect: Execute) -> Event:
        change = effect.proposal.change.based_on(self._shown())
        done = self.executor.execute(change, commands_only=effect.commands_only)
        self._own_files().update(done.files)
        if done.was_applied:
            self.drafts.drop()
        else:
            self.drafts.refused(change, Tree.scan(self.root, self._shown()))
        return done

    def _own_files(self) -> set[str]:
        """Paths that the task has changed; the journal of a long one is read once."""
        if self._touched is None:
            self._touched = set(self.executor.changed_files())
        return self._touched

    def taken(self, proposal: Proposal) -> Proposal:
        """The proposal, described where whoever made it did not say; its signals have been given."""
        self.conversation.answered(proposal)
        proposal = self.drafts.accepted(proposal, self._shown())
        proposal, given = emit_signals(proposal, self.task, self.signals)
        if proposal.description.strip():
            return proposal
        did = (approach(proposal.change, self._shown()), *(f"gave {label}" for label in given))
        return replace(proposal, description="; ".join(filter(None, did)), is_described=True)

    def shown_digest(self) -> str:
        """Digest of the project as the agent was shown it; equal trees have equal digests."""
        return self._shown().digest()

    def _shown(self) -> Tree:
        """The project as the agent was shown it."""
        if self._seen is None:
            self._seen = Tree.scan(self.root)
        return self._seen

    def _land(self, _effect: Merge) -> Event:
        assert self.land is not None
        landed = self.land()
        if landed.moved or landed.failure:
            self._seen = None
        return landed

    def _help(self, effect: RunStrategy) -> Event:
        self._log(f"strategy={effect.strategy}")
        ran: list[object] = []

        def run(command: tuple[str, ...]) -> tuple[CommandResult, tuple[str, ...]]:
            ran.append(command)
            return self.executor.run(command)

        def passes(check: Check) -> bool:
            ran.append(check)
            return self.checks.run_one(check).passed

        situation = strategy.StrategyContext(
            self.root,
            effect.failure,
            self._failed_check,
            self.patterns,
            run,
            passes,
            self._failed_output,
            effect.files,
            self.executor.allowed,
            self._seen,
            draft.change if (draft := self.drafts.current(self._shown())) else None,
        )
        helped = strategy.carry_out(effect.strategy, situation)
        self._own_files().update(helped.files)
        self._fresh = None if ran else situation.looked_at
        return helped

    def _wait(self, effect: Wait) -> Event:
        self._log(f"waiting {effect.seconds:.1f} s: {effect.reason}")
        self.clock.wait(effect.seconds, self.cancelled)
        return Waited()

    def _finish(self, effect: Finish) -> None:
        self.executor.finish()
        if effect.outcome.status != "success":
            self.recorder.tree = Tree.scan(self.root, self._seen).digest()
        else:
            self.drafts.drop()
        self.recorder.finish(effect)
        self.conversation.end(effect.outcome)
        self.drifts.finish()
        self.reviewing.ended(effect.outcome)

    def _say(self, effect: Say) -> None:
        write(effect.message, effect.fields, warning=effect.warning)


def _shown(check: Check) -> str:
    return shlex.join(check.command) if check.command else check.description or check.shown

"""A task under work: the library's face of the closed loop. Much to load: it knows how work is done."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

from loki.action.agent_protocol import LLM, Reviewer
from loki.action.changes.executor import ContinuingExecutor
from loki.action.checks.check_runner import CheckRunner, search_environment
from loki.action.checks.judge import FeatureEvidence, Judge
from loki.action.checks.judging.touched_tests import JudgingWatch
from loki.action.checks.regression import RegressionCheck
from loki.action.checks.task_changes import TaskChanges
from loki.action.loop import loop_driver
from loki.action.loop.agent_call import (
    AnyAgent,
    as_event,
    breaker_of,
    is_resilient,
    record_of,
    run_coroutine,
)
from loki.action.loop.conversation_context import Conversation, DriftDetector
from loki.action.loop.human_review_check import HumanReviewCheck
from loki.action.loop.loop_driver import Awaiter, Session, resumption_status
from loki.action.loop.loop_events import Answered, Ask, Edited, Event, Interrupted
from loki.action.loop.loop_state import LoopSettings, State
from loki.action.loop.performer import Performer
from loki.action.loop.recorder import Recorder
from loki.action.task import TaskSpec
from loki.base.error import UsageError
from loki.base.markup import html_card
from loki.base.path_exists import path_exists
from loki.base.secret import mask_output, mask_secrets, passed_environment
from loki.decision.backoff import Backoff
from loki.execution import resolve
from loki.execution.assembly import (
    NO_CHECK,
    Runs,
    TaskRequest,
    guard,
    human_reviews,
    spending,
    task_spec,
    test_command,
)
from loki.execution.notify_channels import notifier
from loki.execution.resolve import breakers as breakers_of
from loki.execution.stop_request import Word, begins, listening
from loki.memory import task_record
from loki.memory.reflection import Reflection, as_reflection
from loki.memory.task_record import MAX_CONTEXT, Intervention, Outcome
from loki.people.approval import Approvals
from loki.people.human_review import HUMAN_REVIEW, Rules, notice
from loki.people.request import HumanReviews
from loki.people.signals import Signals
from loki.recognition.failure import Failure, recognize

if TYPE_CHECKING:
    from loki.action.changes.change import Change
    from loki.action.changes.executor import Executor
    from loki.workspace import Workspace


# --- What people are asked about a task, and what they answered ---------------------------------------


def reviewing(workspace: Workspace, spec: TaskSpec, executor: Executor) -> HumanReviewCheck:
    """What asks a person about a task before the loop goes on."""
    own = {"timeout", "changed_tests", "feature"}
    rules = Rules(**workspace.config.review.model_dump(exclude=own))
    return HumanReviewCheck(
        spec,
        rules,
        human_reviews(workspace),
        workspace.store,
        str(workspace.root),
        spending(workspace) if rules.cost_per_hour else lambda: 0.0,
        executor.is_allowed,
        workspace.listener.asked,
        lambda outcome: tell_end(workspace, spec, outcome),
    )


def tell_end(workspace: Workspace, spec: TaskSpec, outcome: Outcome) -> None:
    """Tell people of a task that needs one, or was given up; of requests `tell` does."""
    is_security = spec.kind == "security" and workspace.config.review.security
    is_asked = outcome.trigger == HUMAN_REVIEW or (is_security and bool(outcome.awaiting))
    if outcome.status == "escalated" and not is_asked:
        kind: Any = "escalation"
    elif outcome.status == "failed" and outcome.page:
        kind = "dead_letter"
    else:
        return
    text, id_ = f"{spec.title}: {outcome.reason}", outcome.task_id

    notifier(workspace).notify(kind, text, task_id=id_, answer="loki status")


def human_answers(workspace: Workspace, task_id: str, since: str = "") -> list[str]:
    """What people's answers tell whoever works on a task, the oldest first.

    Args:
        workspace: the project.
        task_id: the task.
        since: only of answers at or after this, ISO 8601 UTC.
    """
    found = [
        notice(one.review, one.answer, one.by, one.note).strip()
        for one in human_reviews(workspace).decisions(task_id)
        if one.at >= since
    ]
    return list(filter(None, (*found, Approvals(workspace.store, task_id).told(since))))


def heard(workspace: Workspace, task_id: str) -> list[str]:
    """What people answered in a task's life, for whoever works on it; the newest where it is too much.

    It holds wherever the task stands: never begun, interrupted, given up and tried again.
    """
    found: list[str] = []
    for words in map(mask_secrets, reversed(human_answers(workspace, task_id))):
        if sum(map(len, found)) + len(words) > MAX_CONTEXT:
            break
        found.append(words)
    return found[::-1]


# --- What performs the loop's effects -----------------------------------------------------------------


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
    root, patterns, config = workspace.root, workspace.patterns, workspace.config
    store, clock, loop = workspace.store, workspace.clock, workspace.config.loop
    record = task_record.load(store, spec.id)
    guard(workspace).rules.tasks.add(spec.id)
    # Refused before anything is begun.
    guard(workspace).sandbox_wall(network=config.sandbox.network)
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
        reports=loop.test_reports,
        environment={
            **passed_environment(os.environ, loop.pass_environment),
            **(search_environment(root) if workspace.is_copy else {}),
        },
        changed=executor.changed_files,
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
        lambda tree: test_command(workspace, tree),
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
        config.briefing,
        signals,
        DriftDetector(spec, signals, judge, config.drift, HumanReviews(store, clock)),
        Conversation(recorder, signals),
        reviewing(workspace, spec, executor),
        JudgingWatch(spec.checks, spec.id, work, store, config.review.changed_tests),
    )


# --- A task under work --------------------------------------------------------------------------------

AgentLike: TypeAlias = AnyAgent | LLM | str | Sequence[AnyAgent | LLM | str]
"""What stands for an agent."""


class Task:
    """A task of a workspace; work on it inside ``with``.

    Attributes:
        spec: what is to be achieved.
        outcome: how it ended: status, attempts, files, pattern, reason; None until then.
        has_project: whoever works on it holds the project already, for more than this task.
        needs_check: an agent's work is no success without a check; False where something else looks.
        make_performer: makes what performs the loop's effects.
    """

    def __init__(
        self,
        workspace: Workspace,
        spec: TaskSpec,
        intervention: Intervention | None = None,
        reviewer: Reviewer | None = None,
    ) -> None:
        self.workspace = workspace
        self.spec = spec
        self.reviewer = reviewer
        self._intervention = intervention
        self.outcome: Outcome | None = None
        self.has_project = False
        self.needs_check = True
        self.make_performer: Callable[[TaskSpec, int, threading.Event], Performer] = partial(
            performer, workspace
        )
        self._session: Session | None = None
        self._open: OpenAttempt | None = None
        self._stack = ExitStack()

    def _repr_html_(self) -> str:
        spec, outcome = self.spec, self.outcome
        facts = [
            ("id", spec.id),
            ("kind", spec.kind),
            ("checks", ", ".join(check.name for check in spec.checks)),
            ("status", outcome.status if outcome else "not ended"),
            ("attempts", outcome.attempts if outcome else None),
            ("reason", outcome.reason if outcome else None),
        ]
        return html_card(f"Task: {spec.title}", facts)

    def __enter__(self) -> Task:
        """Take the project for this run, mend what a crash left, and go on where it stood."""
        if not self.has_project:
            self._stack.enter_context(self.workspace.exclusive())
        try:
            begins(self.workspace.folder, self.spec.id)
            Runs(self.workspace).close_ended()
            state, performer = self._prepare()
        except BaseException:
            self._stack.close()
            raise
        self._stack.callback(guard(self.workspace).rules.tasks.discard, self.spec.id)
        self._stack.callback(performer.copies.close)
        self._session = Session(state, performer, self.workspace.clock)
        self._stack.enter_context(listening(self.workspace.folder, self._heard, self.spec.id))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """Record an attempt that was left open, and give the project back."""
        try:
            if self._open is not None:
                self._open.abandon(error)
            if self._session is not None and self.outcome is None and self._session.is_under_way:
                # What was asked last has not been handed out: the loop was left before.
                self._take(self._session.answer(Interrupted(asked=False)))
        finally:
            self._stack.close()

    def run(self, agent: AgentLike) -> Outcome:
        """The whole loop with an agent, until it ends or the agent's circuit breaker opens.

        Args:
            agent: a `loki.Agent`, a function from briefing to change, a `loki.LLM`, or a name as
                for `loki.Workspace.agent`, like ``anthropic:claude-opus-4-5``; or several of them:
                the next one is asked where the one before cannot be.
        """
        return self.driven(agent, run_coroutine)

    def driven(self, agent: AgentLike, wait: Awaiter) -> Outcome:
        """`run`, with ``wait`` for what an async agent answers."""
        worker = resolve.agent(self.workspace, agent)
        self.outcome = loop_driver.drive(self._guarded(worker), worker, wait)
        return self.outcome

    async def arun(self, agent: AgentLike) -> Outcome:
        """The same without blocking the event loop; cancelling it interrupts the run."""
        worker = resolve.agent(self.workspace, agent)
        self.outcome = await loop_driver.adrive(self._guarded(worker), worker)
        return self.outcome

    def attempts(self) -> Iterator[OpenAttempt]:
        """The attempts, one by one, until the task ends by itself.

        Each wants one of ``propose``, ``evaluate`` or ``report``; one that gets none is recorded
        as failed.
        """
        session = self._running()
        pending = self._take(session.start())
        while isinstance(pending, Ask):
            attempt = OpenAttempt(self, session, pending)
            self._open = attempt
            yield attempt
            if attempt.pending is None:
                attempt.abandon(None)
            self._open = None
            assert attempt.pending is not None
            pending = attempt.pending

    def stop(self) -> None:
        """End it, from another thread; it can be gone on with."""
        if self._session is not None and self.outcome is None:
            self._session.cancel()

    def _heard(self, word: Word) -> None:
        if word != "drain":  # what is in hand is done
            self.stop()

    def _take(self, answer: Ask | Outcome) -> Ask | Outcome:
        if isinstance(answer, Outcome):
            self.outcome = answer
        return answer

    def _guarded(self, agent: AnyAgent) -> Session:
        session = self._running()
        if not self.spec.checks and self.needs_check:
            raise UsageError(NO_CHECK)
        if not is_resilient(agent):
            session.breaker = breakers_of(self.workspace)[breaker_of(agent)]
        session.performer.recorder.saw_agent(record_of(agent))
        return session

    def _running(self) -> Session:
        if self._session is None:
            raise UsageError("a task is worked on inside `with workspace.task(…) as task:`")
        if self.outcome is not None:
            raise UsageError(f"the task has ended already: {self.outcome.status}")
        return self._session

    def _prepare(self) -> tuple[State, Performer]:
        spec, workspace, help_ = self.spec, self.workspace, self._intervention
        record = task_record.load(workspace.store, spec.id)
        stands = resumption_status(record, workspace.history(spec.id).attempts(), help_)
        performer = self.make_performer(spec, stands.execution, threading.Event())
        if self.reviewer is not None:
            performer.judge.reviewer = self.reviewer
            if not is_resilient(self.reviewer):
                performer.judge.breaker = breakers_of(workspace)[breaker_of(self.reviewer)]
        recorder = performer.recorder
        recorder.interventions, recorder.seen_failing = stands.interventions, stands.seen_failing
        recorder.failing_files = stands.failing_files
        recorder.agent = record.agent
        performer.executor.recover()
        changed = bool(help_ and record.tree) and record.tree != performer.shown_digest()
        loop = workspace.config.loop
        setting = LoopSettings(
            spec,
            workspace.patterns,
            stands.execution,
            loop.infrastructure_retries,
            Backoff(loop.backoff, cap=loop.backoff_cap),
            workspace.gates.regression_detection.enabled_for_complexity,
            self.needs_check,
            performer.land is not None,
        )
        if help_ is not None:
            recorder.answered(record.outcome)
        recorder.save_task(None)
        state = stands.state(setting, performer.executor.changed_files(), changed=changed)
        return replace(state, pending_proposal=performer.reviewing.pending_proposal()), performer


class OpenAttempt:
    """One attempt, in the caller's hands.

    Attributes:
        briefing: the task, what is known and what to try; ``str(briefing)`` is the text.
        number: its number in the task's life.
        failure: what failed last, or None.
    """

    def __init__(self, task: Task, session: Session, ask: Ask) -> None:
        # The caller may edit the project itself before it asks an agent.
        self.briefing = replace(session.briefing(ask), tree=None)
        self.number = ask.attempt
        self.failure = ask.failure
        self.pending: Ask | Outcome | None = None
        self._note: Reflection | None = None
        self._task = task
        self._session = session
        # What the caller itself does to the project is recorded.
        self._close_watch = session.performer.executor.watch()

    def propose(
        self, change: Any, description: str = "", *, afresh: bool = False
    ) -> Outcome | None:
        """Validate a change, apply it and run the checks.

        What was proposed before and refused (`draft`) is part of it, where it does not say otherwise
        of a file.

        Args:
            change: a `loki.Change`, a `loki.Proposal`, or a mapping of paths to contents.
            description: what it does, for the record and the next briefing.
            afresh: it stands for itself; nothing that was refused before is part of it.

        Returns:
            The outcome where the task has ended, else None: another attempt follows.
        """
        self._close_watch()
        event = as_event(change, "caller", description)
        if afresh and isinstance(event, Answered):
            event = Answered(replace(event.proposal, afresh=True))
        return self._give(event)

    @property
    def draft(self) -> Change | None:
        """What was proposed before and refused; None: the attempt begins with the project as it is."""
        return self.briefing.draft

    def evaluate(self, description: str = "") -> Outcome | None:
        """Run the checks after the caller edited the project by itself."""
        return self.report(description=description)

    def report(
        self, *, output: str | bytes = "", ok: bool | None = None, description: str = ""
    ) -> Outcome | None:
        """Tell how the caller's own work went.

        Args:
            output: what its own check printed.
            ok: whether it claims success; the task's checks still decide where there are any, and
                without any the status is ``unverified``.
            description: what was done.
        """
        files = self._close_watch()
        failure = None
        if ok is False:
            failure = self._recognize(output)
        elif ok is None and not self._task.spec.checks:
            raise UsageError("without checks, report() needs ok=True or ok=False")
        return self._give(Edited(description, files, ok, failure))

    def reflect(self, note: str | Reflection) -> None:
        """Say what you think went wrong; the next briefing shows it instead of the bare facts.

        Args:
            note: why it went wrong, or a `loki.Reflection`. Before the report it is kept for it;
                of an attempt that did not fail nothing is noted.

        Raises:
            UsageError: it says nothing.
        """
        try:
            self._note = as_reflection(note)
        except TypeError as error:
            raise UsageError(f"reflect() expects text or a loki.Reflection: {error}") from error
        if self.pending is not None:
            self._keep_note()

    def _keep_note(self) -> None:
        reflections = self._session.performer.recorder.reflections
        facts = next((one for one in reflections.last() if one.attempt == self.number), None)
        if self._note is not None and facts is not None:
            reflections.add(self._note.on(facts, "caller"))

    def abandon(self, error: BaseException | None) -> None:
        """Record the attempt as failed: it ended without a report."""
        if self.pending is not None:
            return
        files = self._close_watch()
        if isinstance(error, (KeyboardInterrupt, GeneratorExit)):
            self._give(Interrupted())
            return
        what = f"the caller raised {type(error).__name__}: {error}" if error else "no report came"
        failure = Failure.of(f"the attempt ended without a report: {what}", tool="loki")
        self._give(Edited("", files, False, failure))

    def _recognize(self, output: str | bytes) -> Failure:
        if not output:
            return Failure.of("the caller reported a failure without its output", tool="loki")
        workspace = self._task.workspace
        shown = mask_secrets(output) if isinstance(output, str) else mask_output(output)
        return recognize(
            shown,
            root=str(workspace.root),
            patterns=workspace.patterns,
            exists=path_exists(workspace.root),
        )

    def _give(self, event: Event) -> Outcome | None:
        if self.pending is not None:
            raise UsageError(f"attempt {self.number} has been reported already")
        self.pending = self._task._take(self._session.answer(event))
        self._task._open = None
        self._keep_note()
        return self.pending if isinstance(self.pending, Outcome) else None


def new_task(workspace: Workspace, request: TaskRequest) -> Task:
    """A task of a workspace; `loki.Workspace.task` says more."""
    return Task(workspace, task_spec(workspace, request), reviewer=request.reviewer)

"""A task under work: the library's face of the closed loop."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from loki.action.agent_protocol import LLM, Reviewer
from loki.action.changes.git import MERGED_INTO, OLD, default_branch, end_of, has_taken_in, start_of
from loki.action.loop.agent_call import AnyAgent, as_event, breaker_of, is_resilient, record_of
from loki.action.loop.loop_driver import Session, resumption_status
from loki.action.loop.loop_events import Answered, Ask, Edited, Event, Interrupted
from loki.action.loop.loop_state import LoopSettings, State
from loki.action.task import TaskSpec
from loki.base.error import UsageError
from loki.base.path_exists import path_exists
from loki.base.secret import mask_output, mask_secrets
from loki.base.time import Duration, isoformat, moment
from loki.decision.backoff import Backoff
from loki.execution.assembly import NO_CHECK, guard, notifier, performer, spending, task_spec
from loki.execution.resilience import breakers as breakers_of
from loki.execution.stop_request import Word, begins, listening
from loki.memory import task_record
from loki.memory.reflection import Reflection, as_reflection
from loki.memory.sign import Run, SignRules, Signs
from loki.memory.task_record import MAX_CONTEXT, Intervention, Outcome
from loki.people.approval import Approvals
from loki.people.human_review import HUMAN_REVIEW, Rules, notice
from loki.people.human_review_store import HumanReviews
from loki.recognition.failure import Failure, recognize

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from loki.action.changes.change import Change
    from loki.action.changes.executor import Executor
    from loki.action.checks.check import Check
    from loki.action.loop.human_review_check import HumanReviewCheck
    from loki.action.loop.performer import Performer
    from loki.memory.run_close import Closed
    from loki.workspace import Workspace


# --- The runs of a workspace, joined with git: signs while one is open, and how it ends ---------------

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
        from loki.memory.run_close import open_runs

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
        for signal in Signals(self._store, self._workspace.clock, branch=self.branch).clear_run(
            here
        ):
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
        return task_record.load(self._store, task).status == "success"


# --- A task under work: the library's face of the closed loop -----------------------------------------

# ------------------------------------------------------------------------------------------------------
# What people are asked about a task before its loop goes on, and what they answered in its life.


def human_reviews(workspace: Workspace, *, strict: bool = False) -> HumanReviews:
    """The requests of a project.

    Args:
        workspace: the project.
        strict: for answers: one that cannot be kept is none.
    """
    store = workspace.strict_store if strict else workspace.store
    timeout = timedelta(seconds=workspace.config.review.timeout)
    return HumanReviews(store, workspace.clock, timeout)


def reviewing(workspace: Workspace, spec: TaskSpec, executor: Executor) -> HumanReviewCheck:
    """What asks a person about a task before the loop goes on."""
    from loki.action.loop.human_review_check import HumanReviewCheck

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


# --- A task under work: the library's face of the closed loop -----------------------------------------

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
        self._performer: Performer | None = None
        self._open: OpenAttempt | None = None
        self._stack = ExitStack()

    def _repr_html_(self) -> str:
        from loki.base.markup import html_card

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
        from loki.action.loop import (
            loop_driver,  # how work is done is much to load for who only submits it
        )

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
        self._performer = performer
        self._stack.callback(performer.copies.close)
        self._session = loop_driver.Session(state, performer, self.workspace.clock)
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
        from loki.action.loop import loop_driver

        worker = _agent(self, agent)
        self.outcome = loop_driver.drive(self._guarded(worker), worker)
        return self.outcome

    async def arun(self, agent: AgentLike) -> Outcome:
        """The same without blocking the event loop; cancelling it interrupts the run."""
        from loki.action.loop import loop_driver

        worker = _agent(self, agent)
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

    def watch(self) -> Callable[[], tuple[str, ...]]:
        """Record what the caller itself does to the project; see `Executor.watch`."""
        assert self._performer is not None
        return self._performer.executor.watch()

    def noted(self, attempt: int) -> Reflection | None:
        """What is noted on an attempt; only the last ones are looked at."""
        assert self._performer is not None
        last = self._performer.recorder.reflections.last()
        return next((one for one in last if one.attempt == attempt), None)

    def note(self, reflection: Reflection) -> None:
        """Keep a reflection; it replaces what is noted on the same attempt."""
        assert self._performer is not None
        self._performer.recorder.reflections.add(reflection)

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
        assert self._performer is not None
        self._performer.recorder.saw_agent(record_of(agent))
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
        withheld = performer.reviewing.pending_proposal() if performer.reviewing else None
        return replace(state, pending_proposal=withheld), performer


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
        self._close_watch = task.watch()

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
        facts = self._task.noted(self.number)
        if self._note is not None and facts is not None:
            self._task.note(self._note.on(facts, "caller"))

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


def _agent(task: Task, agent: AgentLike) -> AnyAgent:
    from loki.execution import resolve

    return resolve.agent(task.workspace, agent)


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


def new_task(
    workspace: Workspace,
    title: str,
    *,
    checks: Sequence[str | Check] = (),
    **options: Unpack[TaskOptions],
) -> Task:
    """A task of a workspace; `loki.Workspace.task` says more."""
    spec = task_spec(workspace, title, checks=checks, **options)
    return Task(workspace, spec, reviewer=options.get("reviewer"))

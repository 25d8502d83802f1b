"""The conversation with an agent, as far as loki leads it: what has come together, drift, and beginning anew.

What an agent proposes, or others say of it, is turned into what `loki.decision.drift` compares, joined with
the signal ``DRIFT_DETECTED``, and a second drift is reviewed. Every briefing is composed from what is on
record, so letting go of a conversation means to tell less: no reflections and no context of before, but the
ledger and the last handoffs. Why it is so: ``docs/design/drift.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from loki.action.agent_protocol import Proposal
from loki.action.gates.added_lines import added_lines, text_before, text_of
from loki.action.loop.loop_events import Drifted, DriftReviewed, ReportDrift, ReviewDrift
from loki.base.error import LokiError
from loki.base.log import log_event, quoted
from loki.base.time import isoformat
from loki.config import DriftConfig
from loki.decision import drift
from loki.decision.drift import Drift, Goal, Kind, Proposed, Touched
from loki.memory import session_context
from loki.memory.attempt import DRIFT, Attempt
from loki.memory.quote import one_line
from loki.memory.session_context import Handoff, SessionContext, TaskProgress
from loki.memory.task_record import DONE
from loki.people.human_review import ReviewStatus
from loki.people.signal import CONTEXT_CLEAR_REQUESTED, DRIFT_DETECTED, Signal

if TYPE_CHECKING:
    from loki.action.changes.change import Change, Edit
    from loki.action.changes.tree import Entry, Tree
    from loki.action.checks.judge import Judge
    from loki.action.loop.recorder import Recorder
    from loki.action.task import TaskSpec
    from loki.memory.task_record import Outcome
    from loki.people.request import HumanReviews
    from loki.people.signals import Signals
    from loki.recognition.failure import Failure


# --- Looking for drift ---------------------------------------------------------------------------------

REASON = "drift"
"""Why a person is asked, as a request for them says it."""


@dataclass
class DriftDetector:
    """Looks at the proposals of one session of a task.

    Args:
        task: the task.
        signals: those of the project; None: nobody says anything, and nothing is kept.
        judge: whose reviewer looks at a second drift, where there is one.
        settings: what counts.
        reviews: where a person is asked to look at severe drift; None: the escalation's page alone
            says so.

    Attributes:
        count: drifts since the context was cleared last.
        sent_back: what the next briefing tells.
    """

    task: TaskSpec
    signals: Signals | None = None
    judge: Judge | None = None
    settings: DriftConfig = field(default_factory=DriftConfig)
    reviews: HumanReviews | None = None

    def __post_init__(self) -> None:
        """Nothing that was said before this session acts on it."""
        self.count = 0
        self.sent_back: tuple[Drift, ...] = ()
        self._judged: Proposal | None = None
        self._session = token_hex(6)  # by which lines of its own are told from others'
        self._seen = {one.id for one in self._lines()}

    def look(
        self,
        proposal: Proposal,
        tree: Tree,
        *,
        said: Sequence[str] = (),
        failure: Failure | None = None,
        known: Collection[str] = (),
        runs: Callable[[tuple[str, ...]], bool] = lambda _words: True,
    ) -> Drifted | None:
        """Whether a proposal leaves its task; None: it does not, or was judged before.

        Args:
            proposal: what is proposed.
            tree: the project, as the agent was shown it.
            said: what people added to the task.
            failure: what failed last.
            known: paths that earlier attempts changed, or tests failed in.
            runs: whether a command may run; one that may not is refused when it is to, and told.
        """
        if proposal is self._judged:
            return None
        self._judged = proposal
        found = list(self._said_by_others())
        if self.settings.detect:
            text = f"{failure}\n{failure.excerpt}" if failure else ""
            paths = tree.entries.keys()
            goal = Goal(self.task.title, "\n".join(said), self.task.scope, text, known, paths)
            commands = tuple(filter(runs, proposal.change.commands))
            own = drift.detect(Proposed(touched(proposal.change, tree), commands), goal)
            allowed = self._allowed() if own else frozenset()
            found += [one for one in own if not one.keys <= allowed]
        if not found:
            return None
        self.count += len(found)
        self.sent_back = tuple(found)
        found.sort(key=lambda one: -drift.rank(one.severity))
        return Drifted(tuple(found), self.count, self.judge is not None and self.judge.can_review)

    def reported(self) -> tuple[Drift, ...]:
        """What the agent was sent back for just now; told once."""
        told, self.sent_back = self.sent_back, ()
        return told

    def review(self, effect: ReviewDrift, tree: Tree) -> DriftReviewed:
        """Have the task's reviewer look at it; one that cannot say approves nothing."""
        assert self.judge is not None
        said = "\n".join(one.detected_drift for one in effect.drifts)
        diff = effect.proposal.change.diff(tree)
        return DriftReviewed(
            *self.judge.review_proposal(_CRITERION.format(drifts=said), diff), effect.drifts
        )

    def report(self, effect: ReportDrift) -> None:
        """Keep drift where the signals of the project are, and ask a person where one has to look."""
        for one in effect.drifts:
            if self.signals is not None and one.kind != SIGNAL:
                said = {"agent": effect.agent or "loki", "session": self._session}
                with suppress(LokiError):  # what cannot be kept is in the attempt's record, too
                    self.signals.emit(DRIFT_DETECTED, data={**record_of(one, self.task), **said})
        if effect.ask and self.reviews is not None:
            with suppress(LokiError):
                self.reviews.ask(
                    reason=REASON,
                    task_id=self.task.id,
                    context=_QUESTION.format(why=effect.ask, goal=one_line(self.task.title, 300)),
                    severity=drift.worst(effect.drifts) or "high",
                    agent=effect.agent,
                    about={"drifts": sorted(frozenset().union(*(d.keys for d in effect.drifts)))},
                )

    def finish(self) -> None:
        """Note that this task's lines are done, but for those behind a line of another task."""
        if self.signals is not None:
            lines = self.signals.pending(DRIFT_DETECTED)
            for one in takewhile(lambda line: line.string_field("task_id") == self.task.id, lines):
                self.signals.consume(one)

    def _allowed(self) -> frozenset[str]:
        """What a person approved: that very drift passes."""
        if self.reviews is None:
            return frozenset()
        decided = self.reviews.decisions(self.task.id)
        approved = [one for one in decided if one.answer is ReviewStatus.APPROVED]
        about = [one.review.extra.get("about") for one in approved if one.review.reason == REASON]
        keys = [one.get("drifts") for one in about if isinstance(one, dict)]
        return frozenset(
            key for found in keys if isinstance(found, list) for key in map(str, found)
        )

    def _lines(self) -> list[Signal]:
        if self.signals is None or not self.settings.signals:
            return []
        return [
            one
            for one in self.signals.pending(DRIFT_DETECTED)
            if one.string_field("task_id") == self.task.id
            and one.string_field("session") != self._session
        ]

    def _said_by_others(self) -> Iterator[Drift]:
        """Lines about this task that were added since the session began, each once."""
        for one in self._lines():
            if one.id in self._seen:
                continue
            self._seen.add(one.id)
            severity = one.string_field("severity")
            distance = one.data.get("drift_distance")
            by = one.string_field("agent") or "somebody"
            yield Drift(
                one.string_field("planned_action") or self.task.title,
                f"{one_line(by, 60)} says: {one_line(one.string_field('detected_drift') or 'drift')}",
                drift.SEVERITIES[drift.rank(severity)],
                distance if isinstance(distance, int) and distance > 0 else 1,
                (one.id,),
                SIGNAL,
            )


SIGNAL = "signal"
"""Kind of a drift that somebody else saw."""

_QUESTION = """{why}.

The task is: {goal}.
Nothing of it was applied. Approve where the task needs it; the agent may then propose it again."""

_CRITERION = """The proposed change serves the task, although it looks like this:
{drifts}
Approve only where the task needs it."""


def record_of(one: Drift, task: TaskSpec) -> dict[str, Any]:
    """A line of ``DRIFT_DETECTED``."""
    return {
        "task_id": task.id,
        "planned_action": one_line(one.planned_action, 300),
        "detected_drift": one_line(one.detected_drift, 500),
        "severity": one.severity,
        "original_goal": one_line(task.title, 300),
        "drift_distance": one.drift_distance,
    }


def touched(change: Change, tree: Tree) -> list[Touched]:
    """What a change does to each file; a file that moves is one, not two."""
    created = {edit.path: edit for edit in change.edits if edit.path not in tree.entries}
    came_from: dict[str, str] = {}
    for edit in change.edits:
        entry = tree.entries.get(edit.path) if edit.after is None else None
        if entry is not None:
            moved = (p for p, new in created.items() if _is_moved(edit.path, entry, new))
            to = next((path for path in moved if path not in came_from), None)
            came_from.update({to: edit.path} if to is not None else {})
    gone = set(came_from.values())
    return [
        _touched(edit, tree, came_from.get(edit.path, ""))
        for edit in change.edits
        if edit.path not in gone
    ]


def _is_moved(path: str, entry: Entry, new: Edit) -> bool:
    """Whether a new file is one that is deleted: its name, and about its size."""
    if new.after is None:
        return False
    is_size = abs(new.size - entry.size) * 4 <= max(new.size, entry.size)
    return new.path.rpartition("/")[2] == path.rpartition("/")[2] and is_size


def _touched(edit: Edit, tree: Tree, was: str) -> Touched:
    kind: Kind = "deleted" if edit.after is None else "renamed" if was else "written"
    is_new = edit.path not in tree.entries
    before = text_before(tree, was or edit.path) if was or not is_new else ""
    after = "" if edit.after is None else text_of(edit.after)
    if before is None or after is None:  # not text: that it differs is all that is known
        return Touched(edit.path, kind, 1, was, is_new)
    lines = max(len(added_lines(before, after)), len(added_lines(after, before)))
    return Touched(edit.path, kind, lines, was, is_new)


# --- When a conversation is begun anew ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Load:
    """What has come together since the context was cleared last.

    Attributes:
        drifts: lines of drift.
        iterations: attempts of this session.
        conversation: bytes of what was told and answered.
        same_error: how often the most frequent error came.
        requested: who asks for it, or "".
    """

    drifts: int = 0
    iterations: int = 0
    conversation: int = 0
    same_error: int = 0
    requested: str = ""


@dataclass(frozen=True, slots=True)
class Trigger:
    """Why a context is cleared: a short name, and a sentence."""

    name: str
    reason: str


LIMITS = {"drifts": 3, "same_error": 3, "iterations": 25, "conversation": 50 * 1024}
"""Drifts, times of one error, attempts, and bytes of briefings and answers from which on it is cleared: as
the specification has them; the most telling first."""

TRIGGERS: Mapping[str, str] = {
    "drifts": "{} drifts since the last clear",
    "same_error": "the same error {} times",
    "iterations": "{} iterations",
    "conversation": "{} bytes of conversation",
}
"""By limit, the sentence that says how much has come together."""


def trigger(load: Load) -> Trigger | None:
    """Why a context is to be cleared now; None: it is not.

    Args:
        load: what has come together.

    Example:
        >>> trigger(Load(iterations=24)) is None, trigger(Load(iterations=25)).name
        (True, 'iterations')
    """
    if load.requested:
        return Trigger("requested", f"{load.requested} asks for it")
    for name, limit in LIMITS.items():
        found = getattr(load, name)
        # So many bytes may be; of all else the last one is one too many.
        is_over = found > limit if name == "conversation" else found >= limit
        if is_over:
            return Trigger(name, TRIGGERS[name].format(found))
    return None


# --- The conversation ---------------------------------------------------------------------------------

RUNNING = "running"

STOPPED = frozenset({"interrupted", "paused", "escalated", "failed"})
"""Ends of a session after which another may go on."""


@dataclass
class Conversation:
    """What is said between loki and the agent of a task in one session.

    Args:
        recorder: what is on record.
        signals: those of the project.

    Attributes:
        cleared: number of the last attempt before the context was cleared last, or 0.
        is_fresh: it was cleared for the briefing at hand.
    """

    recorder: Recorder
    signals: Signals

    def __post_init__(self) -> None:
        """Nothing has been said."""
        self.session_context = SessionContext(self.recorder.store, self.recorder.task.id)
        self.cleared = 0
        self.is_fresh = False
        self._load = Load()
        self._errors: Counter[str] = Counter()
        self._begun = False
        self._progress: TaskProgress | None = None
        self._told = ""
        self._context = ""

    @property
    def progress(self) -> TaskProgress:
        """The attempts of the task's life, summed up; read once, as there may be many."""
        if self._progress is None:
            self._progress = TaskProgress.of(self.recorder.history.attempts())
        return self._progress

    def begin(self, drifts: DriftDetector) -> str:
        """What a briefing tells of before; clears the context first where that is due.

        Args:
            drifts: counts them; anew from a clear on.
        """
        self.is_fresh = False
        if not self._begun:
            self._begun = True
            # What an earlier session was killed over is on record all the same.
            last = self.progress.last
            if last is not None and last.result not in DONE:
                self.session_context.keep_ledger(self._ledger(RUNNING, ""))
            self._told = self.session_context.load()
        request = self._request()
        due = trigger(self._now(drifts.count, request))
        if due is not None:
            self._clear(due)
            drifts.count = 0
            if request is not None:
                self.signals.consume(request)
        return self._told

    def context(self, shown: str) -> str:
        """Context for a briefing: what was told before a clear is not told again."""
        is_old, self._context = self.is_fresh and shown == self._context, shown
        return "" if is_old else shown

    def saw(self, attempt: Attempt) -> None:
        """An attempt is over."""
        load = self._load
        if self._progress is not None:  # else it is read with the others
            self._progress = self._progress.after(attempt)
        if attempt.error and attempt.result != DRIFT and not attempt.infrastructure:
            self._errors[attempt.fingerprint or attempt.error] += 1
        self._load = Load(0, load.iterations + 1, load.conversation)

    def amended(self) -> None:
        """What is on record of an attempt is another one now."""
        self._progress = None

    def received(self, text: str) -> None:
        """Something was told or answered."""
        size = len(text.encode("utf-8", "surrogatepass"))
        self._load = Load(0, self._load.iterations, self._load.conversation + size)

    def answered(self, proposal: Proposal) -> None:
        """An agent answered: all that it said, where that is known."""
        self.received(proposal.output or proposal.description)

    def end(self, outcome: Outcome) -> None:
        """The session is over: the next one begins with what it leaves."""
        if self.recorder.tried.attempts == 0:
            return
        if outcome.status in STOPPED:
            self._keep(outcome.status, outcome.reason, f"{outcome.status}: {outcome.reason}")
        else:
            self.session_context.keep_ledger(self._ledger(outcome.status, outcome.reason))

    def _now(self, drifts: int, request: Signal | None) -> Load:
        load, most = self._load, max(self._errors.values(), default=0)
        by = (request.string_field("agent") or "a signal") if request is not None else ""
        return Load(drifts, load.iterations, load.conversation, most, by)

    def _request(self) -> Signal | None:
        task = self.recorder.task.id
        found = self.signals.pending(CONTEXT_CLEAR_REQUESTED)
        return next((one for one in found if one.string_field("task_id") in {"", task}), None)

    def _clear(self, due: Trigger) -> None:
        line = f"context_clear trigger={due.name} reason={quoted(due.reason)}"
        log_event(self.recorder.task.id, line, warning=due.name == "drifts")
        if self.progress.last is not None:
            self.cleared = self.progress.last.attempt
            self._keep(RUNNING, "", f"context clear: {due.reason}")
        self._told = self.session_context.load()
        self._load, self._errors, self.is_fresh = Load(), Counter(), True

    def _keep(self, state: str, reason: str, why: str) -> None:
        kept, last = self._ledger(state, reason), self.progress.last
        if last is None:
            return
        self.session_context.keep(
            kept,
            Handoff(
                kept.task_id,
                kept.goal,
                kept.updated_at,
                why,
                last.agent,
                self.progress.drifts,
                f"{last.action or 'nothing'} → {last.error or last.result}",
                kept.next_step,
            ),
        )

    def _ledger(self, state: str, reason: str) -> session_context.Ledger:
        recorder, is_running = self.recorder, state == RUNNING
        return session_context.ledger_of(
            recorder.task.id,
            recorder.task.title,
            self.progress,
            state=state,
            reason=reason,
            at=isoformat(recorder.clock.now()),
            # While it runs, its briefings tell what people said.
            said=() if is_running else recorder.said,
            # What differs from before is read from the whole journal: once a session, at its end.
            files=tuple(self.progress.files if is_running else recorder.changes()),
            reflections=recorder.reflections.last(),
        )

"""The conversation with an agent, as far as loki leads it: what has come together, and beginning anew.

Every briefing is composed from what is on record, so letting go of a conversation means to tell less:
no reflections and no context of before, but the ledger and the last handoffs. Why it is so:
``docs/design/drift.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loki.base.log import log_event, quoted
from loki.base.time import isoformat
from loki.memory import session_context
from loki.memory.attempt import DRIFT, Attempt
from loki.memory.session_context import Handoff, SessionContext, TaskProgress
from loki.memory.task_record import DONE
from loki.people.signal import CONTEXT_CLEAR_REQUESTED, Signal

if TYPE_CHECKING:
    from loki.action.agent_protocol import Proposal
    from loki.action.loop.drift_detector import DriftDetector
    from loki.action.loop.recorder import Recorder
    from loki.memory.task_record import Outcome
    from loki.people.signals import Signals

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

"""Looks for drift in what an agent proposes, and in what others say of it: the loop's eyes for it.

Turns a change and what is known of a task into what `loki.decision.drift` compares, joins that with the
signal ``DRIFT_DETECTED``, and has a second drift reviewed. Why it is so: ``docs/design/drift.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from loki.action.agent_protocol import Proposal
from loki.action.gates.added_lines import added_lines, text_before, text_of
from loki.action.loop.loop_events import Drifted, DriftReviewed, ReportDrift, ReviewDrift
from loki.base.error import LokiError
from loki.config import DriftConfig
from loki.decision import drift
from loki.decision.drift import Drift, Goal, Kind, Proposed, Touched
from loki.memory.quote import one_line
from loki.people.human_review import ReviewStatus
from loki.people.signal import DRIFT_DETECTED, Signal

if TYPE_CHECKING:
    from loki.action.changes.change import Change, Edit
    from loki.action.changes.tree import Entry, Tree
    from loki.action.checks.judge import Judge
    from loki.action.task import TaskSpec
    from loki.people.request import HumanReviews
    from loki.people.signals import Signals
    from loki.recognition.failure import Failure

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

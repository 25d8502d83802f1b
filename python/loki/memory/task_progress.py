"""The course of a task so far, in bounded memory: what a ledger or a handoff tells of its attempts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from loki.memory.attempt import DRIFT, Attempt
from loki.memory.attempt_summary import MOST, AttemptSummary

MOST_DRIFTS = 3
"""Drifts that are told of, the newest. Chosen, not measured."""

MOST_FILES = 1000
"""Paths that are known by name, the first. Chosen, not measured."""


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """The attempts of a task's life, summed up.

    Attributes:
        tried: its approaches.
        decisions: why which strategy was chosen, the newest, oldest first.
        error: of the last attempt that had one, or None.
        strategy: the last that was chosen, or None.
        drifts: how work left the task, the newest, oldest first.
        files: paths that attempts changed; a dict for its order.
        last: the last attempt, or None.

    Example:
        >>> course = TaskProgress.of(Attempt(n, "", "guard", "failed", f"E{n}") for n in (1, 2, 3))
        >>> course.tried.attempts, course.error, course.last.attempt
        (3, 'E3', 3)
    """

    tried: AttemptSummary = field(default_factory=AttemptSummary)
    decisions: tuple[str, ...] = ()
    error: str | None = None
    strategy: str | None = None
    drifts: tuple[str, ...] = ()
    files: dict[str, None] = field(default_factory=dict)
    last: Attempt | None = None

    def after(self, attempt: Attempt) -> TaskProgress:
        """The same after one more attempt."""
        decision = attempt.decision or {}
        decided = self.decisions
        if decision.get("reason"):
            chosen = attempt.strategy_used or decision.get("action")
            line = f"attempt {attempt.attempt}: {chosen}: {decision['reason']}"
            decided = (*decided, line)[-MOST:]
        drifts = self.drifts
        if attempt.result == DRIFT and attempt.error:
            drifts = (*drifts, attempt.error)[-MOST_DRIFTS:]
        files = self.files
        new = [path for path in attempt.files_modified if path not in files]
        if new and len(files) < MOST_FILES:
            files = {**files, **dict.fromkeys(new)}
        return replace(
            self,
            tried=self.tried.after(attempt),
            decisions=decided,
            error=attempt.error or self.error,
            strategy=attempt.strategy_used or self.strategy,
            drifts=drifts,
            files=files,
            last=attempt,
        )

    @classmethod
    def of(cls, attempts: Iterable[Attempt]) -> TaskProgress:
        """A summary of attempts, oldest first."""
        progress = cls()
        for attempt in attempts:
            progress = progress.after(attempt)
        return progress

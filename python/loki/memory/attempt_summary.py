"""What was tried already, in bounded memory: the newest distinct approaches, and a count."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from loki.memory.attempt import DRIFT, Attempt
from loki.memory.quote import one_line

MOST = 8
"""Approaches that are told of, the newest distinct ones. Chosen, not measured."""


@dataclass(frozen=True, slots=True)
class Approach:
    """An approach and what came of it.

    Attributes:
        attempt: number of the attempt that took it last.
        times: how often it was taken.
        action: what was done, one line.
        error: what it failed with the last time, one line.
        strategy: the strategy chosen in answer, or None.
    """

    attempt: int
    times: int
    action: str
    error: str
    strategy: str | None


@dataclass(frozen=True, slots=True)
class AttemptSummary:
    """The attempts of one execution of a task, summed up.

    Attributes:
        attempts: how many there were.
        counted: how many of them count for the retry budget: not failed by infrastructure, nor
            sent back for drift, and made since a person last stepped in.
        since: number of the last attempt before that.
        approaches: the newest distinct ones, newest last.

    Example:
        >>> told = AttemptSummary.of(Attempt(n, "", "guard", "failed", "TS2339") for n in (1, 2, 3))
        >>> told.attempts, [(a.attempt, a.times) for a in told.approaches]
        (3, [(3, 3)])
    """

    attempts: int = 0
    counted: int = 0
    since: int = 0
    approaches: tuple[Approach, ...] = ()

    @property
    def left_out(self) -> int:
        """Attempts whose approach is not among those told of."""
        return self.attempts - sum(approach.times for approach in self.approaches)

    def after(self, attempt: Attempt) -> AttemptSummary:
        """The same after one more attempt."""
        action = one_line(attempt.action)
        known = next((a for a in self.approaches if a.action == action), None)
        latest = Approach(
            attempt.attempt,
            known.times + 1 if known else 1,
            action,
            one_line(attempt.error or attempt.result),
            attempt.strategy_used,
        )
        others = (a for a in self.approaches if a is not known)
        is_work = not attempt.infrastructure and attempt.result != DRIFT
        counts = attempt.attempt > self.since and is_work
        return replace(
            self,
            attempts=self.attempts + 1,
            counted=self.counted + counts,
            approaches=(*others, latest)[-MOST:],
        )

    def amended(self, attempt: int, strategy: str) -> AttemptSummary:
        """The same where another strategy than the recorded one was used."""
        amended = (
            replace(a, strategy=strategy) if a.attempt == attempt else a for a in self.approaches
        )
        return replace(self, approaches=tuple(amended))

    def later(self, attempt: int) -> AttemptSummary:
        """The same of what was done after an attempt: what came before is told of elsewhere."""
        kept = tuple(a for a in self.approaches if a.attempt > attempt)
        return replace(self, attempts=sum(a.times for a in kept), approaches=kept)

    @classmethod
    def of(cls, attempts: Iterable[Attempt], since: int = 0) -> AttemptSummary:
        """A summary of attempts, oldest first; those after number ``since`` count."""
        tried = cls(since=since)
        for attempt in attempts:
            tried = tried.after(attempt)
        return tried

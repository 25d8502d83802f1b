"""What failed before in a task, as far as decisions depend on it; pure, and bounded.

Counts are exact for any number of attempts. Failures themselves are kept for the newest `REMEMBERED`
different ones, so a task of ten thousand attempts decides as quickly, and takes as much memory, as one
of a hundred.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from loki.recognition.failure import Failure
from loki.recognition.similarity import same_site

if TYPE_CHECKING:
    from loki import _core

REMEMBERED = 100
"""Different failures that answers are remembered for; chosen, not measured. A task that fails in more
ways than this may be given a strategy again that did not help against one of the oldest."""


@dataclass(frozen=True, slots=True)
class PastFailure:
    """An earlier attempt of the same task that failed.

    Attributes:
        failure: what its first failing check said.
        answer: the strategy chosen in answer to it; None where there was none.
        infrastructure: it was infrastructure that failed, not the work.
        progress: fewer tests failed than ever before in the task.
    """

    failure: Failure
    answer: str | None = None
    infrastructure: bool = False
    progress: bool = False

    @property
    def pattern(self) -> str | None:
        """Id of the pattern that the failure matched."""
        return self.failure.match.pattern if self.failure.match else None


@dataclass(frozen=True)
class _Known:
    """A failure, and how often each strategy was the answer to it."""

    failure: Failure
    answers: Mapping[str, int]

    @cached_property
    def site(self) -> _core.FailureSite:
        return self.failure.site()


@dataclass(frozen=True, slots=True)
class FailureHistory:
    """The failed attempts of a task so far.

    Attributes:
        work: how many were failures of the work; stalled: how many of those came no nearer to the end.
        infrastructure_streak: how many of the last ones in a row infrastructure failed.
        wait_streak: how many of the last ones in a row were answered with a wait.
        answers: every strategy that was an answer, and how often.
        last: the last one, or None.
    """

    work: int = 0
    stalled: int = 0
    infrastructure_streak: int = 0
    wait_streak: int = 0
    answers: Mapping[str, int] = field(default_factory=dict)
    last: PastFailure | None = None
    _patterns: Mapping[str, int] = field(default_factory=dict)
    _stalled: Mapping[str, int] = field(default_factory=dict)
    _known: Mapping[str, _Known] = field(default_factory=dict)
    _answered: dict[str, frozenset[str]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def of(cls, failures: Iterable[PastFailure]) -> FailureHistory:
        """What failed before, oldest first."""
        past = cls()
        for failure in failures:
            past = past.add(failure)
        return past

    def earlier(self, pattern: str) -> int:
        """How many failures of the work matched a pattern."""
        return self._patterns.get(pattern, 0)

    def stalled_at(self, pattern: str) -> int:
        """How many failures of the work that matched a pattern came no nearer to the end."""
        return self._stalled.get(pattern, 0)

    def answers_to(self, failure: Failure) -> Set[str]:
        """Strategies that were already the answer to this very failure; none for an unspecific one."""
        found = self._answered.get(failure.fingerprint)  # more than one ask, for one failure
        if found is None:
            found = self._answered[failure.fingerprint] = frozenset(self._answers_to(failure))
        return found

    def _answers_to(self, failure: Failure) -> set[str]:
        if not failure.is_specific:
            return set()
        exact = self._known.get(failure.fingerprint)
        found = set(exact.answers) if exact else set()
        site = failure.site()
        for known in self._known.values():
            if not known.answers.keys() <= found and same_site(known.site, site):
                found |= known.answers.keys()
        return found

    def add(self, failed: PastFailure, *, wait: str = "retry_with_backoff") -> FailureHistory:
        """The past after one more failed attempt.

        Args:
            failed: the attempt.
            wait: name of the strategy that only waits.
        """
        waits = self.wait_streak + 1 if failed.answer == wait else 0
        answers = _counted(self.answers, failed.answer)
        after = replace(self, wait_streak=waits, answers=answers, last=failed)
        if failed.infrastructure:
            return replace(after, infrastructure_streak=self.infrastructure_streak + 1)
        return replace(
            after,
            work=self.work + 1,
            stalled=self.stalled + (not failed.progress),
            infrastructure_streak=0,
            _patterns=_counted(self._patterns, failed.pattern),
            _stalled=_counted(self._stalled, None if failed.progress else failed.pattern),
            _known=_remember(self._known, failed) if failed.failure.is_specific else self._known,
        )

    def amended(self, strategy: str) -> FailureHistory:
        """The past where another strategy than the recorded one was the last answer."""
        if self.last is None:
            return self
        last, known = self.last, self._known
        entry = known.get(last.failure.fingerprint)
        if entry and not last.infrastructure:
            answers = _counted(_uncounted(entry.answers, last.answer), strategy)
            known = {**known, last.failure.fingerprint: _Known(entry.failure, answers)}
        return replace(
            self,
            wait_streak=0,
            answers=_counted(_uncounted(self.answers, last.answer), strategy),
            last=replace(last, answer=strategy),
            _known=known,
        )


def _remember(known: Mapping[str, _Known], failed: PastFailure) -> Mapping[str, _Known]:
    fingerprint = failed.failure.fingerprint
    before = known.get(fingerprint) or _Known(failed.failure, {})
    others = {key: entry for key, entry in known.items() if key != fingerprint}
    while len(others) >= REMEMBERED:
        others.pop(next(iter(others)))
    answers = _counted(before.answers, failed.answer)
    return {**others, fingerprint: _Known(before.failure, answers)}


def _counted(counts: Mapping[str, int], name: str | None) -> Mapping[str, int]:
    return counts if name is None else {**counts, name: counts.get(name, 0) + 1}


def _uncounted(counts: Mapping[str, int], name: str | None) -> Mapping[str, int]:
    if name is None or name not in counts:
        return counts
    rest = {key: count for key, count in counts.items() if key != name}
    return {**rest, name: counts[name] - 1} if counts[name] > 1 else rest

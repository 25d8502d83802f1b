"""What became of the strategies of an execution: did each mend the failure that it answered?

A use is *cured* where the failure was not seen again in the execution and a later attempt showed
that it is gone: that attempt got as far as the phase that had failed, and the check that had failed
passed or failed otherwise. It is *not cured* where the failure was seen again, also later (A-B-A).
Else nobody knows: the execution ended, or no later attempt came that far.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from loki.memory.attempt import Attempt
from loki.recognition.failure import RECOGNIZER_VERSION, Failure
from loki.recognition.grouping import FailureIndex

PHASES = ("generate", "validate", "execute", "evaluate")
"""In their order: an attempt that failed in one says nothing about those behind it."""


@dataclass(frozen=True, slots=True)
class Use:
    """One strategy, used once.

    Attributes:
        strategy: its name.
        attempt: number of the attempt whose failure it answered.
        pattern: id of that failure's pattern, or None.
        cured: whether it mended the failure; None where nobody knows.
    """

    strategy: str
    attempt: int
    pattern: str | None
    cured: bool | None


def counts(attempt: Attempt) -> bool:
    """Whether an attempt says something about the work: it was made to its end, on sound ground.

    Attempts that infrastructure failed or somebody interrupted do not count.
    """
    return not attempt.infrastructure and attempt.result in {"success", "failed", "unverified"}


def uses(attempts: Iterable[Attempt]) -> list[Use]:
    """The strategies used in one execution, in order, and what became of each.

    Args:
        attempts: of one execution, oldest first.

    Example:
        >>> when, failed = "2026-04-04T10:15:30.000Z", {"error": "x is not defined"}
        >>> one = Attempt(1, when, "", "failed", **failed, strategy_used="context_expand")
        >>> two = Attempt(2, when, "", "failed", **failed, strategy_used="analyze_then_fix")
        >>> [(use.strategy, use.cured) for use in uses([one, two, Attempt(3, when, "", "success")])]
        [('context_expand', False), ('analyze_then_fix', True)]
    """
    groups = _Groups()
    done: list[tuple[Attempt, bool | None]] = []
    open_: dict[object, Attempt] = {}  # by failure: used, and nobody knows yet
    gone: dict[object, Attempt] = {}  # by failure: shown to be gone
    for attempt in attempts:
        if not counts(attempt) or attempt.result == "unverified":
            continue
        seen = groups.of(attempt) if attempt.result == "failed" else None
        if seen is not None and (used := open_.pop(seen, None) or gone.pop(seen, None)):
            done.append((used, False))
        for failure in [f for f, used in open_.items() if _shows_gone(used, attempt)]:
            gone[failure] = open_.pop(failure)
        if seen is not None and attempt.strategy_used:
            open_[seen] = attempt
    done += [(used, True) for used in gone.values()]
    done += [(used, None) for used in open_.values()]
    return [
        Use(str(used.strategy_used), used.attempt, used.pattern_matched, cured)
        for used, cured in sorted(done, key=lambda pair: pair[0].attempt)
    ]


def _shows_gone(failed: Attempt, later: Attempt) -> bool:
    """Whether a later attempt, which failed otherwise or not at all, got past a failure."""
    if later.result == "success":
        return True
    if _rank(later) != _rank(failed):
        return _rank(later) > _rank(failed)
    if failed.phase == "validate":  # a gate that blocks keeps the others from running
        return _gates(failed)[-1:] == [] or _gates(failed)[-1] in _gates(later)
    check = _failed_check(failed)
    if check is None or check == _failed_check(later):
        return True
    return any(one.passed for one in later.checks if one.name == check)


def _rank(attempt: Attempt) -> int:
    return PHASES.index(attempt.phase) if attempt.phase in PHASES else len(PHASES)


def _failed_check(attempt: Attempt) -> str | None:
    """The check whose failure was analyzed: the first that failed."""
    return next((check.name for check in attempt.checks if not check.passed), None)


def _gates(attempt: Attempt) -> list[str]:
    gates = (attempt.validation or {}).get("gates")
    return [str(gate) for gate in gates] if isinstance(gates, list) else []


class _Groups:
    """Which failures of an execution are the same one.

    Most are told by their fingerprints alone; failures are only built where two of these differ.
    """

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._first: Attempt | None = None
        self._index: FailureIndex | None = None

    def of(self, attempt: Attempt) -> object:
        """What is equal for the same failures, and for them alone."""
        fingerprint = attempt.fingerprint or ""
        is_known = fingerprint in self._known
        if is_known and attempt.recognizer_version == RECOGNIZER_VERSION:
            return self._known[fingerprint]
        if attempt.failure and self._first is None:
            self._first = attempt
            if attempt.recognizer_version == RECOGNIZER_VERSION:
                self._known[fingerprint] = 0
            return 0
        failure = attempt.recognized()
        if failure is None:  # a record without the failure's fields
            return ("error", attempt.pattern_matched, attempt.error)
        return self._known.setdefault(failure.fingerprint, self._group(failure))

    def _group(self, failure: Failure) -> int:
        if self._index is None:
            self._index = FailureIndex()
            first = self._first.recognized() if self._first else None
            self._index.add(first or Failure.of("a record that cannot be read"), "")
        return self._index.add(failure, "")


def chain(used: Sequence[Use], longest: int = 5) -> tuple[str, ...]:
    """The strategies that followed one another, the last of them; empty where it was one alone.

    Args:
        used: of one execution, in order.
        longest: most strategies to name, the last ones. Chosen, not measured.

    Example:
        >>> chain([Use("auto_fix", 1, None, False), Use("context_expand", 2, None, False)])
        ('auto_fix', 'context_expand')
    """
    return tuple(use.strategy for use in used)[-longest:] if len(used) > 1 else ()

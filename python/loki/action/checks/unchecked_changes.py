"""What of a change the regression check cannot speak of, and why; pure.

Silence of a runner is no evidence: only where results per test are known from before the work and from
now, and every test that can be broken is among them, nothing is said here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from loki.action.checks.imports import language_of
from loki.action.checks.results.suite_results import Results
from loki.base.glob import matches
from loki.decision.drift.path_kinds import kinds_of_path
from loki.recognition.site import narrowings

MAX_NAMED = 3
"""Files that a reason names; chosen, not measured."""

_NO_CODE = frozenset({"example", "lock"})


def unchecked(
    before: Mapping[str, Results],
    now: Iterable[str],
    changed: Sequence[str],
    untold: Iterable[str],
) -> str:
    """Why some test that passed before may be broken unseen; "" where that cannot be.

    Args:
        before: results by run, on the starting tree.
        now: the runs that were looked at again.
        changed: what the task has changed.
        untold: files that depend on it, or are it, and of which no run told anything.

    Example:
        >>> unchecked({}, [], ["a.js"], [])
        'not checked: no check told results per test, before the work and after it'
        >>> unchecked({"t": Results({"a": "failed"})}, ["t"], ["a.py"], ["b.test.js", "b.js"])
        'not checked: no results per test are known of b.test.js'
    """
    tests = sorted(path for path in untold if _holds_tests(path))
    if tests:
        return f"not checked: no results per test are known of {_named(tests)}"
    told = [run for run in now if run in before and before[run].outcomes]
    if not told:
        return "not checked: no check told results per test, before the work and after it"
    unknown = [
        path for path in changed if language_of(path) is None and not kinds_of_path(path) & _NO_CODE
    ]
    if unknown:
        return f"not checked beyond the checks' own tests: what uses {_named(unknown)} is not known"
    return ""


def _holds_tests(path: str) -> bool:
    return any(matches(path, how.files) for how in narrowings())


def _named(paths: Sequence[str]) -> str:
    shown, rest = ", ".join(paths[:MAX_NAMED]), len(paths) - MAX_NAMED
    return f"{shown} and {rest} more" if rest > 0 else shown

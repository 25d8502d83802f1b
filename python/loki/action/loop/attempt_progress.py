"""Whether an attempt came nearer to the end than any before it: pure, by what each test did.

What is deleted or skipped is not mended, so that leaving tests out is no progress. A check that fails
and names no failing test counts as one more thing that is not mended.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

from loki.action.checks.check import Report
from loki.action.checks.results.suite_results import FAILED, PASSED, inside

Open = tuple[str, str]
"""(check, test) of what is not mended; no test where the check names none."""


@dataclass(frozen=True, slots=True)
class ProgressMeasure:
    """How much was not mended when least was.

    Attributes:
        count: how many tests.
        items: which; empty where only their number is known, as after a restart.
    """

    count: int
    items: frozenset[Open] = frozenset()


def still_failing(seen_failing: Set[Open], report: Report) -> frozenset[Open]:
    """What fails, and what was seen failing and does not pass now.

    Args:
        seen_failing: (check, test) of every test that was seen failing.
        report: what the checks say.

    Example:
        >>> still_failing({("pytest", "a")}, Report())
        frozenset({('pytest', 'a')})
    """
    found = set(seen_failing)
    for result in report.results:
        name, tests = result.check.name, result.tests or {}
        failing = {(name, test) for test, outcome in tests.items() if outcome == FAILED}
        mended = {
            (check, test)
            for check, test in found
            if check == name and (tests.get(test) == PASSED or _is_resolved(test, tests))
        }
        found = (found - mended) | failing
        if not (result.passed or result.is_pending or failing):
            found.add((name, ""))
    return frozenset(found)


def _is_resolved(test: str, tests: Mapping[str, str]) -> bool:
    """A file that could not be loaded, whose tests are told of now."""
    return test not in tests and bool(inside(test, tests))


def fewest_failing(
    fewest: ProgressMeasure | None, now: frozenset[Open], report: Report
) -> ProgressMeasure:
    """The least so far, with what is not mended now."""
    if fewest is None or len(now) < fewest.count or not is_comparable(fewest, report):
        return ProgressMeasure(len(now), now)
    return fewest


def is_comparable(fewest: ProgressMeasure | None, report: Report) -> bool:
    """Whether what was measured was a count of tests, not a file or a whole check that did not start.

    Args:
        fewest: what was measured.
        report: what the checks say now: of what did not start, the tests are told of.
    """
    told = {result.check.name: result.tests for result in report.results if result.tests}
    hid = (
        not test or _is_resolved(test, told[check])
        for check, test in (fewest.items if fewest else ())
        if check in told
    )
    return not any(hid)


def progress_record(fewest: ProgressMeasure | None, now: Set[Open]) -> dict[str, Any] | None:
    """What an attempt's record says of it; None where there is nothing to compare with."""
    return None if fewest is None else {"unmended": len(now), "fewest_before": fewest.count}


def of_record(record: Mapping[str, Any] | None) -> tuple[bool, int | None]:
    """(whether it was progress, the fewest with it) by what `kept` gave.

    Example:
        >>> of_record({"unmended": 3, "fewest_before": 4}), of_record(None)
        ((True, 3), (False, None))
    """
    now, before = ((record or {}).get(name) for name in ("unmended", "fewest_before"))
    if not isinstance(now, int) or not isinstance(before, int):
        return False, None
    return now < before, min(now, before)

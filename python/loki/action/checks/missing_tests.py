"""Tests that were seen failing and are not mended, whatever the check says now.

What is deleted or skipped is not fixed, nor is what still fails where the check no longer minds.
"""

from __future__ import annotations

from collections.abc import Mapping

from loki.action.checks.check import Report
from loki.action.checks.results.suite_results import FAILED, PASSED, inside
from loki.recognition.failure import Failure


def missing_tests(
    seen_failing: frozenset[tuple[str, str]],
    report: Report,
    gone: frozenset[str] = frozenset(),
) -> dict[str, str]:
    """Tests that were seen failing and are not mended, though no check may say so.

    A test that is deleted, skipped or expected to fail is not fixed, nor is one that fails in a check
    that ends well: its exit code was hidden. A whole file that could not be loaded counts as found
    again once any of its tests passes.

    Args:
        seen_failing: (check, test) of each that was seen failing.
        report: what the checks say now.
        gone: files of tests that checks failed in, and that are not there any more: all that can be
            known where a runner tells no results, or none of what it could not build.

    Returns:
        ``gone``, ``skipped`` or ``failing`` by test.
    """
    lost = dict.fromkeys(gone, "gone")
    for result in report.results:
        tests = result.tests or {}
        hides = result.passed and not result.check.expected  # else its exit code counts for nothing
        for name, test in seen_failing:
            if name != result.check.name or tests.get(test) == PASSED:
                continue
            if tests.get(test) == FAILED:
                if hides:
                    lost[test] = "failing"
                continue
            within = [tests[other] for other in inside(test, tests)]
            if test in tests or (within and PASSED not in within):
                lost[test] = "skipped"
            elif not within:
                lost[test] = "gone"
    return dict(sorted(lost.items()))


def missing_tests_failure(lost: Mapping[str, str]) -> Failure:
    """The failure that lost tests amount to; ``lost`` is what `missing_tests` found, not empty."""
    (test, how), *_ = lost.items()
    message = f"{test} {_MESSAGES[how]}"
    listing = "\n".join(f"{name}: {what}" for name, what in lost.items())
    return Failure.of(
        message,
        tool="loki",
        error_code=f"test-{how}",
        tests=tuple(lost),
        excerpt=listing,
        pattern="test-failure",  # whatever the test's own name says
    )


_NOT_REMOVED = "a test that must pass may not be removed"
_MESSAGES = {
    "gone": f"was failing and is now gone: {_NOT_REMOVED}",
    "skipped": f"was failing and is now skipped or expected to fail: {_NOT_REMOVED}",
    "failing": "still fails, and the check ends with success all the same: mend what it tests, and "
    "let the check end as its tests do",
}

"""Tests that were seen failing and have vanished since: what is deleted or skipped is not fixed."""

from __future__ import annotations

from collections.abc import Mapping

from loki.action.check import Report
from loki.action.results.result import FAILED, PASSED, inside
from loki.recognition.failure import Failure


def lost_tests(seen_failing: frozenset[tuple[str, str]], report: Report) -> dict[str, str]:
    """Tests that were seen failing and now neither pass nor fail: gone, or skipped.

    A test that is deleted, skipped or expected to fail is not fixed. A whole file that could not be
    loaded counts as found again once any of its tests passes.

    Returns:
        ``gone`` or ``skipped`` by test.
    """
    lost = {}
    for result in report.results:
        tests = result.tests or {}
        for name, test in seen_failing:
            if name != result.check.name or tests.get(test) in {PASSED, FAILED}:
                continue
            within = [tests[other] for other in inside(test, tests)]
            if test in tests or (within and PASSED not in within):
                lost[test] = "skipped"
            elif not within:
                lost[test] = "gone"
    return dict(sorted(lost.items()))


def lost_failure(lost: Mapping[str, str]) -> Failure:
    """The failure that lost tests amount to; ``lost`` is what `lost_tests` found, not empty."""
    (test, how), *_ = lost.items()
    is_now = "gone" if how == "gone" else "skipped or expected to fail"
    message = f"{test} was failing and is now {is_now}: a test that must pass may not be removed"
    listing = "\n".join(f"{name}: {what}" for name, what in lost.items())
    return Failure.of(
        message, tool="loki", error_code=f"test-{how}", tests=tuple(lost), excerpt=listing
    )

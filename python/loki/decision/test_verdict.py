"""Whether a test run fails, given what its failures are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from loki.decision.test_summary import TestSummary

PASSED, FAILED = 0, 1
"""pytest's exit codes for a run whose tests all passed, and for one where some failed."""


def exit_code(
    summary: TestSummary,
    code: int,
    *,
    fail_on: Collection[str] = (),
    quarantine: bool = False,
) -> int:
    """The exit code of a run: pytest's own, unless it was asked to excuse what all failures are.

    Args:
        summary: of the run.
        code: pytest's exit code; only "tests failed" (1) of a run that was not cut short is ever
            changed, and only to 0.
        fail_on: labels that fail the run; empty: all do.
        quarantine: known flaky tests do not fail the run.

    Returns:
        The exit code.
    """
    excused = {name for names in summary.labels.values() for name in (n.name for n in names)}
    excused = {name for name in excused if (fail_on and name not in fail_on)}
    if quarantine:
        excused.add("flaky")
    labels = [label.name for labels in summary.labels.values() for label in labels]
    if code != FAILED or summary.run.interrupted or not labels:
        return code
    return PASSED if all(name in excused for name in labels) else code

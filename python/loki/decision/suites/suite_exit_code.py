"""Whether a test run fails, given what its failures are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loki.decision.suites.suite_labels import LABELS

if TYPE_CHECKING:
    from collections.abc import Collection

    from loki.decision.suites.suite_summary import Member, SuiteSummary

PASSED, FAILED = 0, 1
"""pytest's exit codes for a run whose tests all passed, and for one where some failed."""


def excused(
    summary: SuiteSummary, *, fail_on: Collection[str] = (), quarantine: bool = False
) -> tuple[Member, ...]:
    """The failures that do not fail the run, because somebody asked for that.

    Args:
        summary: of the run.
        fail_on: labels that fail the run; empty: all do.
        quarantine: flaky tests do not fail the run, whatever ``fail_on`` says.

    Raises:
        ValueError: ``fail_on`` holds something that is no label.
    """
    unknown = sorted(set(fail_on) - set(LABELS))
    if unknown:
        raise ValueError(f"found {unknown[0]!r} as a label, expected {', '.join(LABELS)}")
    return tuple(
        member
        for member in summary.members
        if (fail_on and member.label.name not in fail_on)
        or (quarantine and member.label.name == "flaky")
    )


def exit_code(
    summary: SuiteSummary,
    code: int,
    *,
    fail_on: Collection[str] = (),
    quarantine: bool = False,
) -> int:
    """The exit code of a run: pytest's own, unless all that failed was to be excused.

    Only "tests failed" (1) is ever changed, only to 0, and only where all tests had their turn: a
    run that was cut short has not shown that nothing else failed.

    Args:
        summary: of the run.
        code: pytest's exit code.
        fail_on, quarantine: as of `excused`.

    Raises:
        ValueError: ``fail_on`` holds something that is no label.
    """
    left = len(summary.members) - len(excused(summary, fail_on=fail_on, quarantine=quarantine))
    if code != FAILED or summary.run.interrupted or left or not summary.members:
        return code
    return PASSED

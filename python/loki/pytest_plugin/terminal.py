"""A test summary on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection

    from loki.decision.test_summary import TestSummary


class Writer(Protocol):
    """What is used of pytest's TerminalReporter."""

    def write_line(self, line: str, **markup: bool) -> None:
        """Write a line."""

    def section(self, title: str, sep: str = "=", **markup: bool) -> None:
        """Write a ruler with a title."""


def show(summary: TestSummary, writer: Writer, *, excused: Collection[str] = ()) -> None:
    """Write the summary of a run; nothing where nothing failed."""
    if not summary.causes:
        return
    failures = sum(len(cause.members) for cause in summary.causes)
    writer.section(f"loki: {failures} failures, {len(summary.causes)} causes")
    for cause in summary.causes:
        writer.write_line(f"{cause.label.name} {cause.kind} {cause.failure}")
        for test in cause.tests[:3]:
            writer.write_line(f"  {test}")

"""A test summary on GitHub: annotations of lines, and the summary of a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loki.pytest_plugin.report_file import markdown

if TYPE_CHECKING:
    from loki.decision.test_summary import TestSummary

MOST_ANNOTATIONS = 10
"""Errors a step that GitHub shows."""

LARGEST_SUMMARY = 1024 * 1024
"""Bytes of a step's summary; GitHub refuses a larger one whole."""


def annotate(summary: TestSummary) -> list[str]:
    """Workflow commands, one a line of standard output."""
    return [f"::error ::{cause.failure.message}" for cause in summary.causes][:MOST_ANNOTATIONS]


def step_summary(summary: TestSummary) -> str:
    """What is appended to the file that ``GITHUB_STEP_SUMMARY`` names."""
    return markdown(summary)

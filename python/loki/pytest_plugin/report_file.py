"""A test summary as a file: JSON for programs, Markdown for people, by its suffix."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loki.decision.test_summary import TestSummary

SUFFIXES = (".json", ".md", ".markdown")
"""What a report's name may end with."""


def render(summary: TestSummary, suffix: str) -> str:
    """The report in the form that a suffix asks for.

    Args:
        summary: what is reported.
        suffix: one of `SUFFIXES`.

    Raises:
        ValueError: another suffix.
    """
    if suffix.lower() not in SUFFIXES:
        raise ValueError(f"found a report that ends in {suffix!r}: expected {', '.join(SUFFIXES)}")
    if suffix.lower() == ".json":
        return json.dumps(summary.run.to_dict(), indent=1) + "\n"
    return markdown(summary)


def markdown(summary: TestSummary) -> str:
    """The report as Markdown."""
    return "\n".join(f"- {cause.failure}" for cause in summary.causes) + "\n"

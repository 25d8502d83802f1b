"""A test summary on GitHub: annotations of lines, and the summary of a step.

Workflow commands and their escaping:
https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands and
https://github.com/actions/toolkit/blob/main/packages/core/src/command.ts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from loki.pytest_plugin.report_file import sections
from loki.pytest_plugin.report_wording import affected, counted, message_of, messages_of, plain

if TYPE_CHECKING:
    from loki.decision.suites.suite_summary import Cause, SuiteSummary

MOST_ANNOTATIONS = 10
"""Errors of a step, and as many warnings, that GitHub shows. Source: its documentation, limits."""

TESTS = 5
"""Tests that an annotation names. Chosen."""

LARGEST_SUMMARY = 1024 * 1024
"""Bytes of a step's summary; of a larger one GitHub shows nothing. Source: its documentation."""

_PLACE = re.compile(r"^(?P<file>.+?)(?::(?P<line>\d+))?$")
_MILD = frozenset({"flaky", "infrastructure"})


def annotate(summary: SuiteSummary) -> list[str]:
    """Workflow commands, one a line of standard output: one for each cause, most tests first.

    What does not blame the code (flaky, infrastructure) is a warning.

    Args:
        summary: what the run showed.
    """
    return [_command(cause) for cause in summary.causes[:MOST_ANNOTATIONS]]


def step_summary(summary: SuiteSummary, room: int = LARGEST_SUMMARY) -> str:
    """What is appended to the file that ``GITHUB_STEP_SUMMARY`` names.

    Args:
        summary: what the run showed.
        room: bytes that it may take; what does not fit is left out, and said to be.
    """
    parts = sections(summary)
    kept: list[str] = []
    left = room - 100  # for the last line
    for place, part in enumerate(parts):
        left -= len(part.encode("utf-8", "backslashreplace")) + 2
        if left < 0:
            kept.append(
                f"… and {counted(len(parts) - place, 'more part')} for which there is no room"
            )
            break
        kept.append(part)
    return "\n\n".join(kept) + "\n"


def _command(cause: Cause) -> str:
    place = _PLACE.match(plain(cause.where))
    properties = {
        "file": place["file"] if place else "",
        "line": (place["line"] or "") if place else "",
        "title": f"{cause.label.name}: {plain(cause.kind)}, {affected(cause)}",
    }
    named = ",".join(f"{name}={_property(value)}" for name, value in properties.items() if value)
    level = "warning" if cause.label.name in _MILD else "error"
    tests = "\n".join(plain(test, 200) for test in cause.tests[:TESTS])
    more = f"\nand {len(cause.tests) - TESTS} more" if len(cause.tests) > TESTS else ""
    said = "\n".join([message_of(cause), *messages_of(cause), plain(cause.evidence)])
    text = f"{said}\n{plain(cause.todo)}\n\n{tests}{more}"
    return f"::{level} {named}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

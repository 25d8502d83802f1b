"""What terminal, reports and annotations say alike: words, safe and of bounded length."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from loki.base.control_characters import escape_control_characters
from loki.base.secret import mask_secrets
from loki.decision.suites.suite_labels import LABELS

if TYPE_CHECKING:
    from loki.decision.suites.suite_summary import Cause, SuiteSummary

MESSAGE = 300
"""Characters of a failure's message that are shown. Chosen."""


def plain(text: str, width: int | None = None) -> str:
    r"""A text from anywhere as one line: secrets masked, nothing in it that a terminal obeys.

    Args:
        text: the text.
        width: most characters; what is longer ends in "…".

    Example:
        >>> plain("a\n\x1b[2J b", 40), plain("password=hunter2")
        ('a \\x1b[2J b', 'password=<secret>')
    """
    line = escape_control_characters(" ".join(mask_secrets(text).split()))
    return line if width is None or len(line) <= width else line[: width - 1] + "…"


def ending(text: str, width: int) -> str:
    """The same, but of what is too long the end, where the name of a test is.

    Example:
        >>> ending("tests/unit/test_a.py::test_x", 13)
        '…a.py::test_x'
    """
    line = plain(text)
    if len(line) <= width:
        return line
    end = line[len(line) - width + 1 :]
    return f"…{end}"


def counted(count: int, name: str) -> str:
    """A number and what it counts.

    Example:
        >>> counted(1, "cause"), counted(1200, "failure")
        ('1 cause', '1,200 failures')
    """
    return f"{count:,} {name}{'' if count == 1 else 's'}"


def affected(cause: Cause) -> str:
    """How many tests, or files of which no test could run, a cause fails."""
    files = len({one.failing.test for one in cause.members if one.failing.phase == "collect"})
    tests = len(cause.tests) - files
    return " and ".join(counted(n, name) for n, name in ((tests, "test"), (files, "file")) if n)


def headline(summary: SuiteSummary) -> str:
    """How many failures, of how many causes, with which labels; "" where nothing failed."""
    if not summary.causes:
        return ""
    labels = Counter(cause.label.name for cause in summary.causes)
    kinds = ", ".join(f"{labels[name]} {name}" for name in LABELS if name in labels)
    failures = counted(len(summary.members), "failure")
    return f"{failures}, {counted(len(summary.causes), 'cause')}: {kinds}"


def message_of(cause: Cause) -> str:
    """What the failure says, with its type; or what its tests have in common, where they say differently."""
    if cause.shared:
        return plain(cause.shared, MESSAGE)
    failure = cause.failure
    said = failure.said
    return plain(said, MESSAGE)


def messages_of(cause: Cause) -> list[str]:
    """What the tests of a cause say differently, a few of it; none where one message stands for all."""
    return [plain(said, MESSAGE) for said in cause.messages]


def seen(cause: Cause) -> str:
    """Since when and how often a cause was seen; "" for the first time, or where its evidence says so."""
    if cause.times <= 1 or cause.label.name in {"broken", "recurring"}:
        return ""
    return f"seen in {counted(cause.times, 'run')} since {day(cause.since)}"


def changed(cause: Cause) -> str:
    """Which files changed since its tests last passed; "" where nobody knows, or too many did."""
    if not cause.changed:
        return ""
    return f"changed since commit {cause.passed_at[:7]}, where it last passed: {', '.join(cause.changed)}"


def day(moment: str) -> str:
    """The day and minute of a moment in ISO 8601 UTC.

    Example:
        >>> day("2026-04-04T10:15:30.000Z")
        '2026-04-04 10:15 UTC'
    """
    return f"{moment[:10]} {moment[11:16]} UTC" if moment else "an unknown time"

"""What Jupyter shows of a failure, and of a match with a pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loki.base.markup import html_card

if TYPE_CHECKING:
    from loki.recognition.failure import Failure
    from loki.recognition.pattern import Match

MOST_TESTS = 5
"""Failing tests that are named; the others are counted. Chosen, not measured."""


def failure_html(failure: Failure) -> str:
    """A failure: what failed, where, what kind that is, and the lines that say so."""
    match = failure.match
    tests = ", ".join(failure.tests[:MOST_TESTS])
    more = len(failure.tests) - MOST_TESTS
    said = failure.said
    return html_card(
        f"Failure: {failure.pattern_id}",
        [
            ("where", failure.place),
            ("tool", failure.tool),
            ("code", failure.error_code),
            ("tests", f"{tests}, and {more} more" if more > 0 else tests),
            ("confidence", f"{match.confidence:.2f}, {match.band}" if match else None),
            ("strategy", failure.strategy),
            ("exit code", failure.exit_code),
            ("signature", failure.signature),
            ("fingerprint", failure.fingerprint),
        ],
        said=said,
        quote=failure.excerpt if failure.excerpt.strip() != failure.message.strip() else "",
    )


def match_html(match: Match) -> str:
    """A match: the pattern, how sure it is, and the signals that hit."""
    return html_card(
        f"Match: {match.pattern}",
        [
            ("kind", match.kind if match.kind != match.pattern else None),
            ("confidence", f"{match.confidence:.2f}, {match.band}"),
            ("coverage", f"{match.coverage:.2f}"),
            ("strategy", match.strategy),
        ],
        quote="\n".join(match.signals),
    )

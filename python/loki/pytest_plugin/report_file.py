"""A test summary as a file: JSON for programs, Markdown for people, by its suffix.

The fields of the JSON: ``docs/design/tests.md``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from loki.base.markdown import cell, code, fence, inline
from loki.base.secret import mask_secrets, masked
from loki.decision.suites.suite_summary import to_dict
from loki.pytest_plugin.report_wording import (
    affected,
    changed,
    counted,
    headline,
    message_of,
    messages_of,
    plain,
    seen,
)

if TYPE_CHECKING:
    from loki.decision.suites.suite_summary import Cause, SuiteSummary

SUFFIXES = (".json", ".md", ".markdown")
"""What a report's name may end with."""

TESTS = 20
"""Tests of a cause that Markdown names. Chosen."""

EXCERPT = 2_000
"""Characters of an excerpt that Markdown quotes, its last lines. Chosen."""


def render(summary: SuiteSummary, suffix: str) -> str:
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
        return json.dumps(masked(to_dict(summary)), indent=2) + "\n"
    return markdown(summary)


def markdown(summary: SuiteSummary) -> str:
    """The report as Markdown, as GitHub shows it; texts from outside stay texts."""
    return "\n\n".join(sections(summary)) + "\n"


def sections(summary: SuiteSummary) -> list[str]:
    """The same in parts, most important first: who has little room leaves the last ones out."""
    if not summary.causes and not summary.rescued:
        passed = counted(summary.run.counts.get("passed", len(summary.run.passed)), "test")
        return [f"### loki: {passed} passed"]
    parts = []
    if summary.causes:
        parts += [f"### loki: {headline(summary)}", _table(summary)]
        parts += [_details(number, cause) for number, cause in enumerate(summary.causes, 1)]
    if summary.rescued:
        parts.append(
            f"### loki: {counted(len(summary.rescued), 'test')} passed only when tried again"
        )
        parts.append(
            "\n".join(
                f"- {code(plain(m.failing.test))}: {inline(plain(m.label.evidence))}"
                for m in summary.rescued[:TESTS]
            )
        )
    return parts


def _table(summary: SuiteSummary) -> str:
    rows = ["| | label | kind | where | tests | message |", "|--:|---|---|---|--:|---|"]
    for number, cause in enumerate(summary.causes, 1):
        cells = (
            str(number),
            f"**{cause.label.name}**",
            cell(inline(cause.kind)),
            cell(code(plain(cause.where))) if cause.where else "",
            str(len(cause.tests)),
            cell(code(plain(message_of(cause), 120))),
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _details(number: int, cause: Cause) -> str:
    often, files = seen(cause), changed(cause)
    said = f"{number}. {cause.label.name}: {message_of(cause)}"
    tests = [f"- {code(plain(test))}" for test in cause.tests[:TESTS]]
    if len(cause.tests) > TESTS:
        tests.append(f"- and {len(cause.tests) - TESTS} more")
    lines = [
        f"#### {inline(plain(said, 200))}",
        "",
        f"- **{cause.label.name}**: {inline(plain(cause.evidence))}",
        *([f"- {inline(often)}"] if often else []),
        *([f"- {inline(plain(files))}"] if files else []),
        *(f"- {code(plain(said))}" for said in messages_of(cause)),
        f"- **What to do**: {inline(plain(cause.todo))}",
        "",
        f"<details><summary>{affected(cause)}</summary>",
        "",
        *tests,
        "",
        fence(mask_secrets(cause.failure.excerpt)[-EXCERPT:]),
        "",
        "</details>",
    ]
    return "\n".join(lines)

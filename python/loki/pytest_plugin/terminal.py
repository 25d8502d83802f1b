"""A test summary on a terminal: a compact block for each root cause, nothing where nothing failed."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Protocol

from loki.base.text_format import amount
from loki.pytest_plugin.report_file import (
    affected,
    changed,
    ending,
    headline,
    message_of,
    messages_of,
    plain,
    seen,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from loki.decision.suites.suite_summary import Cause, LabelName, Member, SuiteSummary

CAUSES, TESTS, RESCUED = 20, 3, 5
"""Causes that are shown, tests of each, and tests that passed when tried again. Chosen."""

NARROWEST, WIDEST = 60, 110
"""Columns that are used, however many there are. Chosen: longer lines are hard to read."""

COLORS: dict[LabelName, dict[str, bool]] = {
    "new": {"red": True, "bold": True},
    "recurring": {"red": True},
    "broken": {"yellow": True},
    "flaky": {"purple": True},
    "infrastructure": {"cyan": True},
}

_INDENT = "   "


class Writer(Protocol):
    """What is used of pytest's ``TerminalReporter``, which alone knows whether colors are wanted."""

    def write_line(self, line: str, **markup: bool) -> None:
        """Write a line."""

    def write(self, content: str, **markup: bool) -> None:
        """Write part of a line."""

    def section(self, title: str, sep: str = "=", **markup: bool) -> None:
        """Write a ruler with a title."""


def show(
    summary: SuiteSummary, writer: Writer, *, excused: Collection[Member] = (), width: int = 0
) -> None:
    """Write the summary of a run.

    Args:
        summary: what the run showed.
        writer: where to.
        excused: failures that do not fail the run, as `loki.decision.suites.suite_summary.excused` says;
            where there are no others, one line says so.
        width: columns; 0: as the writer's terminal has.
    """
    columns = max(NARROWEST, min(WIDEST, width or _columns(writer)))
    excused_tests = {id(member) for member in excused}
    if summary.causes and len(excused_tests) == len(summary.members):
        tests = amount(len({m.failing.test for m in summary.members}), "test")
        names = ", ".join(dict.fromkeys(m.failing.test for m in summary.members))
        said = f"loki: {amount(len(summary.members), 'failure')} of {tests} excused: {names}"
        writer.write_line(plain(said, columns), yellow=True)
    elif summary.causes:
        writer.section(f"loki: {headline(summary)}")
        common = _common(summary)
        for number, cause in enumerate(summary.causes[:CAUSES], 1):
            quiet = all(id(member) in excused_tests for member in cause.members)
            files = "" if common else changed(cause)
            _block(number, cause, writer, columns, excused=quiet, files=files)
        if common:
            _wrapped(writer, f"All: {plain(common)}", columns, " ")
        if len(summary.causes) > CAUSES:
            more = amount(len(summary.causes) - CAUSES, "more cause")
            writer.write_line(f"and {more}; --loki-report=FILE has them all")
    _rescued(summary, writer, columns)


def _common(summary: SuiteSummary) -> str:
    """Which files changed, where that is the same of several causes: it is said once."""
    said = {changed(cause) for cause in summary.causes}
    return next(iter(said)) if len(summary.causes) > 1 and len(said) == 1 else ""


def _block(
    number: int, cause: Cause, writer: Writer, width: int, *, excused: bool, files: str
) -> None:
    writer.write(f"{number:>2} ")
    writer.write(cause.label.name, **COLORS[cause.label.name])
    tests = affected(cause)
    head = f" · {plain(cause.kind)} · {tests}{' · excused' if excused else ''}"
    where = ending(cause.where, max(20, width - len(head) - len(cause.label.name) - 8))
    writer.write_line(head + (f" · {where}" if where else ""))
    _wrapped(writer, message_of(cause), width, bold=True)
    for said in messages_of(cause):
        writer.write_line(f"{_INDENT}{plain(said, width - len(_INDENT) - 1)}")
    for test in cause.tests[:TESTS]:
        writer.write_line(f"{_INDENT}  {ending(test, width - len(_INDENT) - 2)}")
    if len(cause.tests) > TESTS:
        writer.write_line(f"{_INDENT}  … and {len(cause.tests) - TESTS} more")
    often = seen(cause)
    evidence = plain(cause.evidence)
    _wrapped(writer, f"{evidence}; {often}" if often else evidence, width, light=True)
    _wrapped(writer, plain(files), width)
    _wrapped(writer, f"→ {plain(cause.todo)}", width)


def _rescued(summary: SuiteSummary, writer: Writer, width: int) -> None:
    if not summary.rescued:
        return
    tests = amount(len(summary.rescued), "test")
    writer.write_line(f"loki: {tests} passed only when tried again", **COLORS["flaky"])
    for member in summary.rescued[:RESCUED]:
        test = ending(member.failing.test, width - len(_INDENT) - 3)
        _wrapped(writer, f"{test}: {plain(member.label.evidence)}", width, f"{_INDENT}  ")
    if len(summary.rescued) > RESCUED:
        writer.write_line(f"{_INDENT}  … and {len(summary.rescued) - RESCUED} more")


def _wrapped(writer: Writer, text: str, width: int, indent: str = _INDENT, **markup: bool) -> None:
    for line in textwrap.wrap(
        text, width - 1, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    ):
        writer.write_line(line, **markup)


def _columns(writer: Writer) -> int:
    terminal = getattr(writer, "_tw", None)  # pytest has no public name for it
    return int(getattr(terminal, "fullwidth", 0) or 80)

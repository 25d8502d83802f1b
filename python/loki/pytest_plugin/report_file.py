"""A test summary where others read it: JSON, Markdown, GitHub's pages and JUnit's XML.

The fields of the JSON: ``docs/design/tests.md``. Texts from outside stay texts in each of the forms.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

from loki.base.markup import cell, code, fence, inline
from loki.base.secret import mask_secrets, masked
from loki.base.text_format import amount, escape_control_characters
from loki.decision.suites.suite_summary import LABELS, Cause, SuiteSummary, to_dict
from loki.pytest_plugin.options import SUFFIXES

if TYPE_CHECKING:
    from loki.memory.suites.suite_history import SuiteFailure


# --- What terminal, reports and annotations say alike -------------------------------------------------

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


def affected(cause: Cause) -> str:
    """How many tests, or files of which no test could run, a cause fails."""
    files = len({one.failing.test for one in cause.members if one.failing.phase == "collect"})
    tests = len(cause.tests) - files
    return " and ".join(amount(n, name) for n, name in ((tests, "test"), (files, "file")) if n)


def headline(summary: SuiteSummary) -> str:
    """How many failures, of how many causes, with which labels; "" where nothing failed."""
    if not summary.causes:
        return ""
    labels = Counter(cause.label.name for cause in summary.causes)
    kinds = ", ".join(f"{labels[name]} {name}" for name in LABELS if name in labels)
    failures = amount(len(summary.members), "failure")
    return f"{failures}, {amount(len(summary.causes), 'cause')}: {kinds}"


def message_of(cause: Cause) -> str:
    """What the failure says, with its type; or what its tests have in common, where they say differently."""
    return plain(cause.shared or cause.failure.said, MESSAGE)


def messages_of(cause: Cause) -> list[str]:
    """What the tests of a cause say differently, a few of it; none where one message stands for all."""
    return [plain(said, MESSAGE) for said in cause.messages]


def seen(cause: Cause) -> str:
    """Since when and how often a cause was seen; "" for the first time, or where its evidence says so."""
    if cause.times <= 1 or cause.label.name in {"broken", "recurring"}:
        return ""
    return f"seen in {amount(cause.times, 'run')} since {day(cause.since)}"


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


# --- As a file: JSON for programs, Markdown for people ------------------------------------------------

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
        passed = amount(summary.run.counts.get("passed", len(summary.run.passed)), "test")
        return [f"### loki: {passed} passed"]
    parts = []
    if summary.causes:
        parts += [f"### loki: {headline(summary)}", _table(summary)]
        parts += [_details(number, cause) for number, cause in enumerate(summary.causes, 1)]
    if summary.rescued:
        tests = [
            f"- {code(plain(m.failing.test))}: {inline(plain(m.label.evidence))}"
            for m in summary.rescued[:TESTS]
        ]
        rescued = amount(len(summary.rescued), "test")
        parts += [f"### loki: {rescued} passed only when tried again", "\n".join(tests)]
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


# --- On GitHub: annotations of lines, and the summary of a step ---------------------------------------
# Workflow commands and their escaping:
# https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands and
# https://github.com/actions/toolkit/blob/main/packages/core/src/command.ts.

MOST_ANNOTATIONS = 10
"""Errors of a step, and as many warnings, that GitHub shows. Source: its documentation, limits."""

ANNOTATED_TESTS = 5
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
                f"… and {amount(len(parts) - place, 'more part')} for which there is no room"
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
    tests = "\n".join(plain(test, 200) for test in cause.tests[:ANNOTATED_TESTS])
    more = (
        f"\nand {len(cause.tests) - ANNOTATED_TESTS} more"
        if len(cause.tests) > ANNOTATED_TESTS
        else ""
    )
    said = "\n".join([message_of(cause), *messages_of(cause), plain(cause.evidence)])
    text = f"{said}\n{plain(cause.todo)}\n\n{tests}{more}"
    return f"::{level} {named}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


# --- In JUnit's XML -----------------------------------------------------------------------------------
# pytest writes a test's properties when it is torn down. What is not torn down (a file that could not be
# collected, a test whose worker died) has none, and no test has its label by then. So the elements are
# held, and completed before pytest writes the file: properties of each test, as pytest's own
# `record_property` makes them in every family. pytest has no public name for any of it: where it is made
# otherwise, the file is as pytest makes it.


class Junit:
    """Holds the elements of what fails; pytest calls its hooks.

    Args:
        xml: pytest's ``LogXML``, which collects the elements.
    """

    def __init__(self, xml: Any) -> None:
        self._xml = xml
        self._failing: SuiteFailure | None = None
        self._held: list[tuple[SuiteFailure, Any]] = []

    def failed(self, failing: SuiteFailure) -> None:
        """The report that is being told of is of this failure."""
        self._failing = failing

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, Any, Any]:
        """A phase of a test ended: which element is it in?"""
        return (yield from self._watch(report))

    @pytest.hookimpl(wrapper=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> Generator[None, Any, Any]:
        """A file was collected, or could not be."""
        return (yield from self._watch(report))

    def complete(self, summary: SuiteSummary) -> None:
        """Add what is known of each failure to its element.

        Args:
            summary: of the run.
        """
        from loki.pytest_plugin.failure_recognition import properties_of

        known = {
            id(member.failing): [("loki.label", member.label.name), ("loki.cause", str(number))]
            for number, cause in enumerate(summary.causes, 1)
            for member in cause.members
        }
        for failing, element in reversed(self._held):  # of several the last: so does pytest
            said = [*properties_of(failing), *known.get(id(failing), ())]
            with suppress(Exception):
                _add(element, said)

    def _forget(self) -> None:
        self._failing = None

    def _watch(self, report: pytest.TestReport | pytest.CollectReport) -> Generator[None, Any, Any]:
        self._forget()
        element: Any = None
        ordered: list[Any] = []
        if report.failed:
            with suppress(Exception):
                element = self._xml.node_reporter(report)
                ordered = self._xml.node_reporters_ordered
        before = len(ordered)
        result = yield
        if self._failing is not None and element is not None:
            # A test that failed is given a second element where tearing it down fails, too.
            own = ordered[-1] if len(ordered) > before else element
            self._held.append((self._failing, own))
        return result


def junit_of(config: pytest.Config) -> Junit | None:
    """What completes the run's XML, once the session has started; None where it writes none.

    Args:
        config: pytest's.
    """
    if not config.getoption("xmlpath", None):
        return None
    plugins = config.pluginmanager.get_plugins()
    return next((Junit(one) for one in plugins if type(one).__name__ == "LogXML"), None)


def _add(element: Any, properties: Iterable[tuple[str, object]]) -> None:
    if hasattr(element, "properties"):  # it makes its XML when the file is written
        said = {name for name, _ in element.properties}
        for name, value in properties:
            if name not in said:
                element.add_property(name, value)
        return
    made: ElementTree.Element = element.to_xml()
    node = made.find("properties")
    if node is None:
        node = ElementTree.Element("properties")
        made.insert(0, node)
    said = {str(one.get("name")) for one in node}
    for name, value in properties:
        if name not in said:
            ElementTree.SubElement(node, "property", name=name, value=str(value))


# --- What a run came to, written where others read it -------------------------------------------------

Warn = Callable[[str], None]


def publish(summary: SuiteSummary, paths: Iterable[Path], warn: Warn) -> None:
    """Write the reports, and what GitHub shows.

    Args:
        summary: what the run showed.
        paths: of the reports.
        warn: told of what could not be written.
    """
    write_reports(summary, paths, warn)
    tell_github(summary, os.environ, warn)


def write_reports(summary: SuiteSummary, paths: Iterable[Path], warn: Warn) -> None:
    """Write each report; one that cannot be written is a line of warning.

    Args:
        summary: what the run showed.
        paths: where to; the form is their suffix's.
        warn: told of what could not be written.
    """
    for path in paths:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(render(summary, path.suffix), "utf-8", "backslashreplace")
        except OSError as error:
            warn(f"could not write the report {path}: {error.strerror or error}")


def tell_github(summary: SuiteSummary, environment: Mapping[str, str], warn: Warn) -> None:
    """Annotations and a step summary, where this is a step of GitHub Actions and something failed.

    Args:
        summary: what the run showed.
        environment: the process's variables.
        warn: told of what could not be written.
    """
    if environment.get("GITHUB_ACTIONS") != "true" or not (summary.causes or summary.rescued):
        return
    for line in annotate(summary):
        sys.stdout.write(f"\n{line}" if line.startswith("::") else line)
    sys.stdout.write("\n")
    file = environment.get("GITHUB_STEP_SUMMARY")
    if not file:
        return
    try:
        with open(file, "a", encoding="utf-8", errors="backslashreplace") as step:
            step.write(step_summary(summary))
    except OSError as error:
        warn(f"could not write the step summary {file}: {error.strerror or error}")

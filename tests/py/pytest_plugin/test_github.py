"""On GitHub: annotations that nothing in a message can break out of, a step summary that fits."""

from __future__ import annotations

import re

from loki.decision.suites.suite_summary import Cause, Label, LabelName, Member, SuiteSummary
from loki.memory.suites.suite_history import SuiteFailure, SuiteRun
from loki.pytest_plugin.report_file import MOST_ANNOTATIONS, annotate, step_summary
from loki.recognition.failure import Failure

COMMAND = re.compile(r"::(error|warning) (?:file=[^,:\n]+,)?(?:line=\d+,)?title=[^,:\n]+::[^\r\n]*")


def cause(
    label: LabelName = "new", said: str = "x", where: str = "app/a.py:6", tests: int = 1
) -> Cause:
    failure = Failure.of(said, error_type="ValueError", excerpt=said)
    why = Label(label, "why")
    members = tuple(
        Member(SuiteFailure(f"t{n}::{said}", "call", "failed", failure), why) for n in range(tests)
    )
    return Cause(failure, why, where, "runtime-error", members, 1, "", "Look.")


def test_an_annotation() -> None:
    """File, line, title, and what a person has to know, in one line."""
    (line,) = annotate(SuiteSummary(SuiteRun(id="r"), (cause(tests=7),)))
    head, _, text = line.partition("::ValueError")
    assert head == "::error file=app/a.py,line=6,title=new%3A runtime-error%2C 7 tests"
    assert text.startswith(": x%0Awhy%0ALook.%0A%0At0::x%0A")
    assert text.endswith("%0Aand 2 more")


def test_hostile_texts() -> None:
    """No text ends its command or begins another."""
    said = "100%0A\n::stop-commands::x\r::error::,a=b: c"
    for where in ("a,b:c.py:3", "", "a\n::error::b.py:1"):
        (line,) = annotate(SuiteSummary(SuiteRun(id="r"), (cause(said=said, where=where),)))
        assert COMMAND.fullmatch(line), line
        assert "100%250A" in line


def test_what_blames_no_code_is_a_warning() -> None:
    """Flaky tests and outages are no errors of a line."""
    causes = tuple(cause(name) for name in ("broken", "flaky", "infrastructure"))
    lines = annotate(SuiteSummary(SuiteRun(id="r"), causes))
    assert [line[2:7] for line in lines] == ["error", "warni", "warni"]


def test_at_most_ten() -> None:
    """GitHub shows no more of a step."""
    lines = annotate(SuiteSummary(SuiteRun(id="r"), tuple(cause() for _ in range(30))))
    assert len(lines) == MOST_ANNOTATIONS


def test_step_summary_fits() -> None:
    """A larger one would not be shown at all: the last causes are left out, and said to be."""
    causes = tuple(cause(said="ä" * 1_000) for _ in range(400))
    whole = SuiteSummary(SuiteRun(id="r"), causes)
    text = step_summary(whole)
    assert len(text.encode()) <= 1024 * 1024
    small = step_summary(whole, room=200_000)
    assert len(small.encode()) <= 200_000
    assert "more parts for which there is no room" in small

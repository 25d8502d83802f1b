"""The summary on a terminal: compact, readable at 80 columns, nothing where nothing failed."""

from __future__ import annotations

import io
from dataclasses import replace

from _pytest._io import TerminalWriter

from loki.decision.suites.suite_summary import (
    Cause,
    Label,
    LabelName,
    Member,
    SuiteSummary,
    excused,
)
from loki.memory.suites.suite_history import SuiteFailure, SuiteRun
from loki.pytest_plugin.terminal import CAUSES, show
from loki.recognition.failure import Failure


class Reporter:
    """As much of pytest's reporter as is used, on its own writer."""

    def __init__(self, *, colors: bool = False) -> None:
        self.file = io.StringIO()
        self._tw = TerminalWriter(self.file)
        self._tw.hasmarkup = colors
        self._tw.fullwidth = 80

    def write_line(self, line: str, **markup: bool) -> None:
        self._tw.line(line, **markup)

    def write(self, content: str, **markup: bool) -> None:
        self._tw.write(content, **markup)

    def section(self, title: str, sep: str = "=", **markup: bool) -> None:
        self._tw.sep(sep, title, **markup)

    @property
    def text(self) -> str:
        return self.file.getvalue()


def cause(label: LabelName, said: str, *tests: str, where: str = "app/money.py:6") -> Cause:
    failure = Failure.of(said, error_type="ValueError", path="app/money.py", line=6)
    why = Label(label, "passed in the last 12 runs, 2026-04-04 10:15 UTC (commit 1a2b3c4)")
    members = tuple(Member(SuiteFailure(test, "call", "failed", failure), why) for test in tests)
    todo = f"Look at {where}; run it alone: pytest {tests[0]}"
    return Cause(failure, why, where, "runtime-error", members, 3, "2026-04-04T10:15:30.000Z", todo)


def summary(*causes: Cause, rescued: tuple[Member, ...] = ()) -> SuiteSummary:
    return SuiteSummary(SuiteRun(id="r"), causes, rescued)


def shown(what: SuiteSummary, **options: object) -> str:
    reporter = Reporter()
    show(what, reporter, **options)  # type: ignore[arg-type]
    return reporter.text


def test_a_green_run_says_nothing() -> None:
    """No failure, no word."""
    assert shown(summary()) == ""


def test_a_block() -> None:
    """What it is, where, which tests, why, what to do."""
    tests = [f"tests/test_money.py::test_{n}" for n in range(5)]
    assert shown(summary(cause("new", "negative amount: 3", *tests))).splitlines() == [
        "======================= loki: 5 failures, 1 cause: 1 new =======================",
        " 1 new · runtime-error · 5 tests · app/money.py:6",
        "   ValueError: negative amount: 3",
        "     tests/test_money.py::test_0",
        "     tests/test_money.py::test_1",
        "     tests/test_money.py::test_2",
        "     … and 2 more",
        "   passed in the last 12 runs, 2026-04-04 10:15 UTC (commit 1a2b3c4); seen in 3",
        "   runs since 2026-04-04 10:15 UTC",
        "   → Look at app/money.py:6; run it alone: pytest tests/test_money.py::test_0",
    ]


def test_eighty_columns() -> None:
    """No line is wider, however long names are; of a test's name the end stays."""
    test = "tests/" + "very_long_folder/" * 12 + "test_a.py::TestAll::test_it"
    text = shown(summary(cause("broken", "x" * 500, test, where="a/" * 90 + "b.py:1")))
    assert max(map(len, text.splitlines())) <= 80
    assert "::TestAll::test_it\n" in text
    assert "b.py:1\n" in text


def test_hostile_texts() -> None:
    """Nothing that a terminal obeys, and no secret."""
    text = shown(summary(cause("new", "\x1b[2J\r password=hunter2secret", "t[\x1b]0;x\x07\u202e]")))
    assert not {"\x1b", "\r", "\x07", "\u202e"} & set(text)
    assert "hunter2secret" not in text


def test_colors_are_the_writers() -> None:
    """Colors only where pytest's writer wants them."""
    reporter = Reporter(colors=True)
    show(summary(cause("new", "x", "t")), reporter)
    assert "\x1b[31m" in reporter.text
    assert "\x1b" not in shown(summary(cause("new", "x", "t")))


def test_only_excused_ones_failed() -> None:
    """One line, no blocks."""
    what = summary(cause("flaky", "x", "t1", "t2"))
    text = shown(what, excused=excused(what, quarantine=True))
    assert text == "loki: 2 failures of 2 tests excused: t1, t2\n"


def test_some_are_excused() -> None:
    """Those that are say so."""
    what = summary(cause("new", "x", "t1"), cause("flaky", "y", "t2"))
    text = shown(what, excused=excused(what, quarantine=True))
    assert " 2 flaky · runtime-error · 1 test · excused · app/money.py:6\n" in text
    assert text.count("excused") == 1


def test_files_that_changed() -> None:
    """Named at a cause, and once where it is the same of all."""
    one, two = (
        replace(cause("new", said, f"t{said}"), passed_at="1a2b3c4d", changed=("a.py", "b.py"))
        for said in "12"
    )
    line = "changed since commit 1a2b3c4, where it last passed: a.py, b.py\n"
    assert f"\n   {line}" in shown(summary(one, replace(two, changed=())))
    assert shown(summary(one, two)).endswith(f"\n All: {line}")
    assert shown(summary(one, two)).count(line) == 1


def test_many_causes() -> None:
    """A suite that fails as a whole does not fill the screen."""
    causes = [cause("new", f"x {n}", f"t{n}") for n in range(CAUSES + 5)]
    text = shown(summary(*causes))
    assert "and 5 more causes; --loki-report=FILE has them all\n" in text
    assert f" {CAUSES + 1} new" not in text


def test_rescued() -> None:
    """Tests that passed when tried again, also on a run that is green."""
    failing = SuiteFailure("t1", "call", "rerun", Failure.of("x"), rerun=1)
    text = shown(summary(rescued=(Member(failing, Label("flaky", "failed once in this run")),)))
    assert text.splitlines() == [
        "loki: 1 test passed only when tried again",
        "     t1: failed once in this run",
    ]

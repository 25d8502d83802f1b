"""A summary says for each root cause what it is, where, since when, and what to do."""

from __future__ import annotations

import json
from pathlib import Path

from loki.decision.suites.suite_summary import (
    Label,
    Member,
    cause_label,
    next_step,
    summarize,
    to_dict,
    where_of,
)
from loki.memory.suites.suite_history import SuiteFailure, SuiteHistory, SuiteRun
from loki.recognition.failure import Failure, Frame, recognize
from loki.stores.file_store import FileStore

WRONG = Failure.of("assert 1 == 2", error_type="AssertionError", path="tests/test_a.py", line=3)


def below(path: str, said: str = "no such currency") -> Failure:
    """A failure raised in line 9 of a file."""
    return Failure(
        message=said,
        normalized=said,
        error_type="ValueError",
        path=path,
        line=9,
        frames=(Frame("tests/test_a.py", 3, None, True), Frame(path, 9, None, True)),
    )


def run(name: str, *failing: tuple[str, Failure], passed: tuple[str, ...] = ()) -> SuiteRun:
    return SuiteRun(
        id=name,
        started_at=f"2026-04-{int(name):02}T10:15:30.000Z",
        passed=passed,
        failures=tuple(SuiteFailure(test, "call", "failed", failure) for test, failure in failing),
    )


def test_a_green_run() -> None:
    """Nothing failed, nothing to say."""
    summary = summarize(run("1", passed=("a",)), SuiteHistory())
    assert (summary.causes, summary.rescued, summary.members) == ((), (), ())


def test_causes(tmp_path: Path) -> None:
    """Most failures first; each cause with its tests, in an order that no worker changes."""
    money, page = below("app/money.py"), below("app/page.py")
    history = SuiteHistory(FileStore(tmp_path))
    history.keep(run("1", ("b", money), passed=("a", "c")))
    now = run("2", ("c", page), ("b", money), ("a", money))
    history.keep(now)  # it is not its own past
    first, second = summarize(now, history).causes
    assert (first.tests, second.tests) == (("a", "b"), ("c",))
    assert (first.where, second.where) == ("app/money.py:9", "app/page.py:9")
    assert (first.times, first.since) == (2, "2026-04-01T10:15:30.000Z")
    assert (second.times, second.since) == (1, "2026-04-02T10:15:30.000Z")
    assert first.label.name == "new"  # for a, which passed before
    assert first.evidence == (
        "1 of 2 tests: passed in the last run, 2026-04-01 10:15 UTC (the others: 1 broken)"
    )
    assert "app/money.py:9" in first.todo


def test_label_of_a_cause() -> None:
    """What is new does not hide behind what is known; how many say the same is said."""

    def members(*labels: tuple[str, str]) -> list[Member]:
        failing = SuiteFailure("t", "call", "failed", WRONG)
        return [Member(failing, Label(*label)) for label in labels]  # type: ignore[arg-type]

    assert cause_label(members(("flaky", "x"))) == Label("flaky", "x")
    assert cause_label(members(("flaky", "x"), ("flaky", "x"))) == Label("flaky", "x")
    assert cause_label(members(("broken", "x"), ("broken", "y"), ("broken", "y"))) == Label(
        "broken", "2 of 3 tests: y"
    )
    assert cause_label(members(("broken", "x"), ("new", "y"))).name == "new"
    assert cause_label(members(("broken", "x"), ("recurring", "y"))).name == "recurring"
    few, many = ("broken", "x"), ("flaky", "y")
    assert cause_label(members(few, many, many)) == Label(
        "flaky", "2 of 3 tests: y (the others: 1 broken)"
    )
    assert cause_label(members(few, few, many)).name == "broken"


def test_rescued() -> None:
    """A test that passed when tried again is told of once, and is no failure."""
    tries = tuple(SuiteFailure("a", "call", "rerun", WRONG, rerun=n) for n in (1, 2))
    summary = summarize(SuiteRun(id="1", passed=("a",), reruns=tries), SuiteHistory())
    assert [member.failing.test for member in summary.rescued] == ["a"]
    assert "failed twice in this run" in summary.rescued[0].label.evidence
    assert summary.causes == ()


def test_where_to_look() -> None:
    """The project's own code, else the test."""
    assert where_of(below("app/money.py")) == "app/money.py:9"
    assert where_of(WRONG) == "tests/test_a.py:3"
    assert where_of(Failure.of("it broke")) == ""


def test_what_to_do() -> None:
    """Every label and kind gets one sentence that can be acted on."""
    assert next_step(WRONG, "t[a b]", "new") == (
        "Look at tests/test_a.py:3; run it alone: pytest 't[a b]'"
    )
    assert "Run it again" in next_step(WRONG, "t", "infrastructure")
    assert "varies" in next_step(WRONG, "t", "flaky")
    missing = recognize("E   ModuleNotFoundError: No module named 'x'", command="pytest")
    assert "whether x is installed" in next_step(missing, "t", "new")
    nameless = recognize("E   ImportError: cannot import name 'x' from 'y'", command="pytest")
    assert "{" not in next_step(nameless, "t", "new")
    for text in ("E   KeyError: 'PORT'\n\n<frozen os>:685: KeyError", "E   KeyError: 'MY_PORT'"):
        asked = next_step(recognize(text, command="pytest"), "t", "new")
        assert asked.replace("MY_", "") == "Set the environment variable PORT where the check runs."
    assert next_step(Failure.of("it broke"), "t", "new") == "Run it alone: pytest t"


def test_as_json() -> None:
    """All of it is JSON."""
    summary = summarize(run("1", ("a", WRONG)), SuiteHistory())
    data = json.loads(json.dumps(to_dict(summary)))
    assert data["causes"][0]["tests"][0]["label"] == "new"
    assert data["run"]["id"] == "1"

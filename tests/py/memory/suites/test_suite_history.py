"""The history of tests is bounded, shared by processes, and survives what is broken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loki.base.error import StoreError
from loki.memory.suites import suite_history as history_room
from loki.memory.suites import suite_history as past_room
from loki.memory.suites.suite_history import (
    DOCUMENT,
    LOG,
    MOST,
    SuiteFailure,
    SuiteHistory,
    SuitePastRuns,
    SuiteRun,
)
from loki.recognition.failure import Failure
from loki.stores.file_store import FileStore, ForgivingStore
from loki.stores.memory_store import MemoryStore

WRONG = Failure.of("assert 1 == 2", error_type="AssertionError", path="test_a.py", line=3)


def run(
    name: str, passed: tuple[str, ...] = (), *failed: str, failure: Failure = WRONG
) -> SuiteRun:
    return SuiteRun(
        id=name,
        started_at=f"2026-04-04T10:15:{int(name) % 60:02}.000Z",
        passed=passed,
        failures=tuple(SuiteFailure(test, "call", "failed", failure) for test in failed),
    )


def letters(history: SuiteHistory, test: str) -> str:
    return "".join(one.letter for one in history.earlier(test, WRONG).runs)


def test_is_kept(tmp_path: Path) -> None:
    """What a run showed is there for the next process."""
    history = SuiteHistory(FileStore(tmp_path))
    history.keep(run("1", ("a", "b")))
    history.keep(run("2", ("b",), "a"))
    history.keep(run("3", ("a",)))
    again = SuiteHistory(FileStore(tmp_path))
    assert [letters(again, "a"), letters(again, "b"), letters(again, "c")] == ["pfp", "pp", ""]
    known = again.earlier("a", WRONG)
    assert (known.times, known.first) == (1, "2026-04-04T10:15:02.000Z")
    assert [one.is_same for one in known.runs] == [False, True, False]


@pytest.mark.parametrize(
    ("file", "ran", "row"),
    [
        ("a/test_a.py", "a/test_a.py::test_x", "fp"),
        ("a/test_a.py", "a/test_b.py::test_x", "f"),
        ("a/conftest.py", "a/b/test_b.py::test_x", "fp"),
        ("a/conftest.py", "ab/test_b.py::test_x", "f"),
        ("conftest.py", "a/test_a.py::test_x", "fp"),
        ("conftest.py", "a/test_a.py", "f"),
        ("a", "a/test_a.py::test_x", "fp"),
        ("a", "ab/test_b.py::test_x", "f"),
    ],
)
def test_a_file_that_could_not_be_collected_was(
    tmp_path: Path, file: str, ran: str, row: str
) -> None:
    """It passes where a test of its ran, whatever became of it; else nobody knows."""
    history = SuiteHistory(FileStore(tmp_path))
    history.keep(run("1", (), file))
    history.keep(run("2", (), ran))
    assert letters(history, file) == row


def test_a_run_is_kept_once(tmp_path: Path) -> None:
    """The same run twice is one; a run can be asked for without itself."""
    history = SuiteHistory(FileStore(tmp_path))
    history.keep(run("1", (), "a"))
    history.keep(run("1", (), "a"))
    assert letters(history, "a") == "f"
    assert history.earlier("a", WRONG, before="1") == past_room.NO_PAST_RUNS


def test_without_a_store() -> None:
    """Nothing is known, nothing is kept, nothing breaks."""
    history = SuiteHistory()
    history.keep(run("1", ("a",)))
    assert history.earlier("a", WRONG) == past_room.NO_PAST_RUNS


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"version": 1}',
        '{"version": "x"}',
        '{"version":1,"runs":[],"rows":["p"],"tests":{},"said":[],"shown":{}}',
        '{"version":1,"runs":[],"rows":[],"tests":{"a":3},"said":[],"shown":{}}',
        '{"version":1,"runs":[],"rows":[],"tests":{},"said":[],"shown":{"a":[[0,"","",1,[]]]}}',
        '{"version":1,"runs":[[1]],"rows":[],"tests":{},"said":[],"shown":{}}',
        "\ufffd" * 100,
        "[" * 100_000,
    ],
)
def test_what_is_broken_costs_labels_only(tmp_path: Path, text: str) -> None:
    """A damaged document is left behind: nothing is known, and the next run is remembered."""
    (tmp_path / "state").mkdir()
    (tmp_path / DOCUMENT).write_text(text, "utf-8")
    history = SuiteHistory(FileStore(tmp_path))
    assert history.earlier("a", WRONG).runs == ()
    history.keep(run("1", ("a",)))
    assert letters(SuiteHistory(FileStore(tmp_path)), "a") == "p"


def test_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    """A newer loki's document is not overwritten by this one."""
    (tmp_path / "state").mkdir()
    text = '{"version": 99, "moon": 1}'
    (tmp_path / DOCUMENT).write_text(text, "utf-8")
    SuiteHistory(FileStore(tmp_path)).keep(run("1", ("a",)))
    assert (tmp_path / DOCUMENT).read_text("utf-8") == text


def test_torn_lines_of_the_log(tmp_path: Path) -> None:
    """A line that a crash tore spoils no other, and no label."""
    store = FileStore(tmp_path)
    SuiteHistory(store).keep(run("1", ("a",)))
    with (tmp_path / LOG).open("a") as file:
        file.write('{"id": "torn')
    SuiteHistory(store).keep(run("2", ("a",)))
    assert [record["id"] for record in store.records(LOG)] == ["1", "2"]
    assert SuiteRun.from_dict(store.records(LOG)[1]).id == "2"


def test_secrets_are_masked(tmp_path: Path) -> None:
    """Neither names of tests nor messages carry a secret to the disk; the test is still known."""
    store = ForgivingStore(FileStore(tmp_path))
    secret = "hunter2secret"
    test = f"test_a.py::test_x[password={secret}]"
    failure = Failure.of(f"no login with password={secret}", error_type="ValueError")
    SuiteHistory(store).keep(run("1", (), test, failure=failure))
    SuiteHistory(store).keep(run("2", (test,)))
    kept = (tmp_path / DOCUMENT).read_text("utf-8") + (tmp_path / LOG).read_text("utf-8")
    assert secret not in kept
    known = SuiteHistory(store).earlier(test, failure)
    assert ("".join(one.letter for one in known.runs), known.times) == ("fp", 1)


def test_runs_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Old runs go; runs of single tests push out none of the whole ones."""
    monkeypatch.setattr(past_room, "PAST_RUNS", 5)
    monkeypatch.setattr(past_room, "AT_ONCE", 1)
    past = SuitePastRuns()
    tests = tuple("abcdef")
    past.add(run("0", tests[1:], "a"))
    for number in range(1, 40):
        past.add(run(str(number), tests if number % 2 else ("b",)))
    assert len(past.runs) == 10
    assert [past.rows[test].count("p") for test in "abc"] == [5, 10, 5]
    assert past.earlier("a", WRONG).times == 1
    assert [one.letter for one in past.earlier("a", WRONG).runs] == ["p"] * 5


def test_what_is_gone_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that no remembered run has run is forgotten, with what it failed of."""
    monkeypatch.setattr(past_room, "PAST_RUNS", 3)
    monkeypatch.setattr(past_room, "AT_ONCE", 1)
    past = SuitePastRuns()
    past.add(run("0", ("a", "b"), "old"))
    for number in range(1, 6):
        past.add(run(str(number), ("a", "b", "new")))
    assert sorted(past.rows) == ["a", "b", "new"]
    assert (past.shown, past.said) == ({}, [])


def test_names_made_up_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests whose names change with each run do not grow without end: the oldest go."""
    monkeypatch.setattr(past_room, "TESTS", 4)
    past = SuitePastRuns()
    for number in range(6):
        past.add(run(str(number), ("a", f"x{number}-1", f"x{number}-2")))
    assert len(past.rows) == 4
    assert {"a", "x5-1", "x5-2"} <= set(past.rows)


def test_different_failures_of_a_test_are_bounded() -> None:
    """A test that fails differently each time is remembered with its last ones."""
    past = SuitePastRuns()
    for number in range(30):
        failure = Failure.of(f"broke {chr(97 + number % 26) * 5}{number // 26}", error_type="E")
        past.add(run(str(number), (), "a", failure=failure))
    assert len(past.shown["a"]) == past_room.SHOWN_RUNS
    assert len(past.said) == past_room.SHOWN_RUNS


def test_comes_back_from_text() -> None:
    """What is written is read as it was."""
    past = SuitePastRuns()
    past.add(run("1", ("b",), "a"))
    past.add(run("2", ("a", "c")))
    assert SuitePastRuns.loads(past.dumps()) == past


def test_tests_that_came_later() -> None:
    """A new test's letters belong to the runs that ran it."""
    past = SuitePastRuns()
    past.add(run("1", ("a",)))
    past.add(run("2", ("a", "b")))
    past.add(run("3", ("b",)))
    assert [one.run.id for one in past.earlier("b", WRONG).runs] == ["2", "3"]
    assert [one.run.id for one in past.earlier("a", WRONG).runs] == ["1", "2"]


def test_the_log_of_a_run_is_bounded(tmp_path: Path) -> None:
    """A suite that fails as a whole leaves a record of bearable size, which says what it left out."""
    store = FileStore(tmp_path)
    failure = Failure.of("no", error_type="E", excerpt="x" * 4_000)
    tests = [f"t{number}" for number in range(MOST + 10)]
    SuiteHistory(store).keep(run("1", (), *tests, failure=failure))
    (record,) = store.records(LOG)
    assert record["left_out"] == 10
    assert len(json.dumps(record)) < 2_000_000
    assert len(SuiteRun.from_dict(record).failures) == MOST


def test_the_log_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest runs go, by number and by size; what is kept is as it was."""
    monkeypatch.setattr(history_room, "RUNS", 30)
    store = ForgivingStore(FileStore(tmp_path))
    history = SuiteHistory(store)
    for number in range(1, 65):
        history.keep(run(str(number), ("a\u2028b",), "c"))
    ids = [record["id"] for record in store.records(LOG)]
    assert ids == [str(number) for number in range(31, 65)]
    monkeypatch.setattr(history_room, "TEXT", 5 * len((tmp_path / LOG).read_text("utf-8")) // 34)
    for number in range(65, 81):
        history.keep(run(str(number), (), "c"))
    assert 3 <= len(store.records(LOG)) <= 5
    assert store.records(LOG)[-1]["id"] == "80"


class Failing(MemoryStore):
    """A store whose first reading fails."""

    fails = True

    def read(self, document: str) -> str | None:
        if self.fails:
            self.fails = False
            raise StoreError("cannot be read just now")
        return super().read(document)


def test_what_could_not_be_read_is_read_at_the_next_question() -> None:
    store = Failing()
    past = SuitePastRuns()
    past.add(run("1", ("a",)))
    store.write(DOCUMENT, past.dumps())
    history = SuiteHistory(store)
    with pytest.raises(StoreError, match="just now"):
        assert history.past
    assert [one.id for one in history.past.runs] == ["1"]

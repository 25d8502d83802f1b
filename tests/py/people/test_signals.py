"""Signals on disk: given, pending, consumed once; those of another run never act on this one."""

from __future__ import annotations

import json
import logging
import os
from datetime import timedelta
from pathlib import Path

import pytest

from loki.base.error import UsageError
from loki.base.time import isoformat
from loki.memory.run_close import LOG
from loki.memory.store import Rewrite, Store
from loki.people.signal import MAX_SIZE
from loki.people.signals import Signals
from loki.stores.file_store import FileStore, ForgivingStore
from loki.testing import ManualClock


@pytest.fixture(params=["files", "forgiving"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    files = FileStore(tmp_path)
    return files if request.param == "files" else ForgivingStore(files)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def signals(store: Store, clock: ManualClock) -> Signals:
    return Signals(store, clock, branch="main")


def labels(signals: Signals) -> list[str]:
    return [one.label for one in signals.pending()]


def end_run(store: Store, clock: ManualClock, branch: str) -> None:
    store.append(LOG, {"branch": branch, "at": isoformat(clock.now())})
    clock.advance("1s")


def test_a_signal_is_given_waits_and_is_gone_when_it_is_consumed(
    signals: Signals, clock: ManualClock, tmp_path: Path
) -> None:
    given = signals.emit("MERGE_REQUESTED", "feature/login", {"task_id": "t"})
    file = tmp_path / "signals/MERGE_REQUESTED_feature%2Flogin"
    said = json.loads(file.read_text())
    assert said == {
        "task_id": "t",
        "timestamp": isoformat(clock.now()),
        "run": "main",
        "branch": "feature/login",
    }
    assert file.stat().st_mode & 0o777 == 0o600
    assert labels(signals) == ["MERGE_REQUESTED feature/login"]
    assert signals.consume(given)
    assert not file.exists()
    assert labels(signals) == []
    assert signals.consume(given), "a second time it is gone already"


def test_what_other_programs_write_is_pending(signals: Signals, tmp_path: Path) -> None:
    folder = tmp_path / "signals"
    folder.mkdir()
    (folder / "CONTEXT_CLEAR_REQUESTED").touch()
    (folder / "FEATURE_READY_auth").write_bytes(b"")
    (folder / "DOCS_NEEDED").write_text("the API changed")
    (folder / "notes.txt").write_text("mine")
    assert sorted(labels(signals)) == [
        "CONTEXT_CLEAR_REQUESTED",
        "DOCS_NEEDED",
        "FEATURE_READY auth",
    ]
    assert signals.foreign() == ["signals/notes.txt"]


def test_a_signal_given_anew_while_it_is_handled_waits_again(
    signals: Signals, clock: ManualClock, tmp_path: Path
) -> None:
    first = signals.emit("FEATURE_READY", "auth")
    clock.advance("1s")
    signals.emit("FEATURE_READY", "auth")
    assert not signals.consume(first)
    assert labels(signals) == ["FEATURE_READY auth"]
    bare = tmp_path / "signals/CONTEXT_CLEAR_REQUESTED"
    bare.touch()
    (seen,) = signals.pending("CONTEXT_CLEAR_REQUESTED")
    os.utime(bare, (1e9, 1e9))
    assert not signals.consume(seen)
    assert bare.exists()


def test_requests_wait_behind_the_first_and_move_up(
    signals: Signals, clock: ManualClock, tmp_path: Path
) -> None:
    for reason in ("one", "two", "three"):
        signals.emit("HUMAN_REVIEW_NEEDED", "", {"reason": reason, "id": reason})
        clock.advance("1s")
    signals.emit("HUMAN_REVIEW_NEEDED", "", {"reason": "two", "id": "two"})  # said again
    first = tmp_path / "signals/HUMAN_REVIEW_NEEDED"
    for reason, left in (("one", 2), ("two", 1), ("three", 0)):
        assert json.loads(first.read_text())["reason"] == reason
        (head, *rest) = signals.pending()
        assert (head.id, len(rest)) == (reason, left)
        assert signals.consume(head)
    assert not first.exists()
    assert not (tmp_path / "signals/HUMAN_REVIEW_NEEDED.d").exists()


def test_one_that_waits_can_be_consumed_before_the_first(signals: Signals) -> None:
    for reason in ("one", "two", "three"):
        signals.emit("HUMAN_REVIEW_NEEDED", "", {"reason": reason, "id": reason})
    second = next(one for one in signals.all() if one.id == "two")
    assert signals.consume(second)
    assert sorted(one.id for one in signals.pending()) == ["one", "three"]


def test_one_that_was_killed_while_moving_up_stands_once(signals: Signals, tmp_path: Path) -> None:
    first, _ = (
        signals.emit("HUMAN_REVIEW_NEEDED", "", {"reason": reason, "id": reason})
        for reason in ("one", "two")
    )
    waiting = tmp_path / "signals/HUMAN_REVIEW_NEEDED.d/two.json"
    signals.consume(first)
    waiting.parent.mkdir()
    waiting.write_text((tmp_path / "signals/HUMAN_REVIEW_NEEDED").read_text())
    (only,) = signals.pending()
    assert signals.consume(only)
    assert signals.pending() == []
    assert not waiting.exists()


class Shared(FileStore):
    """A store whose second signal somebody else consumes while it moves up."""

    armed = False

    def update(self, document: str, change: Rewrite, *, durable: bool = True) -> None:
        waiting = self.folder / "signals/DOCS_NEEDED.d/two.json"
        if self.armed and document == "signals/DOCS_NEEDED" and self.read(document) is None:
            waiting.unlink(missing_ok=True)
        super().update(document, change, durable=durable)


def test_what_is_consumed_while_it_moves_up_does_not_come_back(
    tmp_path: Path, clock: ManualClock
) -> None:
    store = Shared(tmp_path)
    signals = Signals(store, clock)
    first, _ = (signals.emit("DOCS_NEEDED", "", {"id": id_}) for id_ in ("one", "two"))
    store.armed = True
    assert signals.consume(first)
    assert signals.pending() == []


def test_the_drift_log_stays_and_each_line_is_handled_once(
    signals: Signals, tmp_path: Path
) -> None:
    for n in range(3):
        signals.emit("DRIFT_DETECTED", "", {"task_id": "t", "detected_drift": f"d{n}"})
    first, second, third = signals.pending()
    signals.consume(second)
    assert [one.string_field("detected_drift") for one in signals.pending()] == ["d2"]
    assert [one.standing for one in signals.all()] == ["handled", "handled", "pending"]
    signals.consume(third)
    signals.consume(first)
    assert signals.pending() == []
    assert len((tmp_path / "signals/DRIFT_DETECTED").read_text().splitlines()) == 3
    (tmp_path / "signals/DRIFT_DETECTED").write_text('{"detected_drift": "begun anew"}\n')
    assert [one.string_field("detected_drift") for one in signals.pending()] == ["begun anew"]


def test_a_signal_of_a_run_that_is_over_is_ignored_told_once_and_removed(
    signals: Signals,
    store: Store,
    clock: ManualClock,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    signals.emit("FEATURE_READY", "old")
    bare = tmp_path / "signals/PLAN_APPROVED"
    bare.touch()
    before = clock.now() - timedelta(hours=1)
    os.utime(bare, (before.timestamp(), before.timestamp()))
    signals.emit("HUMAN_APPROVED", "", {"request_id": "r", "by": "ann"})
    clock.advance("1s")
    end_run(store, clock, "main")
    signals.emit("FEATURE_READY", "new")
    assert labels(signals) == ["HUMAN_APPROVED", "FEATURE_READY new"]
    caplog.set_level(logging.INFO, "loki")
    for _ in range(2):
        signals.sweep()
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert (
        "signal FEATURE_READY old ignored and removed: of the run on main that ended at" in told[1]
    )
    assert sorted(os.listdir(tmp_path / "signals")) == ["FEATURE_READY_new", "HUMAN_APPROVED"]


def test_a_signal_of_another_branch_waits_for_it(store: Store, clock: ManualClock) -> None:
    here, there = Signals(store, clock, branch="main"), Signals(store, clock, branch="feature/x")
    there.emit("FEATURE_READY", "x")
    there.emit("MERGE_REQUESTED", "feature/x")
    assert labels(here) == ["MERGE_REQUESTED feature/x"]
    assert labels(there) == ["FEATURE_READY x", "MERGE_REQUESTED feature/x"]
    assert [one.standing for one in here.all("FEATURE_READY")] == ["elsewhere"]
    clock.advance("1s")
    end_run(store, clock, "feature/x")
    assert [one.standing for one in here.all()] == ["stale", "stale"]


def test_the_end_of_a_run_clears_its_signals_and_no_other(store: Store, clock: ManualClock) -> None:
    here, there = Signals(store, clock, branch="main"), Signals(store, clock, branch="feature/x")
    there.emit("FEATURE_READY", "x")
    there.emit("MERGE_REQUESTED", "feature/x")
    there.emit("HUMAN_APPROVED", "", {"request_id": "r", "by": "ann"})
    here.emit("FEATURE_READY", "y")
    assert len(here.clear_run("feature/x")) == 2
    assert sorted(labels(here)) == ["FEATURE_READY y", "HUMAN_APPROVED"]


def test_damaged_signals_are_told_once_and_left(
    signals: Signals, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "signals/HUMAN_APPROVED"
    file.parent.mkdir()
    file.write_bytes(b"\xff\xfe yes")
    assert signals.pending() == []
    for _ in range(2):
        signals.sweep()
    (line,) = [record.getMessage() for record in caplog.records]
    assert line == ".loki/signals/HUMAN_APPROVED: left as it is: is no JSON object"
    assert file.exists()


def test_secrets_are_masked_and_size_is_bounded(signals: Signals, tmp_path: Path) -> None:
    signals.emit("DOCS_NEEDED", "", {"description": "password=hunter2"})
    assert "hunter2" not in (tmp_path / "signals/DOCS_NEEDED").read_text()
    with pytest.raises(UsageError, match="characters"):
        signals.emit("DOCS_NEEDED", "", {"description": "x" * MAX_SIZE})
    with pytest.raises(UsageError, match="severity"):
        signals.emit("DRIFT_DETECTED", "", {"detected_drift": "x", "severity": "odd"})


def test_an_empty_signal_goes_although_its_time_is_finer_than_microseconds(
    signals: Signals, tmp_path: Path
) -> None:
    bare = tmp_path / "signals/CONTEXT_CLEAR_REQUESTED"
    bare.parent.mkdir(parents=True, exist_ok=True)
    bare.write_text("")
    os.utime(bare, ns=(1_795_307_297_196_020_123, 1_795_307_297_196_020_123))
    (given,) = signals.pending()
    assert signals.consume(given)
    assert not bare.exists()


def test_two_who_consume_the_same_signal_lose_none_that_waits_behind_it(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One lets the next stand in its place just before the other would: it stays there."""
    one, other = Signals(store, clock), Signals(store, clock)
    first = one.emit("HUMAN_REVIEW_NEEDED", data={"id": "r1", "reason": "a", "question": "which?"})
    clock.advance("1s")
    one.emit("HUMAN_REVIEW_NEEDED", data={"id": "r2", "reason": "b", "question": "which?"})
    expect = other._seen.expect

    def meanwhile(file: str, text: str) -> None:
        monkeypatch.undo()
        one.consume(first)
        expect(file, text)

    monkeypatch.setattr(other._seen, "expect", meanwhile)
    other.consume(first)
    assert [signal.string_field("reason") for signal in one.all()] == ["b"]


def test_what_is_consumed_at_once_was_given_all_the_same(
    tmp_path: Path, clock: ManualClock
) -> None:
    """A dispatcher is quicker than the look at what was written."""

    class Quick(FileStore):
        def write(self, document: str, text: str) -> None:
            super().write(document, text)
            super().update(document, lambda _: None)

        def update(self, document: str, change: Rewrite, *, durable: bool = True) -> None:
            super().update(document, change, durable=durable)
            super().update(document, lambda _: None)

    signals = Signals(Quick(tmp_path), clock)
    for kind, name in (("FEATURE_READY", "login"), ("HUMAN_REVIEW_NEEDED", "")):
        assert signals.emit(kind, name, {"reason": "x"}).kind == kind


def test_one_that_queues_behind_another_is_known_by_one_id(
    signals: Signals, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It was taken for one that another program had written over: it waited twice."""
    first = signals.emit("HUMAN_REVIEW_NEEDED", data={"reason": "a"})
    second = signals.emit("HUMAN_REVIEW_NEEDED", data={"reason": "b"})
    assert [one.id for one in signals.all()] == [first.id, second.id]
    behind = tmp_path / "signals/HUMAN_REVIEW_NEEDED.d"
    assert [one.name for one in behind.iterdir() if one.suffix == ".json"] == [f"{second.id}.json"]
    assert not caplog.records

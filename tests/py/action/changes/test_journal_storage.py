"""What the journal keeps: read again by others, whole or not at all, also after a torn line."""

import json
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki.action.changes.journal_storage import (
    LARGE,
    DiskJournalStorage,
    JournalStorage,
    MemoryJournalStorage,
    Record,
    Step,
)
from loki.action.changes.safe_path import PathState


def name_of(data: bytes) -> str:
    return sha256(data).hexdigest()


def record(number: int, data: bytes = b"x", stage: str = "applying") -> Record:
    step = Step("a.py", None, PathState(name_of(data), 0o644))
    return Record(number, "change", stage, (step,))  # type: ignore[arg-type]


@pytest.fixture(params=["disk", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> JournalStorage:
    make: dict[str, Callable[[], JournalStorage]] = {
        "disk": lambda: DiskJournalStorage(tmp_path / "undo"),
        "memory": MemoryJournalStorage,
    }
    return make[request.param]()


def test_what_is_saved_is_there(storage: JournalStorage) -> None:
    """On disk and in memory alike."""
    with storage.lock():
        assert storage.next_number() == 1
        storage.save(record(1), {name_of(b"x"): b"x"})
        assert storage.next_number() == 2
        assert storage.has(name_of(b"x"), 1)
        assert not storage.has(name_of(b"x"), 2)
        assert storage.get(name_of(b"x")) == b"x"
        assert storage.get(name_of(b"y")) is None
        assert storage.put([b"y", b"x"]) == [name_of(b"y"), name_of(b"x")]
        assert storage.get(name_of(b"y")) == b"y"
        storage.reach(1, "applied")
        storage.save(record(2, stage="running"))
        records, damaged = storage.load()
    assert [(r.number, r.stage) for r in records] == [(1, "applied"), (2, "running")]
    assert damaged == []


@given(data=st.binary(max_size=80))
def test_any_bytes_come_back(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """Text as text, anything else as base64."""
    folder = tmp_path_factory.mktemp("undo")
    storage = DiskJournalStorage(folder)
    with storage.lock():
        storage.save(record(1, data), {name_of(data): data})
    assert DiskJournalStorage(folder).get(name_of(data)) == data
    assert (folder / "journal.jsonl").read_bytes().count(b"\n") == 1


def test_a_large_content_is_a_file_of_its_own(tmp_path: Path) -> None:
    """The log stays short."""
    storage, data = DiskJournalStorage(tmp_path / "undo"), b"x" * LARGE
    with storage.lock():
        storage.save(record(1, data), {name_of(data): data})
    assert (tmp_path / "undo/journal.jsonl").stat().st_size < 1000
    assert DiskJournalStorage(tmp_path / "undo").get(name_of(data)) == data


def test_two_take_turns(tmp_path: Path) -> None:
    """Each sees what the other has kept: numbers, contents, stages."""
    mine, theirs = DiskJournalStorage(tmp_path), DiskJournalStorage(tmp_path)
    for number in range(1, 7):
        own, other = (mine, theirs) if number % 2 else (theirs, mine)
        data = str(number).encode()
        with own.lock():
            assert own.next_number() == number
            own.save(record(number, data), {name_of(data): data})
        with other.lock():
            assert other.get(name_of(data)) == data
            other.reach(number, "applied")
            other.save(record(number, data, "applied"), {name_of(data): data})
    assert {r.stage for r in mine.load()[0]} == {"applied"}
    assert (tmp_path / "journal.jsonl").read_text().count('"contents"') == 6, "each content once"


def test_a_torn_line_counts_for_nothing(tmp_path: Path) -> None:
    """Cut off anywhere, the log reads as before its last line, and the next one replaces it."""
    storage = DiskJournalStorage(tmp_path)
    with storage.lock():
        storage.save(record(1), {name_of(b"x"): b"x"})
        storage.reach(1, "applied")
    log = tmp_path / "journal.jsonl"
    whole = log.read_bytes()
    with storage.lock():
        storage.save(record(2, b"yy"), {name_of(b"yy"): b"yy"})
    torn = log.read_bytes()
    for end in range(len(whole), len(torn), 7):
        log.write_bytes(torn[:end])
        again = DiskJournalStorage(tmp_path)
        assert [(r.number, r.stage) for r in again.load()[0]] == [(1, "applied")]
        assert again.load()[1] == []
        with again.lock():
            assert again.next_number() == 2
            again.save(record(2, b"yy"), {name_of(b"yy"): b"yy"})
        assert log.read_bytes() == torn
        assert storage.get(name_of(b"yy")) == b"yy"


def test_a_running_record_goes_when_it_has_ended(tmp_path: Path) -> None:
    """Also where the process died after the line and before the file was removed."""
    storage = DiskJournalStorage(tmp_path)
    with storage.lock():
        storage.save(record(1, stage="running"))
        storage.touch()
        assert storage.touched() == (tmp_path / "running.json").stat().st_mtime
        kept = (tmp_path / "running.json").read_bytes()
        assert storage.next_number() == 2
        storage.save(record(1, stage="applied"))
    assert not (tmp_path / "running.json").exists()
    assert storage.touched() == 0
    (tmp_path / "running.json").write_bytes(kept)
    assert [r.stage for r in DiskJournalStorage(tmp_path).load()[0]] == ["applied"]
    (tmp_path / "running.json").write_bytes(kept[:20])
    assert "cannot be undone" in DiskJournalStorage(tmp_path).load()[1][0]


@pytest.mark.parametrize("damaged", [b"{", b"[" * 9_000, b'{"record": "x"}', b"\xff"])
def test_what_is_damaged_is_told_and_kept(damaged: bytes, tmp_path: Path) -> None:
    storage = DiskJournalStorage(tmp_path)
    with storage.lock():
        storage.save(record(1, b"x"), {name_of(b"x"): b"x"})
        with open(tmp_path / "journal.jsonl", "ab") as log:
            log.write(damaged + b"\n")
        (tmp_path / "running.json").write_bytes(damaged)
    again = DiskJournalStorage(tmp_path)
    records, told = again.load()
    assert [r.number for r in records] == [1]
    assert len(told) == 2
    with again.lock():
        again.save(record(again.next_number(), stage="running"))
    (aside,) = tmp_path.glob("running.json-*")
    assert aside.read_bytes() == damaged
    assert damaged in (tmp_path / "journal.jsonl").read_bytes()


def test_a_last_line_that_lacks_only_its_line_feed_counts(tmp_path: Path) -> None:
    """An editor that strips it, or a person's: an applied change is not taken back for that."""
    log, storage = tmp_path / "journal.jsonl", DiskJournalStorage(tmp_path)
    with storage.lock():
        storage.save(record(1, b"x", stage="applying"), {name_of(b"x"): b"x"})
        storage.reach(1, "applied")
    log.write_bytes(log.read_bytes()[:-1])
    again = DiskJournalStorage(tmp_path)
    assert [(r.number, r.stage) for r in again.load()[0]] == [(1, "applied")]
    with again.lock():
        again.save(record(2, b"yy"), {name_of(b"yy"): b"yy"})
        again.reach(2, "rolled back")
    for one in (again, DiskJournalStorage(tmp_path)):
        assert [(r.number, r.stage) for r in one.load()[0]] == [(1, "applied"), (2, "rolled back")]
        assert one.load()[1] == []
        assert (one.get(name_of(b"x")), one.get(name_of(b"yy"))) == (b"x", b"yy")


@pytest.mark.parametrize("contents", [[], 5, None, {"a": 5}])
def test_contents_of_another_form(contents: object, tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text(json.dumps({"record": 4, "contents": contents}) + "\n")
    storage = DiskJournalStorage(tmp_path)
    assert (storage.next_number(), storage.get("a")) == (5, None)


def test_a_log_that_went_is_begun_anew(tmp_path: Path) -> None:
    """Somebody removed `.loki` while loki was at work."""
    storage = DiskJournalStorage(tmp_path)
    with storage.lock():
        storage.save(record(1), {name_of(b"x"): b"x"})
        os.unlink(tmp_path / "journal.jsonl")
        storage.save(record(2), {name_of(b"x"): b"x"})
    assert DiskJournalStorage(tmp_path).get(name_of(b"x")) == b"x"

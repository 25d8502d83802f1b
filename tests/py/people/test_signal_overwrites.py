"""Signals that another program writes over, or appends to: what was seen before is not lost."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from loki.base.error import StoreError
from loki.memory.store import ASIDE
from loki.people.request import HumanReviews
from loki.people.signals import DOCUMENT, SignalOverwrites, Signals
from loki.stores.file_store import FileStore
from loki.testing import ManualClock

NEEDED = "signals/HUMAN_REVIEW_NEEDED"
APPROVED = "signals/HUMAN_APPROVED"


def reviews(folder: Path) -> HumanReviews:
    return HumanReviews(FileStore(folder), ManualClock())


def signals(folder: Path) -> Signals:
    return Signals(FileStore(folder), ManualClock())


def asked(task: str, **more: object) -> str:
    return json.dumps({"reason": "cost", "task_id": task, "context": f"about {task}", **more})


def cat(path: Path, text: str) -> None:
    path.write_text(text)


def replace(path: Path, text: str) -> None:
    new = path.with_name(".new")
    new.write_text(text)
    os.replace(new, path)


WRITERS = pytest.mark.parametrize("write", [cat, replace])
Write = Callable[[Path, str], None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    FileStore(tmp_path / ".loki").append("logs/x", {})
    return tmp_path / ".loki"


def tasks(folder: Path) -> list[str]:
    return sorted(one.task_id for one in reviews(folder).open())


def answer_all(folder: Path, count: int) -> None:
    here = reviews(folder)
    for one in here.open():
        here.decide(one.id, by="ann", note=f"to {one.task_id}")
    assert {(one.review.task_id, one.note) for one in here.decisions()} == {
        (f"t{n}", f"to t{n}") for n in range(count)
    }
    assert tasks(folder) == []
    assert not (folder / NEEDED).exists()
    assert not list(folder.glob(f"{NEEDED}.d/*"))


@WRITERS
def test_a_request_over_an_open_one_loses_none(folder: Path, write: Write) -> None:
    for n in range(3):
        write(folder / NEEDED, asked(f"t{n}"))
        assert tasks(folder) == [f"t{k}" for k in range(n + 1)]
        assert json.loads((folder / NEEDED).read_text())["task_id"] == f"t{n}", "others read it"
    assert len({one.id for one in reviews(folder).open()}) == 3
    answer_all(folder, 3)


@WRITERS
def test_lokis_own_request_is_not_lost_though_nobody_looked(folder: Path, write: Write) -> None:
    own = reviews(folder).ask(reason="cost", task_id="t0", about={"n": 1})
    write(folder / NEEDED, asked("t1"))
    assert tasks(folder) == ["t0", "t1"]
    (mine,) = (one for one in reviews(folder).open() if one.task_id == "t0")
    assert (mine.id, mine.extra["about"], mine.timestamp) == (own.id, {"n": 1}, own.timestamp)
    answer_all(folder, 2)


def test_whatever_looks_first_has_seen_it(folder: Path) -> None:
    """Also who only lists signals, and what names its own id or is no JSON."""
    cat(folder / NEEDED, asked("t0", id="mine"))
    assert signals(folder).all()
    cat(folder / NEEDED, "May I drop the table?")
    assert signals(folder).all()
    cat(folder / NEEDED, asked("t1"))
    found = {one.context: one.id for one in reviews(folder).open()}
    assert set(found) == {"about t0", "about t1", "May I drop the table?"}
    assert found["about t0"] == "mine"


def test_what_is_appended_is_several(folder: Path) -> None:
    cat(folder / NEEDED, asked("t0"))
    assert tasks(folder) == ["t0"]
    with (folder / NEEDED).open("a") as file:
        file.write(asked("t1") + "\n" + asked("t2"))
    assert tasks(folder) == ["t0", "t1", "t2"]
    assert json.loads((folder / NEEDED).read_text())["task_id"] == "t0"
    answer_all(folder, 3)


def test_what_its_program_takes_away_is_not_asked_any_more(folder: Path) -> None:
    cat(folder / NEEDED, asked("t0"))
    assert tasks(folder) == ["t0"]
    (folder / NEEDED).unlink()
    assert tasks(folder) == []
    cat(folder / NEEDED, asked("t1"))
    assert tasks(folder) == ["t1"]


def test_what_was_answered_or_cleared_does_not_come_back(folder: Path) -> None:
    cat(folder / NEEDED, asked("t0"))
    here = reviews(folder)
    here.decide(here.open()[0].id, by="ann")
    cat(folder / NEEDED, asked("t1"))
    assert tasks(folder) == ["t1"]
    (one,) = signals(folder).all()
    assert signals(folder).clear(one)
    cat(folder / NEEDED, asked("t2"))
    assert tasks(folder) == ["t2"]
    assert not (folder / f"{NEEDED}.d").exists()


@WRITERS
def test_answers_that_are_written_over_or_appended_reach_their_askers(
    folder: Path, write: Write
) -> None:
    here = reviews(folder)
    ids = [here.ask(reason="cost", task_id=f"t{n}").id for n in range(4)]
    said = [
        json.dumps({"request_id": id_, "approved": n % 2 == 0, "by": "ann"})
        for n, id_ in enumerate(ids)
    ]
    write(folder / APPROVED, said[0])
    assert signals(folder).all("HUMAN_APPROVED")
    write(folder / APPROVED, "\n".join(said[1:]))
    assert {one.id: one.answer.value for one in here.answers()} == {
        id_: "rejected" if n % 2 else "approved" for n, id_ in enumerate(ids)
    }
    assert here.answers() == []
    assert here.open() == []


def test_other_signals_that_queue_are_kept_likewise(folder: Path) -> None:
    file = folder / "signals/DOCS_NEEDED"
    for text in ("the login form", '{"description": "the API"}', '{"description": "limits"}'):
        cat(file, text)
        assert signals(folder).pending("DOCS_NEEDED")
    here = signals(folder)
    found = here.pending("DOCS_NEEDED")
    assert sorted(one.string_field("description") for one in found) == [
        "limits",
        "the API",
        "the login form",
    ]
    for one in found:
        assert here.consume(one)
    assert here.all() == []


def test_who_cannot_write_may_look(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cat(folder / NEEDED, asked("t0") + asked("t1"))

    def refuse(*_: object, **__: object) -> None:
        raise StoreError("read-only")

    monkeypatch.setattr(FileStore, "update", refuse)
    assert len(signals(folder).all()) == 1


def test_everything_that_was_appended_is_asked_once(folder: Path) -> None:
    many = [f"t{n:03}" for n in range(120)]
    cat(folder / NEEDED, "\n".join(asked(task) for task in (*many, *many)))
    assert sorted(tasks(folder)) == many
    assert sorted(tasks(folder)) == many
    cat(folder / NEEDED, asked("again") + asked("again"))
    assert sorted(tasks(folder)) == ["again", *many]


DAMAGED = ("{", "[]", '{"files": {"signals/HUMAN_REVIEW_NEEDED": {"seen": [["a", 5]]}}}', "\0")


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_record_of_what_was_seen_is_told_and_begun_anew(
    folder: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "state").mkdir(exist_ok=True)
    (folder / DOCUMENT).write_text(text)
    cat(folder / NEEDED, asked("t0"))
    assert tasks(folder) == ["t0"]
    assert f"{DOCUMENT} is damaged" in caplog.text
    (kept,) = (folder / ASIDE / "state").iterdir()
    assert kept.read_text() == text
    cat(folder / NEEDED, asked("t1"))
    assert tasks(folder) == ["t0", "t1"]


def test_secrets_of_what_was_seen_are_masked(folder: Path) -> None:
    cat(folder / NEEDED, asked("t0", note="password=hunter2hunter2"))
    assert SignalOverwrites(FileStore(folder)).look(NEEDED) == []
    assert "hunter2hunter2" not in (folder / DOCUMENT).read_text()

"""Requests on disk: asked once, answered once, whoever is killed and whoever else writes."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from loki.base.error import UsageError
from loki.people.human_review import ReviewStatus
from loki.people.request import HumanReviews
from loki.stores.file_store import FileStore
from loki.testing import ManualClock

NEEDED = "signals/HUMAN_REVIEW_NEEDED"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".loki"


def reviews(folder: Path, clock: ManualClock | None = None) -> HumanReviews:
    return HumanReviews(FileStore(folder), clock or ManualClock())


def approved(folder: Path, **said: object) -> None:
    (folder / "signals").mkdir(parents=True, exist_ok=True)
    (folder / "signals/HUMAN_APPROVED").write_text(json.dumps(said))


def test_the_first_stands_in_the_file_and_the_others_wait_behind_it(folder: Path) -> None:
    clock = ManualClock()
    here = reviews(folder, clock)
    ids = []
    for name in "abc":
        ids.append(here.ask(reason="cost_limit", task_id=name, about={"n": name}).id)
        clock.advance(1)
    assert json.loads((folder / NEEDED).read_text())["id"] == ids[0]
    assert len(list((folder / f"{NEEDED}.d").iterdir())) == 2
    assert [one.id for one in here.open()] == ids
    here.decide(ids[1], by="ann")
    here.decide(ids[0], by="ann")
    assert json.loads((folder / NEEDED).read_text())["id"] == ids[2]
    assert here.open()[0].extra["about"] == {"n": "c"}
    here.decide(ids[2], by="ann")
    assert not (folder / NEEDED).exists()
    assert here.open() == []


def test_one_question_is_asked_once_until_it_is_answered(folder: Path) -> None:
    clock = ManualClock()
    here = reviews(folder, clock)
    first = here.ask(reason="cost_limit", task_id="t", context="token=abcdefghijklmnop123456")
    clock.advance(5)
    again = here.ask(reason="cost_limit", task_id="t", context="token=abcdefghijklmnop123456")
    assert again == first
    assert "abcdefghijklmnop123456" not in (folder / NEEDED).read_text()
    here.decide(first.id, by="ann", approved=False)
    anew = here.ask(reason="cost_limit", task_id="t", context="token=abcdefghijklmnop123456")
    assert anew.id != first.id
    assert [one.id for one in here.open()] == [anew.id]


def test_an_answer_is_kept_and_the_first_one_counts(folder: Path) -> None:
    here = reviews(folder)
    asked = here.ask(reason="cost_limit", task_id="t")
    decision = here.decide(asked.id, by="ann", approved=False, note="no")
    assert (decision.answer, decision.by, decision.note) == (ReviewStatus.REJECTED, "ann", "no")
    with pytest.raises(UsageError, match=f"{asked.id} is answered already: rejected by ann"):
        here.decide(asked.id, by="bob")
    assert [one.by for one in here.decisions("t")] == ["ann"]
    assert here.find(asked.id) is not None


@pytest.mark.parametrize(
    ("id_", "by", "said"),
    [("review-0", "ann", "no request 'review-0' waits"), ("", "", "expected who decides")],
)
def test_what_cannot_be_decided(folder: Path, id_: str, by: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        reviews(folder).decide(id_, by=by)


def test_what_another_program_wrote_gets_an_id_and_keeps_its_fields(folder: Path) -> None:
    (folder / "signals").mkdir(parents=True)
    theirs = {"timestamp": "2026-01-25T10:30:00Z", "reason": "security_decision", "task_id": "t-9",
              "context": "Requires AWS production credentials", "blocking": True, "mine": 7}  # fmt: skip
    (folder / NEEDED).write_text(json.dumps(theirs))
    here = reviews(folder)
    (one,) = here.open()
    assert here.open() == [one]
    assert reviews(folder).open() == [one]
    kept = json.loads((folder / NEEDED).read_text())
    assert (kept["id"], kept["mine"], kept["context"]) == (one.id, 7, theirs["context"])
    assert here.decide(one.id, by="ann").review.extra == {"mine": 7}


# --- HUMAN_APPROVED -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "warning"),
    [
        ({"approved": True, "by": "ann"}, "it names no request"),
        ({"request_id": "review-x", "approved": True, "by": "ann"}, "no request 'review-x' waits"),
        ({"approved": True}, "it does not say who decided"),
        ({"approved": True, "by": "ann", "timestamp": "2001-01-01T00:00:00Z"}, "it is older than"),
    ],
)
def test_an_approval_that_names_no_open_request_never_acts(
    folder: Path, said: dict[str, object], warning: str, caplog: pytest.LogCaptureFixture
) -> None:
    here = reviews(folder)
    asked = here.ask(reason="cost_limit", task_id="t")
    named = {} if "names" in warning or "request_id" in said else {"request_id": asked.id}
    approved(folder, **{**named, **said})
    assert here.answers() == []
    assert warning in caplog.text
    assert not (folder / "signals/HUMAN_APPROVED").exists()
    assert here.open() == [asked]


@pytest.mark.parametrize("yes", [True, False])
def test_an_approval_that_names_one_is_a_decision(folder: Path, yes: bool) -> None:
    clock = ManualClock()
    here = reviews(folder, clock)
    asked = here.ask(reason="cost_limit", task_id="t")
    clock.advance(60)
    approved(folder, request_id=asked.id, approved=yes, by="ann", note="so")
    (decision,) = here.answers()
    assert decision.answer is (ReviewStatus.APPROVED if yes else ReviewStatus.REJECTED)
    assert (decision.by, decision.note) == ("ann", "so")
    assert here.open() == []
    assert here.answers() == []


def test_an_approval_of_one_that_was_answered_before_is_refused(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    here = reviews(folder)
    asked = here.ask(reason="cost_limit", task_id="t")
    here.decide(asked.id, by="ann", approved=False)
    here.ask(reason="cost_limit", task_id="t")  # the same question, another request
    approved(folder, request_id=asked.id, approved=True, by="bob")
    assert here.answers() == []
    assert "is answered already: rejected by ann" in caplog.text
    assert len(here.open()) == 1


# --- time ---------------------------------------------------------------------------------------------


def test_a_day_is_waited_and_no_longer(folder: Path) -> None:
    clock = ManualClock()
    here = reviews(folder, clock)
    asked = here.ask(reason="cost_limit", task_id="t")
    clock.advance(24 * 3600 - 1)
    assert here.expired(clock.now()) == []
    clock.advance(1)
    assert here.expired(clock.now()) == [asked]
    assert here.expire(asked.id).answer is ReviewStatus.EXPIRED
    assert here.expired(clock.now()) == here.open() == []
    with pytest.raises(UsageError, match="nobody answered it in time"):
        here.decide(asked.id, by="ann")


def test_how_long_is_waited_can_be_said(folder: Path) -> None:
    clock = ManualClock()
    here = HumanReviews(FileStore(folder), clock, timedelta(minutes=5))
    here.ask(reason="cost_limit")
    clock.advance(300)
    assert len(here.expired(clock.now())) == 1


# --- what follows -------------------------------------------------------------------------------------


def test_what_follows_from_a_decision_is_known_to_be_done_or_not(folder: Path) -> None:
    here = reviews(folder)
    asked = here.ask(reason="cost_limit", task_id="t")
    decision = here.decide(asked.id, by="ann")
    assert here.undone() == [decision]
    here.done(asked.id)
    assert here.undone() == []


def test_a_damaged_log_loses_no_request(folder: Path) -> None:
    here = reviews(folder)
    asked = here.ask(reason="cost_limit", task_id="t")
    log = folder / "logs/requests.jsonl"
    log.parent.mkdir(exist_ok=True)
    torn = f'{{"event":"decided","id":"{asked.id}"}}\n'
    log.write_text(torn + '{"event":"decided"}\n[]\n{"ev')
    assert here.open() == [asked]
    here.decide(asked.id, by="ann")
    assert here.open() == []


@pytest.mark.parametrize("id_", ["--help", "a\u001b[2Jb", "two words", "x" * 500, "a\nb"])
def test_an_id_that_nobody_can_type_is_replaced(folder: Path, id_: str) -> None:
    (folder / "signals").mkdir(parents=True)
    (folder / NEEDED).write_text(json.dumps({"id": id_, "reason": "key", "theirs": 1}))
    (one,) = reviews(folder).open()
    assert one.id.startswith("review-")
    assert json.loads((folder / NEEDED).read_text())["id"] == one.id
    assert reviews(folder).decide(one.id, by="ann").review.extra["theirs"] == 1
    assert not (folder / NEEDED).exists()


def test_one_from_the_time_to_come_is_given_up_a_day_after_it_was_seen(folder: Path) -> None:
    clock = ManualClock()
    (folder / "signals").mkdir(parents=True)
    said = {"id": "theirs-1", "timestamp": "2999-01-01T00:00:00Z", "reason": "key"}
    (folder / NEEDED).write_text(json.dumps(said))
    assert [one.id for one in reviews(folder, clock).open()] == ["theirs-1"]
    clock.advance(timedelta(hours=24).total_seconds())
    assert [one.id for one in reviews(folder, clock).expired(clock.now())] == ["theirs-1"]


def test_a_request_that_is_too_large_is_seen_all_the_same(folder: Path) -> None:
    (folder / "signals").mkdir(parents=True)
    (folder / NEEDED).write_text("May I? " + "x" * 100_000)
    (one,) = reviews(folder).open()
    assert one.context.startswith("May I? ")
    reviews(folder).decide(one.id, by="ann")
    assert not (folder / NEEDED).exists()

"""Approvals: who approved what, of which content."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from loki.base.error import UsageError
from loki.people.approval import Approval, Approvals
from loki.stores.file_store import FileStore, ForgivingStore

AT = "2026-04-04T10:00:00.000Z"


@pytest.fixture
def approvals(tmp_path: Path) -> Approvals:
    return Approvals(ForgivingStore(FileStore(tmp_path)), "t")


def yes(criterion: str = "reads well", digest: str = "d1", note: str = "") -> Approval:
    return Approval(criterion, True, "ann", AT, digest, note)


def no(note: str = "the title is wrong", digest: str = "d1") -> Approval:
    return Approval("reads well", False, "bob", AT, digest, note)


def test_what_is_added_stands(approvals: Approvals) -> None:
    assert approvals.current("reads well", "d1") is None
    approvals.add(yes(note="fine"))
    assert approvals.current("reads well", "d1") == yes(note="fine")


@pytest.mark.parametrize(("criterion", "digest"), [("reads well", "d2"), ("is fast", "d1")])
def test_it_stands_for_nothing_else(approvals: Approvals, criterion: str, digest: str) -> None:
    approvals.add(yes())
    assert approvals.current(criterion, digest) is None


def test_the_last_decision_about_the_same_content_counts(approvals: Approvals) -> None:
    for decision in (yes(), no(), yes(digest="d2")):
        approvals.add(decision)
    assert approvals.current("reads well", "d1") == no()
    assert approvals.current("reads well", "d2") == yes(digest="d2")
    assert len(approvals.all()) == 3


@pytest.mark.parametrize("field", ["criterion", "by", "digest"])
def test_nobody_and_nothing_is_refused(field: str) -> None:
    fields = {"criterion": "c", "approved": True, "by": "ann", "at": AT, "digest": "d", field: " "}
    with pytest.raises(UsageError, match=field):
        Approval(**fields)  # type: ignore[arg-type]


def test_a_damaged_record_approves_nothing(
    approvals: Approvals, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = tmp_path / "tasks" / "t" / "approvals.jsonl"
    log.parent.mkdir(parents=True)
    records = [
        {"criterion": "reads well", "approved": "yes", "by": "ann", "at": AT, "digest": "d1"},
        {"criterion": "reads well", "by": "ann", "at": AT, "digest": "d1"},
        {"criterion": ["reads well"], "approved": True, "by": "ann", "at": AT, "digest": "d1"},
    ]
    log.write_text("".join(json.dumps(record) + "\n" for record in records))
    with caplog.at_level(logging.WARNING, "loki"):
        assert approvals.current("reads well", "d1") is None
    assert caplog.text.count("skipped a record") == 3

"""A person's decision written as a file: of the request that it names, and by somebody."""

from __future__ import annotations

from pathlib import Path

import pytest

import loki
from loki.jobs.signals.signal_handling import handle
from loki.people.request import HumanReviews
from loki.stores.file_store import FileStore
from support.signals import give, waiting


@pytest.mark.parametrize(
    ("by", "named", "answer"),
    [("ann", True, "approved"), ("", True, ""), ("ann", False, "")],
)
def test_only_a_decision_on_an_open_request_counts(
    tmp_path: Path, by: str, named: bool, answer: str
) -> None:
    workspace = loki.Workspace(tmp_path)
    reviews = HumanReviews(FileStore(workspace.folder), workspace.clock)
    asked = reviews.ask(reason="cost", task_id="t", context="May it go on?")
    give(tmp_path, "HUMAN_APPROVED", request_id=asked.id if named else "another", by=by)
    (done,) = [one for one in handle(workspace) if one.signal.kind == "HUMAN_APPROVED"]
    assert done.done
    assert [one.answer.value for one in reviews.decisions()] == ([answer] if answer else [])
    assert done.told.startswith(f"{asked.id} is approved by ann" if answer else "refused")
    assert ("HUMAN_REVIEW_NEEDED" in waiting(tmp_path)) == (not answer)

"""The end of a run: what is learned from it, and what is gone."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest

from loki.memory.learning.candidate import Candidate, Candidates
from loki.memory.run_close import OWN_LOOP, close
from loki.memory.sign import MOST_APPROACHES, Signs, open_runs
from loki.memory.store import Rewrite
from loki.stores.file_store import FileStore, ForgivingStore

NOON = datetime(2026, 4, 4, 12, tzinfo=timezone.utc)
LATER = datetime(2026, 4, 5, 12, tzinfo=timezone.utc)
TEXT = "FAILED test_login.py::test_redirect - KeyError: 'next'"
OTHER = "FAILED test_cart.py::test_total - ValueError: could not convert 'x' to a price"


@pytest.fixture
def store(tmp_path: Path) -> ForgivingStore:
    return ForgivingStore(FileStore(tmp_path))


def test_signs_of_tasks_that_did_not_succeed_become_candidates(
    store: ForgivingStore, tmp_path: Path
) -> None:
    signs = Signs(store, "fix")
    for approach in ("added a default", "caught the error"):
        signs.observe(TEXT, approach, "stuck")
        signs.observe(OTHER, approach, "done")
    signs.observe("FAILED test_once.py::test_a - TypeError: seen only once so far", "x", "stuck")
    closed = close(store, "fix", succeeded=lambda task: task == "done", now=NOON)
    assert closed is not None
    assert (closed.branch, closed.reason, closed.signs) == ("fix", "closed", 2)
    (candidate,) = closed.candidates
    assert candidate.content == (
        "Against the failure `KeyError: 'next'` (in `test_login.py::test_redirect`): These led "
        "nowhere: `caught the error`; `added a default`. Go about it another way."
    )
    assert [source.task for source in candidate.sources] == ["stuck"]
    assert [known.id for known in Candidates(store).open()] == [candidate.id]
    assert not (tmp_path / "run").exists()
    (line,) = (tmp_path / "logs/closed-runs.jsonl").read_text().splitlines()
    assert json.loads(line) == closed.to_dict()


def test_a_new_run_on_the_branch_begins_without_signs(store: ForgivingStore) -> None:
    before = Signs(store, "fix")
    for _ in range(2):
        before.observe(TEXT, "x", "t")
    close(store, "fix", succeeded=lambda _: False, now=NOON)
    for signs in (before, Signs(store, "fix")):
        assert signs.armed == ()
    assert before.observe(TEXT, "y", "t").count == 1
    assert close(store, "fix", succeeded=lambda _: False, now=NOON) is not None
    assert close(store, "fix", succeeded=lambda _: False, now=NOON) is None


def test_another_branch_keeps_its_signs(store: ForgivingStore) -> None:
    for branch in ("fix", "fix/more", None):
        for _ in range(2):
            Signs(store, branch).observe(TEXT, "x", "t")
    close(store, "fix", succeeded=lambda _: False, now=NOON)
    assert {run.branch for run in open_runs(store)} == {"fix/more", None}
    assert len(Signs(store, "fix/more").armed) == len(Signs(store, None).armed) == 1


def test_the_same_sign_of_a_later_run_is_the_same_candidate(store: ForgivingStore) -> None:
    found: list[Candidate] = []
    for now, task in ((NOON, "first"), (LATER, "second")):
        for _ in range(2):
            Signs(store, "fix").observe(TEXT, f"by {task}", task)
        closed = close(store, "fix", succeeded=lambda _: False, now=now)
        assert closed is not None
        found += closed.candidates
    assert found[0].id == found[1].id
    assert [source.task for source in found[1].sources] == ["first", "second"]


def test_what_a_person_rejected_is_not_proposed_again(store: ForgivingStore) -> None:
    for _ in range(2):
        Signs(store, "fix").observe(TEXT, "x", "t")
    closed = close(store, "fix", succeeded=lambda _: False, now=NOON)
    assert closed is not None
    Candidates(store).reject(closed.candidates[0].id, "of that day only", "ada", NOON)
    for _ in range(2):
        Signs(store, "fix").observe(TEXT, "x", "t")
    closed = close(store, "fix", succeeded=lambda _: False, now=LATER)
    assert closed is not None
    assert closed.candidates == ()


def test_a_caller_with_a_loop_of_its_own(store: ForgivingStore) -> None:
    for number in range(2 * MOST_APPROACHES):
        Signs(store, None).observe(TEXT, f"approach {number}")
    closed = close(store, None, succeeded=lambda _: True, now=NOON)
    assert closed is not None
    (candidate,) = closed.candidates
    assert [source.task for source in candidate.sources] == [OWN_LOOP]
    assert candidate.content.count("approach") == MOST_APPROACHES


class Busy(FileStore):
    """Somebody adds to the run just before its signs are removed."""

    pending = 1

    def update(self, document: str, change: Rewrite, *, durable: bool = True) -> None:
        if self.pending and document.endswith("signs.json"):
            self.pending -= 1
            Signs(FileStore(self.folder), "fix").observe(OTHER, "late", "t")
        super().update(document, change, durable=durable)


def test_what_is_seen_while_a_run_is_closed_is_learned_from(tmp_path: Path) -> None:
    for text in (TEXT, TEXT, OTHER):
        Signs(FileStore(tmp_path), "fix").observe(text, "x", "t")
    closed = close(Busy(tmp_path), "fix", succeeded=lambda _: False, now=NOON)
    assert closed is not None
    assert (closed.signs, len(closed.candidates)) == (2, 2)
    assert open_runs(FileStore(tmp_path)) == []


def test_a_damaged_run_is_closed_without_learning(store: ForgivingStore, tmp_path: Path) -> None:
    FileStore(tmp_path).write("run/fix/signs.json", "{")
    assert open_runs(store) == []
    closed = close(store, "fix", succeeded=lambda _: False, now=NOON)
    assert closed is not None
    assert (closed.signs, closed.candidates) == (0, ())
    assert not (tmp_path / "run").exists()


def test_secrets_do_not_reach_a_candidate(store: ForgivingStore, tmp_path: Path) -> None:
    secret = "ghp_0123456789abcdefghij0123"
    for _ in range(2):
        Signs(store, "fix").observe(f"{TEXT} token {secret}", f"used {secret}", "t")
    close(store, "fix", succeeded=lambda _: False, now=NOON)
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any("candidate" in path.name for path in kept)
    assert all(secret not in path.read_text() for path in kept)

"""The review: what is approved is added to the project's file, or nothing happens at all."""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.base.error import ConfigError, UsageError
from loki.memory.dead_letter import DeadLetter
from loki.memory.dead_letter_log import DeadLetterLog
from loki.memory.learning.candidate import DECISIONS, Candidate, Candidates, Source
from loki.memory.learning.learned_rules import AT_MOST, Review, is_put_off
from loki.recognition.failure import Failure
from loki.recognition.pattern import PatternSet
from loki.stores.file_store import FileStore

NOON = datetime(2026, 4, 4, 12, tzinfo=timezone.utc)
AT = "2026-04-04T10:15:30.000Z"
OWN = """\
version: 2   # mine
extends: default
patterns:
  - {id: mine, signals: [{word: boom}], strategy: escalate, description: My own.}
"""
ENTRY: dict[str, Any] = {
    "id": "flux-out",
    "description": "The flux is out.",
    "strategy": "context_expand",
    "signals": [{"word": "flux capacitor out"}],
}


def pattern(word: str = "flux capacitor out", id_: str = "flux-out") -> Candidate:
    entry = {**ENTRY, "id": id_, "signals": [{"word": word}]}
    return Candidate.pattern(entry, [Source(f"fix-{id_}", "no flux", AT)], AT)


def review_of(folder: Path) -> Review:
    store = FileStore(folder)
    letters = DeadLetterLog(store, PatternSet.default())
    return Review(Candidates(store), letters, folder)


@pytest.fixture
def candidates(tmp_path: Path) -> Candidates:
    return Candidates(FileStore(tmp_path))


def test_an_approved_pattern_is_learned_beside_what_people_wrote(
    tmp_path: Path, candidates: Candidates
) -> None:
    own = tmp_path / "failure-patterns.yml"
    own.write_text(OWN)
    for word in ("flux", "warp"):
        candidates.propose(pattern(f"{word} capacitor out", f"{word}-out"))
    for candidate in candidates.open():
        approved = review_of(tmp_path).approve(candidate.id, "ada", NOON)
        assert approved.status == "approved"
    known = PatternSet.of_project(tmp_path)
    assert known.match("flux capacitor out")[0].pattern == "flux-out"
    assert known.match("warp capacitor out")[0].pattern == "warp-out"
    assert {"lint-error", "mine"} <= set(known.patterns)
    assert own.read_text() == OWN
    assert candidates.open() == []


def test_what_people_wrote_counts_before_what_was_learned(
    tmp_path: Path, candidates: Candidates
) -> None:
    candidates.propose(pattern())
    review_of(tmp_path).approve(pattern().id, "ada", NOON)
    (tmp_path / "failure-patterns.yml").write_text(OWN.replace("mine", "flux-out"))
    assert PatternSet.of_project(tmp_path).patterns["flux-out"].description == "My own."


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("failure-patterns.yml", "patterns: [\n"),
        ("failure-patterns.yml", "version: 2\nmood: good\n"),
        ("learned-patterns.yml", "version: 2\nmood: good\n"),
    ],
)
def test_a_file_that_does_not_load_stays_and_the_candidate_too(
    tmp_path: Path, candidates: Candidates, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    candidates.propose(pattern())
    with pytest.raises(ConfigError, match=name):
        review_of(tmp_path).approve(pattern().id, "ada", NOON)
    assert (tmp_path / name).read_text() == text
    assert [candidate.status for candidate in candidates.open()] == ["proposed"]


def test_a_pattern_that_cannot_be_used_is_not_learned(
    tmp_path: Path, candidates: Candidates
) -> None:
    candidates.propose(pattern(id_="lint-error"))
    with pytest.raises(
        ConfigError, match=r"candidate-pattern-.*found another pattern 'lint-error'"
    ):
        review_of(tmp_path).approve(pattern().id, "ada", NOON)
    page = tmp_path / pattern().document
    page.write_text(page.read_text().replace("lint-error", "new").replace("context_expand", "pray"))
    with pytest.raises(ConfigError, match=r"candidate-pattern-.*found 'pray'"):
        review_of(tmp_path).approve(pattern().id, "ada", NOON)
    assert not (tmp_path / "learned-patterns.yml").exists()
    assert len(candidates.open()) == 1


def test_approving_again_after_a_crash_adds_nothing_twice(
    tmp_path: Path, candidates: Candidates
) -> None:
    candidates.propose(pattern())
    review = review_of(tmp_path)
    review._add(candidates.open()[0])  # and then the crash: the decision was not kept
    review.approve(pattern().id, "ada", NOON)
    review.approve(pattern().id, "ada", NOON)
    assert (tmp_path / "learned-patterns.yml").read_text().count("flux-out") == 1


def test_a_rejected_pattern_is_not_added(tmp_path: Path, candidates: Candidates) -> None:
    candidates.propose(pattern())
    review = review_of(tmp_path)
    review.reject(pattern().id, "no", "ada", NOON)
    with pytest.raises(UsageError, match="was rejected"):
        review.approve(pattern().id, "bob", NOON)
    assert not (tmp_path / "learned-patterns.yml").exists()


def test_a_pattern_that_a_person_edited_first_is_added_as_edited(
    tmp_path: Path, candidates: Candidates
) -> None:
    candidates.propose(pattern())
    page = tmp_path / pattern().document
    page.write_text(page.read_text().replace("strategy: context_expand", "strategy: escalate", 1))
    review_of(tmp_path).approve(pattern().id, "ada", NOON)
    assert (
        PatternSet.load(tmp_path / "learned-patterns.yml").patterns["flux-out"].strategy
        == "escalate"
    )


def test_a_review_has_ten_at_most_and_is_weekly(tmp_path: Path, candidates: Candidates) -> None:
    review = review_of(tmp_path)
    assert review.agenda(NOON).is_due is False  # nothing to decide
    for number in range(12):
        at = f"2026-04-04T10:15:{number:02}.000Z"
        candidates.propose(Candidate.rule(f"rule {number}", [], at))
    agenda = review.agenda(NOON)
    assert (agenda.waiting, agenda.last, agenda.is_due) == (12, None, True)
    assert [c.content for c in agenda.candidates] == [f"rule {n}" for n in range(AT_MOST)]
    review.defer(agenda.candidates[0].id, "ada", NOON)
    for days, due in ((0, False), (6.9, False), (7, True)):
        agenda = review.agenda(NOON + timedelta(days=days))
        assert (agenda.last, agenda.is_due) == ("2026-04-04T12:00:00.000Z", due)
    assert agenda.candidates[0].content == "rule 1"


def test_a_damaged_or_later_time_of_a_decision_puts_nothing_off(
    tmp_path: Path, candidates: Candidates
) -> None:
    candidates.propose(pattern())
    for at in ("soon", None, "2026-04-05T12:00:00.000Z"):
        FileStore(tmp_path).append(DECISIONS, {"id": "rule-0", "verdict": "deferred", "at": at})
    agenda = review_of(tmp_path).agenda(NOON)
    assert (agenda.last, agenda.is_due) == ("2026-04-05T12:00:00.000Z", True)


def test_more_than_three_deferrals_are_pointed_out(tmp_path: Path, candidates: Candidates) -> None:
    candidates.propose(pattern())
    review = review_of(tmp_path)
    told = [is_put_off(review.defer(pattern().id, "ada", NOON)) for _ in range(4)]
    assert told == [False, False, False, True]


def test_what_it_would_match_is_found_among_the_dead_letters(
    tmp_path: Path, candidates: Candidates
) -> None:
    letters = DeadLetterLog(FileStore(tmp_path), PatternSet.default())
    for task, message in (("a", "flux capacitor out in 7"), ("b", "all is well but it failed")):
        failure = Failure.of(message, path="a.py")
        letter = DeadLetter.of(task, task, [], failure, "retry_budget_exhausted", AT, {})
        letters.add(letter, [], "p.md")
    candidates.propose(pattern())
    (candidate,) = candidates.open()
    assert [one.task_id for one in review_of(tmp_path).would_match(candidate)] == ["a"]
    broken = Candidate.pattern({**ENTRY, "strategy": "pray"}, [], AT)
    assert review_of(tmp_path).would_match(broken) == []
    assert review_of(tmp_path).would_match(Candidate.rule("x", [], AT)) == []


def test_a_workspace_reviews_its_own(tmp_path: Path) -> None:
    review = loki.Workspace(tmp_path).review()
    assert review.pattern_file == tmp_path / ".loki/learned-patterns.yml"
    assert review.agenda(NOON).candidates == ()
    assert not os.listdir(tmp_path)  # looking leaves nothing behind

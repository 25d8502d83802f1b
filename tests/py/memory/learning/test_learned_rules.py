"""Learned rules: approved ones and a person's own; what cannot be read stops nothing."""

from __future__ import annotations

import logging
from datetime import datetime, timezone
from pathlib import Path

import pytest

from loki.memory.learning.candidate import Candidate, Candidates, Source
from loki.memory.learning.learned_rules import Learned, Rule, fitting, read
from loki.stores.file_store import FileStore

NOON = datetime(2026, 4, 4, 12, tzinfo=timezone.utc)


def write(folder: Path, name: str, text: str) -> None:
    file = folder / "memory/learned" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_an_approved_candidate_is_a_rule(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    candidate = Candidate.rule("Never edit gen/.", [Source("t")], "2026-04-04T10:00:00.000Z")
    candidates = Candidates(store)
    candidates.propose(candidate)
    assert Learned(store).rules() == []
    candidates.approve(candidate.id, "ada", NOON)
    (rule,) = Learned(store).rules()
    assert rule == Rule(candidate.id, "Never edit gen/.", "2026-04-04T12:00:00.000Z", "ada")


def test_a_page_that_a_person_wrote_needs_no_head(tmp_path: Path) -> None:
    write(tmp_path, "style.md", "# Style\n\nTabs, no spaces.\n")
    write(tmp_path, "notes.txt", "not a rule")
    (rule,) = Learned(FileStore(tmp_path)).rules()
    assert rule == Rule("style", "# Style\n\nTabs, no spaces.")


def test_a_rule_that_begins_with_a_line_is_no_head() -> None:
    with pytest.raises(ValueError, match="no front matter"):
        read("x.md", "---\nnever closed")


def test_what_cannot_be_read_is_told_once_and_skipped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, "good.md", "Do good.")
    write(tmp_path, "empty.md", "")
    write(tmp_path, "head-only.md", "---\nid: x\n---\n\n")
    write(tmp_path, "broken.md", "---\nid: [\n---\nDo.\n")
    learned = Learned(FileStore(tmp_path))
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert [rule.text for rule in learned.rules()] == ["Do good."]
    assert sorted(record.getMessage().split(":")[0] for record in caplog.records) == [
        "memory/learned/broken.md",
        "memory/learned/empty.md",
        "memory/learned/head-only.md",
    ]


def test_a_new_rule_is_seen_at_once(tmp_path: Path) -> None:
    learned = Learned(FileStore(tmp_path))
    assert learned.rules() == []
    write(tmp_path, "late.md", "Be on time.")
    assert [rule.id for rule in learned.rules()] == ["late"]


def test_a_persons_own_and_the_newest_come_first() -> None:
    rules = [
        Rule("old", "x" * 40, "2026-01-01"),
        Rule("new", "x" * 40, "2026-02-01"),
        Rule("own-b", "x" * 40),
        Rule("own-a", "x" * 40),
    ]
    kept, left_out = fitting(rules, 30)
    assert ([rule.id for rule in kept], left_out) == (["own-a", "own-b", "new"], 1)
    assert fitting(rules, 0) == ([], 4)
    assert fitting([], 0) == ([], 0)

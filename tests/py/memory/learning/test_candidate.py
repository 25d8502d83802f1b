"""Candidates: proposed once, decided once, readable whatever stands in them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from loki.base import codec
from loki.base.error import UsageError
from loki.base.yaml_text import parse
from loki.memory.learning.candidate import Candidate, Candidates, Source, read, render_candidate
from loki.memory.store import Store
from loki.stores.file_store import FileStore, ForgivingStore

NOON = datetime(2026, 4, 4, 12, tzinfo=timezone.utc)
AT = "2026-04-04T10:15:30.000Z"
SOURCES = [Source("fix-a", "E: flux out", AT), Source("fix-b", "E: flux out, too", AT)]


def rule(text: str = "Never edit gen/ by hand.", at: str = AT) -> Candidate:
    return Candidate.rule(text, SOURCES, at)


def pattern(*literals: str, at: str = AT) -> Candidate:
    entry = {
        "id": "flux-out",
        "signals": [{"literal": text} for text in literals or ("flux capacitor out",)],
        "strategy": "context_expand",
        "description": "The flux is out.",
    }
    return Candidate.pattern(entry, SOURCES, at, body="Because.")


@pytest.fixture(params=["files", "forgiving"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    files = FileStore(tmp_path / ".loki")
    return files if request.param == "files" else ForgivingStore(files)


@pytest.fixture
def candidates(store: Store) -> Candidates:
    return Candidates(store)


@pytest.mark.parametrize("candidate", [rule(), pattern()], ids=["rule", "pattern"])
def test_what_was_proposed_is_open(candidates: Candidates, candidate: Candidate) -> None:
    assert candidates.propose(candidate) == candidate
    assert candidates.open() == [candidate]


def test_a_candidates_page_has_the_front_matter_that_is_agreed_on(
    candidates: Candidates, store: Store
) -> None:
    candidates.propose(rule())
    (name,) = store.keys("memory/candidates/candidate-rule-")
    fields, body = parse(store.read(name) or "")
    assert fields["category"] == "candidate-rule"
    assert fields["rule"] == "Never edit gen/ by hand."
    assert fields["status"] == "proposed"
    assert fields["sources"][0] == {"task": "fix-a", "error": "E: flux out", "at": AT}
    assert body.startswith("# Candidate rule: Never edit gen/ by hand.")


def test_an_approved_rule_is_learned(candidates: Candidates, store: Store) -> None:
    candidates.propose(rule())
    approved = candidates.approve("rule-", "ada", NOON)
    fields, body = parse(store.read(f"memory/learned/{approved.id}.md") or "")
    assert fields == {
        "id": approved.id,
        "category": "learned-rule",
        "approved_at": "2026-04-04T12:00:00.000Z",
        "approved_by": "ada",
        "sources": codec.write(SOURCES),
    }
    assert body == "Never edit gen/ by hand.\n"
    assert candidates.open() == []
    assert "status: approved" in (store.read(approved.document) or "")


def test_approving_again_writes_what_a_crash_left_out(store: Store) -> None:
    candidates = Candidates(store)
    id_ = rule().id
    candidates.propose(rule())
    record = {"id": id_, "verdict": "approved", "by": "ada", "at": AT, "reason": ""}
    store.append("memory/candidates/decisions.jsonl", record)  # and no more, before the crash
    candidates.approve(id_, "bob", NOON)
    fields, _ = parse(store.read(f"memory/learned/{id_}.md") or "")
    assert (fields["approved_by"], fields["approved_at"]) == ("ada", AT)


def test_a_rejected_one_is_not_proposed_again(candidates: Candidates, store: Store) -> None:
    candidates.propose(rule())
    rejected = candidates.reject(rule().id, "gen/ is gone", "ada", NOON)
    assert candidates.propose(rule()) is None
    assert candidates.open() == []
    assert "reason: gen/ is gone" in (store.read(rejected.document) or "")
    assert candidates.propose(rule("Another one.")) is not None


def test_a_rejected_pattern_comes_again_when_more_than_half_of_its_signals_changed(
    candidates: Candidates,
) -> None:
    candidates.propose(pattern("flux capacitor out"))
    candidates.reject(pattern("flux capacitor out").id, "noise", "ada", NOON)
    assert candidates.propose(pattern("flux capacitor gone")) is None  # 2 of 4 words are left
    assert candidates.propose(pattern("flux engine gone")) is not None  # 1 of 5


def test_patterns_from_other_tasks_are_others(candidates: Candidates) -> None:
    first = candidates.propose(pattern("alpha is out of it"))
    other = replace(pattern("bravo is out of it"), sources=(Source("fix-z"),))
    candidates.reject(pattern("alpha is out of it").id, "noise", "ada", NOON)
    assert first is not None
    assert candidates.propose(other) == other


def test_an_open_one_gathers_sources(candidates: Candidates) -> None:
    candidates.propose(pattern())
    more = replace(pattern("flux capacitor"), sources=(SOURCES[1], Source("fix-c")))
    merged = candidates.propose(more)
    assert merged is not None
    assert merged.id == pattern().id
    assert [source.task for source in merged.sources] == ["fix-a", "fix-b", "fix-c"]
    assert merged.content["signals"] == [{"literal": "flux capacitor"}]
    assert candidates.open() == [merged]


def test_deferrals_are_counted_and_go_to_the_end(candidates: Candidates) -> None:
    old, new = rule("old", AT), rule("new", "2026-04-04T11:00:00.000Z")
    candidates.propose(new)
    candidates.propose(old)
    assert [c.content for c in candidates.open()] == ["old", "new"]
    for week in range(4):
        deferred = candidates.defer(old.id, "ada", NOON + timedelta(days=7 * week))
    assert (deferred.deferrals, deferred.status) == (4, "deferred")
    assert [c.content for c in candidates.open()] == ["new", "old"]
    assert candidates.last_review() == "2026-04-25T12:00:00.000Z"


def test_no_review_was_ever(candidates: Candidates) -> None:
    candidates.propose(rule())
    assert candidates.last_review() is None


def test_what_is_decided_is_decided(candidates: Candidates) -> None:
    candidates.propose(rule())
    candidates.reject(rule().id, "no", "ada", NOON)
    said = "was rejected by ada at 2026-04-04T12:00:00.000Z: no"
    with pytest.raises(UsageError, match=said):
        candidates.approve(rule().id, "bob", NOON)
    with pytest.raises(UsageError, match=said):
        candidates.defer(rule().id, "bob", NOON)
    with pytest.raises(UsageError, match=said):
        candidates.reject(rule().id, "twice", "bob", NOON)


@pytest.mark.parametrize("id_", ["", "nobody", "../../etc/passwd", "rule-*", "pattern"])
def test_an_unknown_id_says_which_there_are(candidates: Candidates, id_: str) -> None:
    candidates.propose(rule())
    with pytest.raises(UsageError, match=f"no candidate .*expected one of: {rule().id}"):
        candidates.defer(id_, "ada", NOON)


def test_an_ambiguous_id_says_so(candidates: Candidates) -> None:
    candidates.propose(rule("a"))
    candidates.propose(rule("b"))
    with pytest.raises(UsageError, match="begins several"):
        candidates.get("rule-")


def test_a_rejection_needs_a_reason(candidates: Candidates) -> None:
    candidates.propose(rule())
    with pytest.raises(UsageError, match="needs a reason"):
        candidates.reject(rule().id, " \n", "ada", NOON)


def test_a_damaged_page_is_skipped_with_a_warning(
    candidates: Candidates, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    candidates.propose(rule())
    store.write("memory/candidates/candidate-rule-00000000.md", "no front matter")
    store.write("memory/candidates/candidate-rule-11111111.md", "---\nid: rule-../../x\n---\n")
    store.write(
        "memory/candidates/candidate-pattern-22222222.md", "---\nid: pattern-22222222\n---\n"
    )
    assert candidates.open() == [rule()]
    assert caplog.text.count("skipped") == 3


def test_secrets_are_masked_and_the_page_still_reads(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    candidates = Candidates(ForgivingStore(store))
    text = "login failed: password='hunter2secret', token=\"ghp_" + "a" * 36 + '"'
    candidates.propose(Candidate.rule(text, [Source("t", text)], AT, body=text))
    (kept,) = candidates.open()
    assert "hunter2secret" not in str(kept)
    assert "ghp_" not in (store.read(kept.document) or "")


hostile = st.text(
    st.one_of(st.sampled_from("-\n`#:'\"[]<>&*|\t \u2028\x85"), st.characters(codec="utf-8")),
    max_size=50,
)


@given(text=hostile.filter(str.strip), error=hostile, task=hostile, reason=hostile)
def test_no_text_breaks_a_page(text: str, error: str, task: str, reason: str) -> None:
    candidate = replace(
        Candidate.rule(text, [Source(task, error)], AT),
        status="rejected",
        reason=reason,
        decided_at=AT,
        decided_by="ada",
    )
    page = render_candidate(candidate)
    back = read(page)
    assert back.content == text
    assert [(s.task, s.error) for s in back.sources] == [(task, error)]
    _, body = parse(page)
    headings = [line for line in body.splitlines() if line.startswith("#")]
    assert [line.split(" ", 1)[0] for line in headings] == ["#", "##", "##"]


@given(hostile.filter(str.strip))
def test_no_signal_breaks_the_fence_of_what_would_be_added(text: str) -> None:
    candidate = pattern(text)
    _, body = parse(render_candidate(candidate))
    ticks = body.split("## What would be added\n\n")[1].split("yaml\n")[0]
    inside = body.split(f"{ticks}yaml\n")[1].split(f"\n{ticks}\n")[0]
    assert yaml.safe_load(inside) == [candidate.content]

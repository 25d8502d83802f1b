"""Patterns drawn from failures that no pattern knew: they match those, and nothing else."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import loki
from loki.base.yaml_text import dump, parse
from loki.memory.attempt import Attempt, History
from loki.memory.dead_letter import DeadLetter
from loki.memory.dead_letter_log import DeadLetterLog
from loki.memory.learning import pattern_learning
from loki.memory.learning.candidate import Candidates
from loki.recognition.failure import Failure
from loki.recognition.pattern import PatternSet
from loki.stores.file_store import FileStore
from support.examples import examples
from support.loop import MakeFailure, MakePattern

AT = "2026-04-04T10:15:30.000Z"
PATTERNS = PatternSet.default()
NEAR = ["FROB-ERR flange 9 oiled", "src/flux/x.py:1: sprocket drift within limits"]


def output(n: int) -> str:
    return (
        f"Frobnicator v1.{n} starting\n"
        f"src/flux/part{n}.py:1{n}: FROB-ERR flange {n} misaligned: sprocket drift in 'mod_{n}'\n"
        f"Frobnicator: giving up after {n} s\n"
    )


def unknown(n: int) -> Failure:
    failure = loki.recognize(output(n), command="frob check")
    assert failure.match is None
    return failure


def extended(entry: dict[str, Any]) -> PatternSet:
    return PatternSet.loads(dump({"version": 2, "extends": "default", "patterns": [entry]}))


# --- what is alike --------------------------------------------------------------------------------


def test_failures_are_alike_whatever_they_are_about() -> None:
    assert pattern_learning.alike(unknown(1), unknown(2))


@pytest.mark.parametrize(
    "other",
    [
        Failure.of("FROB-ERR flange 2 oiled", path="src/a.py"),
        Failure.of("FROB-ERR flange 2 misaligned: sprocket drift in 'mod_2'", path="src/a.rs"),
        Failure.of("FROB-ERR flange 2 misaligned: sprocket drift in 'x'", path="a.py", error_code="E1"),
    ],
    ids=["words", "extension", "code"],
)  # fmt: skip
def test_failures_that_differ_are_not_alike(other: Failure) -> None:
    one = Failure.of(
        "FROB-ERR flange 1 misaligned: sprocket drift in 'y'", path="b.py", error_code="E2"
    )
    assert not pattern_learning.alike(one, other)


def test_two_words_are_alike_by_chance() -> None:
    assert not pattern_learning.alike(Failure.of("it failed"), Failure.of("it failed"))


# --- what is drawn --------------------------------------------------------------------------------


def test_a_drawn_pattern_recognizes_the_next_failure_of_its_kind() -> None:
    entry = pattern_learning.draw(
        [unknown(n) for n in (1, 2, 3)], [loki.recognize(t) for t in NEAR], PATTERNS
    )
    assert entry is not None
    patterns = extended(entry)
    for n in (1, 2, 3, 47):
        found = loki.recognize(output(n), command="frob check", patterns=patterns)
        assert (found.pattern_id, found.strategy) == (entry["id"], "analyze_then_fix")
        assert found.confidence >= 0.7
    for text in NEAR:
        assert loki.recognize(text, patterns=patterns).match is None


def test_a_drawn_pattern_says_what_it_was_drawn_from() -> None:
    entry = pattern_learning.draw([unknown(n) for n in (1, 2, 3)], [], PATTERNS)
    assert entry is not None
    assert entry["id"] == "misaligned-sprocket-drift-in"
    assert entry["signals"][0] == {"word": "misaligned: sprocket drift in"}
    assert entry["description"].startswith("Learned from 3 tasks that failed alike: FROB-ERR")
    assert entry["examples"][0] == "FROB-ERR flange 1 misaligned: sprocket drift in 'mod_1'"
    assert pattern_learning.draw([unknown(n) for n in (1, 2, 3)], [], PATTERNS) == entry


def test_its_examples_come_out() -> None:
    from loki.recognition.definition_inspection import inspect

    entry = pattern_learning.draw([unknown(n) for n in (1, 2, 3)], [], PATTERNS)
    text = dump({"version": 2, "extends": "default", "patterns": [entry]})
    assert inspect(text, "own.yml").findings == ()


def test_strategies_that_led_nowhere_are_not_suggested() -> None:
    sources = [unknown(n) for n in (1, 2, 3)]
    for tried, expected in (
        (set(), "analyze_then_fix"),
        ({"analyze_then_fix"}, "context_expand"),
        ({"analyze_then_fix", "context_expand"}, "escalate"),
    ):
        entry = pattern_learning.draw(sources, [], PATTERNS, frozenset(tried))
        assert entry is not None
        assert entry["strategy"] == expected


def test_where_each_phrase_is_said_elsewhere_two_in_one_line_may_tell() -> None:
    said = ["flange {} misaligned, though sprocket drift {}"] * 3
    sources = [Failure.of(text.format(n, n), path="a.py") for n, text in enumerate(said, 1)]
    others = [
        Failure.of("flange 1 misaligned, though it is fine", path="b.py"),
        Failure.of("we saw misaligned, though sprocket drift", path="b.py"),
    ]
    entry = pattern_learning.draw(sources, others[:1], PATTERNS)
    assert entry is not None
    assert "word" in entry["signals"][0]
    parts = [Failure.of("misaligned, though sprocket drift", path="b.py")]
    assert pattern_learning.draw(sources, parts, PATTERNS) is None
    apart = [
        Failure.of(f"zork brake {n} off, gauge nine {n} shows", path="a.py") for n in (1, 2, 3)
    ]
    elsewhere = [
        Failure.of("the zork brake is fine", path="b.py"),
        Failure.of("off, gauge nine is fine", path="b.py"),
    ]
    entry = pattern_learning.draw(apart, elsewhere, PATTERNS)
    assert entry is not None
    assert entry["signals"] == [{"regex": r"(?i)\bzork\ brake\b.*\boff,\ gauge\ nine\b"}]


def test_what_known_patterns_say_is_no_signal() -> None:
    """Three failures that share only what an example of a known pattern says draw nothing."""
    sources = [
        Failure.of(f"{word} Permission denied", path="a.py") for word in ("qqq", "www", "eee")
    ]
    assert pattern_learning.draw(sources, [], PATTERNS) is None


def test_an_id_never_replaces_a_pattern() -> None:
    entry = pattern_learning.draw([unknown(n) for n in (1, 2, 3)], [], PATTERNS)
    assert entry is not None
    taken = PATTERNS.with_patterns(
        [{**entry, "signals": [{"word": "something else entirely"}], "examples": []}]
    )
    again = pattern_learning.draw([unknown(n) for n in (1, 2, 3)], [], taken)
    assert again is not None
    assert again["id"].startswith(f"{entry['id']}-")
    assert again["signals"] == entry["signals"]


VOCABULARY = ["flange", "sprocket", "drift", "misaligned", "valve", "Über", "a.b", "x-y", "(z", "[q]*", "$1", "E77", "'quoted'", "\\d", "#no", "key:", "- item", "<div>"]  # fmt: skip
sentence = st.lists(st.sampled_from(VOCABULARY), min_size=2, max_size=9).map(" ".join)
argument = st.one_of(
    st.integers(0, 10**6).map(str), st.text("abcdefgh", min_size=1, max_size=6).map("'{}'".format)
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=examples(60))
@given(
    before=sentence,
    after=sentence,
    arguments=st.lists(argument, min_size=3, max_size=5, unique=True),
    others=st.lists(st.tuples(sentence, argument), max_size=6),
)
def test_signals_match_all_sources_and_no_other_failure(
    before: str, after: str, arguments: list[str], others: list[tuple[str, str]]
) -> None:
    sources = [Failure.of(f"{before} {one} {after}", path="a.py") for one in arguments]
    foreign = [Failure.of(f"{text} {one}", path="b.py") for text, one in others]
    entry = pattern_learning.draw(sources, foreign, PATTERNS)
    assume(entry is not None)
    assert entry is not None
    patterns = extended(entry)
    for source in sources:
        best = patterns.match(pattern_learning.Evidence.of(source).text)[0]
        assert (best.pattern, best.confidence >= 0.5) == (entry["id"], True)
    for other in foreign:
        told = patterns.match(pattern_learning.Evidence.of(other).text)
        assert entry["id"] not in [match.pattern for match in told]
    assert yaml.safe_load(dump([entry])) == [entry]


# --- in a workspace -------------------------------------------------------------------------------


def keep(store: FileStore, task: str, failure: Failure, patterns: PatternSet = PATTERNS) -> str:
    attempt = Attempt(1, AT, "tried", "failed", error=failure.message, failure=failure.to_dict())
    History(store, task).append(attempt)
    reason = "retry_budget_exhausted"
    letter = DeadLetter.of(task, f"Do {task}", [attempt], failure, reason, AT, {})
    page = f"tasks/{task}/dead-letter-{task}.md"
    DeadLetterLog(store, patterns).add(letter, [attempt], page)
    return store.read(page) or ""


def test_the_third_alike_proposes_a_pattern(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    other = loki.recognize("src/y.py:3: FROB-ERR sprocket drift in reserve")
    History(store, "other").append(Attempt(1, AT, "x", "failed", failure=other.to_dict()))
    for n in (1, 2):
        assert "Pattern learning" not in keep(store, f"task-{n}", unknown(n))
    page = keep(store, "task-3", unknown(3))
    (candidate,) = Candidates(store).open()
    assert [source.task for source in candidate.sources] == ["task-1", "task-2", "task-3"]
    assert f"in `.loki/{candidate.document}`" in page.split("## Pattern learning candidate")[1]
    fields, _ = parse(store.read(candidate.document) or "")
    assert fields["pattern"] == candidate.content
    patterns = extended(candidate.content)
    assert loki.recognize(output(8), patterns=patterns).pattern_id == candidate.name
    assert (
        loki.recognize("src/y.py:3: FROB-ERR sprocket drift in reserve", patterns=patterns).match
        is None
    )


def test_a_fourth_joins_the_candidate(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    for n in range(1, 5):
        page = keep(store, f"task-{n}", unknown(n))
    (candidate,) = Candidates(store).open()
    assert {source.task for source in candidate.sources} == {f"task-{n}" for n in range(1, 5)}
    assert "4 tasks failed like this" in page


def test_a_known_failure_is_not_learned(
    tmp_path: Path, make_failure: MakeFailure, make_pattern: MakePattern
) -> None:
    store = FileStore(tmp_path)
    for n in range(4):
        message = f"FROB-ERR flange {n} misaligned: sprocket drift"
        keep(store, f"t{n}", make_failure(message, make_pattern(), confidence=0.5))
    assert Candidates(store).all() == []
    for n in range(4):
        message = f"FROB-ERR flange {n} misaligned: sprocket drift"
        keep(store, f"u{n}", make_failure(message, make_pattern(), confidence=0.45))
    assert len(Candidates(store).all()) == 1


def test_what_was_rejected_is_not_proposed_again(tmp_path: Path) -> None:
    from loki.testing import ManualClock

    store = FileStore(tmp_path)
    for n in (1, 2, 3):
        keep(store, f"task-{n}", unknown(n))
    candidates = Candidates(store)
    candidates.reject(candidates.open()[0].id, "a cable was loose", "ada", ManualClock().now())
    assert "Pattern learning" not in keep(store, "task-4", unknown(4))
    assert candidates.open() == []


def test_what_a_pattern_knows_by_now_does_not_count(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    for n in (1, 2):
        keep(store, f"task-{n}", unknown(n))
    entry = {
        "id": "own",
        "description": "x",
        "strategy": "escalate",
        "signals": [{"word": "mod_1"}],
    }
    keep(store, "task-3", unknown(3), extended(entry))
    assert Candidates(store).all() == []
    keep(store, "task-4", unknown(4), extended(entry))
    assert len(Candidates(store).all()) == 1


def test_where_nothing_can_be_drawn_that_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = FileStore(tmp_path)
    caplog.set_level(logging.INFO, logger="loki")
    for n in range(3):
        keep(store, f"t{n}", Failure.of(f"a {n} b {n} c {n} d", path="a.py"))
    assert "task=t2 no pattern could be drawn" in caplog.text
    assert Candidates(store).all() == []

"""The built-in set on its own examples, the scoring of SPEC section 3, and files of users."""

from pathlib import Path
from typing import Any

import pytest
import yaml

import loki
from loki.recognition import pattern
from loki.recognition.pattern import band
from support.paths import ROOT

FILE = ROOT / "python/loki/recognition/failure-patterns.yml"
KINDS = [
    "lint-error",
    "type-error",
    "test-failure",
    "import-not-found",
    "syntax-error",
    "permission-error",
    "merge-conflict",
    "network-error",
    "build-error",
    "runtime-error",
    "shell-error",
    "git-error",
    "circular-dependency",
    "memory-limit",
    "timeout-error",
    "version-mismatch",
    "config-parse-error",
    "env-missing",
    "regression-detected",
    "rate-limit",
    "disk-full",
    "auth-error",
    "port-in-use",
    "infra-lost",
    "user-abort",
    "security-violation",
]
BUILTIN = yaml.safe_load(FILE.read_text(encoding="utf-8"))["patterns"]


def texts(key: str) -> list[Any]:
    return [
        pytest.param(entry["id"], text, id=f"{entry['id']}: {text[:40]}")
        for entry in BUILTIN
        for text in entry.get(key, [])
    ]


@pytest.mark.parametrize(("pattern_id", "text"), texts("examples"))
def test_an_example_matches_its_pattern_best(pattern_id: str, text: str) -> None:
    assert loki.PatternSet.default().match(text)[0].pattern == pattern_id


@pytest.mark.parametrize(("pattern_id", "text"), texts("near_misses"))
def test_a_near_miss_does_not_match(pattern_id: str, text: str) -> None:
    assert pattern_id not in [m.pattern for m in loki.PatternSet.default().match(text)]


def test_all_kinds_are_there_with_examples_and_near_misses() -> None:
    patterns = loki.PatternSet.default().patterns
    assert set(KINDS) <= {p.kind for p in patterns.values()}
    assert all(len(p.examples) >= 4 and len(p.near_misses) >= 3 for p in patterns.values())


def test_what_is_never_retried() -> None:
    patterns = loki.PatternSet.default().patterns
    never = {p.id for p in patterns.values() if p.non_retryable}
    assert never == {
        "permission-error",
        "merge-conflict",
        "git-error",
        "auth-error",
        "memory-limit",
        "env-missing",
        "user-abort",
        "security-violation",
    }
    assert all(patterns[one].alternatives == () for one in never)
    assert all(patterns[one].max_auto_retries == 0 for one in never)


def test_strategies_and_criteria() -> None:
    known = loki.PatternSet.default()
    assert set(known.strategies) == {
        "auto_fix",
        "context_expand",
        "analyze_then_fix",
        "dependency_check",
        "retry_with_backoff",
        "escalate",
    }
    assert all(s.description and s.steps for s in known.strategies.values())
    assert set(known.success_criteria) == {
        "bug_fix",
        "feature",
        "refactor",
        "security",
        "config_change",
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Found 0 errors.",
        "Success: no issues found in 12 source files",
        "All checks passed!",
        "===== 12 passed in 0.31s =====",
        "usage: tool [-h] [--verbose] file",
        "invited 3 vitae, digitized the copyright",
    ],
)
def test_benign_output_matches_nothing(text: str) -> None:
    assert loki.recognize(text).match is None


def small(signals: str, extra: str = "", version: int = 2) -> loki.PatternSet:
    return loki.PatternSet.loads(
        f"version: {version}\npatterns:\n  - id: p\n    strategy: escalate\n    description: d\n"
        f"    signals: {signals}\n{extra}"
    )


@pytest.mark.parametrize(
    ("signals", "text", "confidence"),
    [
        ("[{literal: alpha}]", "xALPHAx", 0.7),
        ("[{literal: alpha}, {literal: beta}]", "alpha beta", 0.91),
        ("[{literal: alpha}, {literal: beta, w: weak}]", "alpha beta", 0.745),
        ("[{literal: alpha, w: weak}, {literal: beta, w: weak}, {literal: gamma, w: weak}]",
         "alpha beta gamma", None),
        ("[{literal: alpha, w: 0.5}]", "alpha", 0.5),
        ("[{word: alpha}]", "alphabet", None),
        ("[{word: alpha}]", "(alpha)", 0.7),
        ("[{regex: 'alp.a'}]", "ALPHA", None),
        ("[{regex: '(?i)al.ha', slow: true}]", "ALPHA", 0.7),
        ("[{any: [{literal: alpha}, {word: beta}]}]", "alpha beta alpha", 0.7),
        ("[{literal: alpha}, {literal: alp}]", "alpha", 0.7),
        ("[{literal: alpha}, {literal: alp}]", "alpha alp", 0.91),
        ("[{literal: alpha}, {not: {word: beta}}]", "alpha beta", None),
    ],
)  # fmt: skip
def test_evidence(signals: str, text: str, confidence: float | None) -> None:
    """Independent hits combine; nested ones count once; weak ones alone match nothing."""
    found = small(signals).match(text)
    assert [m.confidence for m in found] == (
        [] if confidence is None else [pytest.approx(confidence)]
    )


@pytest.mark.parametrize(
    ("signals", "text", "confidence"),
    [
        ("[alpha, beta, gamma]", "ALPHA beta", 2 / 3),
        ("[alpha, beta, gamma, delta]", "alpha", None),
        ("['a.+z', x]", "Abcz", 0.5),
        ("['[brackets]', x]", "[brackets]", 0.5),
        ("['(one|two)', x]", "two", 0.5),
    ],
)
def test_version_1_scores_by_the_share_of_signals(
    signals: str, text: str, confidence: float | None
) -> None:
    found = small(signals, version=1).match(text)
    assert [m.confidence for m in found] == (
        [] if confidence is None else [pytest.approx(confidence, abs=1e-5)]
    )


def test_ties_fail_safe() -> None:
    known = loki.PatternSet.loads("""
version: 2
patterns:
  - {id: first, strategy: auto_fix, description: d, signals: [{literal: boom}]}
  - {id: safe, strategy: escalate, description: d, signals: [{literal: boom}], non_retryable: true}
  - {id: rusty, strategy: escalate, description: d, signals: [{literal: boom}], language: rust}
""")
    assert [m.pattern for m in known.match("boom")] == ["safe", "first", "rusty"]
    assert [m.pattern for m in known.match("boom", language="go")] == ["safe", "first"]
    assert [m.pattern for m in known.match("boom", language="rust")] == ["safe", "rusty", "first"]


@pytest.mark.parametrize(
    ("confidence", "name"), [(0.7, "high"), (0.69, "medium"), (0.3, "low"), (0, "none")]
)
def test_bands(confidence: float, name: str) -> None:
    assert band(confidence) == name


def test_spans_index_the_text_that_was_passed() -> None:
    text = "ünïcode \x1b[31m\ud800 boom\x1b[0m and \N{PILE OF POO} boom"
    (match,) = small("[{word: boom}]").match(text)
    assert [text[begin:end] for begin, end in match.spans] == ["boom"]
    raw = "ünïcode \x1b[31mboom\x1b[0m".encode()
    (match,) = small("[{word: boom}]").match(raw)
    assert [raw[begin:end] for begin, end in match.spans] == [b"boom"]


def test_extends_replaces_and_adds() -> None:
    own = loki.PatternSet.loads("""
version: 1
extends: default
patterns:
  - {id: lint-error, strategy: escalate, description: ours, signals: [frobnicate]}
  - {id: ours, strategy: escalate, description: ours, signals: [flux]}
""")
    base = loki.PatternSet.default()
    assert list(own.patterns) == [*base.patterns, "ours"]
    assert own.patterns["lint-error"].description == "ours"
    assert own.match("frobnicate")[0].confidence == 1
    assert own.match("No module named 'x'")[0].pattern == "import-not-found"
    assert own.strategies == base.strategies


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(loki.ConfigError, match="No such file"):
        loki.PatternSet.load(tmp_path / "none.yml")
    path = tmp_path / "mine.yml"
    path.write_text("version: 2\npatterns: 7\n")
    with pytest.raises(loki.ConfigError, match=r"mine\.yml:2:11: found 7"):
        loki.PatternSet.load(path)


def test_a_named_pattern_needs_no_match() -> None:
    match = loki.PatternSet.default().named("syntax-error")
    assert (match.confidence, match.band) == (1.0, "high")
    assert pattern.DEFAULT_STRATEGY in loki.PatternSet.default().strategies

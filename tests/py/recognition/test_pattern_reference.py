"""The pattern engine equals a slow, obvious one: no scan, no required literals, every regex on every line."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import loki
from benchmarks.scoring import MOST_HITS, Definition, Hit, score

# Few letters and words, so that hits, near-misses and hits inside of hits are common.
WORDS = [
    "err",
    "error",
    "errors",
    "Error",
    "port",
    "report",
    "É",
    "école",
    "ÉCOLE",
    "db_err",
    "жду",
    "ЖДУ",
]
LONG_S = chr(0x17F)  # an s in two bytes, which `re` and RE2 take for one where case is ignored
PIECES = [*WORDS, *(" ", ": ", "_", "\n", "-", "9", "é", chr(0x212A), LONG_S)]
texts = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
words = st.sampled_from(WORDS)
regexes = st.sampled_from(
    [
        "err(or)?",
        "(?i)PORT:? ?err",
        "port|école",
        "^err",
        "error$",
        r"\berr\b",
        "[^:]+: err",
        "(?:db_)?err+ors?",
        "(?i)école",
        "r{2}o",
        "(err|жду).port",
    ]
)
simple = st.one_of(
    st.builds(lambda word: {"literal": word}, words),
    st.builds(lambda word: {"word": word}, words),
    st.builds(lambda regex: {"regex": regex, "slow": True}, regexes),
)
probes = st.one_of(simple, st.lists(simple, min_size=1, max_size=3).map(lambda some: {"any": some}))


@st.composite
def signals(draw: st.DrawFn) -> list[dict[str, Any]]:
    weights = st.sampled_from(["strong", "weak", 0.3, 0.5, 1.0])
    found = [
        {**probe, "w": draw(weights)} for probe in draw(st.lists(probes, min_size=1, max_size=4))
    ]
    found += [{"not": probe} for probe in draw(st.lists(probes, max_size=1))]
    return found


def document(version: int, *all_signals: Any) -> dict[str, Any]:
    """A pattern file in which only the signals matter."""
    rest = {"strategy": "escalate", "description": "", "max_auto_retries": 0, "auto_fixable": False}
    patterns = [{"id": f"p{i}", "signals": own, **rest} for i, own in enumerate(all_signals)]
    return {"version": version, "patterns": patterns}


def fold(text: str) -> str:
    """Lower case where that is as long in UTF-8."""
    return "".join(
        low if len(low) == 1 and len(low.encode()) == len(c.encode()) and c != LONG_S else c
        for c in text
        for low in [c.lower()]
    )


def is_word(c: str) -> bool:
    return c == "_" or c.isalnum() or not c.isascii()


# RE2's \\b knows ASCII only.
_ASCII = "[0-9A-Za-z_]"
_BOUND = f"(?-i:(?<!{_ASCII})(?={_ASCII})|(?<={_ASCII})(?!{_ASCII}))"


def found_in(regex: str, line: str, flags: int = 0) -> re.Match[str] | None:
    return re.search(regex.replace("\\b", _BOUND), line, flags)


def spans(kind: str, wanted: str, text: str) -> list[tuple[int, int]]:
    if kind == "regex":
        found, begin = [], 0
        for line in text.split("\n"):
            if hit := found_in(wanted, line):
                found.append((begin + hit.start(), begin + hit.end()))
            begin += len(line) + 1
        return found
    hits = re.finditer(f"(?=({re.escape(fold(wanted))}))", fold(text))
    found = [hit.span(1) for hit in hits]
    if kind == "literal":
        return found
    padded = f" {text} "
    return [
        (begin, end)
        for begin, end in found
        if not (is_word(padded[begin]) and is_word(padded[begin + 1]))
        and not (is_word(padded[end]) and is_word(padded[end + 1]))
    ]


def slow(file: dict[str, Any], text: str) -> list[tuple[str, float, float]]:
    definition = Definition.of(file)
    hits: list[Hit] = []
    for probe in definition.probes:
        for begin, end in spans(probe.kind, probe.text, text):
            in_bytes = len(text[:begin].encode()), len(text[:end].encode())
            hits.append((probe.signal, *in_bytes))
    return score(definition, hits)


def answer(file: dict[str, Any], text: str) -> list[tuple[str, float, float]]:
    return sorted(
        (match.pattern, round(match.confidence, 6), round(match.coverage, 6))
        for match in loki.PatternSet(file).match(text)
    )


@given(st.lists(signals(), min_size=1, max_size=4), texts)
def test_version_2_equals_the_slow_reference(
    patterns: list[list[dict[str, Any]]], text: str
) -> None:
    file = document(2, *patterns)
    assert answer(file, text) == slow(file, text)


# SPEC section 3 names what makes a signal of version 1 a regex.
V1 = [
    "err",
    "Error:",
    "port|err",
    "(port|err)",
    "err.*port",
    "err.+",
    r"\berr",
    "[a-f]rr",
    "[err]",
    "^err",
    "$",
    "r$",
]


def v1_is_regex(signal: str) -> bool:
    return bool(
        re.search(
            r"\.[*+]|\\[dDwWsSbB]|\[\^|\[[^\]]+-[^\]]+\]|\[[^\]]*\][*+?{]|\(.*\|.*\)|^\^|.\$$",
            signal,
        )
    )


@given(st.lists(st.sampled_from(V1), min_size=1, max_size=4, unique=True), texts)
def test_version_1_equals_the_slow_reference(own: list[str], text: str) -> None:
    hits = 0
    for signal in own:
        if v1_is_regex(signal):
            hits += any(found_in(signal, line, re.IGNORECASE) for line in text.split("\n"))
        else:
            hits += bool(spans("literal", signal, text))
    share = round(hits / len(own), 6)
    assert answer(document(1, own), text) == ([("p0", share, share)] if share >= 0.3 else [])


@pytest.mark.parametrize("count", [1, MOST_HITS, 50])
def test_how_often_a_signal_hits_does_not_matter(count: int) -> None:
    assert answer(document(2, [{"literal": "err"}, {"literal": "port"}]), "err\n" * count) == [
        ("p0", 0.7, 0.5)
    ]


@given(texts)
def test_spans_say_where(text: str) -> None:
    file = document(2, [{"literal": "école"}, {"word": "err"}])
    for match in loki.PatternSet(file).match(text):
        for begin, end in match.spans:
            assert fold(text[begin:end]) in {"école", "err"}

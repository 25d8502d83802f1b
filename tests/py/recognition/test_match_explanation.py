"""What is said of a match, signal by signal, is what happens in `recognize`."""

from __future__ import annotations

from typing import Any

import pytest

import loki
from loki.recognition.match_explanation import PatternExplanation, explain_match


def only(signals: str, text: str, version: int = 2, **more: Any) -> PatternExplanation:
    """The one pattern of a set, matching or close."""
    known = loki.PatternSet.loads(
        f"version: {version}\npatterns:\n  - id: p\n    strategy: escalate\n    description: d\n"
        f"    signals: {signals}\n"
    )
    tried = explain_match(known, text, **more)
    (one,) = tried.matches or tried.close
    return one


@pytest.mark.parametrize(
    ("signals", "text", "almost"),
    [
        ("[{word: boom}]", "kaboom", "it is only a part of a longer word"),
        ("[{regex: 'Boom'}]", "boom", "only the letter case differs"),
        ("[{literal: boom, in: code}]", "boom", "it is in the text, not in the code"),
        ("[{any: [{word: boom}, {regex: Bang}]}]", "bang",
         "it is a part of a longer word, or in another letter case"),
    ],
)  # fmt: skip
def test_a_signal_that_almost_hit_says_why_it_did_not(signals: str, text: str, almost: str) -> None:
    one = only(signals, text)
    assert one.match is None
    assert [signal.almost for signal in one.signals] == [almost]


@pytest.mark.parametrize(
    ("signals", "version", "score"),
    [
        ("[{literal: boom, w: weak}, {literal: bang, w: weak}]", 2, 0.2775),
        ("[{literal: boom, w: 0.2}, {literal: bang, w: 0.2}]", 2, 0.29),
        ("[boom, a1, a2, a3]", 1, 0.25),
    ],
)
def test_what_stayed_under_the_least_says_how_far_it_came(
    signals: str, version: int, score: float
) -> None:
    one = only(signals, "boom bang", version)
    assert one.score == pytest.approx(score)
    assert one.reason.endswith("is under 0.30")


def test_spans_index_the_text_also_where_only_its_excerpt_is_looked_at() -> None:
    text = (
        "noïse\r\n" + "\x1b[1mfïller\x1b[0m\r\n" * 200 + "ValueError: \x1b[31mböom\x1b[0m here\r\n"
    )
    known = loki.PatternSet.loads(
        "version: 2\npatterns: [{id: p, strategy: escalate, description: d, "
        "signals: [{word: böom}, {literal: noïse}]}]"
    )
    tried = explain_match(known, text)
    assert tried.is_excerpt
    hit, missed = tried.matches[0].signals
    assert hit.span is not None
    assert text[slice(*hit.span)] == "böom"
    assert missed.span is None


def test_at_most_three_come_close() -> None:
    entries = "".join(
        f"  - {{id: p{i}, strategy: escalate, description: d, "
        f"signals: [{{literal: boom, w: {i / 100}}}]}}\n"
        for i in range(1, 9)
    )
    tried = explain_match(loki.PatternSet.loads(f"version: 2\npatterns:\n{entries}"), "boom")
    assert [one.pattern.id for one in tried.close] == ["p8", "p7", "p6"]

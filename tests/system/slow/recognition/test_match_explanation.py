"""What is said of a match, signal by signal, is what happens in `recognize`: what takes its time."""

from __future__ import annotations

import loki
from loki.recognition.match_explanation import explain_match
from support.tool_files import tool_files


def texts() -> list[str]:
    """Every example, near miss and sample that loki brings."""
    patterns = loki.PatternSet.default().patterns.values()
    found = [text for one in patterns for text in (*one.examples, *one.near_misses)]
    for document in tool_files().values():
        found += [sample["text"] for sample in document.get("samples", [])]
    return found


def test_a_trial_agrees_with_recognize_on_every_text() -> None:
    known = loki.PatternSet.default()
    excerpts = 0
    for text in texts():
        failure, tried = loki.recognize(text), explain_match(known, text)
        excerpts += tried.is_excerpt
        assert tuple(one.match for one in tried.matches) == failure.matches, text
        assert tried.failure == failure
        for one in tried.matches:
            assert one.match is not None
            hit = {signal.signal for signal in one.signals if signal.span is not None}
            assert set(one.match.signals) <= hit, text
            assert not any(signal.excludes for signal in one.signals if signal.span), text
        for one in tried.close:
            assert one.reason or any(signal.almost for signal in one.signals)
        assert not (tried.matches and tried.close)
    assert excerpts > 10

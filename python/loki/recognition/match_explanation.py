"""Why patterns match a text, or do not: signal by signal.

Each signal is tried as a pattern of its own, on the part of the text that decided, by the same core:
what is said here is what happens in `recognize`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from loki import _core
from loki.recognition import site
from loki.recognition.failure import Failure, recognize
from loki.recognition.pattern import KINDS_OF_SIGNAL, LEAST, Match, Pattern, PatternSet, weight

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MOST_CLOSE = 3
_WEAK_ALONE = 0.29

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class SignalExplanation:
    """One signal against one text.

    Attributes:
        signal: as written.
        weight: 0 to 1; None in version 1, where each counts the same.
        excludes: a hit speaks against the pattern.
        scope: where it must stand: anywhere, message, tool, code or kind.
        span: where it hit, in code points of the text; (0, 0) outside it, where the scope is
            another; None where it did not.
        almost: why it did not quite hit, in words; empty where it hit or is far from it.
    """

    signal: str
    weight: float | None
    excludes: bool
    scope: str
    span: Span | None
    almost: str = ""


@dataclass(frozen=True, slots=True)
class PatternExplanation:
    """One pattern against one text.

    Attributes:
        pattern: which.
        match: as `recognize` gives it, or None.
        signals: all of them, in the order of the file.
        score: what its hits come to.
        reason: why it does not match although signals hit; else empty.
    """

    pattern: Pattern
    match: Match | None
    signals: tuple[SignalExplanation, ...]
    score: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MatchExplanation:
    """A set against one text.

    Attributes:
        failure: what `recognize` says of the text.
        lines: (first, last) line of the part that was looked at: the excerpt, or all.
        is_excerpt: the excerpt decided, not the whole text.
        matches: the patterns that match, best first.
        close: where none does, those that came closest, at most three.
    """

    failure: Failure
    lines: tuple[int, int]
    is_excerpt: bool
    matches: tuple[PatternExplanation, ...]
    close: tuple[PatternExplanation, ...]


def explain_match(
    patterns: PatternSet, text: str, command: str | None = None, language: str | None = None
) -> MatchExplanation:
    """Which patterns match a text, and why.

    Args:
        patterns: the set.
        text: a tool's output.
        command: what was run, where it is known.
        language: of the project, where it is known.

    Example:
        >>> tried = explain_match(PatternSet.default(), "ModuleNotFoundError: No module named 'flask'")
        >>> tried.matches[0].pattern.id
        'import-not-found'
    """
    failure = recognize(text, command=command, language=language, patterns=patterns)
    subject = _Subject(patterns, text, failure)
    hits = subject.hits(_alone(patterns))
    found = {match.pattern: match for match in failure.matches}
    almost: Mapping[int, Span] = {}
    if not found:
        almost = subject.hits(_alone(patterns, is_relaxed=True))
    tried, number = [], 0
    for entry in patterns.definition.get("patterns", []):
        count = len(entry["signals"])
        signals = _signal_trials(patterns, entry, range(number, number + count), hits, almost)
        number += count
        match = found.get(entry["id"])
        score = match.confidence if match else _score(signals)
        reason = "" if match else _reason(patterns.patterns[entry["id"]], signals, score, failure)
        tried.append(
            PatternExplanation(patterns.patterns[entry["id"]], match, signals, score, reason)
        )
    order = list(found)
    matches = sorted((t for t in tried if t.match), key=lambda t: order.index(t.pattern.id))
    return MatchExplanation(
        failure, subject.lines, subject.is_excerpt, tuple(matches), _closest(tried, found)
    )


class _Subject:
    """The part of a text that patterns are matched with: the excerpt, or all where it tells nothing."""

    def __init__(self, patterns: PatternSet, text: str, failure: Failure) -> None:
        said = [part for part in (failure.error_type, failure.message) if part]
        self._context = (
            failure.language or "",
            ": ".join(said),
            failure.tool or "",
            failure.error_code or "",
            failure.tool_kind or "",
            site.rules(),
        )
        end = "\n" if "\n" in text else "\r"
        rows = text.split(end)
        self.text, self._begin, self.lines, self.is_excerpt = text, 0, (1, len(rows)), False
        if failure.site_lines is None:
            return
        first, last = failure.site_lines
        excerpt = end.join(rows[first - 1 : last])
        if len(excerpt.strip()) < len(text.strip()) and patterns.core.match_site(
            excerpt, *self._context
        ):
            self._begin = sum(len(row) + 1 for row in rows[: first - 1])
            self.text, self.lines, self.is_excerpt = excerpt, (first, last), True

    def hits(self, core: _core.PatternSet) -> dict[int, Span]:
        """Number of a pattern to where it hit, of patterns with one signal each."""
        found = {}
        for number, _, _, hits in core.match_site(self.text, *self._context):
            begin, end = hits[0][1:]
            inside = end > begin
            found[number] = (begin + self._begin, end + self._begin) if inside else (0, 0)
        return found


@lru_cache(maxsize=4)  # compiled once a set, not once a text: whoever tries one text tries more
def _alone(patterns: PatternSet, *, is_relaxed: bool = False) -> _core.PatternSet:
    """Every signal of every pattern, each as a pattern of its own."""
    entries = patterns.definition.get("patterns", [])
    signals = [signal for entry in entries for signal in entry["signals"]]
    tried = [_relaxed(signal) if is_relaxed else _tried(signal) for signal in signals]
    numbered = [{**one, "id": str(number)} for number, one in enumerate(tried)]
    return _core.PatternSet(json.dumps({"version": 2, "patterns": numbered}))


def _tried(signal: Any) -> dict[str, Any]:
    """A pattern that matches where the signal hits."""
    if isinstance(signal, str):
        return {"version": 1, "signals": [signal]}
    inner = signal.get("not", signal)
    kept = {key: inner[key] for key in (*KINDS_OF_SIGNAL, "slow") if key in inner}
    kept |= {key: signal[key] for key in ("slow", "in") if key in signal}
    return {"version": 2, "signals": [kept]}


def _relaxed(signal: Any) -> dict[str, Any]:
    """The same for a signal that is not quite hit: inside a word, in another letter case, elsewhere."""
    if isinstance(signal, str) or "not" in signal:
        return _tried(signal)
    one = {key: value for key, value in signal.items() if key in KINDS_OF_SIGNAL}
    loose = {"any": [_loose(each) for each in one["any"]]} if "any" in one else _loose(one)
    return {"version": 2, "signals": [{**loose, "slow": True}]}


def _loose(signal: Mapping[str, Any]) -> dict[str, Any]:
    if "regex" in signal:
        return {"regex": f"(?i){signal['regex']}", "slow": True}
    return {"literal": signal.get("word") or signal["literal"]}


def _signal_trials(
    patterns: PatternSet,
    entry: Mapping[str, Any],
    numbers: range,
    hits: Mapping[int, Span],
    almost: Mapping[int, Span],
) -> tuple[SignalExplanation, ...]:
    shown = patterns.patterns[entry["id"]].signals
    return tuple(
        SignalExplanation(
            signal=shown[index],
            weight=weight(signal),
            excludes=not isinstance(signal, str) and "not" in signal,
            scope="anywhere" if isinstance(signal, str) else signal.get("in", "anywhere"),
            span=hits.get(number),
            almost=_missed(signal) if number in almost and number not in hits else "",
        )
        for index, (number, signal) in enumerate(zip(numbers, entry["signals"], strict=True))
    )


def _missed(signal: Any) -> str:
    """What kept a signal from hitting that hits when it is relaxed."""
    if signal.get("in", "anywhere") != "anywhere":
        return f"it is in the text, not in the {signal['in']}"
    if "word" in signal:
        return "it is only a part of a longer word"
    if "regex" in signal:
        return "only the letter case differs"
    return "it is a part of a longer word, or in another letter case"


def _score(signals: Sequence[SignalExplanation]) -> float:
    """What the hits come to, as the core scores them where no hit lies in another."""
    speaking = [signal for signal in signals if not signal.excludes]
    hits = [signal.weight for signal in speaking if signal.span is not None]
    if None in hits:
        return len(hits) / len(speaking)
    doubt = 1.0
    for one in hits:
        doubt *= 1 - (one or 0)
    strongest = max((one or 0 for one in hits), default=0)
    return 1 - doubt if strongest >= LEAST else min(1 - doubt, _WEAK_ALONE)


def _reason(
    pattern: Pattern, signals: Sequence[SignalExplanation], score: float, failure: Failure
) -> str:
    against = [s for s in signals if s.excludes and s.span is not None]
    if against:
        return f"excluded by {against[0].signal!r}"
    if pattern.language and failure.language and pattern.language != failure.language:
        return f"it is for {pattern.language}, and this is {failure.language}"
    return f"{score:.2f} is under {LEAST:.2f}"


def _closest(
    tried: Sequence[PatternExplanation], found: Mapping[str, Match]
) -> tuple[PatternExplanation, ...]:
    if found:
        return ()
    near = [t for t in tried if t.score > 0 or any(s.almost for s in t.signals)]
    near.sort(key=lambda t: (-t.score, -sum(bool(s.almost) for s in t.signals)))
    return tuple(near[:_MOST_CLOSE])

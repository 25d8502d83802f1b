"""Patterns drawn from failures that no pattern knew: what they share and other failures lack. Pure.

A drawn pattern is only a candidate, and a narrow one: its strong signal is the longest phrase that
every source says and no other failure. What is proposed has been tried with `PatternSet`: it
matches every source best, at `MEDIUM` confidence or more, and no other failure at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

from loki.base.error import ConfigError
from loki.base.yaml_text import dump
from loki.memory.learning.candidate import digest
from loki.recognition.failure import Failure
from loki.recognition.pattern import DEFAULT_STRATEGY, MEDIUM, PatternSet
from loki.recognition.signature import normalize
from loki.recognition.similarity import overlap, same_failure

FEWEST = 3
"""Dead letters alike that make a candidate."""

FEWEST_WORDS = 3
"""Of what a failure says; two that say less are alike by chance."""

SIMILAR = 0.8
"""Overlap above which what two failures say is substantially similar."""

MOST_WORDS = 12
"""Of a phrase. Chosen: longer ones hold what only these failures have by chance."""

LEAST_LETTERS = 8
"""Of a phrase; chosen, not measured: shorter ones are found in too much."""

MOST_PHRASES = 24
"""Phrases that are tried; chosen, not measured."""

MOST_LINES = 40
"""Lines of an excerpt that are read."""

MOST_EXAMPLES, LONGEST_EXAMPLE = 3, 300
"""Examples that a drawn pattern gets, and characters of each; chosen, not measured."""

STRATEGIES = (DEFAULT_STRATEGY, "context_expand")
"""What a drawn pattern may suggest; a person is asked where both led nowhere."""

_TOKEN = re.compile(r"<[a-z]{1,10}>|\w+|[^\w\s]|\s+")
_PLACEHOLDER = re.compile(r"<[a-z]{1,10}>")


@dataclass(frozen=True)
class Evidence:
    """What a pattern sees of a failure.

    Attributes:
        text: its code, type, message and excerpt.
        message: its message alone.
        language: of it, or None.
    """

    text: str
    message: str
    language: str | None = None

    @staticmethod
    def of(failure: Failure) -> Evidence:
        """The evidence of a failure as it was kept."""
        said = (failure.error_code, failure.error_type, failure.message, failure.excerpt)
        return Evidence("\n".join(s for s in said if s), failure.message, failure.language)

    @cached_property
    def folded(self) -> str:
        """The text with letter case ignored, as patterns read it."""
        return self.text.casefold()

    @cached_property
    def lines(self) -> list[str]:
        """Lines in which phrases are looked for: the message first."""
        return list(dict.fromkeys([self.message, *self.text.splitlines()]))[:MOST_LINES]


def is_unmatched(confidence: float) -> bool:
    """Whether no pattern knew a failure well enough."""
    return confidence < MEDIUM


def alike(a: Failure, b: Failure) -> bool:
    """Whether two failures that no pattern knew are of one kind.

    The same extension, and either the same failure or the same words without their arguments; two
    that name different codes are different.

    Example:
        >>> alike(Failure.of("no flux in 'a' left"), Failure.of("no flux in 'b' left"))
        True
    """
    if a.extension != b.extension:
        return False
    if a.error_code and b.error_code and a.error_code != b.error_code:
        return False
    said = _said(a), _said(b)
    if any(len(re.findall(r"\w+", text)) < FEWEST_WORDS for text in said):
        return False
    return same_failure(a, b) or overlap(*said) > SIMILAR


def _said(failure: Failure) -> str:
    """Type and message, as they are the same whatever they are about."""
    return f"{failure.error_type or ''} {normalize(failure.message, 'template')}"


def draw(
    sources: Sequence[Failure],
    others: Sequence[Failure],
    patterns: PatternSet,
    tried: frozenset[str] = frozenset(),
) -> dict[str, Any] | None:
    """A pattern, as it would stand in a pattern file, or None where none can be drawn.

    Args:
        sources: failures that no pattern knew and that are alike.
        others: failures that it must not match; examples of known patterns are added to them.
        patterns: the pattern set that it would be added to.
        tried: strategies that were tried for the sources and helped in none.
    """
    seen = [Evidence.of(failure) for failure in sources]
    known = [
        Evidence(text, text, pattern.language)
        for pattern in patterns.patterns.values()
        for text in pattern.examples
    ]
    foreign = [*(Evidence.of(failure) for failure in others), *known]
    languages = {one.language for one in seen}
    for signals in _signals(sources, seen, foreign):
        entry: dict[str, Any] = {
            "id": _id(signals, patterns),
            "description": _description(seen),
            "strategy": next((name for name in STRATEGIES if name not in tried), "escalate"),
            "signals": signals,
        }
        if len(languages) == 1 and None not in languages:
            entry["language"] = languages.copy().pop()
        if _holds(entry, seen, foreign, patterns):
            examples = _examples(entry, seen, patterns)
            return {**entry, "examples": examples} if examples else entry
    return None


def matches(entry: Mapping[str, Any], failure: Failure, patterns: PatternSet) -> bool:
    """Whether a pattern would be what a failure matches best, well enough to count."""
    if _alone(entry) is None:
        return False
    return _is_best(entry, Evidence.of(failure), patterns.with_patterns([entry]))


def _alone(entry: Mapping[str, Any]) -> PatternSet | None:
    """A set of this pattern only; None where it is wrong."""
    try:
        return PatternSet.loads(dump({"version": 2, "patterns": [dict(entry)]}))
    except ConfigError:
        return None


def _holds(
    entry: Mapping[str, Any],
    sources: Sequence[Evidence],
    others: Sequence[Evidence],
    patterns: PatternSet,
) -> bool:
    """Whether a pattern is right as a file of its own, and matches every source and no other."""
    alone = _alone(entry)
    if alone is None or any(alone.match(other.text, other.language) for other in others):
        return False
    extended = patterns.with_patterns([entry])
    return all(_is_best(entry, source, extended) for source in sources)


def _is_best(entry: Mapping[str, Any], seen: Evidence, extended: PatternSet) -> bool:
    best = next(iter(extended.match(seen.text, seen.language)), None)
    return best is not None and best.pattern == entry["id"] and best.confidence >= MEDIUM


# --- Signals ----------------------------------------------------------------------------------------


def _signals(
    sources: Sequence[Failure], seen: Sequence[Evidence], others: Sequence[Evidence]
) -> Iterator[list[dict[str, Any]]]:
    """Signals that all sources show and no other failure does, the most telling first."""
    phrases = _phrases(seen)[:MOST_PHRASES]
    single = [phrase for phrase in phrases if not _said_by(phrase, others)]
    codes = [
        value
        for value in (
            _same([f.error_code for f in sources]),
            _same([f.error_type for f in sources]),
        )
        if value and not _said_by(value, others)
    ]
    said = seen[0].message
    for phrase in single:
        apart = (p for p in single if p in said and p not in phrase and phrase not in p)
        support = [word for word in dict.fromkeys((*codes, *apart)) if word not in phrase][:2]
        yield [{"word": phrase}, *({"word": word, "w": "weak"} for word in support)]
    for code in codes:
        for phrase in phrases:
            yield [{"regex": _in_one_line(code, phrase)}]
    for first, second in combinations(phrases, 2):
        for pair in ((first, second), (second, first)):
            yield [{"regex": _in_one_line(*pair)}]
    for code in codes:
        yield [{"word": code}]


def _in_one_line(first: str, second: str) -> str:
    return rf"(?i)\b{re.escape(first)}\b.*\b{re.escape(second)}\b"


def _said_by(phrase: str, others: Sequence[Evidence]) -> bool:
    folded = phrase.casefold()
    return any(folded in other.folded for other in others)


def _same(values: Sequence[str | None]) -> str | None:
    return values[0] if len(set(values)) == 1 else None


def _phrases(seen: Sequence[Evidence]) -> list[str]:
    """The longest phrases that all say: those in lines with the message and long ones first."""
    first, rest = seen[0], [one.folded for one in seen[1:]]
    aside: dict[str, bool] = {}
    for line in first.lines:
        for phrase in _common(line, rest):
            aside.setdefault(phrase, first.message not in line)
    longest = [p for p in aside if not any(p != q and p in q for q in aside)]
    return sorted(longest, key=lambda p: (aside[p], -len(p), p))


def _common(line: str, haystacks: Sequence[str]) -> Iterator[str]:
    """Runs of words of a line that stand in all texts, without what varies."""
    tokens = _TOKEN.findall(normalize(line))
    words = [index for index, token in enumerate(tokens) if re.match(r"\w", token)]
    for number, begin in enumerate(words):
        best = ""
        for end in words[number : number + MOST_WORDS]:
            phrase = "".join(tokens[begin : end + 1])
            if _PLACEHOLDER.search(phrase) or phrase not in line:
                break
            if any(phrase.casefold() not in text for text in haystacks):
                break
            best = phrase
        if sum(c.isalpha() for c in best) >= LEAST_LETTERS:
            yield best


# --- The rest of the entry --------------------------------------------------------------------------


def _id(signals: Sequence[Mapping[str, Any]], patterns: PatternSet) -> str:
    """Readable, the same for the same signals, and no pattern's of the set."""
    first = signals[0]
    text = str(first.get("word") or first.get("regex"))
    plain = re.sub(r"\(\?i\)|\\.", " ", text).lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40].strip("-") or "learned"
    return slug if slug not in patterns.patterns else f"{slug}-{digest(dump(list(signals)))[:6]}"


def _description(seen: Sequence[Evidence]) -> str:
    said = " ".join(normalize(seen[0].message).split())[:100]
    return f"Learned from {len(seen)} tasks that failed alike: {said}"


def _examples(
    entry: Mapping[str, Any], seen: Sequence[Evidence], patterns: PatternSet
) -> list[str]:
    """A line of each of some sources that shows the pattern by itself."""
    extended = patterns.with_patterns([entry])
    found = []
    for one in seen[:MOST_EXAMPLES]:
        lines = (" ".join(line.split())[:LONGEST_EXAMPLE] for line in one.lines)
        shows = (line for line in lines if _is_best(entry, Evidence(line, line), extended))
        found.append(next(shows, ""))
    return [line for line in dict.fromkeys(found) if line]

"""Pattern files in plain Python: what to look for, and what the hits tell.

The packages of others (`peers`) stand on this, so that they give the answers that loki gives.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# What `re` reads regexes with; it has no public name.
sre_parser: Any = import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")

WEIGHTS = {"strong": 0.7, "weak": 0.15}
STRONG, WEAK_ALONE, LEAST = 0.7, 0.29, 0.3
IS_STRONG = 0.3  # from this weight on a hit is no weak one
MOST_HITS = 8  # of one signal
SHORTEST = 3  # bytes of a literal that is worth looking for

Scores = list[tuple[str, float, float]]
"""(pattern, confidence, coverage) of each pattern that a text shows, by name."""


@dataclass(frozen=True)
class Probe:
    """One thing to look for: a literal, a word or a regex."""

    signal: int
    kind: str
    text: str


@dataclass(frozen=True)
class Signal:
    """One signal: the number of its pattern, and what a hit tells."""

    pattern: int
    weight: float
    excludes: bool
    reachable: bool


@dataclass
class Definition:
    """A pattern file as flat lists."""

    names: list[str]
    signals: list[Signal]
    probes: list[Probe]

    @staticmethod
    def of(document: Mapping[str, Any]) -> Definition:
        """Args: document: a pattern file of version 2 as plain data."""
        found = Definition([], [], [])
        for pattern in document["patterns"]:
            found.names.append(pattern["id"])
            for signal in pattern["signals"]:
                weight = signal.get("w", STRONG)
                found.signals.append(
                    Signal(
                        len(found.names) - 1,
                        WEIGHTS.get(weight, weight),
                        "not" in signal,
                        signal.get("in", "anywhere") in {"anywhere", "message"},
                    )
                )
                found._add(signal.get("not", signal))
        return found

    @cached_property
    def totals(self) -> list[int]:
        """By pattern: the number of its signals that do not exclude."""
        counts = [0] * len(self.names)
        for signal in self.signals:
            counts[signal.pattern] += not signal.excludes
        return counts

    def _add(self, signal: Mapping[str, Any]) -> None:
        if "any" in signal:
            for one in signal["any"]:
                self._add(one)
        else:
            kind = next(kind for kind in ("literal", "word", "regex") if kind in signal)
            self.probes.append(Probe(len(self.signals) - 1, kind, signal[kind]))


def required(regex: str) -> list[str]:
    """Literals in lower case of which each match holds one; none where no such set is known."""
    return _required(sre_parser.parse(regex)) or []


def _required(parsed: Any) -> list[str] | None:
    """The best set of a sequence: the one whose shortest literal is longest."""
    sets: list[list[str]] = []
    run = ""
    for operation, argument in [*parsed, (None, None)]:
        name = str(operation)
        if name == "LITERAL" and argument < 128:
            run += chr(argument).lower()
            continue
        if len(run) >= SHORTEST:
            sets.append([run])
        run = ""
        inner = None
        if name == "SUBPATTERN":
            inner = _required(argument[-1])
        elif name == "MAX_REPEAT" and argument[0] > 0:
            inner = _required(argument[2])
        elif name == "BRANCH":
            branches = [_required(branch) for branch in argument[1]]
            if all(branches):
                inner = [literal for branch in branches for literal in branch or ()]
        if inner:
            sets.append(inner)
    return max(sets, key=lambda literals: min(map(len, literals)), default=None)


Hit = tuple[int, int, int]
"""(signal, begin, end)."""


def score(definition: Definition, hits: Iterable[Hit]) -> Scores:
    """What hits tell, pattern by pattern: independent ones combine, nested ones count once."""
    by_pattern: dict[int, list[Hit]] = {}
    for hit in hits:
        by_pattern.setdefault(definition.signals[hit[0]].pattern, []).append(hit)
    found = []
    for pattern, own in by_pattern.items():
        confidence, hit_signals = _evidence(definition, own)
        if confidence >= LEAST:
            coverage = hit_signals / definition.totals[pattern]
            found.append((definition.names[pattern], round(confidence, 6), round(coverage, 6)))
    return sorted(found)


def _evidence(definition: Definition, hits: list[Hit]) -> tuple[float, int]:
    signals = definition.signals
    if any(signals[signal].excludes for signal, _, _ in hits):
        return 0.0, 0
    hits.sort(key=lambda hit: (-signals[hit[0]].weight, hit[1] - hit[2], hit[1], hit[0]))
    accepted: list[Hit] = []
    counted: set[int] = set()
    doubt, strong = 1.0, 0
    for signal, begin, end in hits:
        nested = any(s != signal and b <= begin and end <= e for s, b, e in accepted)
        if signal in counted or nested:
            continue
        counted.add(signal)
        accepted.append((signal, begin, end))
        doubt *= 1 - signals[signal].weight
        strong += signals[signal].weight >= IS_STRONG
    confidence = 1 - doubt if strong else min(1 - doubt, WEAK_ALONE)
    return confidence, len({signal for signal, _, _ in hits})

"""Similarity and grouping in plain Python, and measures of how right a grouping is."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FEWEST = 3  # tokens; under that only equality counts

_TOKEN = re.compile(r"<[a-z]{1,10}>|\w+")


def tokens(normalized: str) -> frozenset[str]:
    """The tokens of a normalized text: words in one letter case, and placeholders."""
    return frozenset(token.casefold() for token in _TOKEN.findall(normalized))


def overlap(a: frozenset[str], b: frozenset[str]) -> float:
    """Jaccard; under 3 tokens only equality counts."""
    if len(a) < FEWEST or len(b) < FEWEST:
        return float(a == b)
    shared = len(a & b)
    return shared / (len(a) + len(b) - shared)


def overlaps(text: frozenset[str], sets: Iterable[frozenset[str]]) -> list[float]:
    """The overlap of one text with each of many."""
    size, few = len(text), len(text) < FEWEST
    found = []
    for other in sets:
        if few or len(other) < FEWEST:
            found.append(float(text == other))
            continue
        shared = len(text & other)
        found.append(shared / (size + len(other) - shared))
    return found


def pairs(groups: Sequence[int], truth: Sequence[int]) -> tuple[float, float]:
    """Precision and recall over pairs that are in one group."""

    def count(labels: Iterable[object]) -> int:
        return sum(n * (n - 1) // 2 for n in Counter(labels).values())

    both, mine, true = count(zip(groups, truth, strict=True)), count(groups), count(truth)
    return (both / mine if mine else 1.0), (both / true if true else 1.0)


def grouping_accuracy(groups: Sequence[int], truth: Sequence[int]) -> float:
    """The share of lines whose group holds exactly the lines of their template.

    Source:
        Zhu et al., "Tools and benchmarks for automated log parsing", 2019.
    """
    both = Counter(zip(groups, truth, strict=True))
    mine, true = Counter(groups), Counter(truth)
    right = sum(n for (g, t), n in both.items() if n == mine[g] == true[t])
    return right / len(groups)

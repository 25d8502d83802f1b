"""How alike two texts are, and whether two failures are the same."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from loki import _core
from loki.base.argument_checks import listed, thread_count
from loki.recognition.failure import Failure, as_failure
from loki.recognition.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable

THRESHOLD = 0.8
"""Overlap of two sites above which they are substantially similar, as the specification has it."""


def overlap(a: Text, b: Text) -> float:
    """Token overlap of two texts, 0 to 1: shared tokens over all tokens (Jaccard).

    Tokens are the distinct runs of letters, digits and ``_`` of the normalized texts, letter case
    folded. Two empty texts give 1, one empty text 0; where one has under 3 tokens, only equality
    counts. "Substantially similar" is above 0.8.

    Source:
        Jaccard (1901).

    Example:
        >>> overlap("disk full on node 17", "disk full on node 23")
        1.0
    """
    return _core.overlap(a, b)


def containment(a: Text, b: Text) -> float:
    """How much of ``a`` is in ``b``, 0 to 1: shared tokens over those of ``a``.

    Source:
        Broder (1997).

    Example:
        >>> containment("disk is full", "the disk is full again")
        1.0
    """
    return _core.containment(a, b)


def dice(a: Text, b: Text) -> float:
    """Twice the shared tokens over the sum of both, 0 to 1.

    Source:
        Dice (1945).

    Example:
        >>> dice("disk is full", "disk is empty")
        0.6666666666666666
    """
    return _core.dice(a, b)


def larger_share(a: Text, b: Text) -> float:
    """Shared tokens over those of the larger text, 0 to 1.

    Example:
        >>> larger_share("disk is full", "the disk is full")
        0.75
    """
    return _core.larger_share(a, b)


class TokenSets:
    """Many texts, taken apart once, to compare others with all of them in one call.

    Args:
        texts: str or bytes.
        threads: how many to use; 0 for as many as the machine has.

    Raises:
        TypeError: one of the texts is neither str nor bytes.

    Example:
        >>> sets = TokenSets(["disk full on node 17", "no route to host"])
        >>> list(sets.overlaps("disk full on node 23"))
        [1.0, 0.0]
    """

    __slots__ = ("_core",)

    def __init__(self, texts: Iterable[Text], *, threads: int = 0) -> None:
        self._core = _core.TokenSets(listed(texts), thread_count(threads))

    def __len__(self) -> int:
        return len(self._core)

    def overlaps(self, text: Text) -> array[float]:
        """`overlap` of the text with each, in their order.

        Returns:
            An array of doubles, 0 to 1; ``numpy.asarray`` takes it without a copy.
        """
        result = array("d")
        result.frombytes(self._core.overlaps(text))
        return result


def same_failure(a: Text | Failure, b: Text | Failure, threshold: float = THRESHOLD) -> bool:
    """Whether two failures are the same one.

    Decided on sites, never on whole logs. Both name failing tests, or both codes, and these differ:
    no. Equal fingerprints: yes. The same tests or codes, and sites that overlap above the
    threshold: yes; of one test only what both say is compared, and two tests or more of one pattern
    are enough (docs/design/grouping.md says why). The same pattern, such an overlap, and both sites
    specific: yes. Else no: a false merge is worse than a false split.

    Args:
        a: output of a tool, or a `loki.Failure`.
        b: the other one.
        threshold: the overlap above which sites are alike, 0 to 1.

    Raises:
        ValueError: the threshold is outside 0 to 1.

    Example:
        >>> same_failure("ValueError: bad port 8080", "ValueError: bad port 9090")
        True
    """
    if not 0 <= threshold <= 1:
        raise ValueError(f"found a threshold of {threshold}, expected 0 to 1")
    return _core.same_failure(as_failure(a).site(), as_failure(b).site(), threshold)


def same_site(a: _core.FailureSite, b: _core.FailureSite) -> bool:
    """`same_failure` of failures whose `Failure.site` is at hand, at its default threshold.

    Whoever compares one failure with many takes each site once.

    Args:
        a, b: two sites.
    """
    return _core.same_failure(a, b, THRESHOLD)

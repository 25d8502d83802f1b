"""How alike two texts are, and whether two failures are the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loki import _core

if TYPE_CHECKING:
    from loki.recognition.failure import Failure
    from loki.recognition.text import Text


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


def same_failure(a: Text | Failure, b: Text | Failure, threshold: float = 0.8) -> bool:
    """Whether two failures are the same one.

    Decided on sites, never on whole logs. Both name failing tests, or both codes, and these differ:
    no. Equal fingerprints: yes. The same tests or codes, and sites that overlap above the
    threshold: yes. The same pattern, such an overlap, and both sites specific: yes. Else no: a
    false merge is worse than a false split.

    Args:
        a: output of a tool, or a `loki.Failure`.
        b: the other one.
        threshold: the overlap above which sites are alike, 0 to 1.

    Example:
        >>> same_failure("ValueError: bad port 8080", "ValueError: bad port 9090")
        True
    """
    from loki.recognition.failure import as_failure

    return _core.same_failure(as_failure(a).site(), as_failure(b).site(), threshold)
